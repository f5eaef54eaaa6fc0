"""Eager as the oracle: run a function converted and not, and hold everything that can be seen against each other."""

from __future__ import annotations

import collections
import copy
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

import dy2static
from runtime.autodiff import gradient_path
from runtime.errors import Dy2StaticError

REFUSED = "eager refuses to differentiate this"
_NO_GRADIENT = (
    "modified by an inplace operation", "derivative for", "in at::autocast::prioritize",
    "returned an invalid gradient",  # out= gave a tensor with a history another shape
)  # fmt: skip


def same(a: Any, b: Any, path: str = "result", tolerance: float = 0.0) -> None:
    """Assert that two results are equal in type, structure and value."""
    if isinstance(a, torch.Tensor) or isinstance(b, torch.Tensor):
        assert isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor), f"{path}: {type(a)} and {type(b)}"
        assert a.dtype == b.dtype and a.shape == b.shape, f"{path}: {a.dtype}{tuple(a.shape)} {b.dtype}{tuple(b.shape)}"
        assert a.requires_grad == b.requires_grad, f"{path}: requires_grad {a.requires_grad} and {b.requires_grad}"
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, equal_nan=True, msg=lambda m: f"{path}: {m}")
        return
    assert type(a) is type(b), f"{path}: {type(a)} and {type(b)}"
    if isinstance(a, (list, tuple, collections.deque)):
        assert getattr(a, "maxlen", None) == getattr(b, "maxlen", None), f"{path}: maxlen"
        assert len(a) == len(b), f"{path}: {len(a)} and {len(b)} items"
        for index, (x, y) in enumerate(zip(a, b)):
            same(x, y, f"{path}[{index}]", tolerance)
    elif isinstance(a, dict):
        assert list(a) == list(b), f"{path}: {list(a)} and {list(b)}"
        for key in a:
            same(a[key], b[key], f"{path}[{key!r}]", tolerance)
    elif isinstance(a, float):
        assert a == b or (a != a and b != b) or abs(a - b) <= tolerance * max(abs(a), abs(b)), f"{path}: {a} and {b}"
    elif hasattr(a, "__dict__") and not callable(a):
        same(vars(a), vars(b), f"{path}.__dict__", tolerance)
    else:
        assert a == b or a is b, f"{path}: {a!r} and {b!r}"


def _tensors(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, (list, tuple)):
        return [t for item in value for t in _tensors(item)]
    if isinstance(value, dict):
        return [t for item in value.values() for t in _tensors(item)]
    return []


def _run(
    function: Callable[..., Any], args: Sequence[Any], seed: int, parameters: Sequence[Any] = (), scale: float = 1.0
) -> tuple[Any, list[Any], Any]:
    """Result or exception, gradients of the tensor arguments and parameters, the next random number.

    ``scale``: the loss is multiplied by it, and the gradients are divided by it.
    """
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)
    try:
        result = function(*args)
    except Exception as error:  # whatever eager raises is what is compared
        return error, [], None
    outputs = [t for t in _tensors(result) if t.requires_grad]
    leaves = [t for t in _tensors([*args, *parameters]) if t.requires_grad and t.is_leaf]
    grads: list[Any] = []
    if outputs and leaves:
        total = sum(
            (t.double().abs() * (index + 1)).sum() if not t.is_complex() else t.abs().sum()
            for index, t in enumerate(outputs)
        )
        try:
            found = torch.autograd.grad(total * scale if scale != 1.0 else total, leaves, allow_unused=True)
            grads = [grad if grad is None or scale == 1.0 else grad / scale for grad in found]
        except RuntimeError as error:  # eager refuses to differentiate this: nothing to compare
            if not any(words in str(error) for words in _NO_GRADIENT):
                raise
            grads = [REFUSED]
    return result, grads, torch.rand(())


