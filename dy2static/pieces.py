"""A function that is no Program as a whole, run as plain Python piece by piece (``full_graph=False``).

    def train(net, x):          plain Python: it reads the time, which no Program can
        start = time.time()
        y = net(x)              a Program
        return y, time.time() - start

What runs is the rewritten form: outside a trace its operators do what Python does, but the operator for calls comes
here. A call of a user's function, or of a module, with a tensor among its arguments is the call of a StaticFunction
with ``full_graph=False``, which is a Program, or runs in the same way itself.
"""

from __future__ import annotations

import dis
import functools
import inspect
import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

import torch

from dy2static.callers import called_from, callers
from dy2static.calls_only import calls_rewritten
from dy2static.conversion import convert
from dy2static.errors import ConversionError
from dy2static.exclusions import exclusion_of
from dy2static.operators.shared import frames
from dy2static.operators.shared.policy import is_torch, reason_not_converted
from dy2static.operators.values.modules import is_call
from dy2static.origin import is_generated_file
from dy2static.verdicts import SMALL, Reason, reason_of
from runtime import torch_internals
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.ambient.walks import walk

if TYPE_CHECKING:
    from dy2static.static_function import StaticFunction

NOTHING = object()
"""No object: a function that is not bound."""
KEPT = 2_048
"""So many parts are remembered; what else is called runs as it is."""
MADE, MADE_MODULES = 8, 256
"""So many objects (modules) with one method, or closures of one function, are parts of their own; more are taken for
objects that are made at each call."""
DEEPEST = 12
"""Functions that call each other deeper run as they are: rewritten ones take several of Python's frames each."""
_LAZY = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_C: tuple[type, ...] = (BuiltinFunctionType, type(torch.Tensor.add), type(list.append), type(list.__len__), type)
_SEARCHED = 4
"""How deep in containers a tensor is looked for among arguments."""

Make = Callable[["Part"], "StaticFunction"]


@dataclass(eq=False)
class Code:
    """What is known of one code object, whatever functions have it."""

    code: CodeType
    decides: bool
    """Whether it branches or loops."""
    writes: bool
    """Whether it may write to a tensor in place, as far as its names tell."""
    made: int = 0
    """How many objects it is a part with."""
    seen: bool = False
    """Whether it ran as plain Python."""
    calls: bool = False
    """Whether it called parts that branch or loop."""

    @property
    def is_leaf(self) -> bool:
        """Whether a Program of it is known to be straight and small."""
        return self.seen and not self.decides and not self.calls


class Pieces:
    """All that runs under one converted function: its parts, by function and object."""

    def __init__(self, make: Make) -> None:
        self.make = make
        self.said: set[Any] = set()
        """Places of which a warning has told."""
        self._parts: dict[tuple[int, int], Part] = {}
        self._codes: dict[int, Code] = {}
        self._lock = threading.Lock()

    def part(self, function: FunctionType, instance: Any) -> Part | None:
        """The part that a function is, bound to an object or not; None for what is called as it is."""
        found = self._parts.get((id(function), id(instance)))
        if found is not None:
            return found
        bound = function if instance is NOTHING else MethodType(function, instance)
        if function.__code__.co_flags & _LAZY or is_generated_file(function.__code__.co_filename):
            return None
        if exclusion_of(bound) is not None or reason_not_converted(function) or len(self._parts) >= KEPT:
            return None
        if is_torch(function) and not isinstance(instance, torch.nn.Module):
            return None  # optimizers, distributions: quickest as they are
        with self._lock:
            code = self.code(function.__code__)
            made = Part(self, function, instance, code)
            code.made += 1
            if code.made > (MADE_MODULES if isinstance(instance, torch.nn.Module) else MADE):
                made.reason = Reason("it belongs to objects that are made again and again")
                made.passing = True
            else:
                self._parts[id(function), id(instance)] = made
            return made

    def code(self, code: CodeType) -> Code:
        """What is known of a code object."""
        found = self._codes.get(id(code))
        if found is None:
            found = self._codes[id(code)] = Code(code, decides(code), writes(code))
        return found

    @property
    def writes(self) -> bool:
        """Whether code that was met may write to tensors in place."""
        return any(code.writes for code in list(self._codes.values()))

    def clear(self) -> None:
        """Forget every part."""
        with self._lock:
            self._parts.clear()
            self.said.clear()


