"""What a Program needs of what it is exported to: questions of the capability table, answered from Operators and types.

A list that a loop makes and nobody reads is no need: only what is read counts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from runtime.ir import ArrayType, Operator, Program, ScalarType, TensorType, Type, Variable, leaves
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of, is_path
from runtime.ir.tree import Record
from runtime.ops import aten

_SAYING = ("raise", "assert", "print", "warn", "log")
"""Operators that text may go to."""


@dataclass(frozen=True)
class Need:
    """An Operator that needs something, and what it is, in words."""

    op: Operator | None
    what: str


Found = Callable[[Program], Iterator[Need]]


def called(*names: str) -> Found:
    """Operators of some names."""
    def found(program: Program) -> Iterator[Need]:
        return (Need(op, op.name) for op in program.block.walk() if op.name in names)

    return found


def recursions(program: Program) -> Iterator[Need]:
    """Calls of a function in itself; the function may be the one that is exported, which nobody calls."""
    return (Need(op, "recursion") for op in program.block.walk() if op.name == "recur")


def _is_users(op: Operator) -> bool:
    limited = op.attrs.get("max_iterations") is not None
    return limited or op.name == "raise" or op.name == "assert" and op.attrs.get("exception") == "AssertionError"


def exceptions(program: Program) -> Iterator[Need]:
    """Exceptions that the user's code raises: ``raise``, ``assert``, a limit of iterations."""
    for op in program.block.walk():
        if _is_users(op):
            limit = op.attrs.get("max_iterations")
            yield Need(op, op.name if limit is None else f"{op.name}, which ends after {limit} iterations")


def checks(program: Program) -> Iterator[Need]:
    """What operators check of their arguments while they run."""
    return (Need(op, op.name) for op in program.block.walk() if op.name == "assert" and not _is_users(op))


def gradients(program: Program) -> Iterator[Need]:
    """Gradients that are computed inside."""
    harmless = ("grad.named", "grad.leaf")
    return (Need(op, op.name) for op in program.block.walk()
            if op.name == "gradients" or (op.name.startswith(("grad.", "checkpoint.")) and op.name not in harmless))


def of_the_process(program: Program) -> Iterator[Need]:
    """What is drawn from the process, or read of it."""
    return (Need(op, op.name) for op in program.block.walk() if op.name.startswith("host."))


def numbers(program: Program) -> Iterator[Need]:
    """Python's numbers."""
    return (Need(op, op.name) for op in program.block.walk() if op.name.startswith("scalar."))


def _read(program: Program) -> set[Variable]:
    """What Operators read, or the caller gets."""
    found = {var for op in program.block.walk() for var in op.inputs} | set(leaves(program.block.yields))
    return found


def _said(var: Variable) -> str:
    return f"'{var.hint}'" if var.hint else f"%{var.name}"


def _made(program: Program, wanted: Callable[[Type], bool]) -> Iterator[Need]:
    """Operators whose results have a type, where somebody reads them."""
    read = _read(program)
    for op in program.block.walk():
        for out in op.outputs:
            if out in read and wanted(out.type):
                yield Need(op, op.name)


def lists(program: Program) -> Iterator[Need]:
    """Lists that branches and loops make."""
    read = _read(program)
    for op in program.block.walk():
        if not is_path(op):
            continue
        inside = [arg for block in op.blocks for arg in block.args]
        for var in (*op.outputs, *inside):
            if var in read and isinstance(var.type, ArrayType):
                yield Need(op, f"{op.name}, which makes the list {_said(var)}" if var.hint else op.name)


def lists_of_lists(program: Program) -> Iterator[Need]:
    """Lists of lists."""
    return _made(program, lambda type_: isinstance(type_, ArrayType) and isinstance(type_.element, ArrayType))


def texts(program: Program) -> Iterator[Need]:
    """Text that is more than part of what an exception says."""
    given = set(leaves(program.block.yields))
    for op in program.block.walk():
        for out in op.outputs:
            if _is_text(out) and out in given:
                yield Need(op, op.name)
        makes_text = bool(op.outputs) and all(map(_is_text, op.outputs))
        if op.name not in _SAYING and not makes_text and any(map(_is_text, op.inputs)):
            yield Need(op, op.name)


def _is_text(var: Variable) -> bool:
    return var.type == ScalarType("str")


