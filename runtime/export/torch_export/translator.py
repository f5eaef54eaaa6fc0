"""A Program run on the tensors that PyTorch's exporter traces: which value is which, and which rule runs an Operator.

Each Block of a branch or loop becomes a function of what it reads, which PyTorch's operator gets. Whether the run has
failed is one of the values that go through it: a number, 0 while nothing has, else the place of what is said in
``messages``. Outside of all Blocks a node says it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.export.shared import Nothing, place
from runtime.export.torch_export.values import SYMBOLS, Number, Refused, kind_of, number, reason_of
from runtime.ir import ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.ir.variable import UNDEF
from runtime.torch_internals.export_settings import require

aten = torch.ops.aten
Rule = Callable[["Translator", Operator], None]


@dataclass
class Run:
    """What all Blocks of one Program share."""

    rule_of: Callable[[Operator], Rule]
    messages: dict[str, int] = field(default_factory=dict)
    """What failures say, each with its number, from 1."""
    said: list[str] = field(default_factory=list)
    """What was said inside of Blocks, one after another."""
    last: Operator | None = None
    """The Operator that was run last, for what PyTorch says of it."""


class Translator:
    """Runs Operators. Errors raised: Refused."""

    def __init__(self, run: Run, failed: torch.Tensor | None = None) -> None:
        self.shared = run
        self.failed = failed
        """Inside of Blocks: the number of what has failed; None outside."""
        self.values: dict[Variable, Any] = {}
        self.sizes: dict[Variable, Any] = {}
        """Numbers that a tensor took as a size or the like: the symbols they are there."""
        self.symbols: dict[str, Any] = {}
        """The sizes that types name."""

    # -- Blocks and Operators

    def block(self, block: Block) -> None:
        """The Operators of a Block."""
        for op in block.ops:
            self.operator(op)

    def operator(self, op: Operator) -> None:
        """One Operator."""
        self.shared.last = op
        try:
            self.shared.rule_of(op)(self, op)
        except Refused as error:
            error.op = error.op or op
            raise

    # -- values

    def give(self, var: Variable, value: Any) -> None:
        """Say what a Variable is."""
        self.values[var] = value
        self.sizes.pop(var, None)
        if isinstance(value, torch.Tensor) and isinstance(var.type, TensorType) and var.type.shape is not None:
            for dim, size in zip(var.type.shape, value.shape):
                if isinstance(dim, str):
                    self.symbols.setdefault(dim, size)

    def nothing(self, operand: Operand) -> Nothing | None:
        """What stands in place of a value that has no form, if the operand is one."""
        found = self.values[operand] if isinstance(operand, Variable) else operand
        if found is None or found is UNDEF or isinstance(found, str):
            return Nothing(f"{'text' if isinstance(found, str) else 'None'} as a value of the run", found)
        return found if isinstance(found, Nothing) else None

    def value(self, operand: Operand) -> Any:
        """What an operand is: a tensor, a number or a list. Errors raised: Refused for None and text."""
        missing = self.nothing(operand)
        if missing is not None:
            raise Refused(missing.reason)
        return self.values[operand] if isinstance(operand, Variable) else operand

    def tensor(self, operand: Operand) -> torch.Tensor:
        """A tensor operand."""
        found = self.value(operand)
        if not isinstance(found, torch.Tensor):
            raise Refused(f"{type(found).__name__} in place of a tensor")
        return found

    def kind(self, operand: Operand) -> str:
        """The kind of a Python number. Errors raised: Refused for what is none."""
        found = kind_of(operand.type) if isinstance(operand, Variable) else type(operand).__name__
        if found not in ("int", "float", "bool"):
            missing = self.nothing(operand)
            raise Refused(missing.reason if missing is not None else "this in place of a number")
        return found

    def late(self, operand: Operand, kind: str) -> torch.Tensor:
        """A number as a tensor without dimensions."""
        self.kind(operand)
        return number(self.value(operand), kind)

    def flag(self, operand: Operand) -> Number:
        """A condition: a bool, or a tensor of one element with PyTorch's truth rules."""
        found = self.value(operand)
        if isinstance(operand, Variable) and isinstance(operand.type, TensorType):
            return aten.ne.Scalar(aten.reshape.default(found, []), 0) if found.dtype is not torch.bool else (
                found if found.dim() == 0 else aten.reshape.default(found, []))  # fmt: skip
        if isinstance(found, (bool, int, float)):
            return bool(found)
        return self.truth(found)

    def truth(self, value: Number) -> Number:
        """Whether a number is not zero."""
        if isinstance(value, torch.Tensor):
            return value if value.dtype is torch.bool else aten.ne.Scalar(value, 0)
        if isinstance(value, SYMBOLS):
            return self.truth(number(value, "bool" if isinstance(value, torch.SymBool) else "int"))
        return bool(value)

    def argument(self, operand: Operand) -> Any:
        """A number as an argument of an operator that takes no tensor there: what it is at run time, as a symbol."""
        found = self.value(operand)
        if not isinstance(operand, Variable) or not isinstance(found, torch.Tensor):
            return found
        if operand not in self.sizes:
            self.sizes[operand] = aten.item.default(found)
        return self.sizes[operand]

    # -- failures

    def fail_if(self, flag: Number, said: str) -> None:
        """The run ends with this text where a condition holds."""
        if isinstance(flag, bool):
            if not flag:
                return
            flag = number(True, "bool")
        said = f"{said}{self._place()}"
        code = self.shared.messages.setdefault(said, len(self.shared.messages) + 1)
        if self.failed is None:
            self._say(flag, said)
        else:
            self.shared.said.append(said)
            first = aten.logical_and.default(flag, aten.eq.Scalar(self.failed, 0))
            self.failed = aten.where.self(first, number(code, "int"), self.failed)

    def _place(self) -> str:
        op = self.shared.last
        return "" if op is None or op.location is None else f" ({place(op.location)})"

    def _say(self, flag: torch.Tensor, said: str) -> None:
        """End the run where a condition holds: with the text, and by a check of a number, which compilers keep."""
        aten._assert_async.msg(aten.logical_not.default(flag), said)
        require(aten.item.default(number(flag, "int")) <= 0)

    def failures_so_far(self) -> int:
        """How much was said inside of Blocks, for ``take_failed``."""
        return len(self.shared.said)

    def take_failed(self, failed: torch.Tensor, before: int) -> None:
        """What went through Blocks: whether the run has failed in them. ``before``: of ``failures_so_far``."""
        if self.failed is not None:
            self.failed = failed
            return
        for said in dict.fromkeys(self.shared.said[before:]):
            self._say(aten.eq.Scalar(failed, self.shared.messages[said]), said)

    # -- Blocks as functions

    def captured(self, blocks: Iterable[Block], inside: Sequence[Variable] = ()) -> Captured:
        """What Blocks read of what is around them."""
        found = dict.fromkeys(var for block in blocks for var in block.captures() if var in self.values)
        names = dict.fromkeys(name for block in blocks for name in _sizes_of_missing(block) if name in self.symbols)
        return Captured(self, list(found), list(names))

    # -- what Blocks give

    def kept(self, var: Variable) -> bool:
        """Whether a result of Blocks has a form; who reads another is refused."""
        reason = reason_of(var.type)
        if reason is None and isinstance(var.type, ArrayType):
            reason = "a list that a branch or loop makes"
        if reason is not None:
            self.give(var, Nothing(reason))
        return reason is None

    def yielded(self, operand: Operand, type_: Type) -> torch.Tensor:
        """What a Block gives for a result of a type: memory that nothing else has."""
        kind = kind_of(type_)
        if operand is None or operand is UNDEF:
            return self._filler(type_)
        if kind is not None:
            made = number(self.value(operand), kind)
            return aten.clone.default(made)
        found = self.value(operand)
        dtype = getattr(type_, "dtype", None)
        if not isinstance(found, torch.Tensor):
            found = aten.scalar_tensor.default(self.argument(operand), dtype=dtype)
        if found.dtype is not dtype:
            raise Refused("a value whose dtype depends on the path")
        return aten.clone.default(found, memory_format=torch.contiguous_format)

    def _filler(self, type_: Type) -> torch.Tensor:
        """Something of a type, for a path on which nobody reads it, or on which it is a gradient that is not there."""
        if isinstance(type_, ScalarType):
            return number(0, type_.kind)
        if not isinstance(type_, TensorType) or type_.shape is None:
            raise Refused("a value that is missing on a path, and whose number of dimensions only the run knows")
        sizes = [self.symbols.get(dim, 1) if isinstance(dim, str) else dim for dim in type_.shape]
        return aten.full.default(sizes, 0, dtype=type_.dtype)


