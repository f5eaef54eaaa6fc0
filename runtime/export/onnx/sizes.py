"""What a Program takes for granted of its arguments' sizes, as nodes that end the run where it is not so.

    x : f32[s0, 3], y : f32[s0], assume "s0 > 4"    ->    fail if y.shape[0] != x.shape[0];  fail if not s0 > 4
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping

import torch

from runtime.export.onnx.scalars import Calculator
from runtime.export.onnx.translator import Translator
from runtime.export.onnx.writer import Refused, Value
from runtime.ir import Assume, Program, TensorType
from runtime.ir.assume import symbols_of

_BINARY: dict[type[ast.AST], str] = {ast.Add: "Add", ast.Sub: "Sub", ast.Mult: "Mul", ast.Div: "Div", ast.Pow: "Pow",
                                     ast.BitAnd: "And", ast.BitOr: "Or"}  # fmt: skip
_TESTS: dict[type[ast.AST], str] = {ast.Eq: "Equal", ast.NotEq: "!Equal", ast.Lt: "Less", ast.LtE: "LessOrEqual",
                                    ast.Gt: "Greater", ast.GtE: "GreaterOrEqual"}  # fmt: skip
_CALLS = {"Eq": "Equal", "Ne": "!Equal", "Lt": "Less", "Le": "LessOrEqual", "Gt": "Greater", "Ge": "GreaterOrEqual"}
_ONE = {"Abs": "Abs", "abs": "Abs", "floor": "Floor", "ceiling": "Ceil"}


def require_sizes(t: Translator, program: Program) -> None:
    """Sizes of one symbol are equal, and all assumptions hold."""
    w = t.w
    known: dict[str, tuple[Value, str]] = {}
    for one in program.inputs:
        type_ = one.var.type
        assert isinstance(type_, TensorType)
        for dim, size in enumerate(type_.shape or ()):
            if isinstance(size, int):
                continue
            said = f"{one.name}.shape[{dim}]"
            if size not in known:
                known[size] = _size(t, one.var, dim), said
                continue
            first, other = known[size]
            differ = w.flags("Not", w.test("Equal", first, _size(t, one.var, dim)))
            w.fail_if(differ, f"the sizes do not fit: {said} is to be {other}")
    by_name = {one.name: one.var for one in program.inputs}
    for assume in program.assumes:
        sizes = {symbol: w.cast(_size(t, by_name[name], dim), torch.float64)
                 for symbol, (name, dim) in assume.symbols.items()}  # fmt: skip
        w.place = assume.location
        w.fail_if(w.flags("Not", condition(t, assume.expr, sizes)), f"the sizes do not fit: {_said(assume)} is needed")
        w.place = None


def _size(t: Translator, var: object, dim: int) -> Value:
    sizes = t.w.sizes(t.value(var))
    return t.w.node("Gather", sizes, t.w.constant(dim, torch.int64), dtype=torch.int64, shape=[])


def _said(assume: Assume) -> str:
    words = {symbol: f"{name}.shape[{dim}]" for symbol, (name, dim) in assume.symbols.items()}
    return re.sub(r"\b\w+\b", lambda found: words.get(found[0], found[0]), assume.expr)


def condition(t: Translator, expr: str, sizes: Mapping[str, Value]) -> Value:
    """A fact about sizes, in float64, which is exact for sizes. Errors raised: Refused."""
    symbols_of(expr)  # it is in the language of sizes
    w, c = t.w, Calculator(t.w)

    def test(name: str, a: Value, b: Value) -> Value:
        made = w.test(name.removeprefix("!"), a, b)
        return w.flags("Not", made) if name[0] == "!" else made

    def floor(a: Value, b: Value) -> Value:
        return c.op("Floor", c.op("Div", a, b))

    def build(node: ast.expr) -> Value:
        if isinstance(node, ast.Constant):
            if isinstance(node.value, bool):
                return w.constant(node.value, torch.bool)
            assert isinstance(node.value, int)
            return c.float(float(node.value))
        if isinstance(node, ast.Name):
            return sizes[node.id]
        if isinstance(node, ast.BinOp):
            a, b = build(node.left), build(node.right)
            if isinstance(node.op, ast.FloorDiv):
                return floor(a, b)
            if isinstance(node.op, ast.Mod):
                return c.op("Sub", a, c.op("Mul", b, floor(a, b)))
            return c.op(_BINARY[type(node.op)], a, b)
        if isinstance(node, ast.UnaryOp):
            inner = build(node.operand)
            if isinstance(node.op, (ast.Not, ast.Invert)):
                return w.flags("Not", inner)
            return c.op("Neg", inner) if isinstance(node.op, ast.USub) else inner
        if isinstance(node, ast.BoolOp):
            return _joined("And" if isinstance(node.op, ast.And) else "Or", [build(one) for one in node.values])
        if isinstance(node, ast.Compare):
            sides = [build(node.left), *map(build, node.comparators)]
            return _joined("And", [test(_TESTS[type(op)], a, b) for a, op, b in zip(sides, node.ops, sides[1:])])
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        name, args = node.func.id, list(map(build, node.args))
        if name in _CALLS:
            return test(_CALLS[name], *args)
        if name in ("And", "Or"):
            return _joined(name, args)
        if name == "Not":
            return w.flags("Not", *args)
        if name in ("Min", "min", "Max", "max"):
            return c.op(name.capitalize(), *args)
        if name in ("Mod", "PythonMod"):
            return c.op("Sub", args[0], c.op("Mul", args[1], floor(*args)))
        if name in ("FloorDiv", "CleanDiv"):
            return floor(*args)
        if name == "CeilDiv":
            return c.op("Ceil", c.op("Div", *args))
        if name in _ONE:
            return c.op(_ONE[name], *args)
        raise Refused(f"a fact about sizes with {name}")

    def _joined(operator: str, flags: list[Value]) -> Value:
        found, *rest = flags
        for one in rest:
            found = w.flags(operator, found, one)
        return found

    return build(ast.parse(expr.strip(), mode="eval").body)


__all__ = ["condition", "require_sizes"]