def _of_dtype(program: Program, wanted: Callable[[torch.dtype], bool]) -> Iterator[Need]:
    def has(type_: Type) -> bool:
        return isinstance(type_, TensorType) and type_.dtype is not None and wanted(type_.dtype)

    yield from (Need(None, f"'{one.name}'") for one in program.inputs if has(one.var.type))
    yield from (Need(None, f"'{one.name}'") for one in program.params if has(one.var.type))
    yield from _made(program, has)


def halves(program: Program) -> Iterator[Need]:
    """Tensors of 16 bits."""
    return _of_dtype(program, lambda dtype: dtype in (torch.float16, torch.bfloat16))


def complexes(program: Program) -> Iterator[Need]:
    """Complex tensors."""
    return _of_dtype(program, lambda dtype: dtype.is_complex)


def _of_aten(program: Program) -> Iterator[Operator]:
    return (op for op in program.block.walk() if op.name.startswith("aten."))


def randoms(program: Program) -> Iterator[Need]:
    """Operators that draw random numbers."""
    return (Need(op, op.name) for op in _of_aten(program)
            if aten.is_random(aten.resolve(op.name), op.args, op.kwargs))  # fmt: skip


def autocasts(program: Program) -> Iterator[Need]:
    """Operators that run under autocast."""
    return (Need(op, op.name) for op in _of_aten(program) if op.autocast is not None)


def writes_to_arguments(program: Program) -> Iterator[Need]:
    """Arguments that the function writes."""
    written = {write.target for write in program.writes}
    return (Need(None, f"the write to '{one.name}'") for one in program.inputs if one.var in written)


def writes_to_buffers(program: Program) -> Iterator[Need]:
    """Buffers and other tensors that were there before, which the function writes."""
    written = {write.target for write in program.writes}
    return (Need(None, f"the write to '{one.name}'") for one in program.params if one.var in written)


def sizes_of_paths(program: Program) -> Iterator[Need]:
    """Results of branches whose sizes differ."""
    for op in program.block.walk():
        flow = flow_of(op)
        for port in flow.ports(op) if flow.kind is Kind.BRANCH else ():
            given = [block.yields[place] for block, place in zip(op.blocks, port.yields) if place is not None]
            shapes = {one.type.shape for one in given if isinstance(one, Variable) and isinstance(one.type, TensorType)}
            if len(shapes) > 1:
                yield Need(op, op.name)


def sizes_of_loops(program: Program) -> Iterator[Need]:
    """What loops carry whose sizes change: the first has others than those of all iterations."""
    read = _read(program)
    for op in program.block.walk():
        if flow_of(op).kind is not Kind.LOOP:
            continue
        for port in flow_of(op).ports(op):
            given = None if port.arg is None or not port.whole else op.args[port.arg]
            inside = [block.args[place] for block, place in zip(op.blocks, port.inner) if place is not None]
            after = [] if port.output is None else [op.outputs[port.output]]
            if not isinstance(given, Variable) or not inside or not {*inside, *after} & read:
                continue
            first, later = given.type, inside[-1].type
            if isinstance(first, TensorType) and isinstance(later, TensorType) and first.shape != later.shape:
                yield Need(op, f"{op.name}, in which the sizes of {_said(inside[-1])} change")


def stores(program: Program) -> Iterator[Need]:
    """Stores to objects that were there before: a Program does not hold them, the artefact around it does."""
    return iter(())


def choices(program: Program) -> Iterator[Need]:
    """Results of which each path has its own structure."""
    def inside(tree: object) -> bool:
        if isinstance(tree, Record):
            return tree.kind == "choice" or any(inside(one) for _, one in tree.fields)
        if isinstance(tree, dict):
            return any(map(inside, tree.values()))
        return isinstance(tree, (list, tuple)) and any(map(inside, tree))

    if inside(program.output):
        yield Need(None, "a result whose structure differs")


__all__ = [
    "Found", "Need", "autocasts", "called", "checks", "choices", "complexes", "exceptions", "gradients", "halves",
    "lists", "lists_of_lists", "numbers", "randoms", "recursions", "sizes_of_loops", "sizes_of_paths", "stores",
    "texts", "writes_to_arguments", "writes_to_buffers",
]  # fmt: skip
