"""Which traced tensors share memory, and what each storage holds now.

The table makes in-place code functional. Every traced tensor is a storage plus a chain of view operators from the
storage's base; a write replaces the storage's value Variable, and a tensor read afterwards replays its chain.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Location, Variable, views
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition

if TYPE_CHECKING:
    from runtime.tracer.memory.aliases import Alias
    from runtime.tracer.recording.leaf_changes import LeafChange
    from runtime.tracer.values.alias_sets import AliasSet, Lost
    from runtime.tracer.values.origins import Origin


@dataclass(eq=False)
class Storage:
    """One piece of memory. ``value`` is the Variable that holds the base's content now."""

    value: Variable
    origin: Variable | None = None
    """The input's or parameter's Variable, for memory that belongs to the caller."""
    label: str = ""
    """How the user would call it (``x``, ``self.weight``), for error messages."""
    unknown_aliases: list[UnknownAlias] = field(default_factory=list)
    """Storages that may or may not be this very memory when the Program runs."""
    alias_sets: list[tuple[AliasSet, Location | None]] = field(default_factory=list)
    """Those that it is in, and where it was put there or came out."""
    aliases: list[Alias] = field(default_factory=list)
    """Memory that this is, or is a view of, where their flags hold."""
    dependents: list[weakref.ref[Alias]] = field(default_factory=list)
    """Aliases whose base this is."""
    in_graph: bool = False
    """Whether some write was part of the graph: not under ``no_grad``, and not through ``x.detach()``."""
    unnoticed: bool = False
    """Whether some write was through ``.data``."""
    written: dict[Variable, Write] = field(default_factory=dict)
    """By value it got from an in-place operator or a join: what that was."""
    shared_by_size: bool = False
    """Whether it is other memory for some sizes, or other memory is it (see ``recording.maybe_views``)."""
    outdated: bool = False
    """Whether it was not brought up to date with a write to what may be the same, as no tensor shows it any more."""
    lost: Lost | LeafChange | None = None
    """Set once it may have been written as an item of a list that grows: it may not be read any more."""
    table: StorageTable | None = field(default=None, repr=False)
    """Where it is told of new values."""
    number: int = 0
    """Its place in the order of creation."""
    cached_by: tuple[str, Location | None] | None = None
    """The cached function that gave it, and the call's place, where each run makes it anew (``cached_results``)."""
    first: Variable = field(init=False)
    """What it held when it was made."""

    def __post_init__(self) -> None:
        self.first = self.value

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "value":
            table = self.__dict__.get("table")
            if table is not None:
                table.changed.append(self.number)
        object.__setattr__(self, name, value)


@dataclass(frozen=True)
class Write:
    """How a storage came to hold a value."""

    before: Variable
    """What it held before."""
    happened: PathCondition
    """Whether it was written."""
    behind: PathCondition = NEVER
    """Whether that has a history which does not come with it, as this is a view made without gradients there."""


@dataclass(eq=False)
class UnknownAlias:
    """Two storages that may or may not be one at run time: a write to either has no static meaning."""

    other: weakref.ref[Storage]
    reason: str
    location: Location | None


@dataclass(frozen=True)
class RecordedStep:
    """One operator of a view chain as it was recorded: a ``ViewStep``, and what it takes to record it again.

    ``results``: how many the operator gives; ``index`` is that of the view among them. ``modes``: the grad and autocast
    mode that it ran in.
    """

    name: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    index: int
    results: int
    modes: Any
    location: Location | None = None
    """For a ``detach``: where it stands in the user's source."""
    unnoticed: bool = False
    """For a ``detach``: it was written ``.data``, and PyTorch does not count writes to it as writes to its base."""

    @property
    def plain(self) -> views.ViewStep:
        """The step that a run can take, without what only tracing asks of it."""
        return views.ViewStep(self.name, self.args, self.kwargs, self.index)

    @property
    def detaches(self) -> bool:
        """Whether the history ends here."""
        return self.name == "aten.detach.default"


def compose(first: tuple[RecordedStep, ...], then: tuple[RecordedStep, ...]) -> tuple[RecordedStep, ...]:
    """One view chain after another. What was detached last need not be detached again."""
    if first and then and first[-1].detaches and then[0].detaches and first[-1].unnoticed <= then[0].unnoticed:
        return (*first[:-1], *then)
    return (*first, *then)


@dataclass(frozen=True)
class FixedView:
    """A view that autograd cannot give another history (``nonwritable_views``)."""

    base: Variable
    """What the base held when it was made, or where paths were joined."""
    output: str
    """How autograd calls it: ``Output 1 of Unbind``."""
    has_node: bool
    """Whether it had a history of its own when it was made."""
    several: bool
    """Whether it is of an operator that gives several views; if not, it was made without gradients."""
    noticed: bool = True
    """False for one of which autograd does not know that it is a view (``unsafe_chunk``): it lets it be written."""
    when: PathCondition = ALWAYS
    """It may be such a view on some path only."""
    stale: PathCondition = NEVER
    """Whether its base was written before ``base``."""
    behind: PathCondition = NEVER
    """Whether its base got a history before ``base`` that did not come to it."""
    index: Any = None
    """The staged number of the output, where that is one; ``output`` then names none."""


