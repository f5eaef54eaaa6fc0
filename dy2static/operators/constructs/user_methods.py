"""Operators that users' classes define, where Python would call a method that is not converted.

    c + xs    with ``def __add__(self, other)`` in the class of ``c``   ->   call(C.__add__, c, xs)

Such a method may decide on tensors, and what it reads is part of what a Program depends on. One of a library that is
left as it is would take a list that grew for one of one item (``len(other)``); everywhere else Python's own call of it
is right: numbers and tensors of the trace stand for themselves in it.
"""

from __future__ import annotations

import operator
import types
from typing import Any

import torch

from dy2static.operators.calls import boundary, numpy_arrays
from dy2static.operators.calls.call import call, items_of_mapping
from dy2static.operators.constructs.bool_ops import not_
from dy2static.operators.shared import namespaces
from dy2static.operators.shared.policy import ORDERINGS, home_of
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute, python_method
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.walks import walk
from runtime.tracer.values.numpy_arrays import NumpyScalar, dtype_of

NOT_USERS: Any = object()
"""No method of a user's class is concerned."""

_METHODS = {
    "+": ("__add__", "__radd__"), "-": ("__sub__", "__rsub__"), "*": ("__mul__", "__rmul__"),
    "@": ("__matmul__", "__rmatmul__"), "/": ("__truediv__", "__rtruediv__"), "//": ("__floordiv__", "__rfloordiv__"),
    "%": ("__mod__", "__rmod__"), "**": ("__pow__", "__rpow__"), "<<": ("__lshift__", "__rlshift__"),
    ">>": ("__rshift__", "__rrshift__"), "&": ("__and__", "__rand__"), "|": ("__or__", "__ror__"),
    "^": ("__xor__", "__rxor__"), "<": ("__lt__", "__gt__"), "<=": ("__le__", "__ge__"), ">": ("__gt__", "__lt__"),
    ">=": ("__ge__", "__le__"), "==": ("__eq__", "__eq__"), "!=": ("__ne__", "__ne__"),
    "divmod": ("__divmod__", "__rdivmod__"),
}  # fmt: skip
_PLAIN: dict[str, Any] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "@": operator.matmul, "/": operator.truediv,
    "//": operator.floordiv, "%": operator.mod, "**": operator.pow, "<<": operator.lshift, ">>": operator.rshift,
    "&": operator.and_, "|": operator.or_, "^": operator.xor, "<": operator.lt, "<=": operator.le, ">": operator.gt,
    ">=": operator.ge, "==": operator.eq, "!=": operator.ne, "divmod": divmod,
}  # fmt: skip
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
_UNARY = {"-": "__neg__", "+": "__pos__", "~": "__invert__"}
_SEQUENCES = (list, tuple)
_TEXTS = (str, bytes, bytearray)
"""Of these ``+`` and ``*`` are asked after the other operand, as of lists."""


def holds_grown(session: Session, *values: Any) -> bool:
    """Whether a list that grew is among values, or in what they hold."""
    return session.containers.has_growing and boundary.reached(values, boundary.has_grown) is not None


def operated(session: Session, a: Any, op: str, b: Any) -> Any:
    """``a <op> b`` by methods of users' classes in Python's order, or NOT_USERS."""
    name, reflected = _METHODS[op]
    if is_a(a, Choice) and _may_have(a, name):
        return distribute(session, a, lambda option: _one(session, option, op, option if b is a else b))
    if is_a(b, Choice) and _may_have(b, reflected):
        return distribute(session, b, lambda option: _one(session, a, op, option))
    first, second = _method(a, name), _method(b, reflected)
    for one, other in ((a, b), (b, a)):
        if is_a(one, torch.Tensor):
            python_method(other, "__torch_function__")  # a guard: torch asks for it first
    if first is None and second is None:
        _require_settled_operands(session, first, second, a, b)
        return NOT_USERS
    grown = holds_grown(session, a, b)
    kinds = type(a), type(b)
    of_number = is_a(a, Staged) and second is not None and issubclass(kinds[1], a.python_type)
    if not grown and not is_users(first) and not is_users(second) and not of_number:
        _require_settled_operands(session, first, second, a, b)
        return NOT_USERS
    tries = [(first, a, b), (second, b, a)]
    if kinds[0] is kinds[1] and op not in _COMPARISONS:
        del tries[1]
    elif of_number or second is not None and kinds[1] is not kinds[0] and issubclass(kinds[1], kinds[0]) and (
            op in _COMPARISONS or second is not _method(a, reflected)):
        tries.reverse()  # the derived class has another method, or it is a comparison
    elif first is None and kinds[0] not in _SEQUENCES and not (kinds[0] in _TEXTS and op in ("+", "*")):
        if grown:
            boundary.require_none(session, f"'{op}'", (a, b))
        own = getattr(kinds[0], name, None)
        result = NotImplemented if own is None else theirs(own, a, b)
        if result is not NotImplemented:
            return result
    for method, one, other in tries:
        if method is not None:
            result = call(method, one, other)
            if result is not NotImplemented:
                return not_(result) if op == "!=" and _says_equal_alone(one) else result
    if op in ("==", "!=") and first is not None:
        return (a is b) is (op == "==")
    if grown:
        boundary.require_none(session, f"'{op}'", (a, b))
    return NOT_USERS


