"""Where the memory of what leaves a Block shows, which is contiguous in the halves of a derivative, and need not be in
eager.

    torch.as_strided(y, ...)           reads the memory of a tensor, whatever its sizes are
    return x.t() if c else x * 2       a result whose strides, and whose memory, the caller sees
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping

from runtime.ir import Operator, Program, TensorType, Variable
from runtime.ir.definition import definition_of
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.walk import blocks
from runtime.ops import aten

_OF_MEMORY = ("aten.as_strided.", "aten.as_strided_.", "aten.as_strided_copy.", "aten.as_strided_scatter.")
_KEEPING = ("alias", "detach", "view", "_unsafe_view", "unsqueeze", "squeeze", "unflatten", "view_as")
"""Views that are contiguous where what they are taken of is."""
_OF_FIRST = ("select", "slice", "unbind", "split", "chunk", "narrow")
"""Likewise if they are taken along the first dimension."""


def of_memory(program: Program) -> bool:
    """Whether an operator reads the memory of what may have left a branch or loop."""
    ops = [op for block in blocks(program) for op in block.ops]
    return any(op.name.startswith(_OF_MEMORY) for op in ops) and any(
        flow_of(op).kind not in (Kind.PLAIN, Kind.INLINE) for op in ops)


def shown(program: Program, skip: Collection[int]) -> bool:
    """Whether a result, those at ``skip`` left out, may be a view of an argument or of another result that the halves
    would copy, as it is not contiguous: one that left a branch or loop, or is at a place that only a run knows."""
    results = [var for number, var in enumerate(program.block.yields)
               if number not in skip and isinstance(var, Variable) and isinstance(var.type, TensorType)]  # fmt: skip
    producers = {out: op for block in blocks(program) for op in block.ops for out in op.outputs}
    if not any(_is_copied_view(op) for op in producers.values()):
        return False
    main = set(map(id, program.block.ops))
    found = [_Memory(var, producers, main) for var in dict.fromkeys(results)]
    seen = Counter(base for one in found for base in one.bases)
    arguments = set(program.block.args)
    return any(_is_turned(var, producers, arguments) for var in results) or any(
        one.copied and any(base in arguments or seen[base] > 1 for base in one.bases) for one in found)


def _is_turned(result: Variable, producers: Mapping[Variable, Operator], arguments: set[Variable]) -> bool:
    """Whether a result is such a view of an argument; what is computed has its views taken anew (``view_results``)."""
    copied = False
    while (op := producers.get(result)) is not None and (viewed := _viewed(op)):
        copied |= _is_copied_view(op)
        result = viewed[0]
    return copied and result in arguments


class _Memory:
    """What a result may be a view of: ``bases``. ``copied``: whether a Block may yield one that is not contiguous, made
    there or before."""

    def __init__(self, result: Variable, producers: Mapping[Variable, Operator], main: set[int]) -> None:
        self.bases: set[Variable] = set()
        self.copied = False
        seen: set[tuple[Variable, bool]] = set()
        todo = [(result, False)]
        while todo:
            var, is_yielded = todo.pop()
            if (var, is_yielded) in seen:
                continue
            seen.add((var, is_yielded))
            op = producers.get(var)
            viewed = () if op is None else _viewed(op)
            inner = [(one, is_yielded) for one in viewed]
            if op is not None and not viewed:
                inner = [(one, True) for one in _yielded(op, var)]
            if op is not None and _is_copied_view(op):
                self.copied |= is_yielded or id(op) not in main
            if not inner:
                self.bases.add(var)
            todo += inner


def _is_copied_view(op: Operator) -> bool:
    return bool(_viewed(op)) and not _is_contiguous(op)


def _yielded(op: Operator, output: Variable) -> Iterator[Variable]:
    """What a branch or loop gives as one of its outputs: what its Blocks yield for it, and what a loop begins with.
    What a recursion gives may also be of its arguments."""
    flow = flow_of(op)
    place = op.outputs.index(output)
    if flow.named(op) is not None:
        yield from (one for one in (op.blocks[0].yields[place], *op.args) if isinstance(one, Variable))
    for port in flow.ports(op) if flow.is_path else ():
        if port.output == place:
            values = [block.yields[number] for block, number in zip(op.blocks, port.yields) if number is not None]
            values += [] if port.arg is None else [op.args[port.arg]]
            yield from (value for value in values if isinstance(value, Variable))


def _viewed(op: Operator) -> tuple[Variable, ...]:
    """What an Operator surely gives a view of."""
    if not op.name.startswith("aten.") or not aten.is_view(aten.resolve(op.name), op.args, op.kwargs):
        return ()
    return tuple(var for var in definition_of(op.name).views(op) if isinstance(var.type, TensorType))


def _is_contiguous(op: Operator) -> bool:
    name = op.name.split(".")[1]
    if name in _OF_FIRST and op.kwargs:
        return False
    if name in _OF_FIRST:
        place = 2 if name in ("split", "chunk") else 1
        first = op.args[place] if len(op.args) > place else 0
        step = op.args[4] if name == "slice" and len(op.args) > 4 else 1
        return first == 0 and step == 1
    return name in _KEEPING


__all__ = ["of_memory", "shown"]
