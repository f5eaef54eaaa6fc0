"""Who owns a value: which ``update`` may write its base in place instead of a copy (donation).

A tensor is *owned* when nothing else can see its memory: no other live value, no caller, no backward formula. An update
whose base is owned and dies there writes in place. Where a value is owned on one path only, the answer is DYNAMIC: the
executor keeps a flag beside the value, so that a loop over the caller's tensor copies it once, at its first write.

Under autograd (``grad=True``) an operator may keep its operands and its result for backward (``runtime.executor.keeps``
knows); what is kept is owned no more.

Lists are owned in the same way: ``array.append`` extends the list itself where nobody else can see it. So is the
result of a pointwise Operator written in the place of an operand that dies (``runtime.executor.reuse``).
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, field

from runtime.executor import keeps, reuse
from runtime.executor.liveness import Liveness
from runtime.ir import ArrayType, Block, ObjectType, Operand, Operator, Program, TensorType, Variable, leaves
from runtime.ir.definition import About, definition_of
from runtime.ir.flow import Kind, Port


class Owner(enum.Enum):
    """Whether a value is owned: never, always, or known by a flag at run time."""

    NO = "no"
    YES = "yes"
    DYNAMIC = "dynamic"


_ITEMS = frozenset({"array.get", "array.load"})
_LIST_WRITERS = frozenset({"array.append", "array.extend", "array.set", "array.store", "array.pop"})
"""List operators that can work in place on their first argument."""


@dataclass
class Ownership:
    """The decisions: ``donated[(id(op), position)]`` for each base, ``flow`` for each value that flows into another.

    A pointwise Operator has position 0, whichever of its operands it may write.
    ``flow`` keys are (id of the Block that yields, or of the ``while_loop`` for its first values; position).
    ``flags`` are the Variables that need an owner flag at run time.
    """

    donated: dict[tuple[int, int], Owner] = field(default_factory=dict)
    flow: dict[tuple[int, int], Owner] = field(default_factory=dict)
    flags: set[Variable] = field(default_factory=set)


def analyse(
    program: Program, live: Liveness, *, grad: bool, reusing: bool = True, memory: reuse.Memory = reuse.USUAL,
    backward: bool = False,
) -> Ownership:
    """The decisions for a Program that runs with gradients (``grad``) or without.

    ``reusing``: whether pointwise Operators may write their results in the place of operands; ``memory`` says which,
    and ``backward`` whether it is a backward half.
    """
    analysis = _Analysis(live, reusing and reuse.strided(program), reuse.in_place(program, memory, backward), memory)
    analysis.stable = False
    while not analysis.stable:
        analysis.stable = True
        analysis.forget()
        analysis.block(program.block, grad)
    analysis.result.flags = analysis.needed_flags()
    return analysis.result


def _join(a: Owner, b: Owner) -> Owner:
    return a if a is b else Owner.DYNAMIC


class _Beside:
    """What is read beside one of several operands, or elsewhere: looked up once for all of them."""

    def __init__(self, operands: Iterable[Operand], elsewhere: Iterable[Variable]) -> None:
        self._elsewhere = set(elsewhere)
        self._counts = Counter(leaves(list(operands)))
        self._own: Counter[Variable] = Counter()

    def one(self, operand: Operand) -> _Beside:
        """What is beside this one of them."""
        self._own = Counter(leaves(operand))
        return self

    def __contains__(self, var: object) -> bool:
        return var in self._elsewhere or self._counts[var] > self._own[var]  # type: ignore[index]


class _Analysis:
    """Walks in program order, repeated until what loops carry, and what shares memory, is known."""

    def __init__(
        self, live: Liveness, reusing: bool, in_place: Callable[[Operator], bool], memory: reuse.Memory
    ) -> None:
        self.live = live
        self.in_place = in_place
        self.memory_of_bases = memory.bases
        self.reusing = reusing
        self.result = Ownership()
        self.stable = True
        """Whether the current walk has found nothing new."""
        self.carried: dict[int, list[Owner]] = {}
        """Loop -> the owners of what it carries, joined over all walks."""
        self.owner: dict[Variable, Owner] = {}
        self.memory: dict[Variable, set[Variable]] = {}
        """Value -> values that may share its memory (or, for a list, hold or come from its items)."""
        self.origins: dict[Variable, set[Variable]] = {}
        """The other way round."""
        self.objects: dict[Variable, set[Variable]] = {}
        """List -> lists that may be the same Python object."""
        self.sources: dict[Variable, set[Variable]] = {}
        """Result of a branch or loop -> what may flow into it: a flag needs the flags of these."""
        self.bases: dict[tuple[int, int], Variable] = {}
        self.made: set[Variable] = set()
        """Tensors made without gradients, in dense memory of their own."""
        self.givers: dict[Variable, set[Variable]] = {}
        """Result of a branch or loop -> what may flow into it with its memory: not what is somebody else's."""

    def forget(self) -> None:
        """Begin a walk: what an earlier one decided, before it knew what loops carry, says nothing any more."""
        self.owner.clear()
        self.bases.clear()
        self.result.donated.clear()
        self.result.flow.clear()

    # -- facts ---------------------------------------------------------------------------------------------------

    def share(self, source: Variable, target: Variable, *, same: bool = False) -> None:
        for edges in (self.memory, self.objects) if same else (self.memory,):
            found = edges.setdefault(source, set())
            self.stable = self.stable and target in found
            found.add(target)
        self.origins.setdefault(target, set()).add(source)

    def keep(self, variables: Iterable[Variable]) -> None:
        """Backward may read these: whatever they may be a view of, or hold, is not to be written any more."""
        todo = list(variables)
        found: set[Variable] = set()
        while todo:
            var = todo.pop()
            if var not in found:
                found.add(var)
                todo.extend(self.origins.get(var, ()))
                if not isinstance(var.type, ArrayType):
                    self.owner[var] = Owner.NO

    def sharers(self, var: Variable) -> set[Variable]:
        """Every value that may be seen through ``var``'s memory, itself left out."""
        edges = self.objects if isinstance(var.type, ArrayType) else self.memory
        found: set[Variable] = set()
        todo = [var]
        while todo:
            for target in edges.get(todo.pop(), ()):
                if target not in found:
                    found.add(target)
                    todo.append(target)
        found.discard(var)
        return found

    def alone(self, var: Variable, others: Container[Variable]) -> bool:
        """Whether neither ``var`` nor anything that shares its memory is among ``others``."""
        return var not in others and not any(one in others for one in self.sharers(var))

    def all_made(self, var: Variable) -> bool:
        """Whether a tensor was made without gradients in dense memory, on every path where it is owned."""
        todo, found = [var], {var}
        while todo:
            if (one := todo.pop()) in self.made:
                continue
            givers = self.givers.get(one)
            if not givers:
                return False
            todo.extend(givers - found)
            found |= givers
        return True

    # -- the walk ------------------------------------------------------------------------------------------------

    def block(self, block: Block, grad: bool) -> None:
        for op in block.ops:
            self.operator(op, grad)

    def operator(self, op: Operator, grad: bool) -> None:
        if definition_of(op.name).about is About.LISTS:
            self.array(op)
            return
        if op.name.startswith("aten."):
            self.aten(op, grad if op.grad_mode == "inherit" else op.grad_mode == "on")
            return
        definition = definition_of(op.name)
        kind = definition.flow.kind
        if definition.neutral:
            return
        if kind is Kind.INLINE:
            self.update(op, grad)
        elif kind is Kind.BRANCH:
            self.branches(op, grad)
        elif kind is Kind.LOOP:
            self.loop(op, grad)
        elif op.name == "grad.take":
            self.owner[op.outputs[0]] = Owner.YES
        else:
            self.unknown(op)

    def aten(self, op: Operator, grad: bool) -> None:
        if self.reusing and not grad:
            self.pointwise(op)
        shared = keeps.may_share(op)
        fresh = not shared and len(op.outputs) == 1 and (not grad or keeps.packet_of(op) in keeps.FRESH)
        for out in op.outputs:
            self.owner[out] = Owner.YES if fresh and isinstance(out.type, TensorType) else Owner.NO
            for var in shared:
                self.share(var, out)
        if keeps.changes_storage(op):
            for var in shared:
                for other in shared:
                    self.share(var, other)
        if grad:
            self.keep(keeps.kept(op))

    def pointwise(self, op: Operator) -> None:
        """Its result may take the place of an operand that dies, unless another operand lies in the same memory."""
        if op.name in reuse.LAID_OUT:
            self.made.update(op.outputs)
        base = reuse.candidate(op)
        if base is not None and base in self.live.dying[id(op)]:
            others = list(leaves([op.args, *op.kwargs.values()]))
            others.remove(base)
            if self.owner.get(base, Owner.NO) is not Owner.NO and self.all_made(base) and self.in_place(op):
                self.donation(op, 0, base, {*others, *self.live.outside[id(op)]})

    def array(self, op: Operator) -> None:
        if op.name in _LIST_WRITERS and isinstance(op.args[0], Variable):
            self.donation(op, 0, op.args[0], {*leaves(op.args[1:]), *self.live.outside[id(op)]})
        for out in op.outputs:
            fresh = isinstance(out.type, ArrayType) and op.name not in _ITEMS and out is op.outputs[0]
            self.owner[out] = Owner.YES if fresh else Owner.NO
            for var in op.inputs:
                self.share(var, out, same=not fresh)

    def unknown(self, op: Operator) -> None:
        """An operator that may keep what it is given and may return it."""
        inputs = self.live.uses(op)
        self.keep(inputs)
        self.owner.update(dict.fromkeys([*inputs, *op.outputs], Owner.NO))
        for out in op.outputs:
            for var in inputs:
                self.share(var, out, same=True)
        for block in op.blocks:
            self.owner.update(dict.fromkeys(block.args, Owner.NO))
            self.block(block, True)

    def donation(self, op: Operator, position: int, base: Variable, others: Container[Variable]) -> None:
        owner = self.owner.get(base, Owner.NO)
        if owner is not Owner.NO and not self.alone(base, others):
            owner = Owner.NO
        self.result.donated[id(op), position] = owner
        self.bases[id(op), position] = base

    def update(self, op: Operator, grad: bool) -> None:
        (block,) = op.blocks
        bases = [base for base in op.args if isinstance(base, Variable)]
        seen = [*self.live.outside[id(op)], *self.live.captured(block)]
        for position, base in enumerate(bases):
            rest = [other for index, other in enumerate(bases) if index != position]
            self.donation(op, position, base, {*seen, *rest})
            if not self.memory_of_bases:
                self.result.donated[id(op), position] = Owner.NO
        self.owner.update(dict.fromkeys(block.args, Owner.YES))
        self.block(block, grad)
        count = len(block.args)
        extras = list(zip(op.outputs[count:], block.yields[count:]))
        for out, arg in zip(op.outputs, block.args):
            shared = self.sharers(arg)
            visible = any(value is arg or value in shared for _, value in extras if isinstance(value, Variable))
            entangled = any(arg in self.sharers(var) for var in [*self.live.captured(block), *block.args])
            self.owner[out] = Owner.NO if entangled or (visible and grad) else self.owner[arg]
            for extra, value in extras:
                if isinstance(value, Variable) and (value is arg or value in shared):
                    self.share(out, extra)
            if entangled:
                for var in [*self.live.captured(block), *block.args]:
                    self.share(var, out)
        for extra, value in extras:
            self.owner[extra] = Owner.NO
            if isinstance(value, Variable):
                self.share(value, extra)

    def flow_into(self, key: tuple[int, int], value: Operand, target: Variable, seen: Container[Variable]) -> Owner:
        """``value`` becomes ``target``: its owner, kept only if nothing in ``seen`` still shares the memory."""
        owner = Owner.YES
        if isinstance(value, Variable):
            owner = self.owner.get(value, Owner.NO)
            if owner is not Owner.NO and not self.alone(value, seen):
                self.owner[value] = owner = Owner.NO
            self.share(value, target, same=True)
            self.sources.setdefault(target, set()).add(value)
            if owner is not Owner.NO:
                self.givers.setdefault(target, set()).add(value)
        self.result.flow[key] = owner
        return owner

    def yields(self, block: Block, targets: Iterable[Variable], outside: Iterable[Variable]) -> Iterator[Owner]:
        beside = _Beside(block.yields, outside)
        for position, (value, target) in enumerate(zip(block.yields, targets)):
            yield self.flow_into((id(block), position), value, target, beside.one(value))

    def branches(self, op: Operator, grad: bool) -> None:
        before = dict(self.owner)
        after: dict[Variable, Owner] = {}
        joined: list[Owner] = []
        for block in op.blocks:
            self.owner = dict(before)
            self.block(block, grad)
            owners = list(self.yields(block, op.outputs, self.live.outside[id(op)]))
            joined = [_join(a, b) for a, b in zip(joined, owners)] if block is not op.blocks[0] else owners
            for var, owner in self.owner.items():
                kept = after.get(var, owner)
                after[var] = owner if kept is owner else Owner.NO
        self.owner = after
        for out, owner in zip(op.outputs, joined):
            self.owner[out] = owner if isinstance(out.type, (TensorType, ArrayType)) else Owner.NO

    def loop(self, op: Operator, grad: bool) -> None:
        ports = definition_of(op.name).flow.ports(op)
        through = set(self.live.outside[id(op)]).union(*(self.live.captured(block) for block in op.blocks))
        carried = [port for port in ports if port.whole and port.arg is not None]
        rounds = [[block.args[place] for block, place in zip(op.blocks, port.inner) if place is not None]
                  for port in carried]  # fmt: skip
        heads = [arg for arg, *_ in rounds]
        outs = [op.outputs[port.output] for port in carried if port.output is not None]
        first: list[Owner] = []
        beside = _Beside(op.args, through)
        for port, arg in zip(carried, heads):
            assert port.arg is not None
            owner = self.flow_into((id(op), port.arg), op.args[port.arg], arg, beside.one(op.args[port.arg]))
            first.append(owner if not isinstance(arg.type, ObjectType) else Owner.NO)
        for (arg, *later), out in zip(rounds, outs):
            for target in (*later, out):
                self.share(arg, target, same=True)
                self.sources.setdefault(target, set()).add(arg)
                self.givers.setdefault(target, set()).add(arg)
        for port in ports:
            if not port.whole:
                self.column(op, port, through)
        known = self.carried.get(id(op), first)
        owners = [_join(a, b) for a, b in zip(known, first)]
        self.owner.update(zip(heads, owners))
        for index, block in enumerate(op.blocks):
            if index:
                self.owner.update((args[index], self.owner[args[index - 1]]) for args in rounds)
            if block is op.blocks[-1]:
                self.owner.update((out, self.owner[arg]) for arg, out in zip(heads, outs))
            self.block(block, grad)
        joined = [_join(a, b) for a, b in zip(owners, self.yields(op.blocks[-1], heads, through))]
        self.stable = self.stable and joined == owners and self.carried.get(id(op)) == joined
        self.carried[id(op)] = joined

    def column(self, op: Operator, port: Port, through: Iterable[Variable]) -> None:
        """Items of what comes in share its memory; what is put together of items is new, a list holds them."""
        if port.arg is not None:
            column = op.args[port.arg]
            for block, place in zip(op.blocks, port.inner):
                if place is not None and isinstance(column, Variable):
                    self.owner[block.args[place]] = Owner.NO
                    self.share(column, block.args[place])
            if isinstance(column, Variable) and isinstance(column.type, ArrayType):
                self.donation(op, port.arg, column, _Beside(op.args, through).one(column))
        if port.output is not None:
            out = op.outputs[port.output]
            self.owner[out] = Owner.YES
            for block, place in zip(op.blocks, port.yields):
                item = block.yields[place] if place is not None else None
                if isinstance(out.type, ArrayType) and isinstance(item, Variable):
                    self.share(item, out)

    # -- flags ---------------------------------------------------------------------------------------------------

    def needed_flags(self) -> set[Variable]:
        """The Variables whose owner a DYNAMIC donation asks for, and those that flow into them."""
        todo = [self.bases[key] for key, owner in self.result.donated.items() if owner is Owner.DYNAMIC]
        found: set[Variable] = set()
        while todo:
            var = todo.pop()
            if var not in found:
                found.add(var)
                todo.extend(self.sources.get(var, ()))
        return found