def _require_settled(session: Session, method: Any, *values: Any) -> None:
    """Refuse a method of a library that reads attributes which only some paths set.

    Raises:
        TraceError: D2S254.
    """
    if session.containers.has_unset and method is not None:
        boundary.require(session, method, values, {})


def _require_settled_operands(session: Session, first: Any, second: Any, a: Any, b: Any) -> None:
    """The same of an operator: of an operand of another class a library's method asks which that is."""
    if session.containers.has_unset and (is_a(a, type(b)) or is_a(b, type(a))):
        namespace = types.SimpleNamespace.__eq__ if is_a(a, types.SimpleNamespace) else None
        for method in (first or namespace, second):
            _require_settled(session, method, a, b)


def says_equal(value: Any) -> bool:
    """Whether a user's class says what equals a value, or a comparison may read attributes that only some paths set."""
    session = active()
    if session is not None and session.containers.has_unset and namespaces.has_unset(value):
        return True
    return is_users(python_method(value, "__eq__"))


def _method(value: Any, name: str) -> types.FunctionType | None:
    """A special method that is written in Python; ``__eq__`` where Python's own ``__ne__`` asks it."""
    return python_method(value, "__eq__" if name == "__ne__" and _says_equal_alone(value) else name)


def _says_equal_alone(value: Any) -> bool:
    """Whether ``!=`` is the contrary of what a class's ``__eq__`` says: Python's own ``__ne__``."""
    return python_method(value, "__ne__") is None and getattr(type(value), "__ne__", None) is object.__ne__


def _one(session: Session, a: Any, op: str, b: Any) -> Any:
    found = operated(session, a, op, b)
    return _PLAIN[op](a, b) if found is NOT_USERS else found


def _may_have(value: Choice, name: str) -> bool:
    """Whether one of several has such a method of a user's class."""
    return any(is_users(python_method(option, name)) for option in value.options)


def is_users(method: types.FunctionType | None) -> bool:
    """Whether a method is a user's, whose code is converted."""
    return method is not None and (method.__code__ in ORDERINGS or not home_of(method.__code__.co_filename))


def mapping_of(value: Any) -> Any:
    """A mapping of a user's as the dict that its ``keys`` and ``__getitem__`` give; anything else as it is."""
    if is_a(value, (dict, Choice, Keyed, torch.nn.Module)) or not is_users(python_method(value, "keys")):
        return value
    return dict(items_of_mapping(value))


def unary(session: Session, op: str, value: Any) -> Any:
    """``-value`` and its like by the method of a user's class, or NOT_USERS."""
    return called(session, value, _UNARY[op])


def called(session: Session, value: Any, name: str, *args: Any) -> Any:
    """A special method that Python would call itself: a user's, or one of an object that holds a list that grew; or
    NOT_USERS."""
    if is_a(value, Choice) and _may_have(value, name):
        return distribute(session, value, lambda option: call(getattr(option, name), *args))
    method = python_method(value, name)
    if method is None or not (is_users(method) or holds_grown(session, value, *args)):
        _require_settled(session, method, value, *args)
        return NOT_USERS
    return call(method, value, *args)


def as_number(session: Session, value: Any, *names: str) -> Any:
    """What the first of some special methods gives that a class has (``__float__``, ``__index__``), where it is a
    user's; else the value. Python asks no subclass of ``int`` for its ``__index__``: it is one."""
    if type(value) in _NUMBERS:
        return value
    if is_a(value, NumpyScalar) and "__index__" in names and dtype_of(value).kind in "iu":
        return numpy_arrays.as_number(session, value, "int")
    for name in names:
        if name == "__index__" and is_a(value, int):
            return value
        found = called(session, value, name)
        if found is not NOT_USERS:
            return found
        if hasattr(type(value), name):  # written in C
            return value
    return value


_NUMBERS = (int, float, bool, complex, str, type(None))


def orders(value: Any) -> bool:
    """Whether a user's class says which of two values is less, of a value or of what a list or tuple holds."""
    return any(map(_orders, walk([value], _items, 2)))


def _items(value: Any) -> Any:
    return value if type(value) in (list, tuple) else ()


def _orders(value: Any) -> bool:
    if type(value) in _NUMBERS:
        return False
    return any(is_users(python_method(value, name)) for name in ("__lt__", "__gt__"))


__all__ = [
    "NOT_USERS", "as_number", "called", "holds_grown", "is_users", "operated", "orders", "says_equal",
    "unary",
]  # fmt: skip
