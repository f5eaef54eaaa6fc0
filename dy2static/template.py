"""Quoted Python with holes: the way new code is made.

A hole is any name in the template that is also a keyword argument. What may fill it:

- a ``str``: renames the identifier wherever it stands (name, function, argument, attribute, keyword, ``nonlocal``;
  never the ``f`` of ``_d2s.f``),
- an expression node: replaces the name (its ``ctx`` is set from the place it lands in),
- a list of statements: replaces the statement that consists of the name alone,
- a list of expressions or ``str``: spliced into the call arguments, tuple, list or ``nonlocal`` that holds the name;
  a ``nonlocal`` or ``global`` left without names disappears.

>>> from dy2static.generate import to_source
>>> body = gast.parse("y = 1").body
>>> test = gast.parse("x > 0", mode="eval").body
>>> new = replace('''
... def branch():
...     nonlocal names
...     body
... _d2s.if_stmt(test, branch, (values,))
... ''', branch="_d2s_if_body_1", names=["y", "z"], body=body, test=test, values=[gast.Constant("y", None)])
>>> print(to_source(gast.Module(new, [])), end="")
def _d2s_if_body_1():
    nonlocal y, z
    y = 1
<BLANKLINE>
<BLANKLINE>
_d2s.if_stmt(x > 0, _d2s_if_body_1, ('y',))
"""

from __future__ import annotations

import copy
import textwrap
from functools import lru_cache
from typing import Any

import gast

from dy2static.names import OPERATORS
from dy2static.nodes import inner_fields
from dy2static.origin import copy_origin, strip_origin

Hole = Any  # a str, a gast node, or a list of both (gast is untyped)


@lru_cache(maxsize=512)
def _parse(template: str) -> gast.AST:
    return strip_origin(gast.parse(textwrap.dedent(template)))


def replace(template: str, *, origin: gast.AST | None = None, **holes: Hole) -> list[gast.AST]:
    """The statements of ``template`` with its holes filled; new nodes take their place in the source from ``origin``.

    Raises ValueError when a hole does not occur in the template, or its filling does not fit where it stands.
    """
    filler = _Filler(holes, template)
    tree = _copied(_parse(template))
    statements = filler.statements(tree.body)
    unused = set(holes) - filler.used
    if unused:
        raise ValueError(f"holes {sorted(unused)} do not occur in the template {template!r}")
    if origin is not None:
        for statement in statements:
            copy_origin(statement, origin)
    return statements


def _copied(node: Any) -> Any:
    """A copy of a template's tree; many times faster than ``copy.deepcopy``, which asks for more than trees have."""
    if isinstance(node, list):
        return [_copied(item) for item in node]
    if not isinstance(node, gast.AST):
        return node
    kind: Any = type(node)
    if not kind._fields and not kind._attributes:  # a context, an operator
        return node
    new = kind.__new__(kind)
    new.__dict__.update({name: _copied(value) for name, value in node.__dict__.items()})
    return new


def replace_expr(template: str, *, origin: gast.AST | None = None, **holes: Hole) -> gast.AST:
    """The expression quoted by ``template`` with its holes filled.

    >>> gast.unparse(replace_expr("_d2s.not_(value)", value=gast.parse("a < b", mode="eval").body))
    '_d2s.not_(a < b)'
    """
    statements = replace(template, origin=origin, **holes)
    if len(statements) != 1 or not isinstance(statements[0], gast.Expr):
        raise ValueError(f"not one expression: {template!r}")
    return statements[0].value


