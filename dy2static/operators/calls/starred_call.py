"""Calls with a star in front of a list whose length is only known while the Program runs.

What stands for its items (``structure.Growing``) is among the positional arguments. Parameters that have names get the
items they would get, after a test of how many there are; ``*items`` of the callee is a tuple of such a length.

    def first(a, *rest): ...        first(*xs)   ->   TypeError where len(xs) < 1; first(xs[0], *xs[1:])
    def two(a, b): ...              two(*xs)     ->   TypeError where len(xs) != 2; two(xs[0], xs[1])
    def some(a, b=1): ...           some(*xs)    ->   some(xs[0]) or some(xs[0], xs[1]), as a switch
"""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.calls import growing
from dy2static.operators.shared.staging import NO_NAMES, Session
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.values import array
from runtime.tracer.values.structure import Growing

_VARIADIC = 0x04

Call = Callable[[tuple[Any, ...]], Any]


def holds_items(args: tuple[Any, ...]) -> bool:
    """Whether what stands for the items of such a list is among the arguments."""
    return any(type(arg) is Growing for arg in args)


def fitted(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Call) -> Any:
    """``run(arguments)``, which calls ``f``, with the items that its parameters get.

    Raises:
        TraceError: D2S253, for a callee of which the parameters are not known.
    """
    function, given = _function_of(f)
    if function is None:
        name = unasked(f, "__name__", type(f).__name__)
        raise growing.refusal(session, f"a star (*) in a call of {name}(), in front")
    start = next(index for index, arg in enumerate(args) if type(arg) is Growing)
    slots = _Slots(function, given + start, kwargs)
    if slots.variadic and not slots.most:
        return run(args)
    items = args[start:]
    length = array.length(session, list(items))
    for count in range(slots.least):
        _raise_where(session, length == count, slots.complaint(count))
    if not slots.variadic:
        for count in range(slots.most + 1, slots.all + 1):
            _raise_where(session, length == count, slots.complaint(count))
        _raise_where(session, length > slots.all, slots.complaint(slots.all + 1), length + (given + start))

    def with_items(count: int, more: bool = False) -> Any:
        taken = [array.get(session, list(items), index) for index in range(count)]
        rest = array.slice_(session, list(items), slice(count, None)) if more else []
        return run((*args[:start], *taken, *rest))

    if slots.least == slots.most:
        return with_items(slots.most, slots.variadic)
    counts = range(slots.least, slots.most + 1)
    paths = [functools.partial(with_items, count, slots.variadic and count == slots.most) for count in counts]
    place = session.scalar("min", length - slots.least, len(paths) - 1)
    return tracer_cond.switch(session, place, paths, NO_NAMES)


class _Slots:
    """What parameters with names take of further positional arguments, after ``given``."""

    def __init__(self, function: types.FunctionType, given: int, kwargs: dict[str, Any]) -> None:
        code = function.__code__
        names = code.co_varnames[: code.co_argcount]
        open_names = names[given:]
        self.variadic = bool(code.co_flags & _VARIADIC)
        self.all = max(len(open_names), 0)
        """How many there may be before Python complains of their number."""
        by_name = names[code.co_posonlyargcount :]
        named = [index for index, name in enumerate(open_names) if name in kwargs and name in by_name]
        self.most = min([*named, self.all])
        defaults = len(function.__defaults__ or ())
        required = [name for index, name in enumerate(names) if index < len(names) - defaults][given:]
        self.least = sum(name not in kwargs for name in required[: self.most])
        if named:
            self.variadic = False
        self._call = functools.partial(function, *(None,) * given, **dict.fromkeys(kwargs))

    def complaint(self, count: int) -> str:
        """What Python says of so many arguments; it says so before the function runs."""
        try:
            self._call(*(None,) * count)
        except TypeError as error:
            return str(error)
        raise AssertionError("these arguments fit")


def _raise_where(session: Session, flag: Any, message: str, count: Any = None) -> None:
    """``count``: how many arguments there are, which the message says."""

    def fail() -> None:
        found = None if count is None else re.fullmatch(r"(.* but )\d+( .*)", message)
        raise TypeError(message if found is None else found[1] + session.scalar("str", count) + found[2])

    tracer_cond.cond(session, flag, fail, lambda: None, NO_NAMES)


def _function_of(f: Any) -> tuple[types.FunctionType | None, int]:
    """The Python function that gets the arguments of a call, and how many come before them."""
    if is_a(f, types.FunctionType):
        return f, 0
    if is_a(f, types.MethodType):
        function, given = _function_of(f.__func__)
        return function, given + 1
    if is_a(f, type):
        if type(f).__call__ is not type.__call__ or issubclass(f, torch.Tensor):
            return None, 0
        for name in ("__new__", "__init__"):
            method = getattr(f, name)
            if is_a(method, types.FunctionType):
                return method, 1
        return None, 0
    method = getattr(type(f), "forward" if is_a(f, torch.nn.Module) else "__call__", None)
    return (method, 1) if is_a(method, types.FunctionType) else (None, 0)


__all__ = ["fitted", "holds_items"]
