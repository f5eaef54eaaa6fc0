"""The methods that ``dataclass`` writes, which have no source: what they call of the user's is converted.

    Point(x)        its ``__init__`` calls ``__post_init__``, which may decide on tensors
    a < b, a == b   compare the fields, as tuples do
    repr(a)         shows the fields
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import inspect
import operator
import sys
import types
from collections.abc import Iterator
from typing import Any

from dy2static.operators.calls import shown_in_python, tensors_in_python
from dy2static.operators.calls.call import call
from dy2static.operators.provenance.classes import note_of_class
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.policy import home_of
from dy2static.operators.shared.staging import Session, active, python_method
from runtime.kinds import is_a

_COMPARE = {"__lt__": operator.lt, "__le__": operator.le, "__gt__": operator.gt, "__ge__": operator.ge,
            "__eq__": operator.eq}  # fmt: skip
NOT_DONE: Any = object()
"""It is no method that ``dataclass`` wrote."""


def called(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A comparison that ``dataclass`` wrote, of fields that only the run may know; or NOT_DONE."""
    compare = _COMPARE.get(f.__name__)
    if compare is None or kwargs or len(args) != 2:
        return NOT_DONE
    one, other = args
    owner = _owner(f, one)
    if owner is None:
        return NOT_DONE
    if type(one) is not type(other):
        return NotImplemented
    names = [field.name for field in dataclasses.fields(owner) if field.compare]
    fields = [tuple(call(getattr, each, name) for name in names) for each in (one, other)]
    if compare is operator.eq and sys.version_info >= (3, 13):
        return call(_EQUAL, *fields)
    return call(compare, *fields)


def shown(session: Session, f: types.FunctionType, args: tuple[Any, ...]) -> Any:
    """The text that ``__repr__`` gives, if ``dataclass`` wrote that; or NOT_DONE."""
    written = f.__wrapped__ if f.__code__ is _SHOWN and len(args) == 1 else None  # type: ignore[attr-defined]
    owner = _owner(written, args[0]) if is_a(written, types.FunctionType) else None
    if owner is None:
        return NOT_DONE
    around = _SHOWING.set((*_SHOWING.get(), args[0]))
    try:
        if any(one is args[0] for one in _SHOWING.get()[:-1]):
            return "..."
        names = [field.name for field in dataclasses.fields(owner) if field.repr]
        return call(_OF_FIELDS, args[0], names, repr)
    finally:
        _SHOWING.reset(around)


def is_shown_by_method(value: Any) -> bool:
    """Whether a class's ``__repr__`` is converted: a user wrote it, or ``dataclass`` for a user's class."""
    method = python_method(value, "__repr__")
    return method is not None and (method.__code__ is _SHOWN or not home_of(method.__code__.co_filename))


_OF_FIELDS: Any = shown_in_python.of_fields
_SHOWN: Any = dataclasses.make_dataclass("_Shown", ()).__repr__.__code__
"""What every dataclass has around its ``__repr__``."""
_SHOWING: contextvars.ContextVar[tuple[Any, ...]] = contextvars.ContextVar("_SHOWING", default=())
"""The objects whose text is being made: one that holds itself is shown as three dots."""
_EQUAL: Any = tensors_in_python.equal_fields


def constructed(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether this is a constructor that ``dataclass`` wrote: then it has been run, statement by statement, as its own
    code cannot be given what only the run knows.

        self.scores = scores                 a ``__setattr__`` of the user's, and what a list that grows becomes
        self.__post_init__(...)
    """
    owner = _owner(f, args[0]) if f.__name__ == "__init__" and args else None
    if owner is None:
        return False
    made = args[0]
    bound = inspect.signature(f).bind(*args, **kwargs)
    bound.apply_defaults()
    given = bound.arguments
    frozen = vars(owner)["__dataclass_params__"].frozen
    for_post_init = []
    for field in vars(owner)["__dataclass_fields__"].values():
        kind = field._field_type.name
        if kind == "_FIELD_CLASSVAR":
            continue
        made_here = field.default_factory is not dataclasses.MISSING
        if field.init:
            value = given[field.name]
            if made_here and type(value).__name__ == "_HAS_DEFAULT_FACTORY_CLASS":
                value = call(field.default_factory)
        elif made_here:
            value = call(field.default_factory)
        else:  # the class has it
            continue
        if kind == "_FIELD_INITVAR":
            for_post_init.append(value)
        else:
            call(object.__setattr__ if frozen else setattr, made, field.name, value)
    if hasattr(owner, "__post_init__"):
        call(made.__post_init__, *for_post_init)
    return True


@contextlib.contextmanager
def converted_parts(session: Session, f: types.FunctionType, args: tuple[Any, ...]) -> Iterator[None]:
    """While a constructor that ``dataclass`` wrote runs: the ``__post_init__`` that it calls is converted."""
    written = f.__name__ == "__init__" and bool(args) and _owner(f, args[0]) is not None
    method = python_method(args[0], "__post_init__") if written else None
    if method is None or home_of(method.__code__.co_filename) or hasattr(method, "_d2s_converts"):
        yield
        return
    cls: Any = type(args[0])
    note_of_class(session, cls, "__post_init__")

    def __post_init__(self: Any, *given: Any) -> None:
        if active() is session:
            memo(session).created[id(self)] = self  # its constructor is still running
            call(method, self, *given)
        else:  # another thread makes one
            method(self, *given)

    __post_init__._d2s_converts = True  # type: ignore[attr-defined]
    own = cls.__dict__.get("__post_init__")
    type.__setattr__(cls, "__post_init__", __post_init__)  # a metaclass of the user's is not told
    try:
        yield
    finally:
        if own is None:
            type.__delattr__(cls, "__post_init__")
        else:
            type.__setattr__(cls, "__post_init__", own)  # as it was


def _owner(f: types.FunctionType, obj: Any) -> Any:
    """The class for which ``dataclass`` wrote a method, a class of the object's or one above; None where a user did.

    Its fields are compared, not those that a subclass adds.
    """
    if f.__code__.co_filename != "<string>":  # which no file has
        return None
    for cls in type(obj).__mro__:
        written = vars(cls).get(f.__name__)
        while written is not f and is_a(written, types.FunctionType):  # others may have been put around it
            written = vars(written).get("__wrapped__")
        if written is f:
            given = vars(cls).get("__dataclass_params__")
            asked = {"__init__": "init", "__eq__": "eq", "__repr__": "repr"}.get(f.__name__, "order")
            return cls if given is not None and getattr(given, asked) else None
    return None


__all__ = ["NOT_DONE", "called", "constructed", "converted_parts", "is_shown_by_method", "shown"]
