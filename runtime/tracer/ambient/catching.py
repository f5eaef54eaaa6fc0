"""``try`` around what may raise only while the Program runs: no handler can catch that, so it is refused.

    try:
        if x.sum() > 0:           # both paths are traced; the Program raises, long after the handler is gone
            raise ValueError
    except ValueError:
        ...
"""

from __future__ import annotations

import builtins
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Operand, ScalarType, TensorType, Variable
from runtime.ops.scalar import FUNCTIONS
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.ambient.session_parts import ITEMS, VALUE, SessionPart, state

if TYPE_CHECKING:
    from runtime.errors import Dy2StaticError
    from runtime.ir import Location
    from runtime.tracer.recording.session import Session


@dataclass(eq=False)
class Exceptions(SessionPart):
    """The exceptions that the trace has to do with."""

    catching: list[Callable[[], Any]] = state(ITEMS, list)
    """What the ``except`` clauses of the ``try`` statements around this point catch, innermost last."""
    escape: Any = state(VALUE)
    """The result of a call that an exception left on some paths, until its caller has looked at it."""
    escape_place: Location | None = state(VALUE)
    """Where that call stands."""
    raising: BaseException | None = state(VALUE)
    """The exception that is being recorded as one of the Program's."""
    raised_types: dict[str, type[BaseException]] = state(ITEMS, dict)
    """Exception classes that ``raise`` Operators name, other than builtins."""
    last_error: Dy2StaticError | None = state(VALUE)