class Part:
    """One function among those that run under a converted one, or that one itself."""

    def __init__(
        self, pieces: Pieces, function: Callable[..., Any], instance: Any, code: Code | None,
        static: StaticFunction | None = None,
    ) -> None:
        self.pieces = pieces
        self.function = function
        self.instance = instance
        self.code = code
        self.static = static
        self.reason: Reason | None = None
        """Why no call of it is a Program; None: its StaticFunction knows."""
        self.passing = False
        """Whether it is for one call."""
        self.calls = 0
        self.python = 0
        """How many calls ran as plain Python."""
        self.children: dict[int, Part] = {}
        """The parts that it called, by identity, in the order of their first calls."""
        self.original: Callable[..., Any] = function if instance is NOTHING else MethodType(function, instance)
        self._frame: Callable[..., Any] | None = None
        self.as_it_is: Reason | None = None
        """Why its own code is not rewritten, so that calls in it are not looked at."""

    def enter(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of it: its Program's, or plain Python."""
        self.calls += 1
        code = self.code
        if code is not None and self.reason is None:
            if code.is_leaf:
                self.reason = SMALL
            elif not code.decides and not code.seen:
                return self.run(args, kwargs)
            elif _holds_tensor((args, kwargs)) or isinstance(self.instance, torch.nn.Module):
                if self.static is None:
                    self.static = self.pieces.make(self)
                if not self.static.is_hopeless():
                    return self.static(*args, **kwargs)
        return self.run(args, kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of it in plain Python, the calls in it by ``call``."""
        self.python += 1
        if self.reason is SMALL or frames.local.depth >= DEEPEST:
            return self.original(*args, **kwargs)
        frame = self.frame()
        if self.as_it_is is not None:
            return frame(*args, **kwargs)
        try:
            return frames.run(frame, args, kwargs, self.call)
        finally:
            if self.code is not None:
                self.code.seen = True

    def frame(self) -> Callable[..., Any]:
        """The rewritten function; the function itself where it cannot be rewritten."""
        if self._frame is None:
            self._frame = self.original
            if isinstance(self.function, FunctionType):
                try:
                    converted: FunctionType | None = convert(self.function, form="routed")
                    if converted is self.function:  # it looks at its variables, say
                        converted = calls_rewritten(converted)
                except ConversionError as error:
                    self.as_it_is = reason_of(error)
                else:
                    if converted is not None:
                        self._frame = converted if self.instance is NOTHING else MethodType(converted, self.instance)
        return self._frame

    def distrust(self, reason: Reason, *, called: bool) -> None:
        """Run it as it is from now on, as a fault of ours was met: ``called`` says that the place of it is the line
        that was traced, which may be in what the function calls."""
        place, code = reason.location, None if self.code is None else self.code.code
        if called and place is not None and code is not None:
            last = max((line for *_, line in code.co_lines() if line is not None), default=code.co_firstlineno)
            if place.file != code.co_filename or not code.co_firstlineno <= place.line <= last:
                return  # in what it calls
        self._frame, self.as_it_is = self.original, reason

    def call(self, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """``f(*args, **kwargs)`` in it."""
        kind = type(f)
        if kind is FunctionType:
            part = self.pieces.part(f, NOTHING)
        elif kind is MethodType:
            if type(f.__func__) is not FunctionType:
                return f(*args, **kwargs)
            part = self.pieces.part(f.__func__, f.__self__)
        elif kind in _C:
            return f(*args, **kwargs)
        elif isinstance(f, torch.nn.Module):
            return self._call_module(f, args, kwargs)
        elif kind is functools.partial:
            return self.call(f.func, (*f.args, *args), {**f.keywords, **kwargs})
        else:
            method = inspect.getattr_static(kind, "__call__", None)
            part = self.pieces.part(method, f) if type(method) is FunctionType else None
        if part is None:
            if unasked(unasked(f, "__func__", f), "__globals__") is logging.__dict__:  # it notes who calls it
                return called_from(next(callers(sys._getframe(1))), f, args, kwargs)
            return _of_generator(f)(*args, **kwargs)
        self.children.setdefault(id(part.code if part.passing else part), part)
        if self.code is not None and part.code is not None and not part.code.is_leaf:
            self.code.calls = True
        return part.enter(args, kwargs)

    def _call_module(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A module's call: hooks as PyTorch runs them, around a ``forward`` that is a part."""
        method = type(module).__call__
        if type(method) is FunctionType and not is_call(method) and not is_generated_file(method.__code__.co_filename):
            part = self.pieces.part(method, module)
            return module(*args, **kwargs) if part is None else part.enter(args, kwargs)
        plain = (
            not is_call(method) or isinstance(module, torch.jit.ScriptModule) or exclusion_of(module) is not None
            or exclusion_of(type(module)) is not None or torch_internals.is_compiled_module(module)
        )  # fmt: skip
        return module(*args, **kwargs) if plain else _call_impl()(module, *args, **kwargs)


def _of_generator(f: Any) -> Any:
    """What is called in the place of a function: the calls in a user's generator are made by who consumes it."""
    function = f.__func__ if type(f) is MethodType else f
    if type(function) is not FunctionType or not function.__code__.co_flags & inspect.CO_GENERATOR:
        return f
    if is_generated_file(function.__code__.co_filename) or exclusion_of(f) is not None or (
            reason_not_converted(function)):  # fmt: skip
        return f
    made = calls_rewritten(function)
    if made is None:
        return f
    return made if f is function else MethodType(made, f.__self__)


@functools.cache
def _call_impl() -> Callable[..., Any]:
    """What ``nn.Module.__call__`` does, rewritten: it runs hooks, and calls ``forward``."""
    return convert(torch_internals.module_call())


def decides(code: CodeType) -> bool:
    """Whether code branches or loops, or a function does that is made in it.

    >>> decides((lambda x: x * 2).__code__), decides((lambda x: x if x.sum() else -x).__code__)
    (False, True)
    """
    inner = [part for part in code.co_consts if isinstance(part, CodeType)]
    return any(op.opcode in _JUMPS for op in dis.get_instructions(code)) or any(map(decides, inner))


def writes(code: CodeType) -> bool:
    """Whether code calls methods that write in place, or assigns to items or in place.

    >>> def f(x): x.mul_(2)
    >>> def g(x): return x.__class__, x.mul(2)
    >>> writes(f.__code__), writes(g.__code__)
    (True, False)
    """
    if any(name.endswith("_") and not name.startswith("_") for name in code.co_names):
        return True
    if any(op.opname == "STORE_SUBSCR" or _is_in_place(op) for op in dis.get_instructions(code)):
        return True
    return any(writes(part) for part in code.co_consts if isinstance(part, CodeType))


def _is_in_place(op: dis.Instruction) -> bool:
    return op.opname.startswith("INPLACE_") or (op.opname == "BINARY_OP" and op.argrepr.endswith("="))


_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))


def _holds_tensor(value: Any) -> bool:
    return any(isinstance(one, torch.Tensor) for one in walk([value], _parts, _SEARCHED))


def _parts(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, dict):
        return value.values()
    return unasked(value, "__dict__", {}).values() if hasattr(type(value), "__dataclass_fields__") else ()


__all__ = ["NOTHING", "Part", "Pieces", "decides", "writes"]
