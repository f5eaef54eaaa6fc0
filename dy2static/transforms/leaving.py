"""Shared by ``return``, ``break`` and ``continue``: taking a leaving statement out of a block.

Structure before flags. What follows an ``if`` whose body always leaves moves into its other branch; only where
neither branch always leaves does a flag guard what follows.

    if a: <leave>         if a: <replacement>         if a:                   if a:
    rest             ->   else: rest                      if b: <leave>   ->      if b: flag = True
                                                      rest                    if not flag: rest
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import gast

from dy2static.analysis.flow import LOOPS, leaves, loop_level
from dy2static.nodes import children
from dy2static.template import replace

_DEEPEST = 20
"""Python cannot nest blocks without limit: from here on, flags instead of nesting."""


@dataclass
class Leaving:
    """Takes all statements of type ``kind`` out of a block.

    ``replacement`` gives what stands in their place. ``flag`` is set there as well: "always", "never", or if it is
    "needed" to guard what follows (``guarded`` tells afterwards). ``loop`` lowers a loop that holds some (for
    ``return``; others stop at loops).
    """

    kind: type[gast.AST]
    flag: str
    replacement: Callable[[gast.AST], list[gast.AST]]
    loop: Callable[[gast.AST], None] | None = None
    sets: str = "needed"
    guarded: bool = False
    _flags: set[int] = field(default_factory=set)
    _kept: list[gast.AST] = field(default_factory=list)

    def lower(self, body: list[gast.AST]) -> list[gast.AST]:
        """The block without leaving statements."""
        result = self._block(body, 0)
        return result if self.guarded or self.sets != "needed" else without(result, self._flags)

    def holds(self, statement: gast.AST) -> bool:
        """Whether ``statement`` contains some that belong to this block."""
        todo = [statement]
        while todo:
            node = todo.pop()
            if isinstance(node, self.kind):
                return True
            if isinstance(node, LOOPS) and self.loop is None:
                todo.extend(node.orelse)
            elif not isinstance(node, (gast.FunctionDef, gast.AsyncFunctionDef, gast.ClassDef, gast.expr)):
                todo.extend(children(node))
        return False

    def _block(self, body: list[gast.AST], depth: int) -> list[gast.AST]:
        result: list[gast.AST] = []
        for index, statement in enumerate(body):
            if isinstance(statement, self.kind):
                return result + self._leave(statement)
            if not self.holds(statement):
                result.append(statement)
                if leaves([statement]):
                    return result  # the rest is never reached
                continue
            rest = body[index + 1 :]
            if isinstance(statement, gast.If):
                rest, depth = self._move(statement, rest, depth)
                statement.body = self._block(statement.body, depth)
                statement.orelse = self._block(statement.orelse, depth)
                result.append(tidy(statement))
            else:
                self._inside(statement, depth)
                result.append(statement)
            return result + self._guard(rest, depth, statement)
        return result

    def _leave(self, statement: gast.AST) -> list[gast.AST]:
        if self.sets == "never":
            return self.replacement(statement)
        (flag,) = replace("flag = True", flag=self.flag, origin=statement)
        self._flags.add(id(flag))
        self._kept.append(flag)  # so that its id stays its own
        return [*self.replacement(statement), flag]

    def _move(self, node: gast.AST, rest: list[gast.AST], depth: int) -> tuple[list[gast.AST], int]:
        """Move ``rest`` into the branch that goes on, if one always leaves; returns what is left to guard."""
        if leaves(node.body) and leaves(node.orelse):
            return [], depth
        if not rest or depth >= _DEEPEST:
            return rest, depth
        if leaves(node.body):
            node.orelse = node.orelse + rest
            return [], depth + 1
        if leaves(node.orelse):
            node.body = node.body + rest
            return [], depth + 1
        return rest, depth

    def _guard(self, rest: list[gast.AST], depth: int, origin: gast.AST) -> list[gast.AST]:
        if not rest:
            return []
        self.guarded = True
        parts = [rest] if depth < _DEEPEST else [[statement] for statement in rest]
        result: list[gast.AST] = []
        for part in parts:
            (guarded,) = replace("if not flag:\n    pass", flag=self.flag, origin=part[0])
            guarded.body = filled(self._block(part, depth + 1), part[0])
            result.append(guarded)
        return result

    def _inside(self, node: gast.AST, depth: int) -> None:
        """Lower the blocks of a compound statement other than ``if``."""
        if isinstance(node, LOOPS):
            if self.loop is not None:
                self.guarded = True
                self.loop(node)
            node.orelse = self._block(node.orelse, depth)
            return
        if isinstance(node, (gast.Try, gast.TryStar)):
            if node.orelse and any(self.holds(statement) for statement in node.body):
                node.orelse = self._guard(node.orelse, depth, node)
            else:
                node.orelse = self._block(node.orelse, depth)
            for handler in node.handlers:
                handler.body = filled(self._block(handler.body, depth), handler)
        if isinstance(node, gast.Match):
            for case in node.cases:
                case.body = filled(self._block(case.body, depth), node)
            return
        node.body = filled(self._block(node.body, depth), node)


def filled(body: list[gast.AST], origin: gast.AST) -> list[gast.AST]:
    """A block must not be empty."""
    return body or replace("pass", origin=origin)


def tidy(node: gast.AST) -> gast.AST:
    """An ``if`` without body: turned around."""
    if not node.body and node.orelse:
        (new,) = replace("if not test:\n    body", test=node.test, body=node.orelse, origin=node)
        return new
    node.body = filled(node.body, node)
    return node


def breaks_in(loop: gast.AST) -> list[gast.AST]:
    """The ``break`` statements that leave this loop."""
    return [node for node in loop_level(loop.body) if isinstance(node, gast.Break)]


def without(body: list[gast.AST], dropped: set[int]) -> list[gast.AST]:
    """``body`` without the statements in ``dropped`` (by identity), at any depth."""

    class Drop(gast.NodeTransformer):
        def visit(self, node: gast.AST) -> gast.AST | None:
            if id(node) in dropped:
                return None
            if isinstance(node, gast.expr):
                return node
            self.generic_visit(node)
            if isinstance(node, gast.If):
                return tidy(node)
            if isinstance(node, gast.stmt) and getattr(node, "body", None) == []:
                node.body = filled([], node)
            if isinstance(node, (gast.ExceptHandler, gast.match_case)) and not node.body:
                node.body = filled([], node)
            return node

    drop = Drop()
    return [new for new in (drop.visit(node) for node in body) if new is not None]
