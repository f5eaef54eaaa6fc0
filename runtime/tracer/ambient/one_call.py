"""What a call at hand has done to the world while its Program was traced, so that another trace for it does it no more.

A trace may be given up, and another one made for the same call: it knows more then, or leaves less open. So a trace
puts off what can wait until its Program runs (``Use``), and one that is only tried does nothing that cannot
(``trying``). What a trace does do, the next one finds done (``once``).

    mask(5)              a hit: counted when the Program runs
    mask(6)              a miss: the function is run, once for this call; a trace that is only tried ends here
    mask.cache_info()    the same
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

Taken = set[int]
"""The deeds for the call at hand, by number, that one trace has come to."""


@dataclass(eq=False)
class Deed:
    """Something that was done to ``owner``, once for a call; ``what`` says the same wherever it is the same thing."""

    owner: Any
    what: Any
    kept: Any
    """What ``what`` names by identity: it lives as long."""
    is_question: bool
    """Whether the answer depends on all that was done before."""
    value: Any = None
    error: Exception | None = None

    def give(self) -> Any:
        """What it gave, or raised."""
        if self.error is not None:
            raise self.error
        return self.value


@dataclass(eq=False)
class Trial:
    """A trace that is given up where it cannot be, for one that leaves less open."""

    postponed: bool = False
    """Whether it would have done what cannot be undone, and calls to come may find that done."""


@dataclass(eq=False)
class Use:
    """What each run of a Program does to ``owner``: a function is called whose result its cache holds."""

    owner: Any
    what: Any
    act: Callable[[], Any]
    done: bool = False
    """Whether the trace has done it, in place of the first run."""

    def __call__(self) -> None:
        if not self.done:
            self.act()
        self.done = False


@dataclass(eq=False)
class _Call:
    deeds: list[Deed] = field(default_factory=list)
    unrepeatable: Callable[[], Exception | None] | None = None
    written: list[Callable[[], None]] = field(default_factory=list)
    """What puts back buffers from outside that a trace has written."""


_calls: list[_Call] = []
_trials: list[Trial] = []


@contextmanager
def one_call(is_tried: bool = False) -> Iterator[None]:
    """All traces in here are for one call. Callers hold the lock for traces. ``is_tried``: whether all are only tried,
    and plain Python runs where they fail."""
    before, _trials[:] = _trials[:], [Trial()] if is_tried else []
    _calls.append(_Call())
    try:
        yield
    finally:
        _calls.pop()
        _trials[:] = before


@contextmanager
def trying() -> Iterator[Trial]:
    """The trace in here is only tried."""
    trial = Trial()
    _trials.append(trial)
    try:
        yield trial
    finally:
        _trials.pop()


def is_tried() -> bool:
    """Whether the trace at hand is only tried."""
    return bool(_trials)


def postpone() -> None:
    """The trace at hand ends, as it would have done what cannot be undone."""
    for trial in _trials:
        trial.postponed = True


def note_written(put_back: Callable[[], None]) -> None:
    """A trace has written a buffer from outside: that has happened for the call, if the trace is the last one."""
    if _calls:
        _calls[-1].written.append(put_back)


def put_back_written() -> None:
    """Another trace begins, or none is of use: what earlier ones have written will be written anew."""
    while _calls and _calls[-1].written:
        _calls[-1].written.pop()()


def find(taken: Taken, owner: Any, what: Any, is_question: bool = False) -> Deed | None:
    """What an earlier trace for this call has done, and this one comes to now."""
    for number, deed in enumerate(_calls[-1].deeds if _calls else ()):
        if deed.owner is not owner or number in taken or (is_question and not deed.is_question):
            continue
        if deed.is_question is is_question and deed.what == what:
            taken.add(number)
            return deed
        if deed.is_question:  # what comes after was done after
            return None
    return None


def has_more(taken: Taken, owner: Any) -> bool:
    """Whether earlier traces for this call did more to ``owner`` than this one has come to."""
    return any(deed.owner is owner and number not in taken for number, deed in enumerate(_deeds()))


def once(
    taken: Taken, owner: Any, what: Any, act: Callable[[], Any], kept: Any = (), is_question: bool = False
) -> Any:
    """``act()``, or what it gave or raised in an earlier trace for this call."""
    deed = find(taken, owner, what, is_question)
    if deed is None:
        deed = Deed(owner, what, kept, is_question)
        try:
            deed.value = act()
        except Exception as error:
            deed.error = error
        taken.add(len(_deeds()))
        _deeds().append(deed)
    return deed.give()


def did(taken: Taken, use: Use) -> None:
    """Do now what waits for the Program to run."""
    use.done = True
    once(taken, use.owner, use.what, use.act, use)


def settle(uses: list[Use]) -> None:
    """The function has raised an exception of its own: no Program will run for this call."""
    if _calls and not _trials:
        for use in uses:
            use()


def _deeds() -> list[Deed]:
    return _calls[-1].deeds if _calls else []


def note_unrepeatable(why: Callable[[], Exception | None]) -> None:
    """A trace has done something; ``why()``: what to raise if another one for the same call would not find the world as
    this one did."""
    if _calls:
        _calls[-1].unrepeatable = why


def require_repeatable() -> None:
    """Another trace for the call at hand begins.

    Errors raised: what was noted, where the world is another one than for the trace before.
    """
    why = _calls[-1].unrepeatable if _calls else None
    error = why() if why is not None else None
    if error is not None:
        raise error


__all__ = [
    "Deed", "Taken", "Trial", "Use", "did", "find", "has_more", "is_tried", "note_unrepeatable", "once", "one_call",
    "postpone", "require_repeatable", "settle", "trying",
]  # fmt: skip
