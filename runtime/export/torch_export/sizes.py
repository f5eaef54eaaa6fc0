"""What a Program takes for granted of its arguments' sizes: sizes to trace with, and checks of each call's.

    x : f32[s0, 3], y : f32[s0], assume "s0 > 4"    ->    traced with s0 = 5; the run ends where y.shape[0] is another
"""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

from runtime.export.torch_export.translator import Translator, aten
from runtime.export.torch_export.values import Refused, number
from runtime.ir import Assume, Program, TensorType
from runtime.ir.assume import check, symbols_of

_TRIED = ((5, 7, 11, 13, 17, 19, 23, 29), (8, 16, 32, 64, 128), (12, 24, 36, 60, 120), (2, 3, 4, 6, 9, 10))
"""Sizes to trace with. PyTorch takes 0 and 1 for fixed sizes."""


def open_sizes(program: Program) -> dict[str, tuple[str, int]]:
    """The symbols of a Program's arguments, each with the argument and dimension where it stands first."""
    found: dict[str, tuple[str, int]] = {}
    for one in program.inputs:
        for dim, size in enumerate(_shape(one.var.type)):
            if isinstance(size, str):
                found.setdefault(size, (one.name, dim))
    return found


def sizes_to_trace(program: Program) -> dict[str, int]:
    """Sizes for which all assumptions hold. Errors raised: Refused where none are found."""
    symbols = list(open_sizes(program))
    for sizes in _candidates(symbols):
        if all(check(one, {name: _of(one, program, name, sizes) for name in one.symbols}) for one in program.assumes):
            return sizes
    raise Refused("sizes of its arguments for which all that the Program takes for granted holds")


def _candidates(symbols: list[str]) -> Iterator[dict[str, int]]:
    for row in _TRIED:
        yield dict(zip(symbols, itertools.cycle(row)))
        yield dict.fromkeys(symbols, row[0])
    few = sorted({size for row in _TRIED for size in row})
    for found in itertools.islice(itertools.product(few, repeat=len(symbols)), 20_000):
        yield dict(zip(symbols, found))


def _of(assume: Assume, program: Program, name: str, sizes: Mapping[str, int]) -> int:
    argument, dim = assume.symbols[name]
    (shape,) = (_shape(one.var.type) for one in program.inputs if one.name == argument)
    size = shape[dim]
    return sizes[size] if isinstance(size, str) else size


def _shape(type_: Any) -> tuple[Any, ...]:
    return (type_.shape or ()) if isinstance(type_, TensorType) else ()


def require_sizes(t: Translator, program: Program) -> None:
    """Sizes of one symbol are equal, and all assumptions hold, or the run ends."""
    tensors = {one.name: t.tensor(one.var) for one in program.inputs}
    first = open_sizes(program)
    for one in program.inputs:
        for dim, size in enumerate(_shape(one.var.type)):
            if not isinstance(size, str) or first[size] == (one.name, dim):
                continue
            name, place = first[size]
            differ = aten.ne.Tensor(_size(tensors[name], place), _size(tensors[one.name], dim))
            t.fail_if(differ, f"the sizes do not fit: {one.name}.shape[{dim}] is to be {name}.shape[{place}]")
    for assume in program.assumes:
        sizes = {symbol: _size(tensors[name], dim) for symbol, (name, dim) in assume.symbols.items()}
        holds = condition(assume.expr, sizes)
        t.fail_if(aten.logical_not.default(holds), f"the sizes do not fit: {_said(assume)} is needed")


def _size(tensor: torch.Tensor, dim: int) -> torch.Tensor:
    return number(tensor.size(dim), "int")


def _said(assume: Assume) -> str:
    words = {symbol: f"{name}.shape[{dim}]" for symbol, (name, dim) in assume.symbols.items()}
    return re.sub(r"\b\w+\b", lambda found: words.get(found[0], found[0]), assume.expr)


_BINARY: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: aten.add.Tensor, ast.Sub: aten.sub.Tensor, ast.Mult: aten.mul.Tensor, ast.Mod: aten.remainder.Tensor,
    ast.FloorDiv: lambda a, b: aten.div.Tensor_mode(a, b, rounding_mode="floor"), ast.Div: aten.div.Tensor,
    ast.Pow: aten.pow.Tensor_Tensor, ast.BitAnd: aten.logical_and.default, ast.BitOr: aten.logical_or.default,
}  # fmt: skip
_TESTS: dict[type[ast.AST], Any] = {
    ast.Eq: aten.eq.Tensor, ast.NotEq: aten.ne.Tensor, ast.Lt: aten.lt.Tensor, ast.LtE: aten.le.Tensor,
    ast.Gt: aten.gt.Tensor, ast.GtE: aten.ge.Tensor,
}  # fmt: skip
_CALLS: dict[str, Callable[..., Any]] = {
    "Eq": aten.eq.Tensor, "Ne": aten.ne.Tensor, "Lt": aten.lt.Tensor, "Le": aten.le.Tensor, "Gt": aten.gt.Tensor,
    "Ge": aten.ge.Tensor, "Not": aten.logical_not.default, "Abs": aten.abs.default, "abs": aten.abs.default,
    "Min": lambda *of: _each(aten.minimum.default, of), "min": lambda *of: _each(aten.minimum.default, of),
    "Max": lambda *of: _each(aten.maximum.default, of), "max": lambda *of: _each(aten.maximum.default, of),
    "And": lambda *of: _each(aten.logical_and.default, of), "Or": lambda *of: _each(aten.logical_or.default, of),
    "Mod": aten.remainder.Tensor, "PythonMod": aten.remainder.Tensor,
    "FloorDiv": _BINARY[ast.FloorDiv], "CleanDiv": _BINARY[ast.FloorDiv],
    "CeilDiv": lambda a, b: aten.neg.default(_BINARY[ast.FloorDiv](aten.neg.default(a), b)),
    "floor": aten.floor.default, "ceiling": aten.ceil.default,
}  # fmt: skip


def _each(function: Callable[..., Any], values: tuple[Any, ...]) -> Any:
    found, *rest = values
    for one in rest:
        found = function(found, one)
    return found


def condition(expr: str, sizes: Mapping[str, torch.Tensor]) -> torch.Tensor:
    """A fact about sizes, which are tensors of int64.

    >>> condition("(s0 % 4 == 0) & (Max(s0, 3) >= 8)", {"s0": torch.tensor(8)})
    tensor(True)
    """
    symbols_of(expr)  # it is in the language of sizes

    def build(node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return number(node.value, "bool" if isinstance(node.value, bool) else "int")
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](build(node.left), build(node.right))
        if isinstance(node, ast.UnaryOp):
            inner = build(node.operand)
            if isinstance(node.op, (ast.Not, ast.Invert)):
                return aten.logical_not.default(inner)
            return aten.neg.default(inner) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BoolOp):
            joined = aten.logical_and.default if isinstance(node.op, ast.And) else aten.logical_or.default
            return _each(joined, tuple(map(build, node.values)))
        if isinstance(node, ast.Compare):
            sides = [build(node.left), *map(build, node.comparators)]
            found = [_TESTS[type(op)](a, b) for a, op, b in zip(sides, node.ops, sides[1:])]
            return _each(aten.logical_and.default, tuple(found))
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return _CALLS[node.func.id](*map(build, node.args))

    made: torch.Tensor = build(ast.parse(expr.strip(), mode="eval").body)
    return made


__all__ = ["condition", "open_sizes", "require_sizes", "sizes_to_trace"]
