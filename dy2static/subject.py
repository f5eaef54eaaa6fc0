"""What is converted: a function, or the method of one object, and how a call of it becomes a trace."""

from __future__ import annotations

import functools
import linecache
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

import torch

from dy2static import breakpoints, operators
from dy2static.cache_key import Key, arguments_key, surroundings_key
from dy2static.input_spec import Specs, read_specs
from dy2static.operators.provenance.provenance import adopt, note_module
from dy2static.operators.shared import frames
from dy2static.pieces import NOTHING
from dy2static.program_cache import Dynamic, Varying
from dy2static.signature import Signature
from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient import state
from runtime.tracer.ambient.calls import Ahead
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.boundary.tracing import Traced, trace
from runtime.tracer.recording import faults
from runtime.tracer.values.arguments import Arguments, flatten

Apart = frozenset[type]


class Subject:
    """A function and what it is bound to (``pieces.NOTHING``: it is not), with the InputSpecs of its calls.

    ``whole``: whether all of it has to be a Program; each one then serves a call at least.
    """

    def __init__(
        self, function: Callable[..., Any], instance: Any, input_spec: Any, is_static_method: bool, whole: bool
    ) -> None:
        self.python = function
        self.instance = instance
        self.original: Callable[..., Any] = function if instance is NOTHING else MethodType(function, instance)
        self.module: torch.nn.Module | None = instance if is_a(instance, torch.nn.Module) else None
        self.name: str = unasked(function, "__name__", type(function).__name__)
        self.qualname: str = unasked(function, "__qualname__", self.name)
        self.follows_class = False
        """Whether it is the ``forward`` that a module has of its class."""
        self.signature = Signature(function, self.is_bound)
        self._is_static_method = is_static_method
        self._whole = whole
        self._input_spec = input_spec
        self._specs: Specs | None = None
        if self.is_bound or not self.looks_like_a_method():
            self.specs()

    @property
    def is_bound(self) -> bool:
        """Whether it is the method of an object."""
        return self.instance is not NOTHING

    def looks_like_a_method(self) -> bool:
        """Whether the function stands in a class body: then its first parameter may be ``self``."""
        return not self._is_static_method and len(self.qualname.rpartition("<locals>.")[2].split(".")) > 1

    def specs(self) -> Specs | None:
        """The InputSpecs, read by the signature; None if there are none."""
        if self._specs is None and self._input_spec is not None:
            self._specs = read_specs(self._input_spec, self.signature)
        return self._specs

    def follow_class(self) -> bool:
        """Become the ``forward`` that the module's class has by now, if it is another one; whether it is."""
        if not self.follows_class or not self.is_bound:
            return False
        now = getattr(type(self.instance), "forward", None)
        converted = getattr(now, "_subject", None)  # of a StaticFunction
        now = converted.python if is_a(converted, Subject) else now
        if now is self.python or not is_a(now, FunctionType):
            return False
        self.python, self.original = now, MethodType(now, self.instance)
        self.signature = Signature(now, bound=True)
        self._specs = None
        return True

    @property
    def device(self) -> torch.device | None:
        """Where the parameters are of the module that it is bound to."""
        parameters = iter(()) if self.module is None else self.module.parameters()
        return next((tensor.device for tensor in parameters), None)

    def location(self) -> Location | None:
        """Where its definition begins."""
        code = getattr(self.python, "__code__", None)
        if code is None:
            return None
        line = code.co_firstlineno
        return Location(code.co_filename, line, 0, self.name, linecache.getline(code.co_filename, line).rstrip())

    def prepare(self, bound: dict[str, Any], apart: Apart) -> tuple[Arguments, Dynamic]:
        """The arguments taken apart (``apart``: dataclasses, too), and the dimensions that InputSpecs leave open."""
        specs = self.specs()
        matched = specs.check(bound) if specs is not None else []
        try:
            arguments = flatten(bound, apart)
        except Exception as error:
            if faults.is_ours(error):
                raise faults.internal(error) from error
            raise
        asked: Dynamic = {}
        if matched:
            labels = {id(tensor): label for tensor, label in zip(arguments.tensors, arguments.labels)}
            for tensor, spec in matched:
                if spec.dynamic:
                    asked[labels[id(tensor)]] = spec.dynamic
            stopped = {id(tensor) for tensor, spec in matched if spec.stop_gradient}
            arguments.tensors = [t.detach() if t.requires_grad and id(t) in stopped else t for t in arguments.tensors]
        return arguments, asked

    def key(self, arguments: Arguments) -> Key:
        """What is the same of calls that one Program may answer."""
        training = None if self.module is None else self.module.training
        return (arguments_key(arguments), surroundings_key(), training)

    def trace(
        self, arguments: Arguments, dynamic: Dynamic, varying: Varying = frozenset(), apart: Dynamic | None = None,
        ahead: Ahead | None = None,
    ) -> Traced:
        """Trace a call, with some dimensions left open."""
        def call(function: Callable[..., Any], bound: dict[str, Any]) -> Any:
            session = state.current()
            if self.module is not None:
                note_module(session, self.module)
            if self.is_bound:
                adopt(session, self.instance)
            for value in arguments.others():
                adopt(session, value)
            args, kwargs = self.signature.unbind(bound)
            result = operators.call(function, *args, **kwargs)
            breakpoints.check(session)
            return result

        make = functools.partial(
            trace, self.original, arguments, name=self.name, dynamic=dynamic, call=call, varying=varying,
            apart=apart, for_one_call=self._whole, ahead=ahead or Ahead(),
        )  # fmt: skip
        return frames.run(make, (), {}, None)


__all__ = ["Subject"]
