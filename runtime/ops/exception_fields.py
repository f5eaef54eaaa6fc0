"""What an exception keeps beside its arguments and attributes: the fields of Python's own classes.

    NameError("no", name="a")    ->    {"name": "a"}
    OSError(2, "no", "file")     ->    {"filename": "file"}; what the arguments (2, "no") give is left out
"""

from __future__ import annotations

import contextlib
import types
from typing import Any

_HEAP = 1 << 9
_PLAIN = (int, str, bytes, bool)


def names_of(cls: type[BaseException]) -> list[str]:
    """The fields that the classes of Python's have from which an exception's class derives."""
    bases = (base for base in cls.__mro__ if not base.__flags__ & _HEAP and base is not BaseException)
    return [name for base in bases for name, kind in vars(base).items() if isinstance(kind, types.MemberDescriptorType)]


def fields_of(error: BaseException, given: tuple[Any, ...] | None = None) -> dict[str, Any]:
    """The fields of an exception that another one made of the arguments ``given``, or of its own, would not have.

    >>> fields_of(AttributeError("no", name="a", obj=3))
    {'name': 'a', 'obj': 3}
    """
    names = names_of(type(error))
    if not names:
        return {}
    try:
        other = rebuilt(type(error), *(error.args if given is None else given))
    except (TypeError, ValueError):
        other = None
    found = {name: getattr(error, name, None) for name in names}
    return {name: value for name, value in found.items() if not _same(value, getattr(other, name, None))}


def _same(a: Any, b: Any) -> bool:
    if type(a) is type(b) is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    return a is b or type(a) is type(b) and type(a) in _PLAIN and a == b


def rebuilt(cls: type[BaseException], /, *args: object, **fields: object) -> BaseException:
    """An exception with these arguments, fields and attributes; the initialiser of a user's class has run while
    tracing."""
    if cls.__module__ == "builtins":  # some set their fields from the arguments
        error = cls(*args)
    else:
        error = cls.__new__(cls, *args)
        error.args = args
    with_fields(error, fields)
    return error


def with_fields(error: BaseException, values: dict[str, Any]) -> None:
    """Give an exception fields and attributes by name."""
    own = names_of(type(error))
    for name, value in values.items():
        if name in own:
            with contextlib.suppress(AttributeError, TypeError):  # those of a group stay what its arguments say
                setattr(error, name, value)
        else:
            error.__dict__[name] = value


__all__ = ["fields_of", "names_of", "rebuilt", "with_fields"]
