"""The Programs of one converted function: finding the one that fits a call, making it, and letting old ones go.

Looking up takes no lock; tracing holds the tracer's, so that threads that call a fresh function at once trace once.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from dy2static import logs
from dy2static.cache_key import Key, sharing
from dy2static.open_arguments import OpenArguments, key_of, kind_of
from dy2static.specialization import Specialization, specialize
from dy2static.warn import warn
from runtime import recursion_limit, torch_internals
from runtime.calling import LiveCallee, Options
from runtime.calling.callee import loose_results
from runtime.errors import Dy2StaticError
from runtime.ir import ArrayType
from runtime.passes import BuildStrategy
from runtime.tracer.ambient import one_call
from runtime.tracer.ambient.one_call import Trial
from runtime.tracer.boundary.tracing import Traced, trace_lock
from runtime.tracer.python_state.guards import READ_ERRORS, Guard, same_plain
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording import faults
from runtime.tracer.values import open_values
from runtime.tracer.values.arguments import Arguments
from runtime.tracer.values.open_values import Which

WARN_BEYOND = 16
KEEP_AT_MOST = 64
RETRACES = 3
"""So many traces for one place give a warning."""
FIXED_NUMBERS = 2
"""A plain number outside the arguments that changed so often is an input of the next Program."""
POSTPONED = 8
"""So many trials of Programs that leave more open may end as a cache does not hold something yet."""
TRIED_ALONE = 8
"""So many values among the arguments are tried as inputs one by one, where not all of them can be."""

Dynamic = dict[str, frozenset[int]]
Varying = frozenset[Place]
Trace = Callable[[Arguments, Dynamic, Varying, Dynamic], Traced]

CLOCK = itertools.count(1)
"""Counts calls: when a Program was used last."""


class RetraceWarning(UserWarning):
    """A converted function is traced again and again, or its Program is for one call alone.

    The message names what changed (or happened), what it was and is, and where the function reads it. Fix: keep that
    from changing between calls, or pass it as a tensor.
    """


@dataclass(eq=False)
class ProgramCache:
    """The Programs of one function, by key; ``name`` is for messages."""

    name: str
    eager_autograd: bool = False
    """Whether Programs run under torch's autograd rather than as nodes of their own."""
    backend: str = "interpreter"
    strategy: BuildStrategy = field(default_factory=BuildStrategy)
    in_pieces: bool = False
    """Whether plain Python may go on with what a Program gives, as a part of the same function."""
    _found: dict[Key, tuple[Specialization, ...]] = field(default_factory=dict)
    _varying: dict[str, set[int]] = field(default_factory=dict)
    """By argument: dimensions that had different sizes in different calls."""
    _fixed: dict[str, set[int]] = field(default_factory=dict)
    """By argument: dimensions that cannot be left open."""
    _opened: dict[str, set[int]] = field(default_factory=dict)
    """By argument: dimensions that are open in some Program; where others cannot be as well, these still may."""
    _changes: Counter[Place] = field(default_factory=Counter)
    """How often a plain number outside the arguments was the reason for a trace."""
    _constant: set[Place] = field(default_factory=set)
    """Those that cannot be inputs of the Program."""
    open: OpenArguments = field(default_factory=OpenArguments)
    """Which values among the arguments were seen changing."""
    _ways: tuple[frozenset[Which], ...] = ()
    """Which values are open in the Programs that there are."""
    _postponed: int = 0
    """How many trials ended as they came to what cannot be undone."""
    _warned: bool = False
    _failed: Counter[str] = field(default_factory=Counter)
    """How often each guard, by description, was the reason for a trace."""

    def find(self, key: Key, arguments: Arguments, may_open: bool = True) -> Specialization | None:
        """The Program that fits the call, if there is one; ``may_open``: also one with open values."""
        found = self._fitting(key, arguments)
        if found is None and may_open:
            for which in self._ways:
                given = open_values.opened(arguments, which)
                if given is not arguments:
                    found = self._fitting(key_of(key, given), given)
                    if found is not None:
                        break
        return found

    def _fitting(self, key: Key, arguments: Arguments) -> Specialization | None:
        for candidate in self._found.get(key, ()):
            if candidate.fits(arguments):
                candidate.last_used = next(CLOCK)
                return candidate
        return None

    def get(
        self, key: Key, arguments: Arguments, asked: Dynamic, trace: Trace, may_open: bool = False,
        may_fail: bool = False,
    ) -> Specialization:
        """The Program that fits the call, traced now if there is none. ``asked``: dimensions the user left open;
        ``may_open``: whether plain values among the arguments that change may be inputs of the Program; ``may_fail``:
        whether plain Python runs where there is none.

        Errors raised: whatever tracing raises; nothing of the failed trace stays.
        """
        found = self.find(key, arguments, may_open)
        if found is not None:
            return found
        with trace_lock, recursion_limit.room(), faults.guarded(), one_call.one_call(may_fail):
            found = self.find(key, arguments, may_open)
            if found is None:
                kind = kind_of(key, arguments)
                which = self.open.of_next(kind, arguments, self.all()) if may_open else frozenset()
                given = open_values.opened(arguments, which)
                key_given = key if given is arguments else key_of(key, given)
                self._note_varying(key_given, given)
                why = self._why_again(key_given, given)
                with logs.tracing(self.name, lambda: self._reason(key, kind, arguments)) as made, \
                        torch_internals.undisturbed():  # fmt: skip
                    try:
                        found = self._make_open(key, kind, arguments, which, asked, trace)
                    except Dy2StaticError as error:
                        if error.for_now:
                            self.open.note_without(kind, arguments)
                        raise
                    found.kind = kind
                    made(found.traced.program)
                self._add(found, arguments)
                if why and not self.in_pieces:  # plain Python takes over before long
                    warn(why, RetraceWarning)
            return found

    def all(self) -> list[Specialization]:
        """Every Program kept, the last used one first."""
        every = [one for group in tuple(self._found.values()) for one in group]
        return sorted(every, key=lambda one: -one.last_used)

    def is_empty(self) -> bool:
        """Whether there is no Program."""
        return not self._found

    def drop(self, made: Specialization) -> None:
        """Forget one Program."""
        with trace_lock:
            found = {key: tuple(one for one in group if one is not made) for key, group in self._found.items()}
            self._keep({key: group for key, group in found.items() if group})

    def close(self, made: Specialization) -> None:
        """Forget a Program whose open values have to be constants, and what was open in it for such calls."""
        with trace_lock:
            self.open.close(made.kind, made.open)
            self.drop(made)

    def _keep(self, found: dict[Key, tuple[Specialization, ...]]) -> None:
        self._found = found
        self._ways = tuple({one.open for group in found.values() for one in group if one.open})

    def clear(self) -> None:
        """Forget every Program."""
        with trace_lock:
            self._keep({})
            self.open = OpenArguments()

    def _make_open(
        self, key: Key, kind: Key, arguments: Arguments, which: frozenset[Which], asked: Dynamic, trace: Trace
    ) -> Specialization:
        """A Program with some plain values open, or with as many of them as can be; which cannot is remembered."""
        with one_call.trying() as trial:
            made = self._attempt(key, arguments, which, asked, trace) if which else None
            if made is None and len(which) > 1 and not trial.postponed:
                for one in sorted(which, key=repr)[:TRIED_ALONE]:
                    now = (made.open if made is not None else frozenset()) | {one}
                    made = self._attempt(key, arguments, now, asked, trace) or made
        if made is None:
            made = self._make(key, arguments, asked, trace)
        if which - made.open and self._shows(trial):
            self.open.close(kind, which - made.open)
        return made

    def _shows(self, trial: Trial) -> bool:
        """Whether a trial's end says something of the calls to come, and not of what caches held at this one."""
        self._postponed += trial.postponed
        return not trial.postponed or self._postponed > POSTPONED

    def _attempt(
        self, key: Key, arguments: Arguments, which: frozenset[Which], asked: Dynamic, trace: Trace
    ) -> Specialization | None:
        """A Program with some plain values open; None if they are needed as constants."""
        given = open_values.opened(arguments, which)
        with contextlib.suppress(Exception):
            made = self._make(key_of(key, given), given, asked, trace)
            if not any(guard.once for guard in made.traced.guards):
                return made
        return None

    def _note_varying(self, key: Key, arguments: Arguments) -> None:
        differing = [one.differing_dims(arguments) for one in self._found.get(key, ())]
        closest = min(differing, key=lambda dims: sum(map(len, dims.values())), default={})
        for label, dims in closest.items():
            self._varying.setdefault(label, set()).update(dims)
        latest = max(self._found.get(key, ()), key=lambda one: one.last_used, default=None)
        if latest is not None:
            self._changes.update(latest.changed_numbers())

    def _why_again(self, key: Key, arguments: Arguments) -> str:
        """What to say of a trace: that one place was the reason again, or that Programs serve one call each."""
        latest = max(self._found.get(key, ()), key=lambda one: one.last_used, default=None)
        guard = None if latest is None else latest.failed_guard(arguments)
        if guard is None:
            return ""
        self._failed[guard.description] += 1
        if self._failed[guard.description] != (1 if guard.once else RETRACES):
            return ""
        place = guard.location
        where = "" if place is None else f" at {place.file}:{place.line} ({place.text.strip()})"
        if guard.once:
            return f"{self.name}() is traced at each call of this kind, because {guard.description}{where}."
        change = "" if guard.where is None else f" (it was {_short(guard.value)}, and is {_short(_now(guard))})"
        if guard.where is not None and _now(guard) is guard.value:  # the same list: what it held then is gone
            change = f" (it is {_short(guard.value)} now)"
        return (
            f"{self.name}() has been traced {RETRACES} times again because {guard.description} has changed{change}, "
            f"which is read{where}. Each trace takes time and memory; pass what changes as a tensor."
        )

    def _reason(self, key: Key, kind: Key, arguments: Arguments) -> str:
        """Why there is a trace, in a few words."""
        before = self.all()
        return self._difference(key, kind, arguments, before) if before else "its first call"

    def _difference(self, key: Key, kind: Key, arguments: Arguments, before: list[Specialization]) -> str:
        """In what a call differs from those that Programs are for."""
        for one in before:
            if one.key == key and (reason := one.mismatch(arguments)) is not None:
                return reason
        now = open_values.plain_values(arguments)
        for one in before:
            if one.kind == kind:
                for path, value in one.plain.items():
                    if path in now and not same_plain(now[path], value):
                        return f"argument '{open_values.label(path)}' is {_short(now[path])}, and was {_short(value)}"
        return "a Python argument, a dtype, train/eval or PyTorch's state is another one"

    def _numbers(self) -> Varying:
        """Plain numbers outside the arguments that changed so often that Programs read them at each call, and lists of
        which they only take that they add to them."""
        often = (place for place, count in self._changes.items() if count >= FIXED_NUMBERS)
        return frozenset(often) - self._constant

    def _make(self, key: Key, arguments: Arguments, asked: Dynamic, trace: Trace) -> Specialization:
        dynamic: Dynamic = {}
        shared = {index for group in sharing(arguments.tensors) for index, *_ in group}
        shared.update(i for i, tensor in enumerate(arguments.tensors) if torch_internals.overlaps_itself(tensor))
        for index, (label, tensor) in enumerate(zip(arguments.labels, arguments.tensors)):
            if index in shared:  # their sizes are part of the key
                continue
            dims = self._varying.get(label, set()) - self._fixed.get(label, set())
            free = asked.get(label, frozenset()) | {dim for dim in dims if dim < tensor.dim()}
            if free:
                dynamic[label] = frozenset(free)
        while True:
            traced, dynamic = self._trace(arguments, dynamic, asked, trace)
            made = specialize(key, traced, arguments, dynamic)
            broken = made.broken_assumption(arguments)
            if broken is None:
                break
            sizes = dict(zip(arguments.labels, (tensor.shape for tensor in arguments.tensors)))
            dynamic = self._without(dynamic, broken.symbols.values(), asked, sizes)
        for label, free in dynamic.items():
            self._opened.setdefault(label, set()).update(free)
        eager = self.eager_autograd or any(isinstance(one.var.type, ArrayType) for one in traced.program.inputs)
        options = Options(self.backend, traced.raised, list(traced.views), eager, self.strategy,
                          traced.functions)
        made.ready = LiveCallee(traced, options)
        made.ready.uses_first = not (self.in_pieces or arguments.opened)  # plain Python, or another Program, repeats it
        if self.in_pieces and not self.eager_autograd:
            made.ready.callee.loose = loose_results(traced.program)
        return made

    def _trace(self, arguments: Arguments, dynamic: Dynamic, asked: Dynamic, trace: Trace) -> tuple[Traced, Dynamic]:
        """The Program, and the dimensions it leaves open: fewer, if only that can be traced."""
        varying = self._numbers()
        def with_some(some: Varying, arguments: Arguments, dynamic: Dynamic) -> Traced:
            return trace(arguments, dynamic, some, _less(dynamic, asked))

        lists = {place for place in varying if place.kind == "added"}
        with one_call.trying() as trial:
            for some in filter(None, dict.fromkeys((varying, varying - lists))):
                with contextlib.suppress(Exception):  # they may be needed as plain numbers, or what lists hold
                    made = self._trace_with(arguments, dynamic, asked, functools.partial(with_some, some))
                    self._constant |= lists - {effect.place for effect in made[0].effects}
                    return made
        found = self._trace_with(arguments, dynamic, asked, lambda a, d: trace(a, d, frozenset(), _less(d, asked)))
        if self._shows(trial):
            self._constant |= varying
        return found

    def _trace_with(
        self, arguments: Arguments, dynamic: Dynamic, asked: Dynamic, trace: Callable[[Arguments, Dynamic], Traced]
    ) -> tuple[Traced, Dynamic]:
        wanted = {label: dims & asked[label] for label, dims in dynamic.items() if dims & asked.get(label, frozenset())}
        if dynamic == wanted:
            traced = trace(arguments, dynamic)
            if dynamic and traced.ends_in is not None:  # what torch raises may name the sizes
                return trace(arguments, {}), {}
            return traced, dynamic
        with one_call.trying() as trial, contextlib.suppress(Exception):
            traced = trace(arguments, dynamic)  # left open only because they varied: fixed ones may work
            if traced.ends_in is None:
                return traced, dynamic
        opened = {label: dims & (self._opened.get(label, set()) | asked.get(label, frozenset()))
                  for label, dims in dynamic.items()}  # fmt: skip
        fewer = {label: dims for label, dims in opened.items() if dims}
        traced, left = self._trace_with(arguments, fewer if fewer != dynamic else wanted, asked, trace)
        if traced.ends_in is None and self._shows(trial):
            self._fix(_less(_less(dynamic, asked), left))
        return traced, left

    def _fix(self, dims: Dynamic) -> None:
        for label, some in dims.items():
            self._fixed.setdefault(label, set()).update(some)

    def _without(
        self, dynamic: Dynamic, places: Iterable[tuple[str, int]], asked: Dynamic, sizes: dict[str, torch.Size]
    ) -> Dynamic:
        """The open dimensions without some that this very call shows cannot be left open for it.

        Sizes 0 and 1 are cases of their own (nothing to index, broadcasting): other calls may still leave them open.
        """
        result = dict(dynamic)
        for label, dim in places:
            result[label] = result[label] - {dim}
            if sizes[label][dim] <= 1:
                continue
            if dim in asked.get(label, frozenset()):
                warn(
                    f"{self.name}(): the size of '{label}' in dimension {dim} is fixed for this call, although the "
                    "InputSpec leaves it open: an operator works differently for the sizes given",
                    RetraceWarning,
                )
            self._fix({label: frozenset({dim})})
        return {label: dims for label, dims in result.items() if dims}

    def _add(self, made: Specialization, arguments: Arguments) -> None:
        before = self.all()
        made.last_used = next(CLOCK)
        if len(before) >= WARN_BEYOND and not self._warned and not self.in_pieces:
            self._warned = True
            warn(self._complaint(made, before, arguments), RetraceWarning)
        keep = [made, *before[: KEEP_AT_MOST - 1]]
        found: dict[Key, tuple[Specialization, ...]] = {}
        for one in keep:
            found[one.key] = (*found.get(one.key, ()), one)
        self._keep(found)

    def complaint(self, key: Key, arguments: Arguments) -> str:
        """Why a call needs another Program though there are some."""
        return self._difference(key, kind_of(key, arguments), arguments, self.all())

    def _complaint(self, made: Specialization, before: list[Specialization], arguments: Arguments) -> str:
        reason = self._difference(made.key, made.kind, arguments, before)
        return (
            f"{self.name}() has been traced {len(before) + 1} times, the last time because {reason}. "
            "Each trace takes time and memory; pass what changes as a tensor, or leave its size open in an InputSpec."
        )


def _less(dims: Dynamic, others: Dynamic) -> Dynamic:
    return {label: some - others.get(label, frozenset()) for label, some in dims.items()}


def _now(guard: Guard) -> Any:
    try:
        return guard.read()
    except READ_ERRORS:
        return "gone"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


__all__ = ["KEEP_AT_MOST", "WARN_BEYOND", "ProgramCache", "RetraceWarning"]
