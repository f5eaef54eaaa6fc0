"""``torch.autograd.backward`` in code that is not converted, which no mode of torch's is told of."""

from __future__ import annotations

import types
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import not_to_static, to_static
from tests.oracle import same

X = torch.tensor([1.0, -2.0])


@not_to_static
def plain(loss: torch.Tensor, *args: Any, **kwargs: Any) -> None:
    torch.autograd.backward(loss, *args, **kwargs)


@not_to_static
def imported(loss: torch.Tensor, **kwargs: Any) -> None:
    from torch.autograd import backward

    backward((loss,), **kwargs)


def once(space: Any, x: torch.Tensor) -> torch.Tensor:
    plain((x * space.w).sum())
    return space.w.grad * 1


def by_import(space: Any, x: torch.Tensor) -> torch.Tensor:
    y = x * space.w
    imported((y * y).sum(), inputs=[space.w])
    return space.w.grad * 1


def given(space: Any, x: torch.Tensor) -> torch.Tensor:
    plain(x * space.w, torch.tensor([2.0, 3.0]), retain_graph=True)
    return space.w.grad * 1


def on_a_path(space: Any, x: torch.Tensor) -> torch.Tensor:
    y = (x * space.w).sum()
    if x.sum() > 0:
        plain(y)
    else:
        plain(y * 2)
    return space.w.grad * 1


def leaf_made_inside(space: Any, x: torch.Tensor) -> Any:
    w = x.detach().clone().requires_grad_()
    plain((w * w).sum())
    return w.grad


def old_keyword(space: Any, x: torch.Tensor) -> torch.Tensor:
    plain(x * space.w, grad_variables=torch.ones(2))
    return space.w.grad * 1


def by_position(space: Any, x: torch.Tensor) -> torch.Tensor:
    torch.autograd.backward(x * space.w, None, None, False, torch.ones(2))
    return space.w.grad * 1


def outcome(function: Callable[..., Any], x: torch.Tensor) -> tuple[Any, Any, list[tuple[str, type]]]:
    """The result, the gradient, and the warnings."""
    space = types.SimpleNamespace(w=torch.tensor([2.0, 3.0], requires_grad=True))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = function(space, x)
    return result, space.w.grad, [(str(one.message), one.category) for one in caught]


FUNCTIONS = [once, by_import, given, on_a_path, leaf_made_inside, old_keyword, by_position]


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("x", [X, -X], ids=["first", "second"])
def test_it_is_staged(function: Callable[..., Any], x: torch.Tensor) -> None:
    static = to_static(function)
    for _ in range(2):
        same(outcome(static, x), outcome(function, x))


def test_both_keywords_raise_as_in_eager() -> None:
    def both(space: Any, x: torch.Tensor) -> None:
        torch.autograd.backward(x * space.w, torch.ones(2), grad_variables=torch.ones(2))

    messages = []
    for one in (both, to_static(both)):
        with pytest.raises(RuntimeError, match="both passed") as raised, pytest.warns(FutureWarning):
            one(types.SimpleNamespace(w=torch.ones(2, requires_grad=True)), X)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]


def test_after_a_trace_it_is_torchs_own() -> None:
    code = torch.autograd.backward.__code__
    to_static(once)(types.SimpleNamespace(w=torch.ones(2, requires_grad=True)), X)
    assert torch.autograd.backward.__code__ is code
    w = torch.ones(2, requires_grad=True)
    torch.autograd.backward((w * 3).sum())
    assert w.grad is not None and w.grad.tolist() == [3.0, 3.0]
