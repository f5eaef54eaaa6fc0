"""Fresh names for generated code: they never collide with a name the user's function can see.

Every generated name starts with `PREFIX` until the last transform (`readable_names`) takes it off again; the operators
module itself is reached through `OPERATORS`.

>>> import gast
>>> namer = Namer(gast.parse("def f(x):\\n    _d2s_break_1 = x"))
>>> namer.fresh("break"), namer.fresh("break"), namer.fresh("if_body")
('_d2s_break_2', '_d2s_break_3', '_d2s_if_body_1')
>>> is_generated("_d2s_break_2"), is_generated("break_2")
(True, False)
"""

from __future__ import annotations

from collections.abc import Iterable

import gast

from dy2static.nodes import walk

OPERATORS = "_d2s"
PREFIX = "_d2s_"


def is_generated(name: str) -> bool:
    """True for a name that only generated code uses; messages to the user leave such names out."""
    return name == OPERATORS or name.startswith(PREFIX)


def identifiers(tree: gast.AST) -> set[str]:
    """Every identifier under ``tree`` except attribute and keyword names: bound, read, declared, imported or captured.

    >>> sorted(identifiers(gast.parse("def f(a, *b):\\n    import c.d as e\\n    return a.g + h(i=1)")))
    ['a', 'b', 'e', 'f', 'h']
    """
    found: set[str] = set()
    for node in walk(tree):
        if isinstance(node, gast.Name):
            found.add(node.id)
        elif isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, (gast.Global, gast.Nonlocal)):
            found.update(node.names)
        elif isinstance(node, gast.alias):
            found.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, (gast.MatchAs, gast.MatchStar, gast.TypeVar, gast.ParamSpec, gast.TypeVarTuple)):
            found.update([node.name] if node.name else [])
        elif isinstance(node, gast.MatchMapping):
            found.update([node.rest] if node.rest else [])
    return found


class Namer:
    """Hands out names that occur nowhere in ``tree`` and not among ``taken`` (globals, closure cells, ...)."""

    def __init__(self, tree: gast.AST, taken: Iterable[str] = ()) -> None:
        self.taken = identifiers(tree) | set(taken)
        self.made: dict[str, None] = {}
        self._counts: dict[str, int] = {}

    def fresh(self, hint: str) -> str:
        """A new name that reads like ``hint``: ``fresh("break")`` is ``"_d2s_break_1"``."""
        count = self._counts.get(hint, 0)
        while True:
            count += 1
            name = f"{PREFIX}{hint}_{count}"
            if name not in self.taken:
                break
        self._counts[hint] = count
        self.taken.add(name)
        self.made[name] = None
        return name
