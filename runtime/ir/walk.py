"""Going through a Program and copying parts of it: what passes are made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from runtime.ir.block import Block
from runtime.ir.operator import Operator, leaves
from runtime.ir.program import Input, Program, Write
from runtime.ir.variable import Operand, Variable


def map_operand(operand: Operand, change: Callable[[Variable], Operand]) -> Operand:
    """The operand with every Variable in it replaced; constants and containers stay what they are."""
    if isinstance(operand, Variable):
        return change(operand)
    return map_leaves(operand, lambda leaf: change(leaf) if isinstance(leaf, Variable) else leaf)


def map_leaves(value: Any, change: Callable[[Any], Any]) -> Any:
    """A value, as operands are at run time, with whatever is no container in it replaced.

    >>> map_leaves([1, slice(2, None)], lambda item: item and -item)
    [-1, slice(-2, None, None)]
    """
    if isinstance(value, (list, tuple)):
        return type(value)(map_leaves(item, change) for item in value)
    if isinstance(value, dict):
        return {key: map_leaves(item, change) for key, item in value.items()}
    if isinstance(value, slice):
        return slice(*(map_leaves(part, change) for part in (value.start, value.stop, value.step)))
    return change(value)


def replace_in(op: Operator, mapping: Mapping[Variable, Operand]) -> None:
    """Replace Variables that an Operator reads itself, in place (not those that its Blocks read)."""
    if mapping and any(var in mapping for var in op.inputs):
        op.args = tuple(map_operand(arg, lambda var: mapping.get(var, var)) for arg in op.args)
        op.kwargs = {name: map_operand(value, lambda var: mapping.get(var, var)) for name, value in op.kwargs.items()}


def blocks(program: Program) -> Iterator[Block]:
    """Every Block of a Program, outer before inner, in program order."""
    yield program.block
    for op in program.block.walk():
        yield from op.blocks


def variables(program: Program) -> Iterator[Variable]:
    """Every Variable a Program assigns, in program order."""
    yield from program.block.args
    for op in program.block.walk():
        for block in op.blocks:
            yield from block.args
        yield from op.outputs


def uses(program: Program) -> dict[Variable, int]:
    """How often each Variable is read, by Operators at any depth, yields and returns."""
    counts: dict[Variable, int] = dict.fromkeys(variables(program), 0)
    for op in program.block.walk():
        for var in op.inputs:
            counts[var] = counts.get(var, 0) + 1
    for block in blocks(program):
        for var in leaves(block.yields):
            counts[var] = counts.get(var, 0) + 1
    return counts


class Names:
    """Names for new Variables that no Variable of the Program has.

    >>> from runtime.ir import Program
    >>> names = Names(Program("f"))
    >>> names.new("h"), names.new("h"), names.new("")
    ('h', 'h.1', '0')
    """

    def __init__(self, program: Program) -> None:
        self.taken = {var.name for var in variables(program)}
        self.next: dict[str, int] = {}

    def new(self, stem: str) -> str:
        """``stem`` itself if it is free, else with the first free number."""
        if stem and stem not in self.taken:
            self.taken.add(stem)
            return stem
        number = self.next.get(stem, 1 if stem else 0)
        while (name := f"{stem}.{number}" if stem else str(number)) in self.taken:
            number += 1
        self.next[stem] = number + 1
        self.taken.add(name)
        return name


def copy_block(
    block: Block, mapping: dict[Variable, Operand], rename: Callable[[str], str] = str
) -> Block:
    """A copy of a Block with new Variables for those assigned inside, called ``rename(old name)``.

    ``mapping`` replaces Variables of outer Blocks (others stay shared), and is extended by those copied.
    """

    def fresh(var: Variable) -> Variable:
        new = Variable(rename(var.name), var.type, var.hint)
        mapping[var] = new
        return new

    def read(operand: Operand) -> Operand:
        return map_operand(operand, lambda var: mapping.get(var, var))

    copy = Block([fresh(arg) for arg in block.args])
    for op in block.ops:
        args = tuple(read(arg) for arg in op.args)
        kwargs = {name: read(value) for name, value in op.kwargs.items()}
        inner = tuple(copy_block(one, mapping, rename) for one in op.blocks)
        outputs = tuple(fresh(out) for out in op.outputs)
        copy.ops.append(
            replace(op, args=args, kwargs=kwargs, blocks=inner, outputs=outputs, attrs=dict(op.attrs))
        )
    copy.yields = [read(value) for value in block.yields]
    return copy


def copy_program(program: Program) -> Program:
    """A copy that shares no Variable, Block or Operator with the original."""
    mapping: dict[Variable, Any] = {}
    block = copy_block(program.block, mapping)
    return Program(
        program.name,
        block,
        [Input(mapping[item.var], item.name) for item in program.inputs],
        [replace(param, var=mapping[param.var]) for param in program.params],
        program.output,
        [Write(mapping[write.target], write.index) for write in program.writes],
        [replace(assume, symbols=dict(assume.symbols)) for assume in program.assumes],
    )


def substitute(block: Block, mapping: Mapping[Variable, Operand]) -> None:
    """Replace Variables read anywhere in a Block, in place."""

    def read(operand: Operand) -> Operand:
        return map_operand(operand, lambda var: mapping.get(var, var))

    for op in block.ops:
        op.args = tuple(read(arg) for arg in op.args)
        op.kwargs = {name: read(value) for name, value in op.kwargs.items()}
        for inner in op.blocks:
            substitute(inner, mapping)
    block.yields = [read(value) for value in block.yields]
