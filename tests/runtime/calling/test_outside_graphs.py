"""A gradient that a function asks for itself, where the caller computed an argument of what it is asked by: eager's
gradient goes on through the caller's graph. Such calls are refused, others give eager's gradients."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
import runtime
from dy2static import EagerWarning, SignatureError, TraceError, to_static
from tests import oracle

OUTER = torch.full((3,), 1.5, requires_grad=True)
OTHER = torch.full((3,), 0.5, requires_grad=True)


def by_argument(w, y):
    return torch.autograd.grad((w * y).sum(), w)[0]


def unless_unused(w, y):
    return torch.autograd.grad((w.detach() * y).sum(), w, allow_unused=True)[0]


def twice(w, y):
    (first,) = torch.autograd.grad((w * y).pow(3).sum(), w, create_graph=True)
    return torch.autograd.grad(first.sum(), w)[0]


def on_a_path(w, y):
    if w.sum() > 0:
        return torch.autograd.grad((w * y).sum(), w)[0]
    return w * 2


def in_a_loop(w, y):
    total = torch.zeros(3)
    while total.sum() < 4:
        total = total + torch.autograd.grad((w * y).sum(), w)[0].abs()
    return total


def by_one_of_two(w, y):
    z = w if w.sum() > 0 else w * 2
    return torch.autograd.grad((z * y).sum(), z)[0]


def by_what_a_loop_changes(w, y):
    z = w
    while z.sum() < 10:
        g = torch.autograd.grad((z * y).sum(), z)[0]
        z = (z + g.abs() + 1).detach().requires_grad_()
    return z.detach()


def through_a_loop(w, y):
    z = y
    while z.sum() < 20:
        z = z * 2
    return torch.autograd.grad((w * z).sum(), w)[0]


FUNCTIONS = [
    by_argument, unless_unused, twice, on_a_path, in_a_loop, by_one_of_two, by_what_a_loop_changes, through_a_loop,
]  # fmt: skip

COMPUTED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "scaled": lambda w: w * 2,
    "far behind": lambda w: (w.exp() + 1).sum().expand(3) * 1.0,
    "a view": lambda w: w.view(3),
}


def leaf() -> torch.Tensor:
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


@pytest.mark.parametrize("how", COMPUTED)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_what_was_computed_of_it_is_refused(function: Callable[..., Any], how: str) -> None:
    w = leaf()
    with pytest.raises(TraceError, match="which the caller computed of it|what the caller computed") as caught:
        to_static(function)(w, COMPUTED[how](w))
    assert caught.value.code == "D2S213" and caught.value.location is not None


@pytest.mark.parametrize("function", [one for one in FUNCTIONS if one is not unless_unused], ids=lambda f: f.__name__)
def test_what_was_computed_of_others_is_not(function: Callable[..., Any]) -> None:
    static = to_static(function)
    for source in (OTHER, OTHER * 3, leaf(), torch.ones(3)):
        w = leaf()
        for y in (source * 2, source.detach() + 1, (w * 2).detach()):
            oracle.same(static(w, y), function(w, y))


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_a_later_call_is_asked_as_well(function: Callable[..., Any]) -> None:
    w = leaf()
    static = to_static(function)
    static(w, OTHER * 2)
    with pytest.raises(TraceError, match="'w'.*'y', which the caller computed of it") as caught:
        static(w, w * 2)
    assert caught.value.code == "D2S213" and caught.value.location is not None
    assert len(static.programs) == 1, "no trace is made for it"


def test_a_file_takes_nothing_that_was_computed(tmp_path: Path) -> None:
    w = leaf()
    static = to_static(by_argument)
    static(w, leaf())
    dy2static.save(static, tmp_path / "saved")
    loaded = runtime.load(tmp_path / "saved")
    oracle.same(loaded(w, OTHER), by_argument(w, OTHER))
    with pytest.raises(SignatureError, match="D2S319"):
        loaded(w, w * 2)


def test_by_a_tensor_from_outside_and_by_a_parameter() -> None:
    linear = torch.nn.Linear(3, 3)

    def by_outer(y):
        return torch.autograd.grad((OUTER * y).sum(), OUTER)[0]

    def by_weight(y):
        return torch.autograd.grad(linear(y).sum(), linear.weight)[0]

    for function, source in ((by_outer, OUTER), (by_weight, linear.weight.sum(0))):
        static = to_static(function)
        oracle.same(static(OTHER * 2), function(OTHER * 2))
        with pytest.raises(TraceError) as caught:
            static(source * 2)
        assert caught.value.code == "D2S213"


def test_by_what_is_no_leaf() -> None:
    w = leaf()
    inner = w * 2
    static = to_static(by_argument)
    oracle.same(static(inner, w * 3), by_argument(inner, w * 3))
    with pytest.raises(TraceError):
        static(inner, inner + 1)


def test_plain_python_takes_over_where_it_may() -> None:
    w = leaf()
    static = to_static(by_argument, full_graph=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EagerWarning)
        oracle.same(static(w, w * 2), by_argument(w, w * 2))


def test_backend_c() -> None:
    w = leaf()
    static = to_static(by_argument, backend="c")
    oracle.same(static(w, OTHER * 2), by_argument(w, OTHER * 2))
    with pytest.raises(TraceError):
        static(w, w * 2)
