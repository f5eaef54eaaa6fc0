"""A function with its calls rewritten, and nothing else: for what is left alone otherwise.

    def batches(x):                   def batches(x):
        names = locals()                  names = locals()
        yield from rows(x)                yield from (15158538...).call(rows, x)

Such a function looks at its own variables, yields, or leaves by ``finally``; as plain Python it does so as before, and
what it calls may be Programs. The number stands for the operators, which are put in its place among the constants of
the compiled code: a variable for them would be among those that ``locals()`` gives. So is the class of an object asked
for: what stands for a tensor in a trace has another one.
"""

from __future__ import annotations

import threading
import types
import weakref
from typing import Any

import gast

from dy2static import operators
from dy2static.conversion import bind, compile_tree
from dy2static.errors import ConversionError
from dy2static.operators.calls import functions
from dy2static.source import get_source
from dy2static.template import replace_expr
from runtime import recursion_limit
from runtime.kinds import is_a

_STANDS_FOR = 0xD2_5C_A1_15_0B_7E_C7_ED
"""A number that nobody writes, rather than text: text that stands in text has no quotes left in older Pythons."""
_DIRECT = {"breakpoint", "dir", "eval", "exec", "globals", "locals", "super", "vars"}
_lock = threading.RLock()
_cache: dict[int, tuple[weakref.ref[types.CodeType], Any]] = {}


def calls_rewritten(function: types.FunctionType) -> types.FunctionType | None:
    """The function with rewritten calls; None where it has no source, or names of its own that begin with two
    underscores."""
    code = function.__code__
    with _lock:
        known = _cache.get(id(code))
        if known is None or known[0]() is not code:
            with recursion_limit.room(recursion_limit.CONVERTING):
                made = _made(function)

            def forget(reference: weakref.ref[types.CodeType]) -> None:
                if id(code) in _cache and _cache[id(code)][0] is reference:
                    del _cache[id(code)]

            known = _cache[id(code)] = (weakref.ref(code, forget), made)
    return None if known[1] is None else bind(function, *known[1])


def _made(function: types.FunctionType) -> Any:
    try:
        source = get_source(function)
        if source.class_name is not None and any(map(_is_private, _names(source.tree))):
            return None
        code, file = compile_tree(function, source, _Calls().visit(source.tree))
    except (ConversionError, RecursionError):
        return None
    return _with_operators(code), file


def _names(tree: gast.AST) -> list[str]:
    return [
        name for node in gast.walk(tree) for name in (
            getattr(node, "attr", None), getattr(node, "id", None), getattr(node, "name", None),
            getattr(node, "arg", None),
        ) if is_a(name, str)
    ]  # fmt: skip


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")


class _Calls(gast.NodeTransformer):
    def visit_Call(self, node: Any) -> Any:
        self.generic_visit(node)
        if is_a(node.func, gast.Name) and node.func.id in _DIRECT:
            return node
        return replace_expr(
            "operators.call(args, **keywords)", operators=gast.Constant(_STANDS_FOR, None),
            args=[node.func, *node.args], keywords=node.keywords, origin=node,
        )  # fmt: skip

    def visit_Attribute(self, node: Any) -> Any:
        self.generic_visit(node)
        if node.attr != "__class__" or not is_a(node.ctx, gast.Load):
            return node
        return replace_expr("operators.attr(value, '__class__')", operators=gast.Constant(_STANDS_FOR, None),
                            value=node.value, origin=node)  # fmt: skip


def _with_operators(code: types.CodeType) -> types.CodeType:
    """The code with the operators in place of what stands for them."""
    return code.replace(co_consts=tuple(
        _with_operators(part) if is_a(part, types.CodeType)
        else operators if type(part) is int and part == _STANDS_FOR else part
        for part in code.co_consts
    ))  # fmt: skip


functions.register_calls(calls_rewritten)

__all__ = ["calls_rewritten"]
