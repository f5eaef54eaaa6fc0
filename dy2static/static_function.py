"""StaticFunction: called like the function it was made of, it runs a Program that fits the call.

    arguments -> bound by Python's rules, held against the InputSpecs, taken apart
              -> a key and guards choose the cached Program, or the function is traced
              -> the Program runs; results, writes and effects go back to the caller
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType
from typing import Any

import torch

from dy2static import fault_rules, operators, over_rows, progress, settings, traceback
from dy2static.bound_methods import bound_methods, method_of
from dy2static.breakpoints import RunsPlain
from dy2static.conversion import convert
from dy2static.converted_module import ConvertedModule
from dy2static.dispatch import Dispatch
from dy2static.errors import Dy2StaticError, InternalError, SignatureError
from dy2static.explaining import Explanation, explanation
from dy2static.fallback import EagerWarning, Fallback
from dy2static.origin import user_location
from dy2static.pieces import NOTHING, Part
from dy2static.program_cache import CLOCK, Dynamic, ProgramCache
from dy2static.signature import Signature
from dy2static.specialization import Specialization
from dy2static.subject import Subject
from runtime import torch_internals
from runtime.calling import Compiled, compiled
from runtime.calling.executors import executor
from runtime.executor.trial import trial
from runtime.ir import Program
from runtime.kinds import is_a
from runtime.passes import BuildStrategy
from runtime.torch_internals import batches
from runtime.tracer.ambient import source_places, state
from runtime.tracer.ambient.calls import Ahead
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.boundary.tracing import Traced
from runtime.tracer.values.arguments import Arguments
from runtime.translated import located as located_calls
from runtime.translated.located import located

source_places.location_provider = user_location
fault_rules.install()
progress.install()
traceback.hide_entrances()
located_calls.tidy = traceback.rewrite

_LOOKED_AT = ("__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__", "__annotations__")


class StaticFunction:
    """A converted function or bound method. Made by ``to_static``.

    ``instance``: what it is bound to (``self``). ``is_class_method``: it binds to the class it is looked up on.
    """

    def __init__(
        self, function: Callable[..., Any], *, instance: Any = NOTHING, input_spec: Any = None,
        build_strategy: BuildStrategy | None = None, backend: str = "interpreter", is_class_method: bool = False,
        is_static_method: bool = False, full_graph: bool = True, autograd: str = "program",
    ) -> None:
        self._subject = Subject(function, instance, input_spec, is_static_method, full_graph)
        self.input_spec = input_spec
        self.build_strategy = build_strategy
        self.backend = backend
        self.full_graph = full_graph
        self.autograd = autograd
        self._is_class_method = is_class_method
        self._is_static_method = is_static_method
        self._conversion: ConvertedModule | None = None
        self.__name__: str = self._subject.name
        self.__qualname__: str = self._subject.qualname
        self.__module__: str = unasked(function, "__module__", "") or ""
        self.__doc__ = function.__doc__
        strategy = BuildStrategy() if build_strategy is None else replace(build_strategy)  # as it is now
        cache = ProgramCache(self.__name__, autograd == "eager", backend, strategy, not full_graph)
        self._fallback = Fallback(self._subject, self)
        self._dispatch = Dispatch(self._subject, cache, self._fallback, full_graph)

    # -- what it stands for --------------------------------------------------------------------------------------

    @property
    def function(self) -> Callable[..., Any]:
        """The original function, or bound method."""
        self._dispatch.follow_class()
        return self._subject.original

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    def __prepare_scriptable__(self) -> Callable[..., Any]:
        """What ``torch.jit.script`` compiles."""
        return self.function

    @property
    def __self__(self) -> Any:
        if self._subject.instance is NOTHING:
            raise AttributeError(f"'{self.__name__}' is not bound to an object")
        return self._subject.instance

    @property
    def __signature__(self) -> inspect.Signature:
        return self._subject.signature.python

    def __getattr__(self, name: str) -> Any:
        """Attributes that the user set on the original function, and what tools look at (``__code__``)."""
        if (not name.startswith("__") or name in _LOOKED_AT) and "_subject" in self.__dict__:
            with contextlib.suppress(AttributeError):
                return getattr(self._subject.python, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        owner = "" if self._subject.instance is NOTHING else f" of {_type_name(self._subject.instance)}"
        count = len(self._dispatch.cache.all())
        programs = "1 program" if count == 1 else f"{count} programs"
        return f"<StaticFunction {self.__name__}{self._subject.signature.python}{owner}, {programs}, {self.backend}>"

    def replace_forward(self, module: torch.nn.Module, before: Any = None) -> None:
        """Become the module's ``forward``; ``before`` is one that stood in the module itself."""
        self._subject.module = module
        conversion = ConvertedModule(module, self, before)
        self._stand(conversion)
        conversion.enter()

    def _stand(self, conversion: ConvertedModule | None) -> None:
        """It is the ``forward`` of a module, as the conversion says."""
        self._conversion = conversion
        self._subject.follows_class = conversion is not None and conversion.before is None

    def take_out(self, module: torch.nn.Module) -> None:
        """Leave a module whose ``forward`` it is, or that got its ``__dict__`` from the module whose it is."""
        if self._conversion is not None:
            self._conversion.leave(module)

    # -- binding -------------------------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: type | None = None) -> StaticFunction:
        if self._is_static_method or self._subject.instance is not NOTHING:
            return self
        if self._is_class_method:
            instance = owner if owner is not None else type(instance)
        return self if instance is None else self.bind(instance)

    def bind(self, instance: Any) -> StaticFunction:
        """The method of one object, with Programs of its own; they live as long as the object."""
        holder = bound_methods(instance)
        found: StaticFunction | None = holder.get(self)
        if found is None:
            found = holder.setdefault(self, StaticFunction(
                self._subject.python, instance=instance, input_spec=self.input_spec, build_strategy=self.build_strategy,
                backend=self.backend, full_graph=self.full_graph, autograd=self.autograd,
            ))  # fmt: skip
        return found

    def _owner_among(self, args: tuple[Any, ...]) -> Any:
        """The object in ``Class.method(object, ...)``."""
        if self._subject.instance is NOTHING and args and self._subject.looks_like_a_method():
            first = args[0]
            for cls in (first if is_a(first, type) else type(first)).__mro__:
                found = cls.__dict__.get(self.__name__)
                if found is self or (is_a(found, classmethod) and found.__func__ is self):
                    return first
        return NOTHING

    # -- calling -------------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # of pytest and IPython; here, and where an error comes through on its way out
        if torch.compiler.is_compiling():  # torch.compile reads these lines, and goes on in the original
            return self._subject.original(*args, **kwargs)
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        dispatch = self._dispatch
        shortcut = tensors = None
        for shortcut in dispatch.shortcuts:
            if shortcut.count == len(args) and shortcut.names == (tuple(kwargs) if kwargs else ()):
                tensors = shortcut.check(*args, *kwargs.values()) if kwargs else shortcut.check(*args)
                if tensors is not None:
                    break
        if tensors is None:
            if state.active() is not None:
                return operators.call(self.function, *args, **kwargs)
            for_rows = batches.transforms() and over_rows.is_for_rows(self._subject.module, args, kwargs)
            if not settings.is_enabled() or (torch_internals.others_trace() and not for_rows):
                return self.function(*args, **kwargs)
            owner = self._owner_among(args)
            if owner is not NOTHING:
                return self.bind(owner)(*args[1:], **kwargs)
        else:
            for_rows = False
        try:
            if shortcut is not None and tensors is not None:
                shortcut.found.last_used = next(CLOCK)
                return dispatch.shortcut(shortcut, tensors, args, kwargs)
            return dispatch.answer_for_rows(args, kwargs) if for_rows else dispatch.answer(args, kwargs)
        except RunsPlain:
            failure = None
        except Exception as error:
            failure = error.locate(user_location()) if is_a(error, Dy2StaticError) else error
            if is_a(error, InternalError):
                error.before_run = False  # the caller may have run already
        if failure is None:  # a breakpoint in it: it stops in the user's file, with real values
            return self.function(*args, **kwargs)
        try:
            raise traceback.rewrite(failure)
        finally:
            del failure

    # -- full_graph=False ----------------------------------------------------------------------------------------

    def as_piece(self, part: Part) -> StaticFunction:
        """The converted form of a part of its own, or of another part.

        What is around a part may write to what it was given, or gave, before backward: PyTorch's autograd then says and
        does what it does in eager. The node of a Program may have kept other tensors.
        """
        exact = executor(self.backend).exact or part.pieces.writes
        made = StaticFunction(
            part.function, instance=part.instance, build_strategy=self.build_strategy, backend=self.backend,
            full_graph=False, autograd="eager" if exact else self.autograd,
        )
        made._fallback.become_part(part)
        return made

    def is_hopeless(self) -> bool:
        """Whether no call of it is, or will be, a Program."""
        return self._dispatch.is_hopeless()

    def explain(self) -> Explanation:
        """Which parts of it are Programs, which run as plain Python, and why, after the calls so far; ``print`` it.

        With ``full_graph=True`` all that was called is Programs.
        """
        return explanation(self._fallback.part)

    # -- looking inside ------------------------------------------------------------------------------------------

    def concrete_program(self, *args: Any, **kwargs: Any) -> Traced:
        """The Program for these arguments, with what a live call needs beside it; nothing is run.

        Without arguments: for the InputSpecs, else for the last call.

        Errors raised: SignatureError (D2S307) if there is neither.
        """
        self._dispatch.follow_class()
        if args or kwargs or not self._subject.signature.required():
            return self.specialize(*self._dispatch.prepare(self._subject.signature.bind(args, kwargs))).traced
        return self.specialization().traced

    @located
    def specialization(self) -> Specialization:
        """The Program for the InputSpecs, else the one that was used last."""
        self._dispatch.follow_class()
        specs = self._subject.specs()
        if specs is not None:
            arguments, dynamic = self._dispatch.prepare(specs.example(self._subject.signature, self.device))
            found = self.specialize(arguments, dynamic)
            if not found.found and not found.tried:
                traced = found.traced
                trial(traced.program, traced.inputs(arguments), found.tensors(), traced.raised)
                found.tried = True
            return found
        kept = self._dispatch.cache.all()
        if not kept:
            raise SignatureError(
                f"{self.__name__}() has no Program yet, and no input_spec to make one from", code="D2S307",
                hint=f"Call it once, or convert it with to_static({self.__name__}, input_spec=[...]).",
            )
        return kept[0]

    @property
    def signature(self) -> Signature:
        """Its parameters, without the one that it is bound to."""
        return self._subject.signature

    def specialize(self, arguments: Arguments, dynamic: Dynamic) -> Specialization:
        """The Program for arguments taken apart, with some dimensions left open; nothing is run."""
        return self._dispatch.specialize(arguments, dynamic)

    def trace(self, arguments: Arguments, dynamic: Dynamic, ahead: Ahead | None = None) -> Traced:
        """Trace it for arguments taken apart, with some dimensions left open; the Program is not kept."""
        return self._dispatch.trace(arguments, dynamic, ahead=ahead)

    @property
    def device(self) -> torch.device | None:
        """Where the parameters are of the module that it is bound to."""
        return self._subject.device

    @property
    def programs(self) -> list[Program]:
        """All Programs made so far, the last used one first."""
        return [one.traced.program for one in self._dispatch.cache.all()]

    @property
    def specializations(self) -> list[Specialization]:
        """All Programs made so far with the calls that each answers, the last used one first."""
        return self._dispatch.cache.all()

    @property
    @located
    def program(self) -> Program:
        """The last used Program; made from the InputSpecs if there is none yet. SignatureError without either."""
        kept = self._dispatch.cache.all()
        return kept[0].traced.program if kept else self.specialization().traced.program

    @property
    def compiled(self) -> list[Compiled]:
        """How each Program runs that has been called, the last used one first; ``print(*f.compiled)`` says it."""
        ready = [one.ready for one in self._dispatch.cache.all() if one.ready is not None]
        return [compiled(one.runner, self.backend) for one in ready]

    @property
    @located
    def code(self) -> str:
        """The converted function's source text."""
        function: Any = self._subject.python
        if not is_a(function, FunctionType):
            raise TypeError(f"{function!r} has no source of its own")
        return str(getattr(convert(function), "__dy2static_source__"))  # noqa: B009  # set by convert

    def rollback(self) -> Any:
        """Undo the conversion: a module gets its own forward back and is returned, else the original function is."""
        self._dispatch.forget()
        if self._conversion is not None and self._conversion.leave(self._conversion.module):
            return self._subject.module
        return self.function

    # -- copies --------------------------------------------------------------------------------------------------

    def __copy__(self) -> StaticFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction:
        """A function is its own copy; a method's copy belongs to the copied object, and has no Programs yet."""
        if self._subject.instance is NOTHING and self._subject.module is None:
            return self
        instance = NOTHING if self._subject.instance is NOTHING else copy.deepcopy(self._subject.instance, memo)
        module = copy.deepcopy(self._subject.module, memo)
        if id(self) in memo:  # the copy of the object holds it
            return memo[id(self)]
        twin = StaticFunction(
            copy.deepcopy(self._subject.python, memo), instance=instance, input_spec=self.input_spec,
            build_strategy=self.build_strategy, backend=self.backend, full_graph=self.full_graph,
            autograd=self.autograd,
        )
        twin._subject.module = module
        memo[id(self)] = twin
        twin._stand(copy.deepcopy(self._conversion, memo))
        return twin

    def __reduce__(self) -> Any:
        """Pickled as the original: a function by its name, a method as the object's own method."""
        if self._subject.instance is not NOTHING:
            return (method_of, (self._subject.instance, self.__name__))
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.__qualname__ if found is self else (_again, (self._subject.python, self._options()))

    def _options(self) -> dict[str, Any]:
        return {
            "input_spec": self.input_spec, "build_strategy": self.build_strategy, "backend": self.backend,
            "full_graph": self.full_graph, "autograd": self.autograd, "is_class_method": self._is_class_method,
            "is_static_method": self._is_static_method,
        }  # fmt: skip


def _again(function: Callable[..., Any], options: dict[str, Any]) -> StaticFunction:
    """The converted form of a function: what a pickle loads that could not name it."""
    return StaticFunction(function, **options)


def _type_name(instance: Any) -> str:
    return instance.__qualname__ if is_a(instance, type) else type(instance).__qualname__


__all__ = ["EagerWarning", "StaticFunction"]
