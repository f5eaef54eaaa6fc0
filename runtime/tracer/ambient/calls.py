"""What a trace is told before it begins, why it begins again, and what is among the arguments and results of a call."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient.one_call import Use
from runtime.tracer.ambient.session_parts import ITEMS, KEPT, VALUE, SessionPart, state
from runtime.tracer.ambient.unasked import has_unasked

if TYPE_CHECKING:
    from runtime.tracer.numbers.scalars import Staged
    from runtime.tracer.python_state.facts import Fact
    from runtime.tracer.python_state.journal import Place


@dataclass(frozen=True)
class Ahead:
    """What a trace leaves open, by the labels of inputs, as the calls that its Program is for come later.

    Nothing in a trace for a call at hand.
    """

    needing: frozenset[str] = frozenset()
    """Inputs that need a gradient in some calls."""
    layouts: frozenset[str] = frozenset()
    """Inputs that lie in memory in another way in each call."""
    raising: bool = False
    """Whether a Program is of use that raises in every call."""
    in_file: bool = False
    """Whether the Program is for a file, which has no Python to ask."""
    decidable: int = 0
    """Of how many inputs the trace may ask to be told whether they need a gradient (``Undecided``)."""


@dataclass(frozen=True, eq=False)
class Elsewhere:
    """Where a tensor among the arguments was found as well; without an ``owner`` it is always this very tensor."""

    argument: str
    """Its label."""
    owner: Any
    attribute: str
    label: str
    """How the user would call it there."""


@dataclass(frozen=True)
class Findings:
    """What earlier attempts at a trace found out."""

    shared: frozenset[str] = frozenset()
    """Labels of inputs that share memory, of which some is written: they get one base."""
    detached: frozenset[Location | None] = frozenset()
    """Where tensors are detached to which values are written that need gradients: they get a history of their own."""

    whole: frozenset[int] = frozenset()
    """Numbers of the arguments' containers that something outside leads to as well: they are what they are."""
    elsewhere: frozenset[Elsewhere] = frozenset()
    """Tensors among the arguments that something outside leads to as well: they are these very tensors."""
    by_reference: frozenset[str] = frozenset()
    """The classes of what is changed inside of lists that grow: these hold it by reference then (see ``heaps`` for
    lists, ``tables`` for dicts and objects)."""
    in_variables: frozenset[str] = frozenset()
    """Those of them that variables hold by reference as well, once an iteration of a loop has made them: several
    variables know one on some paths only."""
    in_branches: frozenset[str] = frozenset()
    """Those of them that lists hold by reference as soon as a branch has changed these (see ``settled_lists``)."""
    apart: frozenset[str] = frozenset()
    """Classes whose objects get other attributes, so that they have no place in a table, or are no mere tuples."""
    reading: frozenset[str] = frozenset()
    """Functions of PyTorch, by name, that read tensors (``float(self.num_batches_tracked)``): they are converted."""
    peeled: frozenset[Location] = frozenset()
    """Where loops stand whose first iteration is traced apart."""

    escaping: frozenset[str] = frozenset()
    """The user's functions, by file and line, that exceptions leave on some paths only: they hand them on as values."""

    recursive: frozenset[str] = frozenset()
    """The user's functions, by file and line, that call themselves as deep as a tensor decides."""

    followed: frozenset[tuple[str, Exception]] = frozenset()
    """Those of them that can be no ``recursion``, with the reason: they may end without one."""

    looked_at: frozenset[int] = frozenset()
    """Lists from outside, by identity, of which more is asked than to take another item."""

    sized: frozenset[str] = frozenset()
    """Not empty: what may be a copy or not, depending on sizes, is written (see ``recording.maybe_views``)."""

    counting: frozenset[Location | None] = frozenset()
    """Where an ``itertools.count`` is made that is advanced on a path: it is an object with a number there."""

    choosing: frozenset[str] = frozenset()
    """Users' ``__iter__`` methods, by file and line, that give one of several iterators, depending on the path."""

    arrays: frozenset[Location] = frozenset()
    """Where NumPy's arrays are made whose memory tensors show, and which are written or leave (see
    ``memory.host_memory``): they are arrays of the Program."""

    keyed: frozenset[Location] = frozenset()
    """Where dicts and sets are made whose keys are numbers of the run (see ``ops.keyed``)."""

    classes_of_tensors: frozenset[type] = frozenset()
    """Classes of the user's that tensors have which are no arguments (see ``recording.users_tensors``)."""
    listed: frozenset[str] = frozenset()
    """Not empty: lists that grow hold tensors of written memory (see ``values.one_view``)."""

    flagged: frozenset[tuple[int, bool]] = frozenset()
    """Tensors from outside, by identity, of which ``requires_grad_()`` was called, with what it set."""

    def and_also(self, other: Findings) -> Findings:
        """Both."""
        names = [one.name for one in dataclasses.fields(Findings)]
        return Findings(**{name: getattr(self, name) | getattr(other, name) for name in names})


