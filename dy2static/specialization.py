"""One Program of a converted function, and whether it may answer a given call."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from dy2static.cache_key import Key, sharing, value_key
from dy2static.random_streams import Streams
from dy2static.verdicts import is_silent
from runtime import torch_internals
from runtime.calling import LiveCallee
from runtime.ir import Assume
from runtime.ir.assume import check
from runtime.ir.input_spec import InputSpec
from runtime.ir.template import KeyPath
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.boundary.tracing import Traced, live_tensor
from runtime.tracer.memory.hung import same
from runtime.tracer.memory.inputs import LiveParameter, looks
from runtime.tracer.python_state.facts import can_be_fact
from runtime.tracer.python_state.guard_code import Check, CheckWriter
from runtime.tracer.python_state.guards import READ_ERRORS, Guard, same_plain
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording import faults
from runtime.tracer.values import open_lists, open_values
from runtime.tracer.values.arguments import Arguments
from runtime.tracer.values.inside import leads_to, shows_containers
from runtime.tracer.values.open_values import Which

Sizes = tuple[int | None, ...]
GENERATED_AT = (8, 64)
"""After how many calls, each of which asked every guard by itself, one function for all of them is written."""
PASSED = 64
"""So many open values of calls are remembered: who saves the function saves these."""


@dataclass(frozen=True)
class Read:
    """How to find a tensor that is no argument: in a slot of a module's ``__dict__``, or as the tracer does."""

    live: LiveParameter
    space: dict[str, Any] = field(default_factory=dict)
    slot: str | None = None

    def write(self, check: CheckWriter) -> str:
        """The local name, in a check, of the tensor; it has to look as it does now."""
        owner, name, tensor = self.live.owner, self.live.attribute, live_tensor(self.live)
        if self.slot is not None:
            slot = check.local(f"{check.local(f'{check.bind(owner)}.__dict__')}[{self.slot!r}]")
            return check.tensor(f"{slot}[{name!r}]", tensor)
        return check.tensor(check.bind(tensor) if owner is None else check.attribute(check.bind(owner), name), tensor)


