"""Calls of functions that an operator stands for with arguments that they do not take: Python's own TypeError."""

from __future__ import annotations

import functools
import inspect
import types
import warnings
from typing import Any

from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.ambient.unasked import has_unasked

_MODULES = ("builtins", "_functools", "_warnings", "_operator", "math")
_UNDECLARED: dict[Any, tuple[int, int]] = {
    getattr: (2, 3), vars: (0, 1), dir: (0, 1), functools.reduce: (2, 3), iter: (1, 2), reversed: (1, 1), set: (0, 1),
    frozenset: (0, 1), list: (0, 1), tuple: (0, 1), range: (1, 3), filter: (2, 2), bool: (0, 1), float: (0, 1),
    type: (1, 1),
}  # fmt: skip
"""Positional arguments of builtins whose signature Python does not tell, and which take no keywords."""
_UNDECLARED_METHODS = {"__getitem__": 1, "__contains__": 1, "__reversed__": 0}
"""Arguments of methods of which the same goes."""


def require_fitting(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise what a builtin, or a function in Python, raises for arguments that it does not take.

    >>> require_fitting(isinstance, (1, int), {})
    >>> require_fitting(isinstance, (1, int), {"invalid": True})
    Traceback (most recent call last):
    TypeError: isinstance() takes no keyword arguments
    """
    builtin = is_a(function, (types.BuiltinFunctionType, type)) and function.__module__ in _MODULES
    if not builtin and not is_a(function, types.FunctionType):
        return
    if function is type and len(args) == 3:  # makes a class, with the keywords that its bases take
        return
    if function in _UNDECLARED:
        least, most = _UNDECLARED[function]
        if least <= len(args) <= most and not kwargs:
            return
    else:
        signature = _signature(function)
        if signature is None:
            if function is warnings.warn and not args and "message" not in kwargs:  # Python 3.13 tells of none
                function(**kwargs)
            return
        try:
            signature.bind(*args, **kwargs)
            return
        except TypeError:
            pass
    function(*args, **kwargs)


@acts_for_user
def require_fitting_method(
    cls: type, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], ours: Any = None
) -> None:
    """Raise what a method of a class written in C raises for arguments that it does not take.

    ``ours``: the function that stands for it, where Python does not tell its signature.

    >>> require_fitting_method(int, "bit_length", (), {})
    >>> require_fitting_method(int, "bit_length", (1,), {})
    Traceback (most recent call last):
    TypeError: int.bit_length() takes no arguments (1 given)
    """
    signature = _signature(getattr(cls, name)) or (None if ours is None else _signature(ours))
    if signature is None:
        if name not in _UNDECLARED_METHODS or (len(args) == _UNDECLARED_METHODS[name] and not kwargs):
            return
    else:
        try:
            signature.bind(None, *args, **kwargs)
            return
        except TypeError:
            pass
    getattr(cls(), name)(*args, **kwargs)


@functools.cache
def _signature(function: Any) -> inspect.Signature | None:
    if is_a(function, types.FunctionType) and has_unasked(function, "__signature__"):  # it tells of another
        return None
    try:
        return inspect.signature(function, follow_wrapped=False)
    except ValueError:
        return None


__all__ = ["require_fitting", "require_fitting_method"]