@dataclass(eq=False)
class TensorInfo:
    """What the tracer knows of one traced tensor object."""

    storage: Storage
    steps: tuple[RecordedStep, ...] = ()
    requires_grad: bool = False
    layout_known: bool = True
    factory: bool = False
    """Made from no tensor's values: until it is written, no gradient can flow through it."""
    grad_in_some_runs: bool = False
    """``requires_grad`` is true in some runs only: on some paths, or for some tensors of callers'.

    No path condition: in which runs, the run itself is asked (``deferred.Needed``), of what the memory holds at that
    moment. A condition that is kept here would name what it held before, after each write to it.
    """
    perhaps_retains: bool = False
    """Whether a join gave it, of which a path gave a tensor with ``retain_grad()``."""
    fixed: tuple[FixedView, ...] = ()
    """For a view that autograd does not let be written; several where paths join that made different ones."""
    itself: torch.Tensor | None = None
    """The tensor that eager has in this one's place: an operator gave back what it was given (``x.float()``)."""
    perhaps_itself: bool = False
    """Whether eager has the argument or a copy of it in this one's place, as the argument lies in memory."""
    origin: Origin | None = None
    """Which tensor it is, where a join gave it."""
    number: int = 0
    """The place in the order in which tensors and joins were made."""
    cached: Variable | None = None
    cached_for: Variable | None = None
    """The tensor's own Variable as last read, and the storage value it was read from."""
    reshaped_by: str = ""
    """The in-place operator that changed its shape last (``t_``)."""
    made_for: Variable | None = None
    """What its memory held when the view was made."""

    @property
    def detached(self) -> bool:
        """Whether it shares memory with its base, but not the history."""
        return any(step.detaches for step in self.steps)

    @property
    def unnoticed(self) -> bool:
        """Whether a write to it does not count as one to its base."""
        return any(step.unnoticed for step in self.steps)

    @property
    def constant(self) -> bool:
        """Whether it is still what a factory made."""
        return self.factory and self.storage.value is self.storage.first


class Snapshot(dict[Storage, Variable]):
    """The value of every storage that was alive at some moment, oldest first."""

    def __init__(self, items: Any = (), changes: int = 0, made: int = 0) -> None:
        super().__init__(items)
        self.changes, self.made = changes, made
        """How many values had been set by then, and how many storages made."""


class StorageTable:
    """All storages alive in one trace, in order of creation.

    Snapshots are taken at every path and restored after it, so both cost what changed since the last one, not what
    there is.
    """

    def __init__(self) -> None:
        self._storages: dict[int, weakref.ref[Storage]] = {}
        self._made = 0
        self._kept: list[Storage] = []
        self.changed: list[int] = []
        """The numbers of the storages whose value was set, in order."""
        self.some_unknown = False
        """Whether of any memory it is not known what else it is."""
        self._last: Callable[[], Snapshot | None] = lambda: None
        """The last snapshot, if somebody still has it."""

    def new(self, value: Variable, origin: Variable | None = None, label: str = "") -> Storage:
        """A storage whose base holds ``value``. Those of inputs and parameters live as long as the trace."""
        number, storages = self._made, self._storages
        storage = Storage(value, origin=origin, label=label, table=self, number=number)
        self._made += 1
        storages[number] = weakref.ref(storage, lambda _: storages.pop(number, None))
        if origin is not None:
            self._kept.append(storage)
        return storage

    def snapshot(self) -> Snapshot:
        """The value of every storage alive, oldest first."""
        last = self._last()
        if last is None:
            alive = [reference() for reference in list(self._storages.values())]
            items = {storage: storage.value for storage in alive if storage is not None}
            made = Snapshot(items, len(self.changed), self._made)
        elif last.changes == len(self.changed) and last.made == self._made:
            return last
        else:
            made = Snapshot(last, len(self.changed), self._made)
            since = {number for number in self.changed[last.changes :] if number < last.made}
            for number in (*since, *range(last.made, self._made)):
                storage = self._found(number)
                if storage is not None:
                    made[storage] = storage.value
        self._last = weakref.ref(made)
        return made

    def restore(self, snapshot: Snapshot) -> None:
        """Set storages back to a snapshot; the caller's memory met since then goes back to what it held."""
        for number in set(self.changed[snapshot.changes :]):
            storage = self._found(number)
            if storage is None:
                continue
            before = snapshot.get(storage, storage.origin)
            if before is not None and storage.value is not before:
                storage.value = before

    def _found(self, number: int) -> Storage | None:
        reference = self._storages.get(number)
        return None if reference is None else reference()


def note_unknown_alias(a: Storage, b: Storage, reason: str, location: Location | None) -> None:
    """Note that ``a`` and ``b`` may be the same memory when the Program runs."""
    if a is b:
        return
    if a.table is not None:
        a.table.some_unknown = True
    a.unknown_aliases.append(UnknownAlias(weakref.ref(b), reason, location))
    b.unknown_aliases.append(UnknownAlias(weakref.ref(a), reason, location))


def note_overlap(storage: Storage, reason: str) -> None:
    """Note that a write to a part of some memory may be seen in another part of the tensor that it is known by."""
    storage.unknown_aliases.append(UnknownAlias(weakref.ref(storage), reason, None))


def storage_key(tensor: torch.Tensor) -> int:
    """An identity for the tensor's storage object, valid while it is alive."""
    if tensor.layout is not torch.strided:
        return -id(tensor)
    return torch_internals.storage_identity(tensor)
