"""``try`` around what may raise only while the Program runs: no handler can catch that, so it is refused.

    try:
        if x.sum() > 0:           # both paths are traced; the Program raises, long after the handler is gone
            raise ValueError
    except ValueError:
        ...
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Operand, TensorType, Variable

if TYPE_CHECKING:
    from runtime.tracer.session import Session

_RAISES: dict[str, type[BaseException]] = {
    "scalar.truediv": ZeroDivisionError, "scalar.floordiv": ZeroDivisionError, "scalar.mod": ZeroDivisionError,
    "array.get": IndexError, "array.set": IndexError, "array.pop": IndexError,
    "scalar.math.sqrt": ValueError, "scalar.math.log": ValueError,
}  # fmt: skip
_LINEAR_ALGEBRA = frozenset({
    "cholesky", "linalg_cholesky", "linalg_inv", "inverse", "linalg_solve", "linalg_lu_factor", "linalg_lu_solve",
    "linalg_lstsq", "linalg_eigh", "linalg_eig", "linalg_eigvals", "linalg_eigvalsh", "linalg_svd", "linalg_svdvals",
    "linalg_tensorinv", "linalg_tensorsolve", "linalg_matrix_power", "linalg_pinv", "linalg_ldl_factor",
})  # fmt: skip
_INDEXING = frozenset({"index", "index_select", "gather", "embedding", "take", "select"})
"""Handlers that name IndexError are for these; broader ones stand around code that indexes without fear."""


def _of_aten(name: str, caught: Any) -> type[BaseException] | None:
    """What an ATen operator may raise for its data, as far as a handler for ``caught`` is about that."""
    operator = name.split(".")[1]
    if operator in _LINEAR_ALGEBRA:
        return torch.linalg.LinAlgError
    return IndexError if operator in _INDEXING and caught in (IndexError, LookupError) else None


def _is_in_range(session: Session, name: str, args: Sequence[Operand]) -> bool:
    """Whether an index is known while tracing, and so is the size it must be smaller than."""
    if name == "aten.select.int":
        return type(args[2]) is int  # torch has compared it with the size
    source = args[0].type if args and isinstance(args[0], Variable) else None
    if name != "aten.index.Tensor" or not isinstance(source, TensorType) or source.shape is None:
        return False
    indices = args[1]
    if not isinstance(indices, (list, tuple)) or len(indices) > len(source.shape):
        return False
    for index, size in zip(indices, source.shape):
        known = session.literals.get(index) if isinstance(index, Variable) else None
        if index is not None and (
            known is None or type(size) is not int or known.dtype == torch.bool
            or bool(((known < -size) | (known >= size)).any())
        ):  # fmt: skip
            return False
    return True


def require_uncaught(session: Session, name: str, args: Sequence[Operand], attrs: dict[str, Any]) -> None:
    """Refuse an Operator that may raise what an ``except`` clause around it names.

    Raises:
        TraceError: The clause would not see the exception.
    """
    if name.startswith("aten."):
        if not _is_in_range(session, name, args):
            _require(session, lambda caught: _of_aten(name, caught))
        return
    if name in ("raise", "assert"):
        exception = str(attrs.get("exception", ""))
        error = getattr(builtins, exception, None) or session.raised_types.get(exception)
        if name == "assert" and error is RuntimeError:
            return
    else:
        error = _RAISES.get(name)
    if isinstance(error, type) and issubclass(error, BaseException):
        require_uncaught_type(session, error)


def require_uncaught_type(session: Session, error: type[BaseException]) -> None:
    """The same for what may raise ``error``: that an index is the user's own, say, its Operator does not tell.

    Raises:
        TraceError: The clause would not see the exception.
    """
    _require(session, lambda caught: error)


@dataclass(frozen=True)
class Passed:
    """What an ``except`` clause names that does nothing but ``raise``: the exception comes out as it went in."""

    types: Any


def _handlers(caught: Any, passes: bool = False) -> Iterator[tuple[Any, bool]]:
    """The exception types that the clauses of a ``try`` name, in order, and whether theirs only raises again."""
    if isinstance(caught, Passed):
        yield from _handlers(caught.types, True)
    elif isinstance(caught, tuple):
        for one in caught:
            yield from _handlers(one, passes)
    else:
        yield caught, passes


def _require(session: Session, error_for: Callable[[Any], type[BaseException] | None]) -> None:
    for types in session.catching:
        for caught, passes in _handlers(types()):
            error = error_for(caught)
            if error is None or not isinstance(caught, type) or not issubclass(error, caught):
                continue
            if passes:
                break
            raise session.error(
                f"whether this raises {error.__name__} is only known while the Program runs, where the except "
                f"{caught.__name__} around it cannot catch it",
                hint="Test the condition with if instead, or move the try out of the converted function.",
                code="D2S229",
            )
