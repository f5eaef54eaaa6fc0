"""Assumptions about sizes, evaluated: Python expressions over symbols, walked by an allow-list and never executed.

    check(Assume("Eq(s0 % 2, 0) & (s0 >= 2)", ...), {"s0": 4})  ->  True
"""

from __future__ import annotations

import ast
import functools
import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any, NoReturn

from runtime.errors import ProgramError
from runtime.ir.program import Assume

Sizes = Mapping[str, int]
_Evaluate = Callable[[Sizes], Any]

_MAX_LENGTH = 10_000
_MAX_BITS = 4_096


def _divide(a: Any, b: Any) -> Any:
    return Fraction(a) / Fraction(b)


def _power(a: Any, b: Any) -> Any:
    if abs(b) > 64:
        raise OverflowError("an exponent beyond 64")
    return Fraction(a) ** b if b < 0 else a**b


def _minimum(*values: Any) -> Any:
    return min(values)


def _maximum(*values: Any) -> Any:
    return max(values)


_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: _divide,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod, ast.Pow: _power,
    ast.BitAnd: lambda a, b: bool(a) and bool(b), ast.BitOr: lambda a, b: bool(a) or bool(b),
}  # fmt: skip
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
    ast.Gt: operator.gt, ast.GtE: operator.ge,
}  # fmt: skip
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Not: operator.not_, ast.Invert: operator.not_,
}  # fmt: skip
_CALLS: dict[str, tuple[int | None, Callable[..., Any]]] = {
    "Min": (None, _minimum), "Max": (None, _maximum), "min": (None, _minimum), "max": (None, _maximum),
    "And": (None, lambda *parts: all(parts)), "Or": (None, lambda *parts: any(parts)), "Not": (1, operator.not_),
    "Eq": (2, operator.eq), "Ne": (2, operator.ne), "Lt": (2, operator.lt), "Le": (2, operator.le),
    "Gt": (2, operator.gt), "Ge": (2, operator.ge), "Abs": (1, abs), "abs": (1, abs),
    "Mod": (2, operator.mod), "PythonMod": (2, operator.mod),
    "FloorDiv": (2, operator.floordiv), "CleanDiv": (2, operator.floordiv), "CeilDiv": (2, lambda a, b: -(-a // b)),
    "floor": (1, math.floor), "ceiling": (1, math.ceil),
}  # fmt: skip


def check(assume: Assume, sizes: Sizes) -> bool:
    """Whether the assumption holds for these sizes of its symbols.

    Errors raised: ProgramError for an expression outside the allowed language, or a symbol without a size.

    >>> check(Assume("s0 // 2 >= 2", {"s0": ("x", 0)}), {"s0": 3})
    False
    """
    evaluate, names = _compile(assume.expr)
    missing = sorted(names - sizes.keys())
    if missing:
        problem = f"the assumption {assume.expr!r} needs a size for {', '.join(missing)}"
        raise ProgramError(problem, location=assume.location)
    try:
        return bool(evaluate(sizes))
    except (ArithmeticError, TypeError) as error:
        problem = f"the assumption {assume.expr!r} cannot be computed: {error}"
        raise ProgramError(problem, location=assume.location) from None


def symbols_of(expr: str) -> frozenset[str]:
    """The symbols an expression reads. Errors raised: ProgramError if it is outside the allowed language."""
    return _compile(expr)[1]


@functools.lru_cache(maxsize=4096)
def _compile(expr: str) -> tuple[_Evaluate, frozenset[str]]:
    if len(expr) > _MAX_LENGTH:
        raise ProgramError(f"an assumption of {len(expr)} characters is too long")
    try:
        tree = ast.parse(expr.strip(), mode="eval")
        names: set[str] = set()
        return _build(tree.body, names, expr), frozenset(names)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ProgramError(f"the assumption {expr!r} is no Python expression") from None


def _build(node: ast.expr, names: set[str], expr: str) -> _Evaluate:
    def build(child: ast.expr) -> _Evaluate:
        return _build(child, names, expr)

    if isinstance(node, ast.Constant) and type(node.value) in (int, bool):
        value = node.value
        return lambda sizes: value
    if isinstance(node, ast.Name):
        name = node.id
        names.add(name)
        return lambda sizes: sizes[name]
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        return _bounded(_BINARY[type(node.op)], [build(node.left), build(node.right)])
    if isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
        return _bounded(_UNARY[type(node.op)], [build(node.operand)])
    if isinstance(node, ast.BoolOp):
        parts = [build(part) for part in node.values]
        join = all if isinstance(node.op, ast.And) else any
        return lambda sizes: join(part(sizes) for part in parts)
    if isinstance(node, ast.Compare) and all(type(op) in _COMPARE for op in node.ops):
        return _chain([build(node.left), *map(build, node.comparators)], [_COMPARE[type(op)] for op in node.ops])
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        arity, function = _CALLS.get(node.func.id, (-1, abs))
        if arity == len(node.args) or (arity is None and node.args):
            return _bounded(function, [build(arg) for arg in node.args])
    _refuse(node, expr)


def _bounded(function: Callable[..., Any], parts: list[_Evaluate]) -> _Evaluate:
    def evaluate(sizes: Sizes) -> Any:
        values = [part(sizes) for part in parts]
        result = function(*values)
        if isinstance(result, (int, Fraction)) and result.numerator.bit_length() > _MAX_BITS:
            raise OverflowError("a number that is too large")
        return result

    return evaluate


def _chain(parts: list[_Evaluate], compare: list[Callable[[Any, Any], bool]]) -> _Evaluate:
    def evaluate(sizes: Sizes) -> bool:
        values = [part(sizes) for part in parts]
        return all(test(a, b) for test, a, b in zip(compare, values, values[1:], strict=False))

    return evaluate


def _refuse(node: ast.expr, expr: str) -> NoReturn:
    raise ProgramError(
        f"the assumption {expr!r} uses {ast.unparse(node)!r}, which is outside the language of sizes "
        f"(+ - * / // % **, comparisons, and, or, not, {', '.join(sorted(_CALLS))})"
    )
