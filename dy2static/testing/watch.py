"""Which calls are held against eager: the outermost call of an ``nn.Module`` or a named function, in the main thread.

While one runs, everything is as it was without this: what it calls is converted with it, and nothing else looks at it.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import sys
import threading
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

import torch

from dy2static import to_static
from dy2static.operators.shared.policy import reason_not_converted
from dy2static.static_function import StaticFunction
from dy2static.testing import both
from dy2static.testing.report import DIFFERENT, REFUSED, SKIPPED, Report, Verdict
from runtime import torch_internals
from runtime.tracer.ambient import state
from runtime.tracer.ambient.walks import walk

GIVE_UP_AFTER = 3
"""A function that was refused so often for one object runs eagerly from then on: tracing it again takes time."""
_NEVER = ("pytest", "_pytest", "unittest", "numpy", "hypothesis", "pluggy", "torch")


@dataclass
class Place:
    """A name of a function in a namespace, and what stands there while calls are watched."""

    holder: Any
    name: str
    original: Any
    watched: Any

    def put(self, value: Any) -> None:
        """Let the name stand for ``value``."""
        if isinstance(self.holder, dict):
            self.holder[self.name] = value
        else:
            setattr(self.holder, self.name, value)


@dataclass(eq=False)
class Watch:
    """What is converted, and what became of it. ``differences``: of the test that is running."""

    report: Report
    tolerance: float | None = None
    compare: int = 20
    leave: Sequence[str] = ()
    """Patterns of what is left alone."""
    test: str = ""
    differences: list[str] = field(default_factory=list)
    codes: dict[types.FunctionType, tuple[types.CodeType, types.CodeType]] = field(default_factory=dict)
    """Functions of test files: their code, and the code whose calls come here."""
    _places: list[Place] = field(default_factory=list)
    _compared: Counter[str] = field(default_factory=Counter)
    _refused: weakref.WeakKeyDictionary[Any, Verdict] = field(default_factory=weakref.WeakKeyDictionary)
    _refusals: weakref.WeakKeyDictionary[Any, int] = field(default_factory=weakref.WeakKeyDictionary)
    _forwards: weakref.WeakKeyDictionary[Any, tuple[Any, Any]] = field(default_factory=weakref.WeakKeyDictionary)
    _functions: weakref.WeakKeyDictionary[Any, StaticFunction] = field(default_factory=weakref.WeakKeyDictionary)
    _depth: int = 0
    _thread: int = field(default_factory=threading.get_ident)
    _installed: bool = False

    def start(self, test: str) -> None:
        """Another test begins."""
        self.test = test
        self.differences = []
        self._compared.clear()

    # -- what stands in for what -----------------------------------------------------------------------------------

    def install(self) -> None:
        """Calls come here from now on."""
        if self._installed:
            return
        if not any(place.holder is torch.nn.Module for place in self._places):
            own = torch.nn.Module.__call__
            self._places.insert(0, Place(torch.nn.Module, "__call__", own, self._module_call(own)))
        for place in self._places:
            place.put(place.watched)
        for function, (_, watched) in self.codes.items():
            function.__code__ = watched
        self._installed = True

    def uninstall(self) -> None:
        """Everything is as it was."""
        if not self._installed:
            return
        for place in self._places:
            place.put(place.original)
        for function, (original, _) in self.codes.items():
            function.__code__ = original
        self._installed = False

    @contextlib.contextmanager
    def _aside(self) -> Iterator[None]:
        self._depth += 1
        installed = self._installed
        self.uninstall()
        try:
            yield
        finally:
            self._depth -= 1
            if installed:
                self.install()

    def add_functions(self, pattern: str) -> int:
        """Watch the functions that a name or pattern stands for; how many there are."""
        count = 0
        for holder, name, value in list(_named(pattern)):
            function: Any = value.__func__ if isinstance(value, (staticmethod, classmethod)) else value
            watched: Any = self._function_call(function)
            if isinstance(value, (staticmethod, classmethod)):
                watched = type(value)(watched)
            self._places.append(Place(holder, name, value, watched))
            count += 1
            if not isinstance(value, (staticmethod, classmethod)) and not isinstance(holder, type):
                self._places += [Place(vars(module), other, value, watched) for module, other in _held(value)
                                 if (vars(module), other) != (holder, name)]  # fmt: skip
        return count

    # -- calls -----------------------------------------------------------------------------------------------------

    def _is_free(self) -> bool:
        return (
            self._depth == 0 and threading.get_ident() == self._thread and not torch.compiler.is_compiling()
            and not torch_internals.others_trace() and state.active() is None
        )  # fmt: skip

    def _module_call(self, own: Callable[..., Any]) -> Callable[..., Any]:
        watch = self

        @functools.wraps(own)
        def __call__(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not watch._is_free() or not _converts(self):
                return own(self, *args, **kwargs)
            return watch.module(own, self, args, kwargs)

        return __call__

    def module(self, own: Any, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A module's call: hooks run once, around a ``forward`` that is held against eager."""
        space = module.__dict__
        before = space.get("forward", _NOTHING)

        def forward(*args: Any, **kwargs: Any) -> Any:
            _restore(space, before)
            known = self._forwards.get(module)
            current: Any = module.forward
            inner = getattr(current, "__func__", current)
            if self._is_left(inner):
                return current(*args, **kwargs)
            if known is None or known[0] is not inner:
                known = self._forwards[module] = inner, to_static(current)
            bound = getattr(current, "__self__", None) is module
            what = both.Call(inner if bound else _calling(current), known[1], (module,), args, kwargs)
            if not bound:
                what.owner = ()
            return self._judge(module, _place(inner), what)

        space["forward"] = forward
        try:
            return own(module, *args, **kwargs)
        finally:
            if space.get("forward") is forward:
                _restore(space, before)

    def _function_call(self, function: types.FunctionType) -> Callable[..., Any]:
        watch = self

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if torch.compiler.is_compiling() or not watch._is_free() or not _has_tensors((args, kwargs)):
                return function(*args, **kwargs)
            return watch.function(function, args, kwargs)

        return call

    def function(self, function: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call of a function, or of a method with its object first."""
        if self._is_left(function):
            return function(*args, **kwargs)
        static = self._functions.get(function)
        if static is None:
            static = self._functions[function] = StaticFunction(function)
        key = args[0] if args and isinstance(args[0], torch.nn.Module) else function
        return self._judge(key, _place(function), both.Call(function, static, (), args, kwargs))

    def called(self, f: Any) -> Any:
        """What stands in a test file for the function of a call ``f(...)``: ``f`` itself, or what compares."""
        if self._depth or not self._installed or isinstance(f, (type, torch.nn.Module, StaticFunction)):
            return f
        owner: tuple[Any, ...]
        if isinstance(f, types.MethodType) and isinstance(f.__func__, types.FunctionType):
            function, owner = f.__func__, (f.__self__,)
        elif isinstance(f, types.FunctionType):
            function, owner = f, ()
        else:
            method = inspect.getattr_static(type(f), "__call__", None)
            if not isinstance(method, types.FunctionType):
                return f
            function, owner = method, (f,)
        if function.__code__ in _WATCHED or not _is_users(function) or function in self.codes:
            return f

        def call(*args: Any, **kwargs: Any) -> Any:
            if not self._is_free() or not _has_tensors((owner, args, kwargs)):
                return f(*args, **kwargs)
            return self.function(function, (*owner, *args), kwargs)

        return call

    def _is_left(self, function: Any) -> bool:
        name = f"{function.__module__}.{function.__qualname__}"
        return any(fnmatchcase(name, pattern) for pattern in self.leave)

    def _judge(self, key: Any, place: str, what: both.Call) -> Any:
        known = self._refused.get(key)
        if known is not None:
            self._note(place, known)
            return what.eagerly()
        compare = self._compared[place] < self.compare
        self._compared[place] += 1
        with self._aside():
            verdict, result = both.call(what, self.tolerance, compare)
            self._note(place, verdict)
            if verdict.kind == REFUSED:
                self._refusals[key] = self._refusals.get(key, 0) + 1
                if self._refusals[key] >= GIVE_UP_AFTER:
                    self._refused[key] = verdict
            return result()

    def _note(self, place: str, verdict: Verdict) -> None:
        self.report.add(place, verdict, self.test)
        if verdict.kind == DIFFERENT:
            self.differences.append(f"{place}: {verdict.text}")

    def skip(self, place: str, reason: str) -> None:
        """A call that runs as it is."""
        self.report.add(place, Verdict(SKIPPED, text=reason), self.test)


_NOTHING: Any = object()
_WATCHED: set[types.CodeType] = {
    code for maker in (Watch._module_call, Watch._function_call) for code in maker.__code__.co_consts
    if isinstance(code, types.CodeType)
}  # fmt: skip


def _restore(space: dict[str, Any], before: Any) -> None:
    if before is _NOTHING:
        space.pop("forward", None)
    else:
        space["forward"] = before


def _calling(function: Any) -> Callable[..., Any]:
    """A forward that stands in the module itself, as a function."""
    if isinstance(function, types.FunctionType):
        return function
    return lambda *args, **kwargs: function(*args, **kwargs)


def _converts(module: torch.nn.Module) -> bool:
    """Whether a module's forward is Python that may be converted, and is not yet."""
    if isinstance(module, (torch.jit.ScriptModule, torch.fx.GraphModule)) or _is_compiled(type(module)):
        return False
    forward: Any = module.forward
    function = getattr(forward, "__func__", forward)
    return isinstance(function, types.FunctionType) and _is_plain(function)


def _is_plain(function: types.FunctionType) -> bool:
    return not (
        inspect.isgeneratorfunction(function) or inspect.iscoroutinefunction(function)
        or inspect.isasyncgenfunction(function)
    )  # fmt: skip


def _is_compiled(target: Any) -> bool:
    """Whether ``torch.compile`` made it: that has been converted already, by another tool."""
    code = getattr(target, "__code__", None)
    made_in = target.__module__ if code is None else code.co_filename.replace(os.sep, ".")
    return "torch._dynamo." in f"{made_in}."


def _is_users(function: types.FunctionType) -> bool:
    top = (function.__module__ or "").split(".")[0]
    if top in _NEVER or _is_compiled(function) or not _is_plain(function):
        return False
    return not reason_not_converted(function)


def _has_tensors(value: Any) -> bool:
    return any(isinstance(one, (torch.Tensor, torch.nn.Module)) for one in walk([value], _parts, 4))


def _parts(value: Any) -> Any:
    if isinstance(value, (list, tuple, set)):
        return tuple(value)
    if isinstance(value, dict):
        return tuple(value.values())
    space = getattr(value, "__dict__", None)
    if not isinstance(space, dict) or isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return ()
    return tuple(space.values())


def _place(function: Any) -> str:
    code = function.__code__
    file = os.path.relpath(code.co_filename)
    if file.startswith(".."):
        file = code.co_filename.rpartition("site-packages" + os.sep)[2]
    return f"{file}:{code.co_firstlineno} {function.__qualname__}"


def _named(pattern: str) -> Iterator[tuple[Any, str, Any]]:
    """Where the functions are defined that a pattern stands for: a namespace, a name, what stands there."""
    start = pattern.split("*")[0].split("?")[0].split("[")[0].split(".")[0]
    for module_name, module in list(sys.modules.items()):
        if module is None or not (module_name == start or module_name.startswith(start + ".")):
            continue
        for name, value in list(vars(module).items()):
            if getattr(value, "__module__", None) != module_name:
                continue
            dotted = f"{module_name}.{name}"
            if isinstance(value, types.FunctionType) and fnmatchcase(dotted, pattern) and _is_users(value):
                yield vars(module), name, value
            elif isinstance(value, type):
                for inner, method in list(vars(value).items()):
                    function = getattr(method, "__func__", method)
                    special = (inner.startswith("__") and inner != "__call__") or (
                        inner == "forward" and issubclass(value, torch.nn.Module))  # watched with its hooks around it
                    if isinstance(function, types.FunctionType) and not special and _is_users(function):
                        if fnmatchcase(f"{dotted}.{inner}", pattern):
                            yield value, inner, method


def _held(function: types.FunctionType) -> Iterator[tuple[types.ModuleType, str]]:
    for module in list(sys.modules.values()):
        space = getattr(module, "__dict__", None)
        if isinstance(space, dict):
            yield from ((module, name) for name, value in list(space.items()) if value is function)


__all__ = ["Watch"]
