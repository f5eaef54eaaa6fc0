"""A tree (gast or ast) -> Python source that parses back to exactly this tree.

>>> import gast
>>> print(to_source(gast.parse("def f(x, /, *, y=1):\\n  match x:\\n    case [1, *_]: return (y := 2)")), end="")
def f(x, /, *, y=1):
    match x:
        case [1, *_]:
            return (y := 2)
"""

from __future__ import annotations

import ast
import copy
import itertools
import math
import sys
from collections.abc import Callable
from typing import Any

from dy2static.both_trees import to_ast, to_gast
from dy2static.generate_literals import Unprintable
from dy2static.generate_nodes import Precedence, SourceGenerator, set_precedence
from dy2static.nodes import inner_fields
from runtime.errors import ConversionError

INDENT = "    "


def to_source(tree: Any) -> str:
    """The source of ``tree``. Raises ConversionError where the result would not parse back to the same tree."""
    return generate(tree)[0]


def generate(tree: Any) -> tuple[str, ast.AST, ast.AST]:
    """``(text, plain, parsed)``: the source, the tree as plain ast in canonical form, and the tree parsed from
    the source. Both trees are equal but for the places: ``plain`` keeps those of ``tree``.

    Python's parser takes no source whose parentheses are nested more than 200 deep, though a compiler takes the tree:
    a chain of a hundred methods becomes that. Such a tree is not held against its text, and has places of its own.
    """
    plain = canonical(tree)
    text = _print(plain)
    mode = "eval" if isinstance(plain, ast.Expression) else "exec"
    try:
        parsed: ast.AST = ast.parse(text, mode=mode)
    except (SyntaxError, ValueError, MemoryError) as error:
        if isinstance(error, MemoryError) or "nested" in str(error):
            return text, plain, _numbered(plain)
        raise _unfaithful(f"{error} in\n{text}") from error
    if sys.version_info[:2] == (3, 12):  # its parser leaves empty parts in f-strings
        parsed = _Canonical().visit(parsed)
    if not isinstance(plain, ast.mod):
        parsed = parsed.body[0]  # type: ignore[attr-defined] # parsing in exec mode gives a Module
        if isinstance(plain, ast.expr):
            parsed = parsed.value  # type: ignore[attr-defined] # an expression parses as one Expr
    if not same_tree(plain, parsed):
        raise _unfaithful(f"{first_difference(plain, parsed)}\n{text}")
    return text, plain, parsed


def _numbered(tree: ast.AST) -> ast.AST:
    """A copy in which every statement has a line of its own, and every expression of it a column."""
    result = copy.deepcopy(tree)
    lines, column = itertools.count(1), itertools.count()
    todo = [(result, 1, column)]
    while todo:
        node, line, column = todo.pop()
        if isinstance(node, (ast.stmt, ast.ExceptHandler)):
            line, column = next(lines), itertools.count()
        if "lineno" in node._attributes:
            place = next(column)
            node.lineno = node.end_lineno = line  # type: ignore[attr-defined]
            node.col_offset, node.end_col_offset = place, place + 1  # type: ignore[attr-defined]
        todo.extend((child, line, column) for child in ast.iter_child_nodes(node))
    return result


def _unfaithful(detail: str) -> ConversionError:
    return ConversionError(
        f"the generated source does not stand for its tree: {detail}",
        hint="This is a fault of the converter. Exclude the function with not_to_static until it is mended.",
        code="D2S120",
    )


def _print(tree: ast.AST) -> str:
    generator = SourceGenerator(INDENT)
    if isinstance(tree, ast.expr):
        set_precedence(Precedence.Expr, tree)
    try:
        generator.visit(tree)
    except Unprintable as error:
        raise _unfaithful("an f-string has no form in this version of Python") from error
    return "".join(generator.result).strip("\n") + "\n"


def canonical(tree: Any) -> Any:
    """A copy of ``tree`` as plain ast, in the one form that parsing gives (places are kept).

    >>> import gast
    >>> ast.dump(canonical(gast.Constant(-2, None)))
    'UnaryOp(op=USub(), operand=Constant(value=2))'
    """
    # plain ast becomes gast's as well, because printing marks the nodes
    plain = to_ast(tree if _is_gast(tree) else to_gast(tree))
    return _Canonical().visit(plain)


def _is_gast(tree: Any) -> bool:
    return type(tree).__module__.startswith("gast")


