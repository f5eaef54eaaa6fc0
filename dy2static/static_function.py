"""StaticFunction: called like the function it was made of, it runs a Program that fits the call.

    arguments -> bound by Python's rules, held against the InputSpecs, taken apart
              -> a key and guards choose the cached Program, or the function is traced
              -> the Program runs; results, writes and effects go back to the caller
"""

from __future__ import annotations

import contextlib
import copy
import functools
import inspect
import linecache
import sys
from collections.abc import Callable
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any

import torch

from dy2static import breakpoints, fault_rules, operators, over_rows, progress, settings, traceback
from dy2static.bound_methods import bound_methods, method_of
from dy2static.breakpoints import RunsPlain
from dy2static.cache_key import Key, arguments_key, surroundings_key
from dy2static.conversion import convert
from dy2static.converted_module import ConvertedModule
from dy2static.errors import ConversionError, Dy2StaticError, InternalError, SignatureError, TraceError
from dy2static.explaining import Explanation, explanation
from dy2static.input_spec import Specs, read_specs
from dy2static.operators.provenance.provenance import adopt, note_module
from dy2static.operators.shared import frames
from dy2static.origin import user_location
from dy2static.pieces import NOTHING as UNBOUND
from dy2static.pieces import Part, Pieces
from dy2static.program_cache import CLOCK, Dynamic, ProgramCache, Varying
from dy2static.shortcut import MADE_AT, Shortcut, front
from dy2static.shortcut import make as make_shortcut
from dy2static.signature import Signature
from dy2static.specialization import Specialization
from dy2static.verdicts import Reason, Verdicts, is_final, is_small, reason_of
from dy2static.warn import warn
from runtime import torch_internals
from runtime.calling import Compiled, compiled
from runtime.executor.trial import trial
from runtime.ir import Location, Program
from runtime.passes import BuildStrategy
from runtime.torch_internals import batches
from runtime.tracer.ambient import source_places, state
from runtime.tracer.boundary.tracing import Traced, trace
from runtime.tracer.recording import faults
from runtime.tracer.values import open_values
from runtime.tracer.values.arguments import Arguments, flatten
from runtime.translated import located as located_calls
from runtime.translated.located import located

source_places.location_provider = user_location
fault_rules.install()
progress.install()
traceback.hide_entrances()
located_calls.tidy = traceback.rewrite

_NOTHING = object()
TRUSTED_AFTER = 8
"""A Program with open values that raised rightly so often is believed."""
_LOOKED_AT = ("__code__", "__defaults__", "__kwdefaults__", "__globals__", "__closure__", "__annotations__")


class EagerWarning(UserWarning):
    """A function converted with ``full_graph=False`` cannot become a Program for some call, and runs as it is.

    Fix: what the message says; or leave it so.
    """


