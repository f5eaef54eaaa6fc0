"""What runs as it is: functions, methods, classes and modules that the user told the converter to leave alone."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterable
from typing import Any, Protocol, TypeVar, overload

from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked

_MARK = "__dy2static_not_to_static__"
_ignored: dict[str, types.ModuleType] = {}

T = TypeVar("T")


class _Mark(Protocol):
    """What ``not_to_static()`` is, for type checkers: nothing changes its type."""

    def __call__(self, func: T, /) -> T: ...


@overload
def not_to_static(func: T) -> T: ...
@overload
def not_to_static(func: None = None) -> _Mark: ...
def not_to_static(func: Any = None) -> Any:
    """Mark a function, method, class or ``nn.Module`` so that converted code calls it as it is.

    The mark has an effect inside a conversion only; what runs unconverted must not decide on a tensor's value.

    >>> @not_to_static
    ... def log(x):
    ...     return x
    >>> exclusion_of(log)
    'it is marked not_to_static'

    Errors raised: TypeError for something that cannot be called or marked.
    """
    if func is None:
        return not_to_static
    target: Any = func
    if is_a(target, (staticmethod, classmethod, types.MethodType)):
        target = target.__func__
    if not callable(target):
        raise TypeError(f"not_to_static() takes a function, a method, a class or a module, not {func!r}")
    try:
        setattr(target, _MARK, True)
    except (AttributeError, TypeError):
        raise TypeError(f"{func!r} cannot be marked; built-in functions are never converted anyway") from None
    return func


def ignore_module(modules: Iterable[types.ModuleType] | types.ModuleType) -> None:
    """Leave everything defined in these Python modules (and the modules inside them) unconverted.

    >>> import json
    >>> ignore_module([json])
    >>> exclusion_of(json.dumps)
    "its module 'json' is ignored"

    Errors raised: TypeError for anything that is no Python module.
    """
    found = [modules] if is_a(modules, types.ModuleType) else list(modules)
    for module in found:
        if not is_a(module, types.ModuleType):
            raise TypeError(f"ignore_module() takes Python modules (import them first), not {module!r}")
    for module in found:
        _ignored[module.__name__] = module


def exclusion_of(func: Any) -> str | None:
    """Why ``func`` must not be converted, as the end of a sentence; None if the user said nothing about it."""
    while is_a(func, functools.partial):
        func = func.func
    owner = unasked(func, "__self__") if is_a(func, types.MethodType) else None
    inner = unasked(func, "__func__", func)
    for target in (inner, owner, None if owner is None else type(owner)):
        if target is not None and unasked(target, _MARK, False) is True:
            return "it is marked not_to_static"
    name = unasked(inner, "__module__")
    while is_a(name, str) and name:
        if name in _ignored:
            return f"its module '{name}' is ignored"
        name = name.rpartition(".")[0]
    return None


__all__ = ["exclusion_of", "ignore_module", "not_to_static"]
