"""Every operator between results that depend on each other: gradients asked of all of them, of some, of one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import difference
from tests.runtime.ops.calls import CALLS, UNARY, S

Tensors = list[torch.Tensor]


def alone(given: Tensors, results: Tensors) -> Tensors:
    return results


def in_stages(given: Tensors, results: Tensors) -> Tensors:
    return [*given, *results, *(_again(one) * 2 + one / (one.detach() + 2) for one in results)]


def under_two_names(given: Tensors, results: Tensors) -> Tensors:
    return [*given, *(one * one.contiguous() for one in results), *results]


def _again(one: torch.Tensor) -> torch.Tensor:
    return one.float() if one.dtype == torch.float32 else one


def _all_calls() -> list[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    every = [*((*call, {})[:3] for call in CALLS), *((name, (S,), {}) for name in UNARY)]
    return [
        (name, args, kwargs) for name, args, kwargs in every
        if not name.partition(".")[0].endswith("_") and any(one.dtype == torch.float32 for one in _leaves(args))
    ]  # fmt: skip


def _leaves(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _leaves(one)


def _with(value: Any, tensors: Iterator[torch.Tensor]) -> Any:
    if isinstance(value, torch.Tensor):
        return next(tensors)
    return type(value)(_with(one, tensors) for one in value) if isinstance(value, (list, tuple)) else value


def _gradients(function: Callable[..., Tensors], tensors: Sequence[torch.Tensor], asked: slice) -> list[Any]:
    """The gradients of the inputs, from weighted sums of some results; the number of results."""
    inputs = [one.detach().clone().requires_grad_(one.dtype == torch.float32) for one in tensors]
    torch.manual_seed(0)
    results = function(*inputs)
    total: Any = 0
    for one in results[asked]:
        if one.requires_grad:
            total = total + (one * torch.arange(1.0, one.numel() + 1).reshape(one.shape)).sum()
    if isinstance(total, torch.Tensor):
        (total.real if total.is_complex() else total).backward()
    return [*(one.grad for one in inputs), len(results)]


CALLS_WITH_FLOATS = _all_calls()


@pytest.mark.sample(6)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("ways", [alone, in_stages, under_two_names], ids=lambda one: one.__name__)
@pytest.mark.parametrize("number", range(len(CALLS_WITH_FLOATS)), ids=[name for name, _, _ in CALLS_WITH_FLOATS])
def test_as_eager(number: int, ways: Callable[[Tensors, Tensors], Tensors]) -> None:
    name, args, kwargs = CALLS_WITH_FLOATS[number]
    packet, _, overload = name.partition(".")
    found: Any = getattr(torch.ops.aten, packet)
    operator = getattr(found, overload) if overload else found

    def function(*inputs: torch.Tensor) -> Tensors:
        given = [torch.sin(one) * 0.5 + 0.4 if one.dtype == torch.float32 else one for one in inputs]
        results = [
            one for one in _leaves(operator(*_with(args, iter(given)), **kwargs))
            if one.is_floating_point() or one.is_complex()
        ]  # fmt: skip
        return ways([one for one in given if one.dtype == torch.float32], results)

    tensors, converted = list(_leaves(args)), to_static(function)
    for asked in (slice(None), slice(-1, None), slice(1), slice(1, None), slice(None, None, 2)):
        try:
            expected = _gradients(function, tensors, asked)
        except (RuntimeError, NotImplementedError):  # eager has no gradient
            continue
        try:
            got = _gradients(converted, tensors, asked)
        except Dy2StaticError as error:
            assert error.code in ("D2S222", "D2S235", "D2S213"), str(error)  # refused
            return
        assert not difference(got, expected, tolerance=1e-4), asked