class _Filler:
    def __init__(self, holes: dict[str, Hole], template: str) -> None:
        self.holes = holes
        self.template = template
        self.used: set[str] = set()
        self._placed: set[int] = set()

    def visit(self, node: gast.AST) -> Any:
        method = _methods.get(type(node))
        if method is None:
            method = _methods[type(node)] = getattr(type(self), f"visit_{type(node).__name__}", _Filler.generic_visit)
        return method(self, node)

    def generic_visit(self, node: gast.AST) -> gast.AST:
        values = node.__dict__
        for name in inner_fields[type(node)]:
            old = values.get(name)
            if type(old) is list:
                new: list[Any] = []
                for item in old:
                    filled = self.visit(item) if isinstance(item, gast.AST) else item
                    if type(filled) is list:
                        new += filled
                    elif filled is not None or item is None:
                        new.append(filled)
                values[name] = new
            elif isinstance(old, gast.AST):
                values[name] = self.visit(old)
        return node

    def statements(self, body: list[gast.AST]) -> list[gast.AST]:
        result: list[gast.AST] = []
        for statement in body:
            new = self.visit(statement)
            result.extend(new if isinstance(new, list) else [] if new is None else [new])
        return result

    def _take(self, name: str) -> Hole:
        self.used.add(name)
        return self.holes[name]

    def _once(self, node: gast.AST) -> gast.AST:
        """A node stands in one place of a tree: the second use is a copy."""
        if id(node) in self._placed:
            return copy.deepcopy(node)
        self._placed.add(id(node))
        return node

    def _identifier(self, name: str) -> str:
        if name not in self.holes:
            return name
        value = self._take(name)
        if isinstance(value, gast.Name):
            return str(value.id)
        if not isinstance(value, str):
            raise ValueError(f"hole {name!r} stands for an identifier in {self.template!r}, got {type(value).__name__}")
        return value

    def _list(self, items: list[Any]) -> list[Any]:
        """Fill the items of an argument or element list; a list hole is spliced."""
        result: list[Any] = []
        for item in items:
            if isinstance(item, gast.Name) and item.id in self.holes:
                value = self.holes[item.id]
                if not isinstance(value, (str, gast.AST)):
                    self._take(item.id)
                    result.extend(self._element(part, item.ctx) for part in value)
                    continue
            result.append(self.visit(item))
        return result

    def _element(self, part: gast.AST | str, ctx: gast.AST) -> gast.AST:
        if isinstance(part, str):
            return gast.Name(part, ctx, None, None)
        part = self._once(part)
        return part if isinstance(ctx, gast.Param) else set_context(part, ctx)

    def visit_Expr(self, node: gast.AST) -> Any:
        if isinstance(node.value, gast.Name) and node.value.id in self.holes:
            value = self.holes[node.value.id]
            if not isinstance(value, (str, gast.AST)):
                self._take(node.value.id)
                return [self._once(statement) for statement in value if isinstance(statement, gast.AST)]
            if isinstance(value, gast.stmt):
                self._take(node.value.id)
                return self._once(value)
        return self.generic_visit(node)

    def visit_Name(self, node: gast.AST) -> gast.AST:
        if node.id not in self.holes:
            return self.generic_visit(node)
        value = self._take(node.id)
        if isinstance(value, str):
            node.id = value
            return self.generic_visit(node)
        if not isinstance(value, gast.AST):
            raise ValueError(f"hole {node.id!r} takes one expression in {self.template!r}, got a list")
        return self._element(value, node.ctx)

    def visit_FunctionDef(self, node: gast.AST) -> gast.AST:
        node.name = self._identifier(node.name)
        self.generic_visit(node)
        if not node.body:
            node.body = [gast.Pass()]
        return node

    def visit_arguments(self, node: gast.AST) -> gast.AST:
        node.args = self._list(node.args)
        node.posonlyargs = self._list(node.posonlyargs)
        node.kwonlyargs = self._list(node.kwonlyargs)
        for field in ("vararg", "kwarg"):
            if getattr(node, field) is not None:
                setattr(node, field, self.visit(getattr(node, field)))
        node.defaults = self._list(node.defaults)
        node.kw_defaults = [None if default is None else self.visit(default) for default in node.kw_defaults]
        return node

    def visit_Call(self, node: gast.AST) -> gast.AST:
        node.func = self.visit(node.func)
        node.args = self._list(node.args)
        keywords: list[gast.AST] = []
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg is None and isinstance(value, gast.Name) and isinstance(self.holes.get(value.id), list):
                keywords.extend(self._once(part) for part in self._take(value.id))
            else:
                keywords.append(self.visit(keyword))
        node.keywords = keywords
        return node

    def _visit_elements(self, node: gast.AST) -> gast.AST:
        node.elts = self._list(node.elts)
        return node

    visit_Tuple = visit_List = visit_Set = _visit_elements

    def visit_Attribute(self, node: gast.AST) -> gast.AST:
        is_operator = isinstance(node.value, gast.Name) and node.value.id == OPERATORS
        if not is_operator and isinstance(self.holes.get(node.attr), str):
            node.attr = self._identifier(node.attr)
        return self.generic_visit(node)

    def visit_keyword(self, node: gast.AST) -> gast.AST:
        if node.arg is not None and isinstance(self.holes.get(node.arg), str):
            node.arg = self._identifier(node.arg)
        return self.generic_visit(node)

    def _visit_declaration(self, node: gast.AST) -> gast.AST | None:
        names: list[str] = []
        for name in node.names:
            value = self.holes.get(name)
            if value is None or isinstance(value, (str, gast.AST)):
                names.append(self._identifier(name))
            else:
                self._take(name)
                names.extend(part if isinstance(part, str) else part.id for part in value)
        node.names = names
        return node if names else None

    visit_Global = visit_Nonlocal = _visit_declaration


_methods: dict[type, Any] = {}


def set_context(node: gast.AST, ctx: gast.AST) -> gast.AST:
    """Make ``node`` a load, store or delete, through nested tuples, lists and stars; returns the node.

    >>> set_context(gast.parse("[a, *b.c]", mode="eval").body, gast.Store()).elts[1].value.ctx.__class__.__name__
    'Store'
    """
    if isinstance(node, (gast.Name, gast.Attribute, gast.Subscript, gast.Starred, gast.Tuple, gast.List)):
        node.ctx = type(ctx)()
    if isinstance(node, gast.Starred):
        set_context(node.value, ctx)
    elif isinstance(node, (gast.Tuple, gast.List)):
        for element in node.elts:
            set_context(element, ctx)
    return node