@dataclass(eq=False)
class Call(SessionPart):
    """What the caller wants of the Program, and what the call at hand means for the calls after it."""

    known: Findings = state(VALUE, Findings)
    """What earlier attempts at this trace found out."""
    ahead: Ahead = state(VALUE, Ahead)
    """What is left open of the arguments, where the Program is for calls that are not there yet."""
    may_be_for_one_call: bool = state(VALUE, True)
    """Whether the caller has a use for a Program that answers the call at hand only."""
    advanced: bool = state(KEPT, False)  # an iterator from outside that gave an item has given it
    """Whether an iterator that is older than the trace was advanced: then the trace cannot begin again."""
    varying: frozenset[Place] = state(VALUE, frozenset)
    """Places whose plain number is an input of the Program, not a guard; lists that are only to be added to."""
    facts: dict[Place, tuple[Fact, Staged]] = state(ITEMS, dict)
    """Those that the trace met."""
    adding: list[tuple[Place, int]] = state(KEPT, list)  # filled when the trace is done
    """Lists from outside that the trace changed, with how many items they had."""
    uses: list[Use] = state(ITEMS, list)
    """Calls of cached functions on the main path: each run uses what the caches hold."""
    cached: dict[Any, Any] = state(ITEMS, dict)
    """What the caches held, by function and arguments."""
    identifiers: list[tuple[int, Location | None]] = state(KEPT, list)  # another try's may be in a name that stays
    """Random identifiers that the trace made, as numbers, and where (``boundary/identifiers``)."""
    unlike: tuple[int, ...] = state(VALUE, ())
    """Those that an earlier trace of the same call made."""
    flagged: list[tuple[torch.Tensor, bool]] = state(KEPT, list)  # where the trace ends in an error, all are put back
    """Tensors from outside whose ``requires_grad`` this trace and its earlier attempts set, with what it was."""


def tensors_in(args: Any, kwargs: Any) -> Iterator[torch.Tensor]:
    """Every tensor among the arguments, in order, with repeats."""
    for value in (*args, *kwargs.values()):
        yield from _tensors(value)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if is_a(value, torch.Tensor):
        yield value
    elif is_a(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


def flatten_results(result: Any) -> list[Any]:
    """An operator's results in one list: nested lists flattened. One of several results may be None, which is kept.

    >>> flatten_results(None), flatten_results((1, None, [2, 3]))
    ([], [1, None, 2, 3])
    """
    if result is None:
        return []
    if is_a(result, (list, tuple)):
        return [leaf for item in result for leaf in ([None] if item is None else flatten_results(item))]
    return [result]


def unflatten_results(template: Any, flat: list[Any]) -> Any:
    """The inverse: ``flat`` in the shape of ``template``."""
    return None if template is None else _in_shape(template, iter(flat))


def _in_shape(value: Any, remaining: Iterator[Any]) -> Any:
    # No inner function: one that calls itself is a cycle, which keeps the results alive until the collector runs.
    if is_a(value, (list, tuple)):
        items = [_in_shape(item, remaining) for item in value]
        if has_unasked(value, "_fields"):
            return type(value)(*items)
        return type(value)(items)
    return next(remaining)


class Restart(BaseException):
    """The trace met what it must know from its beginning: trace again.

    Not an Exception, so that no handler in user code catches it.
    """

    def __init__(self, known: Findings) -> None:
        super().__init__(known)
        self.known = known


class Undecided(Restart):
    """The function does one thing or another as some inputs need a gradient: trace it for each answer."""

    def __init__(self, labels: Sequence[str]) -> None:
        super().__init__(Findings())
        self.labels = labels
