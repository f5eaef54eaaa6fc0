"""How values go through Operators with Blocks: questions, answered from the definitions (``runtime.ir.flow``)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from runtime.ir.block import Block
from runtime.ir.definition import definition_of
from runtime.ir.flow import PLAIN, Flow, Port
from runtime.ir.operator import Operator, leaves
from runtime.ir.variable import Operand, Variable


def flow_of(op: Operator) -> Flow:
    """How an Operator's Blocks run. Errors raised: ProgramError if its name is unknown."""
    return definition_of(op.name).flow if op.blocks else PLAIN


def is_path(op: Operator) -> bool:
    """Whether which of an Operator's Blocks run, or how often, is known at run time only."""
    return flow_of(op).is_path


def may_pass(op: Operator) -> bool:
    """Whether what an Operator gives may be what was there before, as it is: of a branch, a loop, a recursion."""
    flow = flow_of(op)
    return flow.is_path or flow.named(op) is not None


def handed_in(op: Operator) -> set[Variable]:
    """Variables that an Operator with Blocks is given for more than to decide by them: a Block may get them."""
    flow = flow_of(op)
    deciding, ported = flow.decides(op), {port.arg for port in flow.ports(op)}
    more = [arg for place, arg in enumerate(op.args) if place in ported or not any(arg is one for one in deciding)]
    return set(leaves([more, list(op.kwargs.values())]))


def passed(op: Operator, output: int, held: bool = False) -> set[Variable]:
    """Variables that an output may be, as they are: yielded by a Block, or passed on by one iteration, or by one call
    of a recursion, to the next.

    What the Blocks compute is among them; arguments of the Blocks are not. ``held``: what lists are made of counts as
    well, for what is a list, and for what is taken from one.
    """
    found: set[Variable] = set()
    if flow_of(op).named(op) is not None:
        return _passed_by_calls(op, output, held)
    ports = flow_of(op).ports(op)
    inner = {block.args[place]: port for port in ports for block, place in zip(op.blocks, port.inner)
             if place is not None}  # fmt: skip
    todo = [port for port in ports if port.output == output]
    seen: set[Port] = set()
    while todo:
        port = todo.pop()
        if port in seen or not (port.whole or held):
            continue
        seen.add(port)
        values: list[tuple[Block | None, Operand]] = [] if port.arg is None else [(None, op.args[port.arg])]
        values += [(block, block.yields[place]) for block, place in zip(op.blocks, port.yields) if place is not None]
        for block, value in values:
            if not isinstance(value, Variable):
                continue
            for var in [value] if block is None else _sources(block, value, held):
                if var in inner:
                    todo.append(inner[var])
                else:
                    found.add(var)
    return found


def _sources(block: Block, value: Variable, held: bool) -> set[Variable]:
    """The value, and what paths of the Block may have given for it, which other paths may have given to them."""
    found = {value}
    for op in reversed(block.ops):  # who gives comes before
        passes = may_pass(op)
        if passes or (held and hands_on(op)):
            for place, out in enumerate(op.outputs):
                if out in found:
                    found |= passed(op, place, held) if passes else set(op.inputs)
    return found


def _passed_by_calls(op: Operator, output: int, held: bool) -> set[Variable]:
    """What an output of a recursion may be, however deep the calls that hand it on stand in other Blocks."""
    (body,), name = op.blocks, flow_of(op).named(op)
    producers: dict[Variable, tuple[Operator, int]] = {}
    begins: dict[Variable, list[Operand]] = {arg: [op.args[place]] for place, arg in enumerate(body.args)}
    for inner in body.walk():
        producers.update((out, (inner, place)) for place, out in enumerate(inner.outputs))
        if definition_of(inner.name).again(inner) == name:
            for arg, value in zip(body.args, inner.args):
                begins[arg].append(value)
        for port in flow_of(inner).ports(inner):
            for block, place in zip(inner.blocks, port.inner):
                if place is not None:
                    ends = [one.yields[end] for one, end in zip(inner.blocks, port.yields) if end is not None]
                    begins[block.args[place]] = [*ends, *([] if port.arg is None else [inner.args[port.arg]])]
    found: set[Variable] = set()
    todo: list[Operand] = [body.yields[output]]
    while todo:
        var = todo.pop()
        if not isinstance(var, Variable) or var in found:
            continue
        found.add(var)
        todo += begins.get(var, ())
        if var not in producers:
            continue
        inner, place = producers[var]
        if definition_of(inner.name).again(inner) == name:
            todo.append(body.yields[place])
        elif may_pass(inner):
            todo += passed(inner, place, held)
        elif held and hands_on(inner):
            todo += inner.inputs
    return found.difference(begins)


def hands_on(op: Operator) -> bool:
    """Whether what an Operator gives is an argument of it as it is, or holds some: it is about a list."""
    return definition_of(op.name).hands_on


def drop_ports(op: Operator, ports: Sequence[Port]) -> None:
    """Take ports out of an Operator: arguments, outputs, its Blocks' arguments and yields."""
    flow_of(op).dropping(op, ports)
    op.args = _without(op.args, {port.arg for port in ports})
    op.outputs = _without(op.outputs, {port.output for port in ports})
    for index, block in enumerate(op.blocks):
        block.args = list(_without(block.args, {port.inner[index] for port in ports if port.inner}))
        block.yields = list(_without(block.yields, {port.yields[index] for port in ports if port.yields}))


def _without(values: Sequence[Any], positions: set[int | None]) -> tuple[Any, ...]:
    return tuple(value for position, value in enumerate(values) if position not in positions)


__all__ = ["drop_ports", "flow_of", "handed_in", "hands_on", "is_path", "may_pass", "passed"]
