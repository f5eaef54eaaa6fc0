"""A tensor that an exception carries out of a converted function has eager's history: its gradient reaches the leaves,
and an argument or parameter is the caller's own."""

from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static


class Held(Exception):
    def __init__(self, t: Any, text: str) -> None:
        super().__init__(text)
        self.t = t


_LAYER = torch.nn.Linear(2, 2)


def computed(x, w):
    y = x * w
    if y.sum() > 0:
        raise Held(y, f"bad {y.sum()}")
    return y


def argument(x, w):
    y = x * w
    if y.sum() > 0:
        raise Held(x, "x")
    return y


def positional(x, w):
    y = x * w
    if y.sum() > 0:
        raise ValueError(y, "y", w)
    return y


def in_a_loop(x, w):
    y = x * w
    while y.sum() > 0:
        y = y * 1.5
        if y.sum() > 50:
            raise Held(y, "large")
    return y


def with_a_gradient_inside(x, w):
    y = x * w
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    if y.sum() > 0:
        raise Held(y * g, "y")
    return y


def caught_and_raised_again(x, w):
    def check(a):
        if a.sum() > 0:
            raise Held(a, "a")
        return a

    y = x * w
    try:
        y = check(y)
    except Held as error:
        y = error.t * 2
        raise ValueError(y) from None
    return y


def one_of_several(x, w):
    error = Held(x * w, "product") if x.sum() > 0 else Held(x - w, "difference")
    raise error


def parameter(x, w):
    y = _LAYER(x)
    if y.sum() != 0:
        raise Held(_LAYER.weight, "w")
    return y * w


def in_a_list(x, w):
    y = _LAYER(x) * w
    if y.sum() != 0:
        raise Held([y, {"x": x}], "y")
    return y


def detached(x, w):
    y = (x * w).detach()
    if y.sum() > 0:
        raise Held(y, "y")
    return x * w


_FUNCTIONS = [
    computed, argument, positional, in_a_loop, with_a_gradient_inside, caught_and_raised_again, one_of_several,
    parameter, in_a_list, detached,
]  # fmt: skip


def _held(error: BaseException) -> list[Any]:
    found = getattr(error, "t", None)
    found = list(error.args) if found is None else found if isinstance(found, list) else [found]
    return [one["x"] if isinstance(one, dict) else one for one in found if not isinstance(one, str)]


def _tell(f, x, w):
    """What an exception of a call says and holds, and what the gradient of that gives the leaves."""
    for one in (x, w, _LAYER.weight, _LAYER.bias):
        one.grad = None
    with pytest.raises((Held, ValueError)) as caught:
        f(x, w)
    held = _held(caught.value)
    own = [next((name for name, mine in (("x", x), ("w", w), ("weight", _LAYER.weight)) if one is mine), None)
           for one in held]  # fmt: skip
    needs = [one for one in held if one.requires_grad]
    if needs:
        sum(one.square().sum() for one in needs).backward()
    told = (type(caught.value), str(caught.value), own, [one.requires_grad for one in held])
    return told, [one.detach() for one in held] + [one.grad for one in (x, w, _LAYER.weight, _LAYER.bias)]


@pytest.mark.parametrize("needs", [True, False], ids=["with gradients", "without"])
@pytest.mark.parametrize("f", _FUNCTIONS, ids=lambda f: f.__name__)
def test_what_an_exception_holds_has_its_history(f, needs):
    if f is with_a_gradient_inside and not needs:
        pytest.skip("eager has no gradient there")
    static = to_static(f)
    x = torch.tensor([1.0, 2.0], requires_grad=needs)
    w = torch.tensor([0.5, 3.0], requires_grad=needs)
    told, tensors = _tell(f, x, w)
    for _ in range(2):
        told_static, tensors_static = _tell(static, x, w)
        assert told_static == told
        for expected, given in zip(tensors, tensors_static, strict=True):
            assert (expected is None) == (given is None)
            if expected is not None:
                torch.testing.assert_close(given, expected)


@pytest.mark.parametrize("f", [positional, caught_and_raised_again], ids=lambda f: f.__name__)
def test_of_a_loaded_program(f, tmp_path):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([0.5, 3.0], requires_grad=True)
    static = to_static(f)
    told, tensors = _tell(static, x, w)
    dy2static.save(static, tmp_path / "f")
    loaded = dy2static.load(tmp_path / "f")
    told_loaded, tensors_loaded = _tell(loaded, x, w)
    assert told_loaded == told
    for expected, given in zip(tensors, tensors_loaded, strict=True):
        assert (expected is None) == (given is None)
        if expected is not None:
            torch.testing.assert_close(given, expected)
