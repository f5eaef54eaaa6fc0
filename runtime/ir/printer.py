"""The text form of a Program, written. ``runtime.ir.parser`` reads it back exactly.

    program "forward" {
      input %x : f32[3, s0] = "x"
      param %w : f32[4, 4] = "fc.weight" parameter requires_grad
      %0 : f32[3, 4] = aten.linear.default(%x, %w, None)  @ "user.py":12:8 in "forward" "y = self.fc(x)"
      return %0 as ($0,)
    }

Printing never fails: an object that is no operand of the IR prints as ``!opaque "type" "repr"``, which the parser
refuses and the verifier names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.ir.block import Block
from runtime.ir.constants import (
    DTYPE_NAMES,
    implied_hint,
    quote,
    spell_constant,
    spell_identifier,
    spell_operator,
    spell_variable,
)
from runtime.ir.location import Location
from runtime.ir.operator import Operator
from runtime.ir.tree import Leaf, Record
from runtime.ir.types import ArrayType, Dim, ScalarType, TensorType, Type
from runtime.ir.variable import Operand, Undef, Variable

if TYPE_CHECKING:
    from runtime.ir.program import Assume, Program

_LOCATION_COLUMN = 64


def print_program(program: Program, locations: bool = True) -> str:
    """The Program as text, ending in a newline; ``locations=False`` leaves out places in the source and hints."""
    return _Printer(locations).program(program)


def print_operator(op: Operator, locations: bool = False) -> str:
    """One Operator with its Blocks, as it stands in a Program."""
    printer = _Printer(locations)
    printer.operator(op)
    return "\n".join(printer.lines)


def print_operand(operand: Operand) -> str:
    """An operand, attribute value or output tree.

    >>> print_operand([1, (2.0,), {"a": slice(None, 3)}])
    '[1, (2.0,), {"a": slice(None, 3, None)}]'
    """
    if isinstance(operand, Variable):
        return spell_variable(operand.name)
    if isinstance(operand, Undef):
        return "undef"
    kind = type(operand)
    if kind is list:
        return f"[{_join(operand)}]"
    if kind is tuple:
        return f"({_join(operand)},)" if len(operand) == 1 else f"({_join(operand)})"
    if kind is dict:
        items = (f"{print_operand(key)}: {print_operand(value)}" for key, value in operand.items())
        return "{" + ", ".join(items) + "}"
    if isinstance(operand, slice):
        return f"slice({_join((operand.start, operand.stop, operand.step))})"
    if isinstance(operand, Leaf):
        return f"${operand.index}"
    if isinstance(operand, Record):
        fields = ", ".join(f"{spell_identifier(name)}: {print_operand(value)}" for name, value in operand.fields)
        return f"record {quote(operand.kind)} {quote(operand.type_name)} {{{fields}}}"
    spelled = spell_constant(operand)
    if spelled is not None:
        return spelled
    return f"!opaque {quote(f'{kind.__module__}.{kind.__qualname__}')} {quote(repr(operand))}"


def print_type(type_: Type) -> str:
    """A Variable's type: ``f32[3, s0]``, ``?[*]`` (dtype and rank not known), ``int``, ``list<i64[]>``, ``object``.

    A tensor elsewhere than on the CPU says where: ``f32[3] on "cuda:0"``.
    """
    if isinstance(type_, TensorType):
        dtype = "?" if type_.dtype is None else DTYPE_NAMES.get(type_.dtype) or str(type_.dtype).removeprefix("torch.")
        shape = "*" if type_.shape is None else ", ".join(_dim(dim) for dim in type_.shape)
        device = "" if type_.device is None else f" on {quote(str(type_.device))}"
        return f"{dtype}[{shape}]{device}"
    if isinstance(type_, ScalarType):
        return type_.kind
    if isinstance(type_, ArrayType):
        return f"list<{print_type(type_.element)}>"
    return "object"


def _dim(dim: Dim) -> str:
    return spell_identifier(dim) if isinstance(dim, str) else str(dim)


def _join(operands: Any) -> str:
    return ", ".join(print_operand(operand) for operand in operands)


class _Printer:
    def __init__(self, locations: bool) -> None:
        self.locations = locations
        self.lines: list[str] = []
        self.depth = 0

    def emit(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def program(self, program: Program) -> str:
        self.emit(f"program {quote(program.name)} {{")
        self.depth += 1
        for item in program.inputs:
            self.emit(f"input {self.define(item.var)} = {quote(item.name)}")
        for param in program.params:
            grad = " requires_grad" if param.requires_grad else ""
            kind = spell_identifier(param.kind)
            self.emit(f"param {self.define(param.var)} = {quote(param.name)} {kind}{grad}")
        for assume in program.assumes:
            self.emit(self.assume(assume))
        for op in program.block.ops:
            self.operator(op)
        tree = "" if program.output is None else f" as {print_operand(program.output)}"
        self.emit(f"return {_join(program.block.yields)}".rstrip() + tree)
        for write in program.writes:
            self.emit(f"write {spell_variable(write.target.name)} = {write.index}")
        self.depth -= 1
        self.emit("}")
        return "\n".join(self.lines) + "\n"

    def assume(self, assume: Assume) -> str:
        sources = ", ".join(
            f"{spell_identifier(symbol)} = {quote(name)}[{dim}]" for symbol, (name, dim) in assume.symbols.items()
        )
        where = f" where {sources}" if sources else ""
        return self.placed(f"assume {quote(assume.expr)}{where}", assume.location)

    def operator(self, op: Operator) -> None:
        outputs = ", ".join(self.define(out) for out in op.outputs)
        args = [print_operand(arg) for arg in op.args]
        args += [f"{spell_identifier(name)}={print_operand(value)}" for name, value in op.kwargs.items()]
        head = f"{outputs} = " if outputs else ""
        line = f"{head}{spell_operator(op.name)}({', '.join(args)})"
        for block in op.blocks:
            self.emit(line + " {")
            self.block(block)
            line = "}"
        self.emit(self.placed(line + self.clauses(op), op.location))

    def clauses(self, op: Operator) -> str:
        text = ""
        if op.attrs:
            items = (f"{spell_identifier(key)}: {print_operand(value)}" for key, value in op.attrs.items())
            text += f" attrs {{{', '.join(items)}}}"
        if op.grad_mode != "inherit":
            text += f" grad {spell_identifier(op.grad_mode)}"
        if op.autocast is not None:
            text += f" autocast {print_operand(list(op.autocast))}"
        return text

    def block(self, block: Block) -> None:
        self.depth += 1
        if block.args:
            self.emit(f"^({', '.join(self.define(arg) for arg in block.args)}):")
            self.depth += 1
        for op in block.ops:
            self.operator(op)
        if block.yields:
            self.emit(f"yield {_join(block.yields)}")
        self.depth -= 2 if block.args else 1

    def define(self, var: Variable) -> str:
        hint = f" {quote(var.hint)}" if self.locations and var.hint != implied_hint(var.name) else ""
        return f"{spell_variable(var.name)} : {print_type(var.type)}{hint}"

    def placed(self, line: str, location: Location | None) -> str:
        if location is None or not self.locations:
            return line
        width = max(0, _LOCATION_COLUMN - 2 * self.depth)
        text = f"{line:<{width}} @ {quote(location.file)}:{location.line}:{location.column}"
        if location.function:
            text += f" in {quote(location.function)}"
        if location.text:
            text += f" {quote(location.text)}"
        return text
