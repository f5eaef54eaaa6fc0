"""A gradient asked for inside uses up the graph on the path that asked for it, and on no other."""

from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static


def in_a_branch(x, w):
    y = (x * w).sin()
    if x.sum() > 0:
        y.sum().backward()
    return y


def on_both_paths(x, w):
    y = (x * w).sin()
    z = (x * w).cos()
    if x.sum() > 0:
        y.sum().backward()
    else:
        z.sum().backward()
    return y, z


def another_value_on_the_path(x, w):
    y = (x * w).sin()
    if x.sum() > 0:
        y.sum().backward()
        return y.detach() * w.exp()
    return y * 2


def retained(x, w):
    y = (x * w).sin()
    if x.sum() > 0:
        y.sum().backward(retain_graph=True)
    return y


def nested(x, w):
    y = (x * w).sin()
    if x.sum() > 0:
        if x.sum() > 3:
            y.sum().backward()
        else:
            y = y + 1
    return y


def by_grad(x, w):
    y = (x * w).sin()
    g = w
    if x.sum() > 0:
        (g,) = torch.autograd.grad(y.sum(), w)
    return y, g


def in_a_loop(x, w):
    y = (x * w).sin()
    n = x.sum()
    while n > 0:
        y = (x * w * n).sin()
        y.sum().backward()
        n = n - 2.0
    return y


def in_one_iteration(x, w):
    y = (x * w).sin()
    n = x.sum()
    i = 0
    while n > 0:
        z = (x * w * n).sin()
        if n < 2:
            z.sum().backward()
        y = y + z
        n = n - 2.0
        i = i + 1
    return y, i


def a_view(x, w):
    y = (x * w).sin()
    v = y[:1]
    if x.sum() > 0:
        y.sum().backward()
    return v, y


def keeps_nothing(x, w):
    y = x + w
    if x.sum() > 0:
        y.sum().backward()
    return y


def before_and_in_the_branch(x, w):
    y = (x * w).sin()
    y.sum().backward()
    if x.sum() > 0:
        y = (x * w).cos()
    return y


def asked_again_inside(x, w):
    y = (x * w).sin()
    if x.sum() > 0:
        y.sum().backward()
        y = y.detach() * w
    (g,) = torch.autograd.grad(y.sum(), w)
    return g


def asked_again_inside_and_raises(x, w):
    y = (x * w).sin()
    if x.sum() > 0:
        y.sum().backward()
    (g,) = torch.autograd.grad(y.sum(), w)
    return g


def _tell(f: Any, start: float) -> tuple[list[Any], str]:
    """What a call gives, the gradients that it left and those of its results; and what raised on the way."""
    x = torch.full((2,), start, requires_grad=True)
    w = torch.tensor([0.5, 2.0], requires_grad=True)
    found: list[Any] = []
    try:
        results = f(x, w)
        results = results if isinstance(results, tuple) else (results,)
        for one in results:
            found.append(one.detach().clone() if isinstance(one, torch.Tensor) else one)
        found += [None if one.grad is None else one.grad.clone() for one in (x, w)]
        for one in results:
            if isinstance(one, torch.Tensor):
                found.append(one.requires_grad)
                if one.requires_grad:
                    one.square().sum().backward(retain_graph=True)
        found += [x.grad, w.grad]
    except RuntimeError as error:
        return found, str(error).split("(")[0]
    return found, ""


@pytest.mark.parametrize("f", [
    in_a_branch, on_both_paths, another_value_on_the_path, retained, nested, by_grad, in_a_loop, in_one_iteration,
    a_view, keeps_nothing, before_and_in_the_branch, asked_again_inside, asked_again_inside_and_raises,
], ids=lambda f: f.__name__)  # fmt: skip
@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
def test_the_graph_is_used_up_on_the_path_that_asked(f):
    static = to_static(f)
    raised = []
    for start in (-1.0, 0.5, 1.0, 2.0, -2.0, 0.5):
        expected, why = _tell(f, start)
        given, why_static = _tell(static, start)
        assert why_static == why, start
        assert len(given) == len(expected)
        for one, other in zip(expected, given, strict=True):
            if isinstance(one, torch.Tensor):
                torch.testing.assert_close(other, one)
            else:
                assert other == one, start
        raised.append(bool(why))
    if f in (in_a_branch, nested, in_a_loop):
        assert True in raised and False in raised


def test_of_a_loaded_program(tmp_path):
    static = to_static(by_grad)
    _tell(static, 1.0)
    _tell(static, -1.0)
    dy2static.save(static, tmp_path / "f")
    loaded = dy2static.load(tmp_path / "f")
    for start in (-1.0, 0.5):
        expected, why = _tell(by_grad, start)
        given, why_loaded = _tell(loaded, start)
        assert why_loaded == why
        torch.testing.assert_close([one for one in given if isinstance(one, torch.Tensor)],
                                   [one for one in expected if isinstance(one, torch.Tensor)])  # fmt: skip
