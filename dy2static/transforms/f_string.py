"""f-strings: formatting goes through operators, so that a staged value can be part of it.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x, w):
...     return f"x = {x!r:>{w}} {x}"
... ''', transform))
def f(x, w):
    return _d2s.fstring('x = ', _d2s.format_value(x, 'r', _d2s.fstring('>', _d2s.format_value(w))), ' ', _d2s.format_value(x))
"""  # noqa: E501 # the line that the example prints

from __future__ import annotations

from typing import Any

import gast

from dy2static.transforms.base import Context, Transformer, constant, operator


def transform(tree: Any, context: Context) -> Any:
    """Replace every f-string."""
    return _FString(context).visit(tree)


class _FString(Transformer):
    class_bodies = True

    def visit_JoinedStr(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if all(isinstance(value, gast.Constant) for value in node.values):
            return gast.copy_location(constant("".join(value.value for value in node.values)), node)
        return operator("fstring", *node.values, origin=node)

    def visit_FormattedValue(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        options: list[Any] = []
        if node.conversion != -1 or node.format_spec is not None:
            options.append(constant(chr(node.conversion) if node.conversion != -1 else ""))
        if node.format_spec is not None:
            options.append(node.format_spec)
        return operator("format_value", node.value, *options, origin=node)