@dataclass(eq=False)
class Specialization:
    """A Program made for one kind of call. ``sizes`` are those it fixes of every tensor argument (None: any)."""

    key: Key
    traced: Traced
    labels: list[str]
    sizes: list[Sizes]
    layouts: list[Key]
    reads: list[Read]
    """How to find each tensor that is no argument."""
    parameters: list[tuple[int, Key]]
    """Positions and keys of those that no guard covers."""
    sharing: Key
    specs: dict[str, Any]
    """The arguments with an InputSpec in place of every tensor."""
    assumes: list[tuple[Assume, dict[str, tuple[int, int]]]] = field(default_factory=list)
    last_used: int = 0
    found: int = 0
    """How often a call came to it the long way."""
    forms: Counter[tuple[int, tuple[str, ...]]] = field(default_factory=Counter)
    """The same for each number of arguments by place, and the names of the others."""
    ready: LiveCallee | None = None
    """Set once it is known that the Program answers the call that it was traced for."""
    tried: bool = False
    """Whether it was run on example tensors."""
    open: frozenset[Which] = frozenset()
    """Plain values among the arguments that are inputs of the Program, or that nothing of it reads."""
    kind: Key = None
    """The key with all plain values open that can be."""
    failures: int = 0
    """How often it raised what a Program with fixed values raised as well."""
    plain: dict[KeyPath, Any] = field(default_factory=dict)
    """Those that it fixes, though they could be open."""
    lengths: dict[KeyPath, tuple[Any, int]] = field(default_factory=dict)
    """Those of lists that could be open, with the kinds of lists that they are."""
    records: dict[KeyPath, Any] = field(default_factory=dict)
    """Instances of dataclasses among the arguments, which it is for alone."""
    stand_in: Arguments | None = None
    """The arguments with InputSpecs in place of tensors, taken apart; only of a Program with open values."""
    passed: dict[Key, list[Any]] = field(default_factory=dict)
    """The open values of calls so far, as many as are kept."""

    def tensors(self) -> list[torch.Tensor]:
        """The live tensors behind the Program's parameters. AttributeError or KeyError if one is gone."""
        return [
            live_tensor(one.live) if one.slot is None else one.space[one.slot][one.live.attribute] for one in self.reads
        ]

    def call(self, arguments: Arguments) -> Any:
        """Run the Program on a call that it fits."""
        assert self.ready is not None
        return self.ready.call(self.opened(arguments), self.tensors())

    def use(self) -> None:
        """Use what caches hold, as a run does that is not done again."""
        assert self.ready is not None
        self.ready.use()

    def opened(self, arguments: Arguments) -> Arguments:
        """The arguments of a call that it fits, as its Program takes them."""
        if not self.open:
            return arguments
        given = arguments if arguments.opened else open_values.opened(arguments, self.open)
        if len(self.passed) < (1 if self.traced.generators else PASSED):
            self.note(list(given.opened.values()))
        return given

    def note(self, values: list[Any]) -> None:
        """Remember the open values of a call."""
        self.passed[value_key([_seen(value) for value in values])] = _as_specs(values)

    def calls(self) -> list[dict[str, Any]]:
        """The kinds of calls that it has answered: ``specs`` with the open values of each, the last one first."""
        one = self.stand_in
        if one is None or not self.passed:
            return [self.specs]
        return [one.rebuild(one.tensors, opened=values)[0] for values in reversed(list(self.passed.values()))]

    @functools.cached_property
    def is_silent(self) -> bool:
        """Whether a run that raises leaves nothing behind but random numbers."""
        return is_silent(self.traced.program)

    @functools.cached_property
    def streams(self) -> Streams:
        """The random streams that a run draws from."""
        return Streams(self.traced.program)

    def __post_init__(self) -> None:
        self._checks = [(guard.read, guard.test) for guard in self.traced.guards]
        exact = all(None not in sizes for sizes in self.sizes) and None not in self.layouts
        self._exact = list(zip(self.sizes, self.layouts)) if exact else None
        self._held = 0
        self._generated: Check | None = None
        self._outside = [guard for guard in self.traced.guards if shows_containers(guard.value)]
        self._nothing_else = not self.reads and not self.assumes and not (
            self.traced.leaves or self.traced.asked
        )

    def fits(self, arguments: Arguments) -> bool:
        """Whether ``mismatch`` finds nothing, quickly."""
        if arguments.containers and self._reached_otherwise(arguments):
            return False
        if self._exact is None:
            return self.mismatch(arguments) is None
        for tensor, (sizes, strides) in zip(arguments.tensors, self._exact):
            if tensor.shape != sizes or tensor.stride() != strides:
                return False
        if not self._facts_hold():
            return False
        return self._nothing_else or not (
            self._leaf_changed(arguments) or self._parameters_changed(arguments) or self._assumption_broken(arguments)
        )

    def _facts_hold(self) -> bool:
        """Whether all guards hold; by one generated function once they did often."""
        if self._generated is not None and self._generated() is not None:
            return True
        try:
            for read, test in self._checks:
                if not test(read()):
                    return False
        except READ_ERRORS:
            return False
        self._held += 1
        if self._held in GENERATED_AT:
            with faults.guarded():
                writer = CheckWriter(())
                for guard in self.traced.guards:
                    writer.guard(guard)
                self._generated = writer.finish()
        return True

    def mismatch(self, arguments: Arguments) -> str | None:
        """Why the Program does not fit a call whose key is the same; None if it fits."""
        for label, tensor, sizes, layout in zip(self.labels, arguments.tensors, self.sizes, self.layouts):
            for dim, (size, fixed) in enumerate(zip(tensor.shape, sizes)):
                if fixed is not None and size != fixed:
                    return f"argument '{label}' has size {size} in dimension {dim}, not {fixed}"
            if layout_key(tensor, sizes) != layout:
                return f"argument '{label}' has other strides"
        if not self._facts_hold():
            for guard in self.traced.guards:
                if not guard.holds():
                    return f"{guard.description} has changed"
        if arguments.containers and self._reached_otherwise(arguments):
            return "a container among the arguments is, or was, the same one as another that the function reads"
        changed = self._leaf_changed(arguments) or self._parameters_changed(arguments)
        return changed or self._assumption_broken(arguments)

    def failed_guard(self, arguments: Arguments) -> Guard | None:
        """The first guard that does not hold, if that is why the Program does not fit a call of the same key."""
        if any(self.differing_dims(arguments).values()):
            return None
        return next((guard for guard in self.traced.guards if not guard.holds()), None)

    def changed_numbers(self) -> list[Place]:
        """Where plain numbers outside the arguments are not what they were, of the same type still."""
        changed = [guard for guard in self.traced.guards if (guard.place or guard.numbers) and not guard.holds()]
        places = [guard.place for guard in changed if guard.place is not None and can_be_fact(guard.place.get())]
        inside = [pair for guard in changed for pair in guard.numbers]
        places += [place for place, number in inside
                   if can_be_fact(place.get(), type(number)) and not same_plain(place.get(), number)]  # fmt: skip
        return places + [place for place, length in self.traced.adding if len(place.owner) != length]

    def _reached_otherwise(self, arguments: Arguments) -> bool:
        """Whether a container of the arguments is one that the function also finds elsewhere, and was not before; or
        was one, and is another now."""
        whole = self.traced.whole
        for number, container in whole.items():
            if arguments.containers[number] is not container:
                return True
        if not self._outside:
            return False
        own = {
            id(container) for number, container in enumerate(arguments.containers)
            if number not in whole and not is_a(container, tuple)
        }
        try:
            return bool(own) and any(leads_to(guard.read(), own) for guard in self._outside)
        except READ_ERRORS:
            return True

    def _leaf_changed(self, arguments: Arguments) -> str | None:
        for position, leaf in self.traced.leaves.items():
            if arguments.tensors[position].is_leaf is not leaf:
                return f"argument '{self.labels[position]}' is {'no' if leaf else 'a'} leaf of the graph"
        for position, questions in self.traced.asked.items():
            for name, question, answer in questions:
                if not same(question(arguments.tensors[position]), answer):
                    return f"argument '{self.labels[position]}' has another '{name}'"
        return None

    def _parameters_changed(self, arguments: Arguments) -> str | None:
        if not self.reads:
            return None
        try:
            tensors = self.tensors()
        except (AttributeError, KeyError):
            return "a parameter is gone"
        for position, key in self.parameters:
            if looks(tensors[position]) != key:
                return f"'{self.reads[position].live.parameter.name}' has another shape, dtype, device or requires_grad"
        if self.traced.tells_apart and sharing([*arguments.tensors, *tensors]) != self.sharing:
            return "other tensors share memory"
        return None

    def _assumption_broken(self, arguments: Arguments) -> str | None:
        broken = self.broken_assumption(arguments)
        if broken is None:
            return None
        names = " and ".join(f"the size of '{name}' in dimension {dim}" for name, dim in broken.symbols.values())
        return f"the Program holds only where {broken.expr}, which is about {names}"

    def broken_assumption(self, arguments: Arguments) -> Assume | None:
        """The first assumption about sizes that does not hold for a call."""
        return self.broken_assumption_of(arguments.tensors)

    def broken_assumption_of(self, tensors: Sequence[torch.Tensor]) -> Assume | None:
        """The same for a call's tensors."""
        for assume, places in self.assumes:
            sizes = {symbol: tensors[index].shape[dim] for symbol, (index, dim) in places.items()}
            if not check(assume, sizes):
                return assume
        return None

    def differing_dims(self, arguments: Arguments) -> dict[str, set[int]]:
        """The dimensions, by label, in which a call differs from the sizes that the Program fixes."""
        return {
            label: dims
            for label, tensor, sizes in zip(self.labels, arguments.tensors, self.sizes)
            if (dims := {dim for dim, (a, b) in enumerate(zip(tensor.shape, sizes)) if b is not None and a != b})
        }


