"""Methods of numbers and text that are called by name, given a number or text that only the run knows.

    (3).__eq__(n)   int.__add__(1, n)   map((10).__sub__, items)   super().__mul__(n) of a user's class

Python's own look at the class of what they are given, and would say that they know no staged one (NotImplemented).
"""

from __future__ import annotations

import operator
import types
from collections.abc import Callable
from typing import Any

from dy2static.operators.calls.sequences import StagedRange
from dy2static.operators.provenance import chosen
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Choice, Session, Staged
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.numbers import scalars

_COMPARING: dict[str, Callable[[Any, Any], Any]] = {
    f"__{name}__": getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}
_COMPUTING: dict[str, Callable[[Any, Any], Any]] = {
    "__add__": operator.add, "__sub__": operator.sub, "__mul__": operator.mul, "__truediv__": operator.truediv,
    "__floordiv__": operator.floordiv, "__mod__": operator.mod, "__pow__": operator.pow,
    "__divmod__": lambda a, b: _divided(a, b), "__and__": operator.and_, "__or__": operator.or_,
    "__xor__": operator.xor, "__lshift__": operator.lshift, "__rshift__": operator.rshift,
}  # fmt: skip
_REFLECTED = {f"__r{name[2:]}": function for name, function in _COMPUTING.items()}
_TAKES: dict[type, tuple[str, ...]] = {
    bool: ("bool", "int"), int: ("bool", "int"), float: ("bool", "int", "float"), str: ("str",),
    complex: ("bool", "int", "float"),
}  # fmt: skip
"""The kinds that the methods of a class know."""
_METHODS = (types.MethodWrapperType, types.WrapperDescriptorType)


def called(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args)`` if it is such a call, else ``NOT_DONE``.

    Raises:
        TraceError: D2S210, D2S264.
    """
    if not is_a(f, _METHODS) or kwargs or not _is_open(args):
        return NOT_DONE
    cls, name = f.__objclass__, f.__name__
    if cls not in _TAKES and cls not in (object, range) or name not in _ALL:
        return NOT_DONE
    of_class = args if _is_bound(f) else args[1:]
    if len(of_class) != 1 and not (name in ("__pow__", "__rpow__") and len(of_class) == 2):
        return NOT_DONE
    return chosen.per_option(session, f, args, kwargs, lambda given, _: _done(session, f, given))


def require_known(session: Session, f: Any, args: tuple[Any, ...]) -> None:
    """Refuse what a library's method did not know: it said NotImplemented (``Fraction(1, 2).__add__(n)``).

    Raises:
        TraceError: D2S210.
    """
    if is_a(f, types.FunctionType) and not home_of(f.__code__.co_filename):
        return
    owner, given = (args[0], args[1:]) if args and not hasattr(f, "__self__") else (unasked(f, "__self__"), args)
    name = str(unasked(f, "__name__", "")).strip("_")
    if any(is_a(one, Staged) and one.kind != "str" for one in given) and (
            scalars.computes_with_numbers(name, owner)):  # fmt: skip
        raise chosen.refusal(session, f)


def _is_bound(f: Any) -> bool:
    return is_a(f, types.MethodWrapperType)


def _is_open(values: tuple[Any, ...]) -> bool:
    return any(is_a(value, (Staged, Choice, StagedRange)) for value in values)


def _done(session: Session, f: Any, args: tuple[Any, ...]) -> Any:
    cls, name = f.__objclass__, f.__name__
    owner, other, *more = (f.__self__, *args) if _is_bound(f) else args
    if not _is_open((owner, other, *more)):
        return f(*args)
    if cls is object:
        return _of_object(session, owner, name, other)
    if cls is range:
        if not is_a(owner, (range, StagedRange)) or name not in ("__eq__", "__ne__"):
            return chosen.foreign(session, f, args, {})
        return _COMPARING[name](owner, other) if is_a(other, (range, StagedRange)) else NotImplemented
    if not (owner.kind in _TAKES[cls] and (cls is not float or owner.kind == "float") if is_a(owner, Staged)
            else is_a(owner, cls)) or (cls is str and name not in _OF_TEXT):  # fmt: skip
        return chosen.foreign(session, f, args, {})
    if not is_a(owner, Staged):
        owner = _plain(cls, owner)
    if not _takes(cls, other):
        return NotImplemented
    if not is_a(other, Staged):
        other = _plain(next(kind for kind in (bool, int, float, complex, str) if is_a(other, kind)), other)
    if more:
        if cls is not int or not _takes(int, more[0]) or name != "__pow__":
            raise chosen.refusal(session, f)
        return session.scalar("pow", owner, other, more[0])
    if name in _COMPARING:
        return _COMPARING[name](owner, other)
    if name in _REFLECTED:
        return _REFLECTED[name](other, owner)
    return _COMPUTING[name](owner, other)


def _takes(cls: type, other: Any) -> bool:
    """Whether the methods of a class know such a number or text; a complex knows every other."""
    if is_a(other, Staged):
        return other.kind in _TAKES[cls]
    kinds = {"bool": bool, "int": int, "float": float, "str": str}
    return is_a(other, (*(kinds[kind] for kind in _TAKES[cls]), *((complex,) if cls is complex else ())))


def _plain(cls: Any, value: Any) -> Any:
    """A number or text of a user's class as one of Python's own."""
    if type(value) is cls:
        return value
    return str.__str__(value) if cls is str else cls.__pos__(value)


def _divided(a: Any, b: Any) -> Any:
    return divmod(a, b)


def _of_object(session: Session, owner: Any, name: str, other: Any) -> Any:
    """``object.__eq__(owner, other)``, which asks whether they are one object.

    Raises:
        TraceError: D2S264, of numbers and text Python decides that.
    """
    if name not in ("__eq__", "__ne__"):
        return NotImplemented
    kinds = [one.kind if is_a(one, Staged) else type(one).__name__ for one in (owner, other)]
    if owner is not other and kinds[0] != kinds[1]:
        return NotImplemented if name == "__eq__" or is_a(owner, StagedRange) else chosen.foreign(
            session, operator.ne, (owner, other), {})
    raise session.error(f"object.{name} of a {kinds[0]} that is only known while the Program runs", code="D2S264",
                        hint="Use == to compare values.")


NOT_DONE = object()
"""It is no such call."""
_OF_TEXT = frozenset({*_COMPARING, "__add__"})
_ALL = frozenset({*_COMPARING, *_COMPUTING, *_REFLECTED})

__all__ = ["NOT_DONE", "called", "require_known"]