class Captured:
    """What Blocks read of what is around them: operands of PyTorch's operator, and their way back into values."""

    def __init__(self, outer: Translator, variables: list[Variable], names: list[str]) -> None:
        self._outer = outer
        self._constants: dict[Variable, Any] = {}
        self.operands: list[Any] = []
        self._ways: list[list[Callable[[Translator, Any], None]]] = []
        for var in variables:
            value = outer.values[var]
            if isinstance(value, (torch.Tensor, *SYMBOLS)):
                self._add(value, _into_values(var))
                if var in outer.sizes:
                    self._add(outer.sizes[var], _into_sizes(var))
            elif isinstance(value, list):
                self._list(var, value)
            else:
                self._constants[var] = value
        for name in names:
            size = outer.symbols[name]
            if isinstance(size, SYMBOLS):
                self._add(size, _into_symbols(name))

    def _add(self, value: Any, way: Callable[[Translator, Any], None]) -> None:
        """One value for all that are the same: PyTorch takes none twice."""
        for at, other in enumerate(self.operands):
            if other is value:
                self._ways[at].append(way)
                return
        self.operands.append(value)
        self._ways.append([way])

    def _list(self, var: Variable, items: list[Any]) -> None:
        self._constants[var] = list(items)
        for place_, item in enumerate(items):
            if isinstance(item, (torch.Tensor, *SYMBOLS)):
                self._add(item, _into_list(var, place_))
            elif isinstance(item, list) and any(isinstance(one, torch.Tensor) for one in item):
                raise Refused("a list of lists of tensors in a branch or loop")

    def inner(self, operands: Sequence[Any], failed: torch.Tensor) -> Translator:
        """A translator for the inside of a Block, that has these operands."""
        made = Translator(self._outer.shared, failed)
        for var, value in self._constants.items():
            made.values[var] = list(value) if isinstance(value, list) else value
        made.symbols = {name: size for name, size in self._outer.symbols.items() if not isinstance(size, SYMBOLS)}
        for ways, value in zip(self._ways, operands, strict=True):
            for way in ways:
                way(made, value)
        return made


def _into_values(var: Variable) -> Callable[[Translator, Any], None]:
    return lambda t, value: t.give(var, value)


def _into_sizes(var: Variable) -> Callable[[Translator, Any], None]:
    return lambda t, value: t.sizes.__setitem__(var, value)


def _into_symbols(name: str) -> Callable[[Translator, Any], None]:
    return lambda t, value: t.symbols.setdefault(name, value) and None


def _into_list(var: Variable, place_: int) -> Callable[[Translator, Any], None]:
    return lambda t, value: t.values[var].__setitem__(place_, value)


def _sizes_of_missing(block: Block) -> Iterable[str]:
    """The sizes of what is missing on paths inside."""
    types: list[Type] = []
    for op in block.walk():
        columns = [[one.yields[at] for one in op.blocks if at < len(one.yields)] for at in range(len(op.outputs))]
        types += [out.type for out, column in zip(op.outputs, columns) if UNDEF in column or None in column]
        types += [arg.type for arg, given in zip(op.blocks[0].args, op.args) if given is UNDEF] if op.blocks else []
    for type_ in types:
        yield from (dim for dim in getattr(type_, "shape", None) or () if isinstance(dim, str))


__all__ = ["Captured", "Rule", "Run", "Translator", "aten"]