class _Canonical:
    """Rewrites what a hand-made tree may hold and parsed text never does, from the leaves up."""

    def visit(self, node: Any) -> Any:
        for name in inner_fields[type(node)]:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                setattr(node, name, self.visit(value))
            elif value and isinstance(value, list):
                setattr(node, name, [self.visit(one) if isinstance(one, ast.AST) else one for one in value])
            elif name == "body" and value == [] and not isinstance(node, ast.mod):
                node.body = [_at(ast.Pass(), node)]
        rewrite = _REWRITES.get(type(node))
        return node if rewrite is None else rewrite(self, node)

    def constant(self, node: ast.Constant) -> Any:
        value: Any = node.value
        if isinstance(value, (tuple, frozenset)):
            parts = [self.visit(_at(ast.Constant(part), node)) for part in value]
            if isinstance(value, tuple):
                return _at(ast.Tuple(parts, ast.Load()), node)
            name = _at(ast.Name("frozenset", ast.Load()), node)
            return _at(ast.Call(name, [_at(ast.Set(parts), node)] if parts else [], []), node)
        if isinstance(value, complex) and repr(value) != repr(complex(0, abs(value.imag))):
            return self._complex(value, node)
        if isinstance(value, float) and math.isnan(value):
            left, right = (_at(ast.Constant(math.inf), node) for _ in range(2))
            return _at(ast.BinOp(left, ast.Sub(), right), node)
        if (isinstance(value, float) and math.copysign(1, value) < 0) or (type(value) is int and value < 0):
            return _at(ast.UnaryOp(ast.USub(), _at(ast.Constant(-value), node)), node)
        return node

    def _complex(self, value: complex, node: ast.AST) -> ast.AST:
        """``a + bj`` or ``a - bj``, whichever gives exactly this number: signs of zeros matter."""
        imaginary = complex(0, abs(value.imag))
        for operator, result in ((ast.Add(), value.real + imaginary), (ast.Sub(), value.real - imaginary)):
            if repr(result) == repr(value):
                real = self.visit(_at(ast.Constant(value.real), node))
                return _at(ast.BinOp(real, operator, _at(ast.Constant(imaginary), node)), node)
        raise _unfaithful(f"{value!r} has no literal form")

    def set_display(self, node: ast.Set) -> ast.AST:
        if not node.elts:
            empty = _at(ast.Tuple([], ast.Load()), node)
            node.elts = [_at(ast.Starred(empty, ast.Load()), node)]
        return node

    def f_string(self, node: ast.JoinedStr) -> ast.AST:
        values: list[ast.expr] = []
        for value in node.values:
            if isinstance(value, ast.Constant):
                if values and isinstance(values[-1], ast.Constant):
                    merged = str(values[-1].value) + str(value.value)
                    values[-1] = _at(ast.Constant(merged), values[-1])
                    continue
                if not value.value:
                    continue
                value.kind = None
            values.append(value)
        node.values = values
        return node

    def module(self, node: ast.Module) -> ast.AST:
        node.type_ignores = []
        return node


_REWRITES: dict[type, Callable[[_Canonical, Any], Any]] = {
    ast.Constant: _Canonical.constant,
    ast.Set: _Canonical.set_display,
    ast.JoinedStr: _Canonical.f_string,
    ast.Module: _Canonical.module,
}


def _at(new: Any, old: ast.AST) -> Any:
    for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
        if hasattr(old, name):
            setattr(new, name, getattr(old, name))
    return new


_UNCOMPARED = {"ctx", "type_comment", "type_ignores"}


class _Compared(dict[Any, tuple[str, ...]]):
    def __missing__(self, kind: Any) -> tuple[str, ...]:
        found = self[kind] = tuple(name for name in kind._fields if name not in _UNCOMPARED)
        return found


_compared = _Compared()
"""By class of nodes: the fields in which two nodes are compared."""


def same_tree(left: Any, right: Any) -> bool:
    """Whether two trees are equal, but for their places."""
    kind = type(left)
    if kind is not type(right):
        return False
    a, b = left.__dict__, right.__dict__
    for name in _compared[kind]:
        x, y = a.get(name), b.get(name)
        if x is y:
            continue
        if isinstance(x, ast.AST):
            if not same_tree(x, y):
                return False
        elif type(x) is list:
            if type(y) is not list or len(x) != len(y):
                return False
            for one, other in zip(x, y):
                if isinstance(one, ast.AST):
                    if not same_tree(one, other):
                        return False
                elif type(one) is not type(other) or one != other:
                    return False
        elif type(x) is not type(y) or not repr_equal(x, y):
            return False
    return True


def first_difference(left: Any, right: Any) -> str:
    """Where two trees differ, as a path and both values; the empty string if they are equal."""
    todo: list[tuple[Any, Any, str]] = [(left, right, "")]
    while todo:
        a, b, path = todo.pop()
        if isinstance(a, ast.AST) and type(a) is type(b):
            fields = [name for name in a._fields if name not in _UNCOMPARED]
            todo.extend((getattr(a, n, None), getattr(b, n, None), f"{path}.{n}") for n in fields)
        elif isinstance(a, list) and isinstance(b, list) and len(a) == len(b):
            todo.extend((x, y, f"{path}[{i}]") for i, (x, y) in enumerate(zip(a, b)))
        elif type(a) is not type(b) or not (a is b or repr_equal(a, b)):
            return f"at {path}: {_short(a)} became {_short(b)}"
    return ""


def repr_equal(a: Any, b: Any) -> bool:
    """Equality that tells 0.0 from -0.0 and accepts nan."""
    return bool(a == b) and (not isinstance(a, (float, complex)) or repr(a) == repr(b))


def _short(value: Any) -> str:
    text = ast.dump(value) if isinstance(value, ast.AST) else repr(value)
    return text if len(text) < 200 else text[:200] + "..."
