"""A long chain of ``elif`` is cut into pieces: every branch becomes a nested function, and Python limits nesting.

>>> from dy2static.transforms.base import rewritten
>>> chain = "".join(f" elif n == {i}: r = {i}\\n" for i in range(1, 40))
>>> print(rewritten(f"def f(n):\\n if n == 0: r = 0\\n{chain} else: r = n\\n", transform).split("r = 39\\n")[1])
        else:
            _d2s_matched_1 = False
    if not _d2s_matched_1:
        r = n

Each piece of at most twenty conditions says whether one of them was true; if none was, the next piece runs.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer

_LONGEST = 20


def transform(tree: Any, context: Context) -> Any:
    """Cut chains of more than twenty conditions."""
    return _ElifChain(context).visit(tree)


class _ElifChain(Transformer):
    expressions = False

    def visit_If(self, node: gast.AST) -> Any:
        links = [node]
        while len(links[-1].orelse) == 1 and isinstance(links[-1].orelse[0], gast.If):
            links.append(links[-1].orelse[0])
        last = links[-1]
        last.orelse = self.block(last.orelse)
        for link in links:
            link.test = self.visit(link.test)
            link.body = self.block(link.body)
        if len(links) <= _LONGEST:
            return node
        flag = self.context.namer.fresh("matched")
        result = replace("flag = True", flag=flag, origin=node)
        for start in range(0, len(links), _LONGEST):
            piece = links[start : start + _LONGEST]
            rest, piece[-1].orelse = piece[-1].orelse, replace("flag = False", flag=flag, origin=piece[-1])
            result += piece[:1] if start == 0 else self._next(flag, piece[0])
        return [*result, *(replace("if not flag:\n    rest", flag=flag, rest=rest, origin=last) if rest else [])]

    def _next(self, flag: str, piece: gast.AST) -> list[gast.AST]:
        return replace("if not flag:\n    flag = True\n    piece", flag=flag, piece=[piece], origin=piece)