class StaticFunction:
    """A converted function or bound method. Made by ``to_static``.

    ``instance``: what it is bound to (``self``). ``is_class_method``: it binds to the class it is looked up on.
    """

    def __init__(
        self, function: Callable[..., Any], *, instance: Any = _NOTHING, input_spec: Any = None,
        build_strategy: BuildStrategy | None = None, backend: str = "interpreter", is_class_method: bool = False,
        is_static_method: bool = False, full_graph: bool = True, autograd: str = "program",
    ) -> None:
        self._python = function
        self._instance = instance
        self._original = function if instance is _NOTHING else MethodType(function, instance)
        self._is_class_method = is_class_method
        self._is_static_method = is_static_method
        self._module: torch.nn.Module | None = instance if isinstance(instance, torch.nn.Module) else None
        self._conversion: ConvertedModule | None = None
        self.input_spec = input_spec
        self.build_strategy = build_strategy
        self.backend = backend
        self.full_graph = full_graph
        self.autograd = autograd
        self._verdicts = Verdicts()
        self._own_part: Part | None = None
        self._is_piece = False
        """Whether it was made as a part of another converted function."""
        self.__name__: str = getattr(function, "__name__", type(function).__name__)
        self.__qualname__: str = getattr(function, "__qualname__", self.__name__)
        self.__module__: str = getattr(function, "__module__", "") or ""
        self.__doc__ = function.__doc__
        bound = instance is not _NOTHING
        self._signature = Signature(function, bound)
        self._specs: Specs | None = None
        if bound or not self._looks_like_a_method():
            self._read_specs()
        strategy = BuildStrategy() if build_strategy is None else replace(build_strategy)  # as it is now
        self._cache = ProgramCache(self.__name__, autograd == "eager", backend, strategy, not full_graph)
        self._shortcuts: tuple[Shortcut, ...] = ()
        self._may_shorten = bound or not self._looks_like_a_method()

    def _read_specs(self) -> Specs | None:
        if self._specs is None and self.input_spec is not None:
            self._specs = read_specs(self.input_spec, self._signature)
        return self._specs

    # -- what it stands for --------------------------------------------------------------------------------------

    @property
    def function(self) -> Callable[..., Any]:
        """The original function, or bound method."""
        self._follow_class()
        return self._original

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    @property
    def __self__(self) -> Any:
        if self._instance is _NOTHING:
            raise AttributeError(f"'{self.__name__}' is not bound to an object")
        return self._instance

    @property
    def __signature__(self) -> inspect.Signature:
        return self._signature.python

    def __getattr__(self, name: str) -> Any:
        """Attributes that the user set on the original function, and what tools look at (``__code__``)."""
        if (not name.startswith("__") or name in _LOOKED_AT) and "_python" in self.__dict__:
            with contextlib.suppress(AttributeError):
                return getattr(self._python, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __repr__(self) -> str:
        owner = "" if self._instance is _NOTHING else f" of {_type_name(self._instance)}"
        count = len(self._cache.all())
        programs = "1 program" if count == 1 else f"{count} programs"
        return f"<StaticFunction {self.__name__}{self._signature.python}{owner}, {programs}, {self.backend}>"

    def replace_forward(self, module: torch.nn.Module, before: Any = None) -> None:
        """Become the module's ``forward``; ``before`` is one that stood in the module itself."""
        self._module = module
        self._conversion = ConvertedModule(module, self, before)
        self._conversion.enter()

    def take_out(self, module: torch.nn.Module) -> None:
        """Leave a module whose ``forward`` it is, or that got its ``__dict__`` from the module whose it is."""
        if self._conversion is not None:
            self._conversion.leave(module)

    def _follow_class(self) -> bool:
        """Become the forward that the module's class has by now, if it is another one; whether it is."""
        if self._conversion is None or self._instance is _NOTHING or self._conversion.before is not None:
            return False
        now = getattr(type(self._instance), "forward", None)
        now = now._python if isinstance(now, StaticFunction) else now
        if now is self._python or not isinstance(now, FunctionType):
            return False
        self._python, self._original = now, MethodType(now, self._instance)
        self._signature = Signature(now, bound=True)
        self._specs = None
        self._forget()
        return True

    def _forget(self) -> None:
        """Forget every Program, and what was found out about calls."""
        self._cache.clear()
        self._shortcuts = ()
        self._verdicts.clear()
        if self._own_part is not None:
            self._own_part.pieces.clear()
            self._own_part = None

    # -- binding -------------------------------------------------------------------------------------------------

    def __get__(self, instance: Any, owner: type | None = None) -> StaticFunction:
        if self._is_static_method or self._instance is not _NOTHING:
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
                self._python, instance=instance, input_spec=self.input_spec, build_strategy=self.build_strategy,
                backend=self.backend, full_graph=self.full_graph, autograd=self.autograd,
            ))  # fmt: skip
        return found

    def _looks_like_a_method(self) -> bool:
        """Whether the function stands in a class body: then its first parameter may be ``self``."""
        return not self._is_static_method and len(self.__qualname__.rpartition("<locals>.")[2].split(".")) > 1

    def _owner_among(self, args: tuple[Any, ...]) -> Any:
        """The object in ``Class.method(object, ...)``."""
        if self._instance is _NOTHING and args and self._looks_like_a_method():
            first = args[0]
            for cls in (first if isinstance(first, type) else type(first)).__mro__:
                found = cls.__dict__.get(self.__name__)
                if found is self or (isinstance(found, classmethod) and found.__func__ is self):
                    return first
        return _NOTHING

    # -- calling -------------------------------------------------------------------------------------------------

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True  # of pytest and IPython; here, and where an error comes through on its way out
        if torch.compiler.is_compiling():  # torch.compile reads these lines, and goes on in the original
            return self._original(*args, **kwargs)
        return self._call(args, kwargs)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        __tracebackhide__ = True
        shortcut = tensors = None
        if not kwargs:
            for shortcut in self._shortcuts:
                if shortcut.count == len(args):
                    tensors = shortcut.check(*args)
                    if tensors is not None:
                        break
        if tensors is None:
            if state.active() is not None:
                return operators.call(self.function, *args, **kwargs)
            for_rows = batches.transforms() and over_rows.is_for_rows(self._module, args, kwargs)
            if not settings.is_enabled() or (torch_internals.others_trace() and not for_rows):
                return self.function(*args, **kwargs)
            owner = self._owner_among(args)
            if owner is not _NOTHING:
                return self.bind(owner)(*args[1:], **kwargs)
        else:
            for_rows = False
        try:
            if shortcut is not None and tensors is not None:
                shortcut.found.last_used = next(CLOCK)
                if self.full_graph:
                    if shortcut.found.open:
                        run = functools.partial(shortcut.run, args, tensors)
                        return self._run_open(shortcut.found, run, args, kwargs)
                    return shortcut.run(args, tensors)
                return self._run(shortcut.found, functools.partial(shortcut.run, args, tensors), args, kwargs)
            return self._call_for_rows(args, kwargs) if for_rows else self._call_the_long_way(args, kwargs)
        except RunsPlain:
            failure = None
        except Exception as error:
            failure = error.locate(user_location()) if isinstance(error, Dy2StaticError) else error
            if isinstance(error, InternalError):
                error.before_run = False  # the caller may have run already
        if failure is None:  # a breakpoint in it: it stops in the user's file, with real values
            return self.function(*args, **kwargs)
        try:
            raise traceback.rewrite(failure)
        finally:
            del failure

    def _call_the_long_way(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            bound = self._signature.bind(args, kwargs)
        except TypeError:
            if not self._follow_class():
                raise
            bound = self._signature.bind(args, kwargs)
        try:
            arguments, dynamic = self._prepare(bound)
        except InternalError:
            if self.full_graph:
                raise
            return self._original(*args, **kwargs)
        if any(torch_internals.is_fake(tensor) for tensor in arguments.tensors):  # another tool's trace
            return self.function(*args, **kwargs)
        if not self.full_graph:
            return self._call_as_possible(arguments, dynamic, args, kwargs)
        found = self._cache.find(self._key(arguments), arguments)
        if found is None:
            if self._follow_class():
                arguments, dynamic = self._prepare(self._signature.bind(args, kwargs))
            if self._cache.open.note_records(arguments, self._cache.all()):
                arguments, dynamic = self._prepare(self._signature.bind(args, kwargs))
            found = self._cache.get(self._key(arguments), arguments, dynamic, self._trace, may_open=True)
        if found.open:
            result = self._run_open(found, functools.partial(found.call, arguments), args, kwargs)
        else:
            result = found.call(arguments)
        found.found += 1
        if found.found in MADE_AT and not kwargs:
            self._shorten(found, args, arguments)
        return result

    def _run_open(
        self, found: Specialization, run: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a Program with open values. What it raises the Program for these very values has to raise as well: else
        they are constants from now on."""
        if all(map(open_values.is_open_at_once, found.open)):
            return run()
        put_back = self._random_states(found, args, kwargs)
        try:
            return run()
        except Exception as error:
            if not found.is_silent or found.failures >= TRUSTED_AFTER:
                if isinstance(error, Dy2StaticError):  # too late for this call
                    self._close(found)
                raise
        put_back()
        arguments, dynamic = self._prepare(self._signature.bind(args, kwargs))
        fixed = self._cache.get(self._key(arguments), arguments, dynamic, self._trace)
        try:
            result = fixed.call(arguments)
        except Exception:
            found.failures += 1
            raise
        self._close(found)
        return result

    def _random_states(
        self, found: Specialization, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Callable[[], None]:
        """What has random numbers go on from where they are now, of all that a Program may draw from."""
        if not found.is_random:
            return lambda: None
        states, given = torch_internals.rng_state(), []
        if found.traced.generators:
            opened = list(found.opened(self._prepare(self._signature.bind(args, kwargs))[0]).opened.values())
            given = [(opened[index], opened[index].get_state()) for index, _ in found.traced.generators]

        def put_back() -> None:
            torch_internals.set_rng_state(states)
            for generator, state_of in given:
                generator.set_state(state_of)

        return put_back

    def _close(self, found: Specialization) -> None:
        """Have constants in place of what is open in a Program, for all calls of its kind."""
        self._cache.close(found)
        self._shortcuts = tuple(one for one in self._shortcuts if one.found is not found)

    def _call_for_rows(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call under ``torch.vmap``: a Program for one row is found, and run for all."""
        self._follow_class()
        arguments, dynamic = self._prepare(self._signature.bind(args, kwargs))
        with over_rows.one_row(self._module):
            row = over_rows.row_of(arguments)
            key = self._key(row)
            try:
                if self._verdicts.reason(key) is not None:
                    found = None
                else:
                    found = self._cache.get(key, row, dynamic, self._trace)
            except (ConversionError, TraceError) as error:
                if self.full_graph:
                    raise
                self._refuse(key, error)
                found = None
        return self._original(*args, **kwargs) if found is None else found.call(arguments)

    def _shorten(self, found: Specialization, args: tuple[Any, ...], arguments: Arguments) -> None:
        """Make the next call like this one quicker, if it can be told apart quickly."""
        if not self._may_shorten or not self._implies_specs(found, args, arguments):
            return
        with faults.guarded():
            made = make_shortcut(found, self._signature, args, arguments)
        if made is not None:
            self._shortcuts = front(self._shortcuts, made)

    def _implies_specs(self, found: Specialization, args: tuple[Any, ...], arguments: Arguments) -> bool:
        """Whether all calls that a Program fits fit the InputSpecs, which ask for nothing else."""
        specs = self._read_specs()
        if specs is None:
            return True
        by_tensor = {id(tensor): spec for tensor, spec in specs.check(self._signature.bind(args, {}))}
        for tensor, sizes in zip(arguments.tensors, found.sizes):
            spec = by_tensor.get(id(tensor))
            if spec is not None and (spec.stop_gradient or any(
                    size is None and wanted is not None for size, wanted in zip(sizes, spec.shape))):  # fmt: skip
                return False
        return True

    # -- full_graph=False ----------------------------------------------------------------------------------------

    @property
    def _part(self) -> Part:
        """How it runs where it is no Program."""
        if self._own_part is None:
            code = getattr(self._python, "__code__", None)
            pieces = Pieces(self._piece)
            self._own_part = Part(
                pieces, self._python, UNBOUND if self._instance is _NOTHING else self._instance,
                None if code is None else pieces.code(code), self,
            )
        return self._own_part

    def _piece(self, part: Part) -> StaticFunction:
        """The converted form of a part of its own, or of another part.

        What is around a part may write to what it was given, or gave, before backward: PyTorch's autograd then says and
        does what it does in eager. The node of a Program may have kept other tensors.
        """
        exact = self.backend == "interpreter" or part.pieces.writes
        made = StaticFunction(
            part.function, instance=_NOTHING if part.instance is UNBOUND else part.instance,
            build_strategy=self.build_strategy, backend=self.backend, full_graph=False,
            autograd="eager" if exact else self.autograd,
        )  # fmt: skip
        made._own_part, made._is_piece = part, True
        made._verdicts.of_part = True
        return made

    def is_hopeless(self) -> bool:
        """Whether no call of it is, or will be, a Program."""
        return self._cache.is_empty() and not self._verdicts.may_trace()

    def _call_as_possible(
        self, arguments: Arguments, dynamic: Dynamic, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a Program; where there can be none, plain Python piece by piece, for all such calls to come."""
        if self._follow_class():
            arguments, dynamic = self._prepare(self._signature.bind(args, kwargs))
        key = self._key(arguments)
        if self._verdicts.reason(key) is not None:
            return self._part.run(args, kwargs)
        found = self._cache.find(key, arguments)
        if found is not None:
            found.found += 1
            result = self._run(found, functools.partial(found.call, arguments), args, kwargs)
            if found.found in MADE_AT and not kwargs and self._verdicts.reason(key) is None:
                self._shorten(found, args, arguments)
            return result
        if self._cache.open.note_records(arguments, self._cache.all()):
            arguments, dynamic = self._prepare(self._signature.bind(args, kwargs))
            key = self._key(arguments)
        if not self._verdicts.may_trace():
            self._say(self._verdicts.spend(self._cache.complaint(key, arguments), self._own_location()))
            return self._part.run(args, kwargs)
        failure: Exception | None = None
        try:
            found = self._cache.get(key, arguments, dynamic, self._trace, may_open=True)
        except (ConversionError, TraceError) as error:
            self._refuse(key, error)
        except Exception as error:  # eager raises it as well, and leaves what it did before that
            failure = error
        if found is not None and self._is_piece and is_small(found.traced.program, self.backend):
            self._verdicts.leave_small(key)
            self._cache.drop(found)
            found = None
        if found is None:
            result = self._part.run(args, kwargs)
            if failure is not None:
                self._refuse(key, failure)
            return result
        self._verdicts.traces += 1
        return self._run(found, functools.partial(found.call, arguments), args, kwargs)

    def _run(
        self, found: Specialization, run: Callable[[], Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a Program. What it raises plain Python raises in its place: a Program writes nothing back then, and
        eager leaves what it wrote before."""
        put_back = self._random_states(found, args, kwargs)
        try:
            result = run()
        except Exception as error:
            if not found.is_silent:
                raise
            failure = error
        else:
            self._verdicts.hits += 1
            return result
        put_back()
        result = self._part.run(args, kwargs)
        if found.open:
            self._close(found)
        else:
            self._refuse(found.key, failure)  # only the Program raises: it is wrong
        return result

    def _refuse(self, key: Key, error: Exception) -> None:
        """Calls of this kind run as plain Python from now on; say so, once for each place."""
        reason = reason_of(error)
        self._verdicts.refuse(key, reason, is_final(error))
        self._shortcuts = ()
        if isinstance(error, InternalError):
            self._part.distrust(reason)
        self._say(reason)

    def _own_location(self) -> Location | None:
        """Where its definition begins."""
        code = getattr(self._python, "__code__", None)
        if code is None:
            return None
        line = code.co_firstlineno
        return Location(code.co_filename, line, 0, self.__name__, linecache.getline(code.co_filename, line).rstrip())

    def _say(self, reason: Reason | None) -> None:
        """Warn that it runs as plain Python, once for each place."""
        if reason is None:
            return
        said = self._part.pieces.said
        place = (reason.location, reason.code, None if reason.location is not None else reason.summary)
        if place in said:
            return
        said.add(place)
        warn(
            f"{self.__name__}() runs as plain Python from now on, for calls like this one: {reason}. {reason.hint} "
            "What it calls may be Programs still: explain() shows it.",
            EagerWarning,
        )

    def _prepare(self, bound: dict[str, Any]) -> tuple[Arguments, Dynamic]:
        """The arguments taken apart, and the dimensions that the InputSpecs leave open."""
        specs = self._read_specs()
        matched = specs.check(bound) if specs is not None else []
        try:
            arguments = flatten(bound, self._cache.open.apart)
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

    def _key(self, arguments: Arguments) -> Key:
        training = None if self._module is None else self._module.training
        return (arguments_key(arguments), surroundings_key(), training)

    def _trace(
        self, arguments: Arguments, dynamic: Dynamic, varying: Varying = frozenset(), apart: Dynamic | None = None
    ) -> Traced:
        def call(function: Callable[..., Any], bound: dict[str, Any]) -> Any:
            session = state.current()
            if self._module is not None:
                note_module(session, self._module)
            if self._instance is not _NOTHING:
                adopt(session, self._instance)
            for value in arguments.others():
                adopt(session, value)
            args, kwargs = self._signature.unbind(bound)
            result = operators.call(function, *args, **kwargs)
            breakpoints.check(session)
            return result

        make = functools.partial(
            trace, self.function, arguments, name=self.__name__, dynamic=dynamic, call=call, varying=varying,
            apart=apart, for_one_call=self.full_graph,
        )  # fmt: skip
        return frames.run(make, (), {}, None)

    def explain(self) -> Explanation:
        """Which parts of it are Programs, which run as plain Python, and why, after the calls so far; ``print`` it.

        With ``full_graph=True`` all that was called is Programs.
        """
        return explanation(self._part)

    # -- looking inside ------------------------------------------------------------------------------------------

    def concrete_program(self, *args: Any, **kwargs: Any) -> Traced:
        """The Program for these arguments, with what a live call needs beside it; nothing is run.

        Without arguments: for the InputSpecs, else for the last call.

        Errors raised: SignatureError (D2S307) if there is neither.
        """
        self._follow_class()
        if args or kwargs or not self._signature.required():
            return self.specialize(*self._prepare(self._signature.bind(args, kwargs))).traced
        return self.specialization().traced

    @located
    def specialization(self) -> Specialization:
        """The Program for the InputSpecs, else the one that was used last."""
        self._follow_class()
        specs = self._read_specs()
        if specs is not None:
            arguments, dynamic = self._prepare(specs.example(self._signature, self.device))
            found = self.specialize(arguments, dynamic)
            if not found.found and not found.tried:
                traced = found.traced
                trial(traced.program, traced.inputs(arguments), found.tensors(), traced.raised)
                found.tried = True
            return found
        kept = self._cache.all()
        if not kept:
            raise SignatureError(
                f"{self.__name__}() has no Program yet, and no input_spec to make one from", code="D2S307",
                hint=f"Call it once, or convert it with to_static({self.__name__}, input_spec=[...]).",
            )
        return kept[0]

    @property
    def signature(self) -> Signature:
        """Its parameters, without the one that it is bound to."""
        return self._signature

    def specialize(self, arguments: Arguments, dynamic: Dynamic) -> Specialization:
        """The Program for arguments taken apart, with some dimensions left open; nothing is run."""
        return self._cache.get(self._key(arguments), arguments, dynamic, self._trace)

    def trace(self, arguments: Arguments, dynamic: Dynamic) -> Traced:
        """Trace it for arguments taken apart, with some dimensions left open; the Program is not kept."""
        return self._trace(arguments, dynamic)

    @property
    def device(self) -> torch.device | None:
        """Where the parameters are of the module that it is bound to."""
        parameters = iter(()) if self._module is None else self._module.parameters()
        return next((tensor.device for tensor in parameters), None)

    @property
    def programs(self) -> list[Program]:
        """All Programs made so far, the last used one first."""
        return [one.traced.program for one in self._cache.all()]

    @property
    def specializations(self) -> list[Specialization]:
        """All Programs made so far with the calls that each answers, the last used one first."""
        return self._cache.all()

    @property
    @located
    def program(self) -> Program:
        """The last used Program; made from the InputSpecs if there is none yet. SignatureError without either."""
        kept = self._cache.all()
        return kept[0].traced.program if kept else self.specialization().traced.program

    @property
    def compiled(self) -> list[Compiled]:
        """How each Program runs that has been called, the last used one first; ``print(*f.compiled)`` says it."""
        ready = [one.ready for one in self._cache.all() if one.ready is not None]
        return [compiled(one.runner, self.backend) for one in ready]

    @property
    @located
    def code(self) -> str:
        """The converted function's source text."""
        function: Any = self._python
        if not isinstance(function, FunctionType):
            raise TypeError(f"{function!r} has no source of its own")
        return str(getattr(convert(function), "__dy2static_source__"))  # noqa: B009  # set by convert

    def rollback(self) -> Any:
        """Undo the conversion: a module gets its own forward back and is returned, else the original function is."""
        self._forget()
        if self._conversion is not None and self._conversion.leave(self._conversion.module):
            return self._module
        return self.function

    # -- copies --------------------------------------------------------------------------------------------------

    def __copy__(self) -> StaticFunction:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> StaticFunction:
        """A function is its own copy; a method's copy belongs to the copied object, and has no Programs yet."""
        if self._instance is _NOTHING and self._module is None:
            return self
        instance = _NOTHING if self._instance is _NOTHING else copy.deepcopy(self._instance, memo)
        module = copy.deepcopy(self._module, memo)
        if id(self) in memo:  # the copy of the object holds it
            return memo[id(self)]
        twin = StaticFunction(
            copy.deepcopy(self._python, memo), instance=instance, input_spec=self.input_spec,
            build_strategy=self.build_strategy, backend=self.backend, full_graph=self.full_graph,
            autograd=self.autograd,
        )
        twin._module = module
        memo[id(self)] = twin
        twin._conversion = copy.deepcopy(self._conversion, memo)
        return twin

    def __reduce__(self) -> Any:
        """Pickled as the original: a function by its name, a method as the object's own method."""
        if self._instance is not _NOTHING:
            return (method_of, (self._instance, self.__name__))
        found: Any = sys.modules.get(self.__module__)
        for name in self.__qualname__.split("."):
            found = getattr(found, name, None)
        return self.__qualname__ if found is self else (_again, (self._python, self._options()))

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
    return instance.__qualname__ if isinstance(instance, type) else type(instance).__qualname__


__all__ = ["EagerWarning", "StaticFunction"]