def specialize(key: Key, traced: Traced, arguments: Arguments, dynamic: dict[str, frozenset[int]]) -> Specialization:
    """What to check before ``traced``, made from ``arguments``, is used again."""
    sizes: list[Sizes] = []
    specs = []
    for label, tensor in zip(arguments.labels, arguments.tensors):
        free = dynamic.get(label, frozenset())
        sizes.append(tuple(None if dim in free else size for dim, size in enumerate(tensor.shape)))
        specs.append(InputSpec(sizes[-1], tensor.dtype))
    tensors = traced.parameters()
    covered = {id(guard.covers) for guard in traced.guards if guard.covers is not None}
    positions = {label: index for index, label in enumerate(arguments.labels)}
    reads = [_read(live) for live in traced.live]
    made = Specialization(
        key, traced, list(arguments.labels), sizes,
        [layout_key(tensor, fixed) for tensor, fixed in zip(arguments.tensors, sizes)],
        reads,
        [(position, looks(tensor)) for position, (read, tensor) in enumerate(zip(reads, tensors))
         if read.slot is None or id(read.live.owner) not in covered],
        sharing([*arguments.tensors, *tensors]) if traced.tells_apart else (),
        arguments.rebuild(specs, opened=_as_specs(arguments.opened.values()))[0],
        [(assume, {symbol: (positions[name], dim) for symbol, (name, dim) in assume.symbols.items()})
         for assume in traced.program.assumes],
        plain=open_values.plain_values(arguments), lengths=open_lists.lengths(arguments),
        records=open_values.records(arguments),
    )  # fmt: skip
    if arguments.opened:
        made.open = frozenset(open_values.which(arguments))
        made.stand_in = replace(arguments, opened=dict.fromkeys(arguments.opened)).with_stand_ins(specs)
    return made


def _as_specs(values: Iterable[Any]) -> list[Any]:
    """Open values with InputSpecs in place of tensors."""
    return [[InputSpec.from_tensor(one) for one in value] if type(value) is list else value for value in values]


def _seen(value: Any) -> Any:
    return ("items", len(value)) if type(value) is list else value


def _read(live: LiveParameter) -> Read:
    if is_a(live.owner, torch.nn.Module):
        space = unasked(live.owner, "__dict__")
        for slot in ("_parameters", "_buffers"):
            if live.attribute in space[slot]:
                return Read(live, space, slot)
    return Read(live)


def layout_key(tensor: torch.Tensor, sizes: Sequence[int | None]) -> Key:
    """The strides; where sizes are free, their order and the gaps between them."""
    if tensor.layout is not torch.strided:
        return None
    strides = tensor.stride()
    if None not in sizes:
        return strides
    return tuple((dim, None if dense else strides[dim]) for dim, dense in torch_internals.layout_of(tensor))


__all__ = ["Specialization", "layout_key", "specialize"]
