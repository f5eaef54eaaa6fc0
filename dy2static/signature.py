"""A function's parameters: binding a call's arguments by Python's own rules, with Python's own errors.

    bind forward(self, x, *rest, n=2) to (t, u)   ->   {"x": t, "rest": (u,), "n": 2}
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import FunctionType
from typing import Any

from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import acts_for_user

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class Signature:
    """The parameters of a function, without the first ``bound`` ones (``self``)."""

    def __init__(self, function: Callable[..., Any], bound: bool = False) -> None:
        self.function = function
        self.bound = bound
        full = inspect.signature(_as_written(function), follow_wrapped=False)
        parameters = list(full.parameters.values())
        if bound and parameters and parameters[0].kind in _POSITIONAL:
            parameters = parameters[1:]
        self.parameters = parameters
        self.python = full.replace(parameters=parameters)
        self.names = [parameter.name for parameter in parameters]
        self.is_function = is_a(function, FunctionType)
        self._stub = _stub_of(function, full) if is_a(function, FunctionType) else None

    @acts_for_user
    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        """Parameter names and values, defaults filled in.

        Errors raised: TypeError, worded as Python words it for the function itself.
        """
        if self._stub is None:
            found = self.python.bind(*args, **kwargs)
            found.apply_defaults()
            return dict(found.arguments)
        function: Any = self.function
        if self._stub.__defaults__ is not function.__defaults__:
            self._stub.__defaults__ = function.__defaults__
        if self._stub.__kwdefaults__ is not function.__kwdefaults__:
            self._stub.__kwdefaults__ = function.__kwdefaults__
        values = self._stub(None, *args, **kwargs) if self.bound else self._stub(*args, **kwargs)
        if len(values) != len(self.names):  # the first parameter was self
            values = values[1:]
        elif self.bound:  # def f(*args): self is the first of them
            values = (values[0][1:], *values[1:])
        return dict(zip(self.names, values))

    def unbind(self, values: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Positional and keyword arguments that bind to these values: the inverse of ``bind``."""
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for parameter in self.parameters:
            value = values[parameter.name]
            if parameter.kind in _POSITIONAL:
                args.append(value)
            elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
                args.extend(value)
            elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
                kwargs.update(value)
            else:
                kwargs[parameter.name] = value
        return tuple(args), kwargs

    def required(self) -> list[str]:
        """Names of the parameters that every call must give."""
        return [
            parameter.name for parameter in self.parameters
            if parameter.default is parameter.empty
            and parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        ]


def _as_written(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that says nothing else of its parameters than its code does: ``__signature__`` is for readers."""
    if not is_a(function, FunctionType) or "__signature__" not in function.__dict__:
        return function
    plain = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__,
                         function.__closure__)  # fmt: skip
    plain.__kwdefaults__ = function.__kwdefaults__
    return plain


def _stub_of(function: FunctionType, signature: inspect.Signature) -> FunctionType:
    """A function of the same parameters that returns them: Python itself does the binding."""
    shown = []
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    star = False
    for index, parameter in enumerate(signature.parameters.values()):
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            shown.append("*")
            star = True
        prefix = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" * (parameter.kind is parameter.VAR_KEYWORD)
        star = star or prefix == "*"
        default = "" if parameter.default is parameter.empty else "=None"
        shown.append(prefix + parameter.name + default)
        after = kinds[index + 1] if index + 1 < len(kinds) else None
        if parameter.kind is parameter.POSITIONAL_ONLY and after is not parameter.POSITIONAL_ONLY:
            shown.append("/")
    names = "".join(name + "," for name in signature.parameters)
    namespace: dict[str, Any] = {}
    exec(f"def stub({', '.join(shown)}): return ({names})", namespace)  # identifiers only
    stub = namespace["stub"]
    assert is_a(stub, FunctionType)
    stub.__name__, stub.__qualname__ = function.__name__, function.__qualname__
    return stub


__all__ = ["Signature"]