_RAISES: dict[str, type[BaseException]] = {
    "scalar.truediv": ZeroDivisionError, "scalar.floordiv": ZeroDivisionError, "scalar.mod": ZeroDivisionError,
    "array.get": IndexError, "array.set": IndexError, "array.pop": IndexError,
    "scalar.str.getitem": IndexError, "scalar.math.sqrt": ValueError, "scalar.math.log": ValueError,
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
        known = session.values.literals.get(index) if isinstance(index, Variable) else None
        if index is not None and (
            known is None or type(size) is not int or known.dtype == torch.bool
            or bool(((known < -size) | (known >= size)).any())
        ):  # fmt: skip
            return False
    return True


_SAMPLES: dict[str, tuple[Any, ...]] = {
    "int": (0, -3, 3), "float": (0.0, -2.5, 1e308, float("inf"), float("nan")), "bool": (False, True), "str": ("", "x"),
}  # fmt: skip
_OF_VALUES = (ArithmeticError, ValueError)
"""What a function of numbers raises for its values. Broader handlers stand around code that has no such fear."""


def _of_numbers(name: str, args: Sequence[Operand]) -> frozenset[type[BaseException]]:
    """What a scalar Operator may raise for the values it may get."""
    if name == "scalar.exact.fsum":
        return frozenset({ValueError, OverflowError})
    if name in ("scalar.exact.geometric_mean", "scalar.exact.harmonic_mean"):
        return frozenset({ValueError})
    operands: list[Any] = []
    for arg in args:
        if not isinstance(arg, Variable):
            operands.append((type(arg), arg))
        elif isinstance(arg.type, ScalarType) and arg.type.kind in _SAMPLES:
            operands.append(arg.type.kind)
        else:
            return frozenset()
    if len(operands) > 3:
        return frozenset()
    return _raised(name, tuple(operands))


@functools.lru_cache(maxsize=1024)
def _raised(name: str, operands: tuple[Any, ...]) -> frozenset[type[BaseException]]:
    """Found out by trying: ``int`` of an infinite float raises OverflowError, of NaN a ValueError."""
    found = set()
    for values in itertools.product(*(_SAMPLES[one] if isinstance(one, str) else (one[1],) for one in operands)):
        try:
            FUNCTIONS[name](*values)
        except _OF_VALUES as error:
            found.add(type(error))
        except (TypeError, LookupError):  # not for such operands at all, or see ``_RAISES``
            pass
    return frozenset(found)


def require_uncaught(session: Session, name: str, args: Sequence[Operand], attrs: dict[str, Any]) -> None:
    """Refuse an Operator that may raise what an ``except`` clause around it names.

    Raises:
        TraceError: The clause would not see the exception.
    """
    divided = False
    if name.startswith("aten."):
        if not _is_in_range(session, name, args):
            _require(session, lambda caught: _of_aten(name, caught), last_items=False)
        return
    if name in ("raise", "assert"):
        exception = str(attrs.get("exception", ""))
        error = getattr(builtins, exception, None) or session.exceptions.raised_types.get(exception)
        if name == "assert" and error is RuntimeError:
            return
        if name == "assert" and error is UnboundLocalError:  # surely bound in most code, which only the run can tell
            _require(session, lambda caught: error if caught in (NameError, UnboundLocalError) else None)
            return
        _require_route(session, error)
    else:
        error = _RAISES.get(name)
        divided = error is ZeroDivisionError and _is_divisor(session, args[1])
        error = None if divided or error is ValueError and _fits(session, name, args[0], ValueError) else error
    if isinstance(error, type) and issubclass(error, BaseException):
        require_uncaught_type(session, error)
    for kind in _of_numbers(name, args) if name in FUNCTIONS else ():
        if kind is ZeroDivisionError and divided or args and _fits(session, name, args[0], kind):
            continue
        _require(session, lambda caught, kind=kind: kind if _is_of_values(caught) else None)  # type: ignore[misc]


def _is_divisor(session: Session, number: Operand) -> bool:
    """Whether it is known here that a number is not 0."""
    if not isinstance(number, Variable):
        return bool(number != 0)
    return any(one is number and session.is_open(scope) for scope, one in session.values.divisors)


def _fits(session: Session, name: str, value: Operand, error: type[BaseException]) -> bool:
    """Whether it is known here that an Operator does not raise this for a value."""
    return any(one is value and of == name and kind is error and session.is_open(scope)
               for scope, one, of, kind in session.values.fitting)


def is_handled(session: Session, error: type[BaseException]) -> bool:
    """Whether a handler around this point catches ``error``, whatever functions are between."""
    return _route(session, error) is not None


def is_caught(session: Session, error: type[BaseException]) -> bool:
    """Whether a handler around this point catches ``error``, to which the functions between hand it as a value."""
    route = _route(session, error)
    return route is not None and route <= session.call.known.escaping


def _route(session: Session, error: type[BaseException]) -> frozenset[str] | None:
    """The functions from the innermost handler that catches ``error`` to here; None where it cannot be handed there."""
    for types in reversed(session.exceptions.catching):
        for caught, passes in _handlers(types()):
            if isinstance(caught, type) and issubclass(error, caught):
                if passes:
                    break
                depth = getattr(types, "depth", 0)
                return frozenset(session.code.functions[depth - 1 :]) if depth else None
    return None


def _require_route(session: Session, error: Any) -> None:
    """Trace again with functions that hand on what leaves them, where a handler around them catches ``error``."""
    if isinstance(error, type) and issubclass(error, BaseException):
        route = _route(session, error)
        if route is not None and not route <= session.call.known.escaping:
            raise session.restart(Findings(escaping=route))


def handlers(session: Session) -> str:
    """The handlers around this point as text: what the executor tells an exception that one of them would have caught.

    ``"!ValueError Exception"``: the first clause only raises again. Exceptions of users' own classes are left out: no
    operator raises them.
    """
    names = []
    for types in reversed(session.exceptions.catching):
        if isinstance(types, LastItem) or not waits_for_operators(types):
            continue
        for caught, passes in _handlers(types()):
            name = caught.__name__ if isinstance(caught, type) else ""
            if name and getattr(builtins, name, None) is caught:
                names.append("!" * passes + name)
    return " ".join(dict.fromkeys(names))


def waits_for_operators(types: Any) -> bool:
    """Whether something around this point is to see what Operators raise for the data of a run: no ``finally``."""
    return getattr(types, "waits_for_operators", True)


def _is_of_values(caught: Any) -> bool:
    return isinstance(caught, type) and issubclass(caught, _OF_VALUES)


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


@dataclass(frozen=True)
class LastItem:
    """A handler of Python's own: where a loop, or what takes items, learns of a user's method that there are no more.

    Operators that may raise the same by themselves are taken not to: they stand around code that has no such fear.
    """

    method: str
    types: type[BaseException]

    def __call__(self) -> Any:
        return self.types


def _handlers(caught: Any, passes: bool = False) -> Iterator[tuple[Any, bool]]:
    """The exception types that the clauses of a ``try`` name, in order, and whether theirs only raises again."""
    if isinstance(caught, Passed):
        yield from _handlers(caught.types, True)
    elif isinstance(caught, tuple):
        for one in caught:
            yield from _handlers(one, passes)
    else:
        yield caught, passes


def _require(
    session: Session, error_for: Callable[[Any], type[BaseException] | None], last_items: bool = True
) -> None:
    """``last_items``: those handlers count."""
    for types in session.exceptions.catching:
        if isinstance(types, LastItem) and not last_items or not waits_for_operators(types):
            continue
        for caught, passes in _handlers(types()):
            error = error_for(caught)
            if error is None or not isinstance(caught, type) or not issubclass(error, caught):
                continue
            if passes:
                break
            if isinstance(types, LastItem):
                raise session.error(
                    f"whether {types.method} raises {error.__name__}, and there is another item, is only known while "
                    "the Program runs",
                    hint="Write a generator with a while loop, or loop over a range.", code="D2S266")
            raise session.error(
                f"whether this raises {error.__name__} is only known while the Program runs, where the except "
                f"{caught.__name__} around it cannot catch it",
                hint="Test the condition with if instead, or move the try out of the converted function.",
                code="D2S229",
            )


def unsupported(session: Session) -> Exception:
    """The error for an exception that leaves a call which stands where it cannot be handed on."""
    session.exceptions.escape = None
    return session.error(
        "whether this call raises is only known while the Program runs, and it stands where its exception cannot be "
        "handed to the handler around it",
        code="D2S229", location=session.exceptions.escape_place,
        hint="Give the call a statement of its own, outside of lambdas, comprehensions, and and or.")
