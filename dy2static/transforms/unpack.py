"""Unpacking goes through an operator: the length of what is unpacked may only be known while the Program runs.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(xs, g):
...     a, b = xs
...     a, *b = c = g()
...     (a, b), c = g()
...     a, b = b, a
... ''', transform))
def f(xs, g):
    a, b = _d2s.unpack(xs, 2)
    _d2s_value_1 = g()
    a, b = _d2s.unpack(_d2s_value_1, 1, 0)
    c = _d2s_value_1
    _d2s_value_2, c = _d2s.unpack(g(), 2)
    a, b = _d2s.unpack(_d2s_value_2, 2)
    a, b = b, a

The operator is told how many targets there are; with a starred one, how many before and after it.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer, constant, name_node, operator


def transform(tree: Any, context: Context) -> Any:
    """Replace what is unpacked by assignments and ``with`` statements."""
    return _Unpack(context).visit(tree)


class _Unpack(Transformer):
    expressions = False

    def visit_Assign(self, node: gast.AST) -> Any:
        if not any(isinstance(target, (gast.Tuple, gast.List)) for target in node.targets):
            return node
        if len(node.targets) == 1:
            return node if _fits(node.targets[0], node.value) else self._assign(node.targets[0], node.value)
        value = self.context.namer.fresh("value")
        result = replace("name = value", name=value, value=node.value, origin=node)
        for target in node.targets:
            result += self._assign(target, name_node(value, node))
        return result

    def visit_With(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        start: list[gast.AST] = []
        for item in node.items if len(node.items) == 1 else []:
            if isinstance(item.optional_vars, (gast.Tuple, gast.List)):
                value = self.context.namer.fresh("value")
                start = self._assign(item.optional_vars, name_node(value, node))
                self.changing(item).optional_vars = gast.copy_location(gast.Name(value, gast.Store(), None, None), node)
        node.body = [*start, *node.body]
        return node

    def _assign(self, target: Any, value: Any) -> list[gast.AST]:
        if not isinstance(target, (gast.Tuple, gast.List)):
            return replace("target = value", target=target, value=value, origin=target)
        parts: list[gast.AST] = []
        after: list[gast.AST] = []
        stars = [index for index, element in enumerate(target.elts) if isinstance(element, gast.Starred)]
        for element in target.elts:
            part = element.value if isinstance(element, gast.Starred) else element
            if isinstance(part, (gast.Tuple, gast.List)):
                name = self.context.namer.fresh("value")
                after += self._assign(part, name_node(name, part))
                part = name_node(name, part)
            parts.append(part)
        count = len(parts)
        counts = [stars[0], count - stars[0] - 1] if stars else [count]
        given = operator("unpack", value, *map(constant, counts), origin=target)
        targets = gast.copy_location(type(target)(parts, gast.Store()), target)
        return [*replace("targets = value", targets=targets, value=given, origin=target), *after]


def _fits(target: Any, value: gast.AST) -> bool:
    """Whether a display of as many items is assigned to plain targets."""
    parts = (gast.Tuple, gast.List, gast.Starred)
    return (
        isinstance(value, (gast.Tuple, gast.List)) and len(value.elts) == len(target.elts)
        and not any(isinstance(element, gast.Starred) for element in value.elts)
        and not any(isinstance(element, parts) for element in target.elts)
    )  # fmt: skip
