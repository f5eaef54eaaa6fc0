"""Names that transforms made become plain words, numbered only where two of them would meet.

>>> from dy2static.transforms import break_stmt, if_stmt, while_stmt
>>> from dy2static.transforms.base import annotate, rewritten
>>> print(rewritten('''
... def f(x, broken):
...     while x > 1:
...         if x == 7:
...             x = -x
...             break
...         x = x - broken
...     return x
... ''', break_stmt.transform, annotate, if_stmt.transform, while_stmt.transform, transform))
def f(x, broken):
    broken_2 = False
    def body():
        def body():
            nonlocal x, broken_2
            x = -x
            broken_2 = True
        def orelse():
            nonlocal x
            x = x - broken
        _d2s.if_stmt(x == 7, body, orelse, 'x broken_2')
    _d2s.while_stmt(lambda: not broken_2 and x > 1, body, 'x broken_2')
    return x

A word that the user's function mentions is never taken. Blocks are used right behind their definition, so that all in
one function may be called ``body``; two other names may be the same where each function that uses one sees its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.scope import COMPREHENSIONS, FUNCTIONS
from dy2static.names import PREFIX
from dy2static.nodes import children, walk
from dy2static.transforms.base import Context, is_operator


def transform(tree: Any, context: Context) -> Any:
    """Rename all of them; Fact.MADE_NAMES says which names are ours."""
    names: dict[str, _Name] = {name: _Name() for name in context.namer.made}
    _Uses(names).visit(tree)
    used = {name: use for name, use in names.items() if use.scopes}
    new = _chosen(used, context.namer.taken - set(context.namer.made))
    _rename(tree, new)
    facts.put(tree, Fact.MADE_NAMES, frozenset(new.values()))
    return tree


Scope = tuple[int, ...]
"""A function by its place: the numbers of the functions around it, outermost first, and its own."""


@dataclass
class _Name:
    """Where a name is mentioned, and which of these scopes bind it."""

    scopes: set[Scope] = field(default_factory=set)
    owners: set[Scope] = field(default_factory=set)
    shared: set[Scope] = field(default_factory=set)
    block: bool = False

    def settle(self) -> None:
        """A scope that declares the name ``nonlocal`` does not own it."""
        self.owners -= self.shared

    def seen(self) -> Iterator[Scope]:
        """The scopes that a lookup of the name passes, from each mention out to the one that binds it."""
        for scope in self.scopes:
            while scope and scope not in self.owners:
                yield scope
                scope = scope[:-1]
            yield scope

    def meets(self, other: _Name) -> bool:
        """Whether somebody would take one for the other if they were called the same."""
        if self.block and other.block:
            return False  # each is used right behind its definition
        return not (other.owners.isdisjoint(self.seen()) and self.owners.isdisjoint(other.seen()))


def _chosen(names: dict[str, _Name], taken: set[str]) -> dict[str, str]:
    """The new name of each, in the order in which they stand in the code."""
    new: dict[str, str] = {}
    users: dict[str, list[_Name]] = {}
    for name, use in names.items():
        use.settle()
        match = re.fullmatch(rf"{PREFIX}(\w+?)_\d+", name)
        word = match[1] if match is not None else name
        number = 1
        while True:
            candidate = word if number == 1 else f"{word}_{number}"
            others = users.setdefault(candidate, [])
            if candidate not in taken and not any(use.meets(other) for other in others):
                break
            number += 1
        others.append(use)
        new[name] = candidate
    return new


_SCOPES = (*FUNCTIONS, gast.ClassDef, *COMPREHENSIONS)


class _Uses:
    """Finds where the names are mentioned and bound."""

    def __init__(self, names: dict[str, _Name]) -> None:
        self.names = names
        self.scope: Scope = ()
        self.count = 0

    def visit(self, node: gast.AST) -> None:
        if isinstance(node, gast.Name):
            self._mention(node.id, binds=not isinstance(node.ctx, gast.Load))
            if node.annotation is None:
                return
        elif isinstance(node, _SCOPES):
            if isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef)):
                self._mention(node.name, binds=True, block=bool(facts.get(node, Fact.BLOCK)))
            self._enter(node)
            return
        elif isinstance(node, gast.Nonlocal):
            for name in node.names:
                self._mention(name, shared=True)
        for child in children(node):
            self.visit(child)

    def _enter(self, node: gast.AST) -> None:
        outside = self.scope
        self.count += 1
        inside = (*outside, self.count)
        for part in children(node):
            self.scope = outside if part in _evaluated_outside(node) else inside
            self.visit(part)
        self.scope = outside

    def _mention(self, name: str, binds: bool = False, shared: bool = False, block: bool = False) -> None:
        use = self.names.get(name)
        if use is None:
            return
        use.scopes.add(self.scope)
        use.block = use.block or block
        if binds:
            use.owners.add(self.scope)
        if shared:
            use.shared.add(self.scope)


def _evaluated_outside(node: gast.AST) -> list[gast.AST]:
    return list(getattr(node, "decorator_list", ()))


def _rename(tree: gast.AST, new: dict[str, str]) -> None:
    """Give the names their new words, in the texts of operators' calls, too."""
    for node in walk(tree):
        if isinstance(node, gast.Name):
            node.id = new.get(node.id, node.id)
        elif isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef)):
            node.name = new.get(node.name, node.name)
        elif isinstance(node, gast.Nonlocal):
            node.names = [new.get(name, name) for name in node.names]
        elif isinstance(node, gast.Call) and is_operator(node.func):
            for arg in node.args:
                if isinstance(arg, gast.Constant) and isinstance(arg.value, str) and PREFIX in arg.value:
                    arg.value = " ".join(new.get(name, name) for name in arg.value.split(" "))