def check(
    function: Callable[..., Any],
    *calls: Sequence[Any],
    tolerance: float = 0.0,
    static: Any = None,
    paths: Sequence[str] = ("program", "autograd"),
    none_is_zero: bool = False,
    gradient_tolerance: float | None = None,
    rounding: Sequence[float] = (),
    parameters: Sequence[Any] = (),
) -> Any:
    """Run one converted object on all calls; each must equal eager, or raise what eager raises.

    Values, Python types, structure, gradients, arguments changed in place and the random stream are compared.
    ``rounding``: gradients may differ by twice as much as eager's own do with the loss scaled by these numbers.
    ``parameters``: tensors that are no arguments, whose gradients are compared too.
    Returns the StaticFunction.
    """
    converted = static if static is not None else dy2static.to_static(function)
    for number, call in enumerate(calls):
        for path in paths:
            mine, theirs = _copy(call), _copy(call)
            expected = _run(function, theirs, number, parameters)
            with gradient_path(path):
                got = _run(converted, mine, number, parameters)
            where = f"call {number} ({path})"
            if isinstance(got[0], Dy2StaticError):
                raise got[0]
            if isinstance(expected[0], Exception):
                assert type(got[0]) is type(expected[0]), (
                    f"{where}: eager raises {expected[0]!r}, converted gives {got[0]!r}"
                )
                messages = [str(error).split("\n")[0] for error in (got[0], expected[0])]
                assert messages[0] == messages[1], f"{where} message: {messages[0]!r} and {messages[1]!r}"
                continue
            if isinstance(got[0], Exception):
                raise got[0]
            same(got[0], expected[0], where, tolerance)
            refused = [any(isinstance(grad, str) for grad in grads) for grads in (got[1], expected[1])]
            assert refused[0] == refused[1], f"{where} gradients refused: {refused[0]}, and in eager {refused[1]}"
            if not any(refused):
                if none_is_zero:
                    got, expected = _with_zeros(got), _with_zeros(expected)
                try:
                    same(got[1], expected[1], f"{where} gradients", gradient_tolerance or max(tolerance, 1e-6))
                except AssertionError:
                    runs = [_run(function, _copy(call), number, parameters, scale)[1] for scale in rounding]
                    if not _within(got[1], expected[1], runs):
                        raise
            same([_plain(a) for a in mine], [_plain(a) for a in theirs], f"{where} arguments", tolerance)
            same(got[2], expected[2], f"{where} random stream")
    return converted


def _within(got: list[Any], expected: list[Any], others: list[list[Any]]) -> bool:
    """Whether gradients differ by no more than rounding explains: twice what eager's own differ by."""
    for mine, theirs, *runs in zip(got, expected, *others):
        if (mine is None) != (theirs is None) or not runs:
            return False
        if mine is not None and (mine.shape, mine.dtype) != (theirs.shape, theirs.dtype):
            return False
        if mine is not None and (mine - theirs).abs().max() > 2 * max((run - theirs).abs().max() for run in runs):
            return False
    return True


def _with_zeros(run: tuple[Any, list[Any], Any]) -> tuple[Any, list[Any], Any]:
    """The run with gradients of zeros only left out, as those that do not exist."""
    return run[0], [None if grad is not None and not grad.any() else grad for grad in run[1]], run[2]


def _plain(value: Any) -> Any:
    return value if isinstance(value, (torch.Tensor, list, tuple, dict, int, float, str, bool, type(None))) else None


def _copy(call: Sequence[Any]) -> list[Any]:
    memo: dict[int, Any] = {}
    return [copy.deepcopy(item, memo) if not callable(item) else item for item in call]


def check_module(make: Callable[[], torch.nn.Module], *calls: Sequence[Any], tolerance: float = 0.0) -> torch.nn.Module:
    """As ``check`` for a module: parameters' gradients and buffers are compared too."""
    torch.manual_seed(1234)
    eager = make()
    layer = dy2static.to_static(copy.deepcopy(eager))
    for number, call in enumerate(calls):
        mine, theirs = _copy(call), _copy(call)
        results = []
        for module, args in ((layer, mine), (eager, theirs)):
            torch.manual_seed(number)
            module.zero_grad(set_to_none=True)
            result = module(*args)
            outputs = [t for t in _tensors(result) if t.requires_grad]
            if outputs:
                sum(t.double().abs().sum() for t in outputs).backward()
            results.append(
                (result, {name: p.grad for name, p in module.named_parameters()}, dict(module.named_buffers()))
            )
        where = f"call {number}"
        same(results[0][0], results[1][0], where, tolerance)
        same(results[0][1], results[1][1], f"{where} gradients", max(tolerance, 1e-6))
        same(results[0][2], results[1][2], f"{where} buffers", tolerance)
    return layer
