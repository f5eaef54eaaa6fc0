"""From a call to the Program that answers it: found by key and guards, traced if there is none, and run.

    shortcut              the same call as before, told by one generated check
    answer                the long way: bind, take apart, find or trace, run
    answer_as_possible    the same where plain Python may take over (``full_graph=False``)
    answer_for_rows       a call under ``torch.vmap``: one Program for one row
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from dy2static import over_rows
from dy2static.cache_key import Key
from dy2static.errors import ConversionError, Dy2StaticError, InternalError, TraceError
from dy2static.fallback import Fallback
from dy2static.program_cache import Dynamic, ProgramCache, Varying
from dy2static.random_streams import PutBack
from dy2static.shortcut import MADE_AT, Shortcut, front
from dy2static.shortcut import make as make_shortcut
from dy2static.specialization import Specialization
from dy2static.subject import Subject
from dy2static.verdicts import is_small
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.calls import Ahead
from runtime.tracer.boundary.tracing import Traced
from runtime.tracer.recording import faults
from runtime.tracer.values import open_values
from runtime.tracer.values.arguments import Arguments

TRUSTED_AFTER = 8
"""A Program with open values that raised rightly so often is believed."""

Run = Callable[[], Any]


class Dispatch:
    """The Programs of one converted function, and which of them answers a call.

    ``whole``: whether all of the function has to be a Program (``full_graph``).
    """

    def __init__(self, subject: Subject, cache: ProgramCache, fallback: Fallback, whole: bool) -> None:
        self.cache = cache
        self.shortcuts: tuple[Shortcut, ...] = ()
        self._subject = subject
        self._fallback = fallback
        self._whole = whole
        self._may_shorten = subject.is_bound or not subject.looks_like_a_method()

    # -- the ways ------------------------------------------------------------------------------------------------

    def shortcut(self, taken: Shortcut, tensors: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call that a shortcut's check has let through; ``tensors``: what the check gave."""
        found = taken.found
        given = (*args, *kwargs.values()) if kwargs else args
        if self._whole and not found.open:
            return taken.run(given, tensors)
        run = functools.partial(taken.run, given, tensors)
        return self._run_open(found, run, args, kwargs) if self._whole else self._run(found, run, args, kwargs)

    def answer(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Answer a call, the long way."""
        subject = self._subject
        try:
            bound = subject.signature.bind(args, kwargs)
        except TypeError:
            if not self.follow_class():
                raise
            bound = subject.signature.bind(args, kwargs)
        try:
            arguments, dynamic = self.prepare(bound)
        except InternalError:
            if self._whole:
                raise
            return subject.original(*args, **kwargs)
        if any(torch_internals.is_fake(tensor) for tensor in arguments.tensors):  # another tool's trace
            self.follow_class()
            return subject.original(*args, **kwargs)
        if not self._whole:
            return self._answer_as_possible(arguments, dynamic, args, kwargs)
        found = self.cache.find(subject.key(arguments), arguments)
        if found is None:
            if self.follow_class():
                arguments, dynamic = self._prepared(args, kwargs)
            if self.cache.open.note_records(arguments, self.cache.all()):
                arguments, dynamic = self._prepared(args, kwargs)
            found = self.cache.get(subject.key(arguments), arguments, dynamic, self.trace, may_open=True)
        found.found += 1
        shorter = self._shortened(found, args, kwargs, arguments)
        run = functools.partial(found.call, arguments)
        result = self._run_open(found, run, args, kwargs) if found.open else run()
        self._use(shorter)
        return result

    def _answer_as_possible(
        self, arguments: Arguments, dynamic: Dynamic, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Run a Program; where there can be none, plain Python piece by piece, for all such calls to come."""
        fallback, subject = self._fallback, self._subject
        if self.follow_class():
            arguments, dynamic = self._prepared(args, kwargs)
        key = subject.key(arguments)
        if fallback.refused(key):
            return fallback.run(args, kwargs)
        found = self.cache.find(key, arguments)
        if found is not None:
            found.found += 1
            shorter = self._shortened(found, args, kwargs, arguments)
            result = self._run(found, functools.partial(found.call, arguments), args, kwargs)
            self._use(None if fallback.refused(key) else shorter)
            return result
        if self.cache.open.note_records(arguments, self.cache.all()):
            arguments, dynamic = self._prepared(args, kwargs)
            key = subject.key(arguments)
        if not fallback.verdicts.may_trace():
            fallback.say(fallback.verdicts.spend(self.cache.complaint(key, arguments), subject.location()))
            return fallback.run(args, kwargs)
        failure: Exception | None = None
        try:
            found = self.cache.get(key, arguments, dynamic, self.trace, may_open=True, may_fail=True)
        except (ConversionError, TraceError) as error:
            self._refuse(key, error)
        except Exception as error:  # eager raises it as well, and leaves what it did before that
            failure = error
        if found is not None and fallback.is_piece and is_small(found.traced.program, self.cache.backend):
            fallback.verdicts.leave_small(key)
            self.cache.drop(found)
            found = None
        if found is None:
            result = fallback.run(args, kwargs)
            if failure is not None:
                self._refuse(key, failure)
            return result
        fallback.verdicts.traces += 1
        return self._run(found, functools.partial(found.call, arguments), args, kwargs)

    def answer_for_rows(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call under ``torch.vmap``: a Program for one row is found, and run for all."""
        self.follow_class()
        arguments, dynamic = self._prepared(args, kwargs)
        found: Specialization | None = None
        with over_rows.one_row(self._subject.module):
            row = over_rows.row_of(arguments)
            key = self._subject.key(row)
            try:
                if not self._fallback.refused(key):
                    found = self.cache.get(key, row, dynamic, self.trace, may_fail=not self._whole)
            except (ConversionError, TraceError) as error:
                if self._whole:
                    raise
                self._refuse(key, error)
        return self._subject.original(*args, **kwargs) if found is None else found.call(arguments)

    # -- running -------------------------------------------------------------------------------------------------

    def _run_open(self, found: Specialization, run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a Program with open values. What it raises the Program for these very values has to raise as well: else
        they are constants from now on."""
        if all(map(open_values.is_open_at_once, found.open)):
            return run()
        put_back = self._keep_streams(found, args, kwargs)
        try:
            return run()
        except Exception as error:
            if not found.is_silent or found.failures >= TRUSTED_AFTER:
                found.use()
                if is_a(error, Dy2StaticError):  # too late for this call
                    self._close(found)
                raise
        put_back()
        arguments, dynamic = self._prepared(args, kwargs)
        fixed = self.cache.get(self._subject.key(arguments), arguments, dynamic, self.trace)
        try:
            result = fixed.call(arguments)
        except Exception:
            found.failures += 1
            raise
        self._close(found)
        return result

    def _run(self, found: Specialization, run: Run, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run a Program. What it raises plain Python raises in its place: a Program writes nothing back then, and
        eager leaves what it wrote before."""
        put_back = self._keep_streams(found, args, kwargs)
        try:
            result = run()
        except Exception as error:
            if not found.is_silent:
                raise
            failure = error
        else:
            self._fallback.verdicts.hits += 1
            return result
        put_back()
        result = self._fallback.run(args, kwargs)
        if found.open:
            self._close(found)
        else:
            self._refuse(found.key, failure)  # only the Program raises: it is wrong
        return result

    def _keep_streams(self, found: Specialization, args: tuple[Any, ...], kwargs: dict[str, Any]) -> PutBack:
        """What has random numbers go on from where they are now, of all that a Program may draw from."""
        if not found.traced.generators:
            return found.streams.keep()
        opened = list(found.opened(self._prepared(args, kwargs)[0]).opened.values())
        return found.streams.keep(opened[index] for index, _ in found.traced.generators)

    def _refuse(self, key: Key, error: Exception) -> None:
        """Calls of this kind run as plain Python from now on, or this one if that says nothing of others."""
        if is_a(error, Dy2StaticError) and error.for_now and self._fallback.verdicts.may_wait():
            return
        self.shortcuts = ()
        self._fallback.refuse(key, error)

    def _close(self, found: Specialization) -> None:
        """Have constants in place of what is open in a Program, for all calls of its kind."""
        self.cache.close(found)
        self.shortcuts = tuple(one for one in self.shortcuts if one.found is not found)

    def _shortened(self, found: Specialization, args: tuple[Any, ...], kwargs: dict[str, Any],
                   arguments: Arguments) -> Shortcut | None:  # fmt: skip
        """What makes the next call like this one quicker, if it can be told apart quickly.

        To be asked before the call runs: it may change what it is told by (``self.h = None``).
        """
        form = len(args), tuple(kwargs)
        found.forms[form] += 1
        if found.forms[form] not in MADE_AT or not self._may_shorten:
            return None
        if not self._implies_specs(found, args, kwargs, arguments):
            return None
        with faults.guarded():
            return make_shortcut(found, self._subject.signature, args, kwargs, arguments)

    def _use(self, shorter: Shortcut | None) -> None:
        if shorter is not None:
            self.shortcuts = front(self.shortcuts, shorter)

    def _implies_specs(self, found: Specialization, args: tuple[Any, ...], kwargs: dict[str, Any],
                       arguments: Arguments) -> bool:  # fmt: skip
        """Whether all calls that a Program fits fit the InputSpecs, which ask for nothing else."""
        specs = self._subject.specs()
        if specs is None:
            return True
        by_tensor = {id(tensor): spec for tensor, spec in specs.check(self._subject.signature.bind(args, kwargs))}
        for tensor, sizes in zip(arguments.tensors, found.sizes):
            spec = by_tensor.get(id(tensor))
            if spec is not None and (spec.stop_gradient or any(
                    size is None and wanted is not None for size, wanted in zip(sizes, spec.shape))):  # fmt: skip
                return False
        return True

    # -- what the ways share -------------------------------------------------------------------------------------

    def prepare(self, bound: dict[str, Any]) -> tuple[Arguments, Dynamic]:
        """The arguments taken apart, and the dimensions that InputSpecs leave open."""
        return self._subject.prepare(bound, self.cache.open.apart)

    def _prepared(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arguments, Dynamic]:
        return self.prepare(self._subject.signature.bind(args, kwargs))

    def specialize(self, arguments: Arguments, dynamic: Dynamic) -> Specialization:
        """The Program for arguments taken apart, with some dimensions left open; nothing is run."""
        return self.cache.get(self._subject.key(arguments), arguments, dynamic, self.trace)

    def trace(
        self, arguments: Arguments, dynamic: Dynamic, varying: Varying = frozenset(), apart: Dynamic | None = None,
        ahead: Ahead | None = None,
    ) -> Traced:
        """Trace a call; the Program is not kept."""
        self.follow_class()
        return self._subject.trace(arguments, dynamic, varying, apart, ahead)

    def follow_class(self) -> bool:
        """Forget everything if the module's class has another ``forward`` by now; whether it has."""
        if not self._subject.follow_class():
            return False
        self.forget()
        return True

    def forget(self) -> None:
        """Forget every Program, and what was found out about calls."""
        self.cache.clear()
        self.shortcuts = ()
        self._fallback.forget()

    def is_hopeless(self) -> bool:
        """Whether no call is, or will be, a Program."""
        return self.cache.is_empty() and not self._fallback.verdicts.may_trace()


__all__ = ["Dispatch"]
