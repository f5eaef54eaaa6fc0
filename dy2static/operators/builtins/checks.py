"""``torch._check*``, ``torch._assert*`` and the ``torch.sym_*`` functions that torch's own code cannot stage.

    torch._check_value(n > 0, lambda: f"bad {n}")   ->   if not n > 0: raise ValueError(f"bad {n}")

The exception and its message are eager's. On the main path torch's shape rules learn the fact as well.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.builtins import mathematics, reporting
from dy2static.operators.builtins.objects import eager_type
from dy2static.operators.calls.call import call
from dy2static.operators.calls.torch_values import to_torch
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, Staged, distribute
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.torch_internals import TORCH_CHECKS
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.control import cond as tracer_cond

_UNSAID = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please report an "
    "enhancement request to PyTorch.)"
)


def _require(session: Session, flag: Any, fail: Callable[[], None]) -> None:
    """Run ``fail``, which raises, where the flag is false."""
    if is_a(flag, Staged):
        tracer_cond.cond(session, flag, lambda: None, fail, NO_NAMES)
    elif not flag:
        fail()


def _check_with(session: Session, error_type: Any, cond: Any, message: Any = None) -> None:
    if is_a(cond, Choice):
        distribute(session, cond, lambda option: _check_with(session, error_type, option, message))
        return
    if not (is_a(cond, Staged) and cond.kind == "bool"):
        if is_a(cond, Staged):
            raise TypeError(f"cond must be a bool, but got {eager_type(cond)}")
        if cond is not False:
            theirs(TORCH_CHECKS["with"], error_type, cond, message)  # nothing, or what eager raises
            return

    def fail() -> None:
        if message is None:
            raise error_type(_UNSAID)
        if not callable(message):
            raise TypeError("message must be a callable")
        raise error_type(call(str, call(message)))

    _require(session, cond, fail)
    if is_a(cond, Staged) and session.scope.parent is None:
        with contextlib.suppress(RuntimeError):
            torch_internals.expect(to_torch(session, cond))


def _check(error_type: type[Exception]) -> Callable[..., None]:
    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        _check_with(session, error_type, *args, **kwargs)

    return apply


def _check_with_given(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _check_with(session, *args, **kwargs)


def _check_is_size(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def apply(i: Any, message: Any = None, *, max: Any = None) -> None:
        if said is not None:
            reporting.warn(session, said, FutureWarning)
        _check_with(session, RuntimeError, i >= 0, message)
        if max is not None:
            _check_with(session, RuntimeError, i <= max, message)

    said = getattr(TORCH_CHECKS["is_size"], "__deprecated__", None)
    apply(*args, **kwargs)


def _check_all_with(session: Session, error_type: Any, cond: Any, message: Any = None) -> None:
    if not is_a(cond, torch.Tensor):
        raise TypeError(f"cond must be a tensor, but got {eager_type(cond)}")
    if cond.dtype != torch.bool:
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(session, error_type, cond.all().item(), message)


def _check_all(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _check_all_with(session, RuntimeError, *args, **kwargs)


def _check_all_with_given(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    _check_all_with(session, *args, **kwargs)


def _assert(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def apply(condition: Any, message: Any) -> None:
        def fail() -> None:
            raise AssertionError(message)

        _require(session, truth_of(session, condition), fail)

    apply(*args, **kwargs)


def _assert_scalar(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    def apply(value: Any, message: str) -> None:
        def fail() -> None:
            raise RuntimeError(message)

        _require(session, truth_of(session, value), fail)

    apply(*args, **kwargs)


def _assert_metadata(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Sizes, strides and dtype are known while tracing: a tensor that looks the same is asked, for eager's message."""
    metadata = TORCH_CHECKS["assert_tensor_metadata"]
    tensor = args[0] if args else None
    if not is_a(tensor, torch.Tensor) or any(type(n) is not int for n in (*tensor.shape, *tensor.stride())):
        metadata(*args, **kwargs)
        return
    with torch_internals.no_modes():
        same = torch.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=tensor.device)
        metadata(same, *args[1:], **kwargs)


def _ite(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def apply(b: Any, t: Any, f: Any) -> Any:
        if not is_a(b, Staged) or b.kind != "bool":
            return torch.sym_ite(b, t, f)
        if eager_type(t) is not eager_type(f):
            raise AssertionError(f"type mismatch: {eager_type(t)} vs {eager_type(f)}")
        return session.scalar("select", b, t, f)

    return apply(*args, **kwargs)


def _of_math(name: str) -> Callable[..., Any]:
    function = getattr(math, name)

    def apply(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        return mathematics.numeric(f"scalar.math.{name}", function)(session, args, kwargs)

    return apply


def _fresh_size(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def apply(expr: Any) -> Any:
        return call(call(torch.tensor, expr).item)

    return apply(*args, **kwargs)


_MEANINGS: dict[str, Any] = {
    "check": _check(RuntimeError), "index": _check(IndexError), "value": _check(ValueError),
    "type": _check(TypeError), "not_implemented": _check(NotImplementedError), "with": _check_with_given,
    "is_size": _check_is_size, "tensor_all": _check_all, "tensor_all_with": _check_all_with_given,
    "assert": _assert, "assert_scalar": _assert_scalar, "assert_tensor_metadata": _assert_metadata,
}  # fmt: skip

HANDLERS: list[tuple[Any, Any]] = [
    *((TORCH_CHECKS[name], meaning) for name, meaning in _MEANINGS.items()
      if name in TORCH_CHECKS),
    (torch.sym_ite, _ite), (torch.sym_fresh_size, _fresh_size),
    *((function, _of_math(name)) for name, function in torch_internals.SYMBOLIC_MATH.items()),
]  # fmt: skip
