"""to_static: the front door."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any, Protocol, TypeVar, overload

import torch

from dy2static import settings
from dy2static.explaining import Explanation
from dy2static.operators.shared.distributed import Parallel
from dy2static.static_function import StaticFunction
from runtime import torch_internals
from runtime.autodiff import choose_autograd
from runtime.kinds import is_a
from runtime.passes import BuildStrategy
from runtime.translated.located import located

F = TypeVar("F", bound=Callable[..., Any])
_OPTIONS = ("function", "input_spec", "build_strategy", "backend", "full_graph", "autograd")


class _Decorator(Protocol):
    """What ``to_static(...)`` with options only is, for type checkers: nothing changes its type."""

    def __call__(self, function: F, /) -> F: ...


@overload
def to_static(
    function: F, input_spec: Any = None, build_strategy: BuildStrategy | None = None, backend: str | None = None,
    full_graph: bool = True, autograd: str = "program",
) -> F: ...
@overload
def to_static(
    function: None = None, input_spec: Any = None, build_strategy: BuildStrategy | None = None,
    backend: str | None = None, full_graph: bool = True, autograd: str = "program",
) -> _Decorator: ...
@located
def to_static(
    function: Any = None, input_spec: Any = None, build_strategy: BuildStrategy | None = None,
    backend: str | None = None, full_graph: bool = True, autograd: str = "program", **unknown: Any,
) -> Any:
    """Convert a function, method or module: it is called as before, and runs as a Program.

    Args:
        function: A function, a bound method, an ``nn.Module`` (its ``forward`` is converted, the module is returned),
            or nothing, to use ``to_static(...)`` with options as a decorator.
        input_spec: InputSpecs for the arguments, as a list in their order or a dict by name, nested like the
            arguments; Python constants stand for themselves.
        build_strategy: Which passes Programs go through, and where results are written (docs/build_strategy.md).
        backend: ``"interpreter"``: operators run one by one, bit for bit as in eager. ``"c"``: loops and runs of
            operators are compiled to C when they first run. ``"auto"``: the interpreter first, and C from the 16th call
            of a Program on. ``"cuda"``: runs of operators on CUDA tensors are few kernels (docs/backends.md). None: the
            environment variable ``DY2STATIC_BACKEND``, else ``"auto"``; without a C compiler the interpreter.
        full_graph: False: where a call cannot become a Program, such calls run as plain Python from then on, after one
            EagerWarning that names the line and the reason, and what they call may be Programs still: ``explain()``
            lists it (docs/plain_python.md).
        autograd: ``"program"``: a call is one node of autograd's graph, or a few, and its gradient a Program too.
            ``"eager"``: operators run one by one under PyTorch's autograd, and the graph is what eager's would be.

    >>> @to_static
    ... def relu(x):
    ...     return x
    >>> relu(torch.ones(2))
    tensor([1., 1.])

    Errors raised: TypeError for unknown options and what cannot be converted, ValueError for an unknown backend or
    ``autograd``, SignatureError for an ``input_spec`` that does not fit the function.
    """
    if unknown:
        name = next(iter(unknown))
        near = difflib.get_close_matches(name, _OPTIONS, n=1)
        advice = f"did you mean '{near[0]}'?" if near else f"its options are {', '.join(_OPTIONS[1:])}"
        raise TypeError(f"to_static() got an unexpected argument '{name}'; {advice}")
    options = _options(input_spec, build_strategy, backend, full_graph, autograd)
    if function is None:
        return functools.partial(located(_convert), **options)
    return _convert(function, **options)


def _options(input_spec: Any, build_strategy: Any, backend: Any, full_graph: Any, autograd: Any) -> dict[str, Any]:
    if input_spec is not None and not is_a(input_spec, (list, tuple, dict)):
        raise TypeError(f"input_spec must be a list, a tuple or a dict of InputSpec, not {type(input_spec).__name__}")
    if build_strategy is not None and not is_a(build_strategy, BuildStrategy):
        raise TypeError(f"build_strategy must be a BuildStrategy or None, not {type(build_strategy).__name__}")
    if not is_a(full_graph, bool):
        raise TypeError(f"full_graph must be True or False, not {full_graph!r}")
    return {
        "input_spec": input_spec, "build_strategy": build_strategy, "backend": settings.choose_backend(backend),
        "full_graph": full_graph, "autograd": choose_autograd(autograd),
    }  # fmt: skip


def _convert(function: Any, **options: Any) -> Any:
    if is_a(function, torch.nn.Module):
        return _convert_module(function, options)
    if is_a(function, StaticFunction):
        return _convert(function.function, **options)
    if torch_internals.is_plain_apply(function):  # a method in some versions of torch, a builtin in others
        function = _applier(function.__self__)
    if is_a(function, MethodType):
        inner: Any = function.__func__
        if is_a(inner, StaticFunction):
            inner = inner.function
        return StaticFunction(_checked(inner), instance=function.__self__, **options)
    if is_a(function, staticmethod):
        return StaticFunction(_checked(_inner(function)), is_static_method=True, **options)
    if is_a(function, classmethod):
        return StaticFunction(_checked(_inner(function)), is_class_method=True, **options)
    method = _call_method(function)
    if method is not None:
        return StaticFunction(_checked(method), instance=function, **options)
    return StaticFunction(_checked(function), **options)


def _call_method(function: Any) -> FunctionType | None:
    """``__call__`` of an object, if it is written in Python; None for functions and classes."""
    if is_a(function, (type, FunctionType, MethodType, functools.partial, BuiltinFunctionType)):
        return None
    method = inspect.getattr_static(type(function), "__call__", None)
    return method if is_a(method, FunctionType) else None


def _applier(cls: Any) -> Callable[..., Any]:
    """``cls.apply`` of an ``autograd.Function`` as a Python function."""

    def apply(*args: Any, **kwargs: Any) -> Any:
        return cls.apply(*args, **kwargs)

    return apply


def _inner(function: Any) -> Any:
    inner = function.__func__
    return inner.function if is_a(inner, StaticFunction) else inner


def _convert_module(module: torch.nn.Module, options: dict[str, Any]) -> torch.nn.Module:
    if is_a(module, Parallel):  # it stays around the converted module
        _convert_module(module.module, options)
        return module
    standing = module.__dict__.get("forward")
    if is_a(standing, StaticFunction):
        standing.take_out(module)
    before = module.__dict__.get("forward")
    forward: Any = module.forward
    if is_a(forward, StaticFunction):
        before = None
        forward = forward.function
    bound = is_a(forward, MethodType) and forward.__self__ is module
    if bound:
        converted = StaticFunction(_checked(forward.__func__), instance=module, **options)
    else:
        converted = StaticFunction(_checked(forward), **options)
    converted.replace_forward(module, before)
    return module


@located
def explain(function: Any, *args: Any, **kwargs: Any) -> Explanation:
    """Call a function or module once with ``full_graph=False``, and say which parts are Programs and which are not.

    Args:
        function: A function, method or module, converted or not; it is left as it is.
        args, kwargs: What it is called with. The call is a real one: what it changes, it changes.

    >>> import os
    >>> def scaled(x):
    ...     return x * len(os.urandom(2))
    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     print(explain(scaled, torch.ones(3)).runs_as)
    Python

    Errors raised: TypeError for what cannot be converted, and what the call raises.
    """
    target = function.forward if is_a(function, torch.nn.Module) else function
    static: Any = to_static(getattr(target, "function", target), full_graph=False)
    static(*args, **kwargs)
    return static.explain()


def _checked(function: Any) -> Callable[..., Any]:
    """``function``, or the TypeError that says why it cannot be converted."""
    if is_a(function, functools.partial):
        inner: Any = function.func.function if is_a(function.func, StaticFunction) else function.func
        _checked(_call_method(inner) or inner)
        return function
    if is_a(function, type):
        kind = "an nn.Module class; convert an instance, or decorate its forward method" if issubclass(
            function, torch.nn.Module) else "a class; decorate its methods"  # fmt: skip
        raise TypeError(f"to_static() was given {function.__name__}, {kind}")
    if is_a(function, (property, functools.cached_property)):
        raise TypeError("to_static() was given a property; write @property above @to_static")
    if not is_a(function, (FunctionType, MethodType)):
        options = is_a(function, (list, tuple, dict))
        advice = "; options are given by name: to_static(input_spec=...)" if options else ""
        raise TypeError(f"to_static() takes a Python function, a method or an nn.Module, not {function!r}{advice}")
    for is_kind, kind in (
        (inspect.isasyncgenfunction, "an async generator"), (inspect.iscoroutinefunction, "an async function"),
        (inspect.isgeneratorfunction, "a generator"),
    ):  # fmt: skip
        if is_kind(function):
            raise TypeError(f"to_static() was given {function.__name__}, {kind}, which has no static form")
    return function


__all__ = ["explain", "to_static"]
