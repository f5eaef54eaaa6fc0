"""Python's trees as gast's, and back: what ``gast.ast_to_gast`` and ``gast.gast_to_ast`` do, in a third of the time.

>>> tree = ast.parse("def f(x: int, *, y=1): return x[y]")
>>> isinstance(to_gast(tree).body[0].args.args[0], gast.Name)
True
>>> ast.dump(to_ast(to_gast(tree))) == ast.dump(tree)
True
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import gast

PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
_Rule = Callable[[Any], Any]


def to_gast(node: Any) -> Any:
    """A gast tree of Python's. Nothing is shared with ``node``."""
    rule = _TO_GAST.get(type(node))
    return rule(node) if rule is not None else _ruled(_TO_GAST, node, gast)(node)


def to_ast(node: Any) -> Any:
    """A tree of Python's from gast's. Nothing is shared with ``node``."""
    rule = _TO_AST.get(type(node))
    return rule(node) if rule is not None else _ruled(_TO_AST, node, ast)(node)


def _ruled(rules: dict[type, _Rule], node: Any, to: Any) -> _Rule:
    kind: Any = type(node)
    convert = to_gast if to is gast else to_ast
    target = getattr(to, kind.__name__)
    if kind.__name__ in _RARE:  # what they hold differs between the versions of Python
        rule = gast.ast_to_gast if to is gast else gast.gast_to_ast
    elif not kind._fields and not kind._attributes:
        rule = _constantly(target())
    else:
        rule = _rule(target, kind._fields, bool(kind._attributes), convert)
    rules[kind] = rule
    return rule


_RARE = {"TypeVar", "ParamSpec", "TypeVarTuple"}


def _constantly(value: Any) -> _Rule:
    return lambda node: value


def _rule(target: Any, fields: tuple[str, ...], placed: bool, convert: _Rule) -> _Rule:
    """Makes a node of ``target`` with the same fields."""
    new, node_kind = target.__new__, ast.AST

    def rule(node: Any) -> Any:
        result = new(target)
        old, values = node.__dict__, result.__dict__
        for name in fields:
            if name in old:
                value = old[name]
                if isinstance(value, node_kind):
                    value = convert(value)
                elif type(value) is list:
                    value = [convert(item) if isinstance(item, node_kind) else item for item in value]
                values[name] = value
        if placed:
            _place(values, old)
        return result

    return rule


def _place(values: dict[str, Any], old: dict[str, Any]) -> None:
    for name in PLACE:
        if name in old:
            values[name] = old[name]


def _made(target: Any, old: Any, **values: Any) -> Any:
    result = target.__new__(target)
    result.__dict__.update(values)
    _place(result.__dict__, old.__dict__)
    return result


def _each(values: list[Any], convert: _Rule) -> list[Any]:
    return [None if value is None else convert(value) for value in values]


# --- from Python's


def _name(node: Any) -> Any:
    return _made(gast.Name, node, id=node.id, ctx=to_gast(node.ctx), annotation=None, type_comment=None)


def _arg(node: Any) -> Any:
    annotation = None if node.annotation is None else to_gast(node.annotation)
    return _made(gast.Name, node, id=node.arg, ctx=gast.Param(), annotation=annotation, type_comment=node.type_comment)


def _handler(node: Any) -> Any:
    name = node.name and gast.Name(node.name, gast.Store(), None, None)
    kind = None if node.type is None else to_gast(node.type)
    return _made(gast.ExceptHandler, node, type=kind, name=name, body=_each(node.body, to_gast))


def _with_type_params(target: Any) -> _Rule:
    plain = _rule(target, target._fields, True, to_gast)

    def rule(node: Any) -> Any:
        result = plain(node)
        result.__dict__.setdefault("type_params", [])
        return result

    return rule


_TO_GAST: dict[type, _Rule] = {
    ast.Name: _name, ast.arg: _arg, ast.ExceptHandler: _handler,
    **{getattr(ast, kind.__name__): _with_type_params(kind)
       for kind in (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)},
}  # fmt: skip


# --- to Python's


def _plain_name(node: Any) -> Any:
    return _made(ast.Name, node, id=node.id, ctx=to_ast(node.ctx))


def _plain_arg(node: Any) -> Any:
    annotation = None if node.annotation is None else to_ast(node.annotation)
    return _made(ast.arg, node, arg=node.id, annotation=annotation, type_comment=node.type_comment)


def _plain_arguments(node: Any) -> Any:
    result = ast.arguments.__new__(ast.arguments)
    result.__dict__.update(
        {name: _each(getattr(node, name), _plain_arg) for name in ("posonlyargs", "args", "kwonlyargs")},
        vararg=node.vararg and _plain_arg(node.vararg), kwarg=node.kwarg and _plain_arg(node.kwarg),
        kw_defaults=_each(node.kw_defaults, to_ast), defaults=_each(node.defaults, to_ast),
    )  # fmt: skip
    return result


def _plain_handler(node: Any) -> Any:
    kind = None if node.type is None else to_ast(node.type)
    return _made(ast.ExceptHandler, node, type=kind, name=node.name and node.name.id, body=_each(node.body, to_ast))


_TO_AST: dict[type, _Rule] = {
    gast.Name: _plain_name, gast.arguments: _plain_arguments, gast.ExceptHandler: _plain_handler,
    **{kind: _rule(getattr(ast, kind.__name__), getattr(ast, kind.__name__)._fields, True, to_ast)
       for kind in (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)},
}  # fmt: skip


__all__ = ["to_ast", "to_gast"]
