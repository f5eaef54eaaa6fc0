"""Where each value of a Program is used for the last time.

The executor drops a value right after its last use, on every path, so that a Program holds no more memory than the
plain Python it came from. The Program's own arguments are the caller's to drop, and are left out, unless the caller
hands them over.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from runtime.executor import reuse
from runtime.ir import Block, Operator, Program, Variable, leaves
from runtime.ir.block import captures_within
from runtime.ir.definition import About, definition_of
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of

Live = frozenset[Variable]


@dataclass
class Liveness:
    """The facts, keyed by the identity of Operators and Blocks.

    ``outside``: what is still needed once an Operator with Blocks, or one that may overwrite its operand, is done
    (its own outputs left out). ``dying``: Variables an Operator, or a Block inside it, reads for the last time.
    ``unread``: outputs of an Operator that nothing reads. ``at_entry``: Variables that are dead when a Block starts,
    though they live on a sibling path. ``at_exit``: Variables that die when a Block's yields have been read.
    """

    pinned: Live
    outside: dict[int, Live] = field(default_factory=dict)
    dying: dict[int, list[Variable]] = field(default_factory=dict)
    unread: dict[int, list[Variable]] = field(default_factory=dict)
    at_entry: dict[int, list[Variable]] = field(default_factory=dict)
    at_exit: dict[int, list[Variable]] = field(default_factory=dict)
    captures: dict[int, list[Variable]] = field(default_factory=dict)
    repeated: dict[str, list[Variable]] = field(default_factory=dict)
    """What the Blocks capture that Operators inside them run again, by name: those read it, too."""

    def captured(self, block: Block) -> list[Variable]:
        """Variables of outer Blocks that ``block`` reads."""
        found = self.captures.get(id(block))
        if found is None:
            self.captures.update(captures_within(block))
            found = self.captures[id(block)]
        if not self.repeated:
            return found
        again, ops = dict.fromkeys(found), list(block.walk())
        inside = {flow_of(op).named(op) for op in ops}
        for op in ops:
            if definition_of(op.name).again(op) not in inside:
                again.update(dict.fromkeys(self._of_repeated(op)))
        return list(again)

    def uses(self, op: Operator) -> list[Variable]:
        """Everything an Operator reads, what its Blocks capture included, each once."""
        found = dict.fromkeys(op.inputs)
        for block in op.blocks:
            name = flow_of(op).named(op)
            if name is not None:
                self.repeated.pop(name, None)  # of another one of that name
            found.update(dict.fromkeys(self.captured(block)))
            if name is not None:
                self.repeated[name] = self.captured(block)
        if self.repeated:
            found.update(dict.fromkeys(self._of_repeated(op)))
        return list(found)

    def _of_repeated(self, op: Operator) -> Sequence[Variable]:
        name = definition_of(op.name).again(op)
        return () if name is None else self.repeated.get(name, ())


def analyse(program: Program, *, consuming: bool = False) -> Liveness:
    """The liveness facts of a Program. ``consuming``: its arguments are its own to drop."""
    facts = Liveness(frozenset() if consuming else frozenset(program.block.args))
    live = block_liveness(program.block, frozenset(), facts)
    facts.at_entry[id(program.block)] = [arg for arg in program.block.args if consuming and arg not in live]
    return facts


def block_liveness(block: Block, live_out: Live, facts: Liveness) -> set[Variable]:
    """Fill in the facts of one Block; what is live where it starts."""
    yielded = [var for var in dict.fromkeys(leaves(block.yields)) if var not in facts.pinned]
    facts.at_exit[id(block)] = [var for var in yielded if var not in live_out]
    live = set(live_out).union(yielded)
    for op in reversed(block.ops):
        uses = [var for var in facts.uses(op) if var not in facts.pinned]
        facts.unread[id(op)] = [var for var in op.outputs if var not in live]
        facts.dying[id(op)] = dying = [var for var in uses if var not in live]
        live.difference_update(op.outputs)
        if op.blocks or definition_of(op.name).about is About.LISTS or reuse.candidate(op) in dying:
            facts.outside[id(op)] = frozenset(live)
            _blocks_of(op, facts.outside[id(op)], dying, facts)
        live.update(uses)
    return live


def _blocks_of(op: Operator, outside: Live, dying: list[Variable], facts: Liveness) -> None:
    flow = flow_of(op)
    if flow.kind is Kind.LOOP:
        kept = [var for block in op.blocks for var in facts.captured(block) if var not in facts.pinned]
        through = outside.union(kept)
        ports = flow.ports(op)
        for index, block in enumerate(op.blocks):
            # An argument that the Block yields nothing for goes on as it is, to the next Block.
            on = {block.args[place] for port in ports if (place := port.inner[index]) is not None
                  and port.output is not None and port.yields[index] is None}  # fmt: skip
            live = block_liveness(block, through.union(on), facts)
            facts.at_entry[id(block)] = [arg for arg in block.args if arg not in live and arg not in on]
    elif flow.kind is Kind.BRANCH:
        for block in op.blocks:
            captured = set(facts.captured(block))
            block_liveness(block, outside, facts)
            facts.at_entry[id(block)] = [var for var in dying if var not in captured]
    elif flow.kind is Kind.INLINE:
        for block in op.blocks:
            block_liveness(block, outside.union(block.args), facts)
    else:
        # Blocks that become functions of their own: what they capture is their caller's to drop.
        for block in op.blocks:
            live = block_liveness(block, frozenset(facts.captured(block)), facts)
            facts.at_entry[id(block)] = [arg for arg in block.args if arg not in live]
