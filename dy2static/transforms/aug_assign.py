"""Augmented assignment: a plain assignment of what the operator returns.

>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(x, g):
...     x += 1
...     x.n *= g(x)
...     g(x)[0] -= x
... ''', annotate, transform))
def f(x, g):
    x = _d2s.aug('+=', x, 1)
    x.n = _d2s.aug('*=', x.n, g(x))
    _d2s_owner_1 = g(x)
    _d2s_owner_1[0] = _d2s.aug('-=', _d2s_owner_1[0], x)

Object and key are evaluated once, before the value, as Python does.
"""

from __future__ import annotations

import copy
from typing import Any

import gast

from dy2static.template import replace, set_context
from dy2static.transforms.base import Context, constant, name_node, operator
from dy2static.transforms.targets import TargetTransformer

_OPERATORS = {
    gast.Add: "+=", gast.Sub: "-=", gast.Mult: "*=", gast.MatMult: "@=", gast.Div: "/=", gast.FloorDiv: "//=",
    gast.Mod: "%=", gast.Pow: "**=", gast.LShift: "<<=", gast.RShift: ">>=", gast.BitAnd: "&=", gast.BitXor: "^=",
    gast.BitOr: "|=",
}  # fmt: skip


def transform(tree: Any, context: Context) -> Any:
    """Replace every augmented assignment."""
    return _AugAssign(context).visit(tree)


class _AugAssign(TargetTransformer):
    def visit_AugAssign(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        before: list[gast.AST] = []
        target = node.target
        if isinstance(target, (gast.Attribute, gast.Subscript)):
            fields = ["value", "slice"] if isinstance(target, gast.Subscript) else ["value"]
            for field in fields:
                part = getattr(target, field)
                if not self.is_stable(part, node.value):
                    name = self.context.namer.fresh("owner" if field == "value" else "key")
                    value = self.as_value(part)
                    before += replace("name = value", name=name, value=value, origin=part)
                    setattr(self.changing(target), field, name_node(name, part))
        read = set_context(copy.deepcopy(target), gast.Load())
        value = operator("aug", constant(_OPERATORS[type(node.op)]), read, node.value, origin=node)
        return [*before, *replace("target = value", target=target, value=value, origin=node)]
