"""Liveness: whose value is still read. Backward over the statements of one function.

Loops are iterated until nothing changes; inside a ``try`` any point may jump to the handlers; names that nested
functions share are live everywhere.

>>> function = gast.parse('''
... def f(n):
...     while n:
...         a = n
...         b = a
...         n = n - 1
...     return b
... ''').body[0]
>>> analyse(function)
>>> loop = function.body[0]
>>> [sorted(facts.get(loop, fact)) for fact in (Fact.LIVE_IN, Fact.LIVE_OUT, Fact.LIVE_BODY)]
[['b', 'n'], ['b'], ['n']]
"""

from __future__ import annotations

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import loop_level
from dy2static.analysis.scope import Scope, own_nodes, scope_of, uses

Names = frozenset[str]
_NONE: Names = frozenset()


def analyse(function: gast.AST) -> None:
    """Put LIVE_IN and LIVE_OUT on every statement in the function's own scope, LIVE_BODY/LIVE_ORELSE on constructs."""
    if isinstance(function.body, list):
        _Liveness(scope_of(function)).function(function.body)


class _Liveness:
    def __init__(self, scope: Scope) -> None:
        self.always: Names = scope.captured | scope.rebound | scope.unbound | scope.nonlocals
        self.on_return: Names = self.always
        self.on_break: Names = _NONE
        self.on_continue: Names = _NONE
        self.on_error: Names = self.always

    def function(self, body: list[gast.AST]) -> None:
        self.block(body, self.always)

    def block(self, body: list[gast.AST], after: Names) -> Names:
        """Names live at the start of ``body``, given those live after it."""
        for statement in reversed(body):
            after = self.statement(statement, after)
        return after

    def statement(self, node: gast.AST, after: Names) -> Names:
        after = after | self.on_error
        facts.put(node, Fact.LIVE_OUT, after)
        visitor = getattr(self, f"_{type(node).__name__}", None)
        before = visitor(node, after) if visitor is not None else self._simple(node, after)
        before = before | self.on_error
        facts.put(node, Fact.LIVE_IN, before)
        return before

    def _simple(self, node: gast.AST, after: Names) -> Names:
        names = uses(node)
        if isinstance(node, gast.ClassDef):
            certain = {node.name}
        else:  # a walrus may stand where it is not always evaluated
            certain = names.writes - {part.target.id for part in own_nodes(node) if isinstance(part, gast.NamedExpr)}
        return (after - certain) | names.reads

    def _reads(self, *nodes: gast.AST | None) -> Names:
        return frozenset().union(*(uses(node).reads for node in nodes if node is not None))

    def _leaving(self, node: gast.AST, target: Names) -> Names:
        return self._reads(node) | target

    def _Return(self, node: gast.AST, after: Names) -> Names:
        return self._leaving(node, self.on_return)

    def _Raise(self, node: gast.AST, after: Names) -> Names:
        return self._leaving(node, self.on_error)

    def _Break(self, node: gast.AST, after: Names) -> Names:
        flag = facts.get(node, Fact.BREAK_FLAG)
        return self.on_break if flag is None else self.on_break | {flag}

    def _Continue(self, node: gast.AST, after: Names) -> Names:
        return self.on_continue

    def _If(self, node: gast.AST, after: Names) -> Names:
        body = self.block(node.body, after)
        orelse = self.block(node.orelse, after)
        facts.put(node, Fact.LIVE_BODY, body)
        facts.put(node, Fact.LIVE_ORELSE, orelse)
        return self._reads(node.test) | body | orelse

    def _loop(self, node: gast.AST, after: Names, each: Names, target: gast.AST | None) -> Names:
        outside = self.on_break, self.on_continue
        bound = uses(target).writes if target is not None else set()
        finished = self.block(node.orelse, after)
        breaks = (part for part in loop_level(node.body) if isinstance(part, gast.Break))
        each |= {facts.get(part, Fact.BREAK_FLAG) for part in breaks} - {None}  # it will become a test
        head = each | finished
        while True:
            self.on_break, self.on_continue = after, head
            body = self.block(node.body, head)
            again = each | finished | (body - bound) | self._reads(target) | self.on_error
            if again <= head:
                break
            head = head | again
        self.on_break, self.on_continue = outside
        facts.put(node, Fact.LIVE_BODY, body - bound)
        return head

    def _While(self, node: gast.AST, after: Names) -> Names:
        return self._loop(node, after, self._reads(node.test), None)

    def _For(self, node: gast.AST, after: Names) -> Names:
        return self._loop(node, after, _NONE, node.target) | self._reads(node.iter)

    _AsyncFor = _For

    def _With(self, node: gast.AST, after: Names) -> Names:
        outside = self.on_error
        self.on_error = outside | after  # an exception in the body may be swallowed
        before = self.block(node.body, after)
        self.on_error = outside
        for item in reversed(node.items):
            before = (before - (uses(item.optional_vars).writes if item.optional_vars else set())) | after
            before = before | self._reads(item.context_expr, item.optional_vars)
        return before

    _AsyncWith = _With

    def _Try(self, node: gast.AST, after: Names) -> Names:
        outside = self.on_return, self.on_break, self.on_continue, self.on_error
        if node.finalbody:
            final = self.block(node.finalbody, after.union(*outside))
            self.on_return = self.on_break = self.on_continue = self.on_error = final
            after = final
        handlers = _NONE
        for handler in node.handlers:
            name = {handler.name.id} if handler.name is not None else set()
            handlers |= (self.block(handler.body, after) - name) | self._reads(handler.type)
        orelse = self.block(node.orelse, after)
        self.on_error = self.on_error | handlers
        before = self.block(node.body, orelse)
        self.on_return, self.on_break, self.on_continue, self.on_error = outside
        return before

    _TryStar = _Try

    def _Match(self, node: gast.AST, after: Names) -> Names:
        before = after
        for case in node.cases:
            bound = uses(case.pattern)
            body = self.block(case.body, after) | self._reads(case.guard)
            before = before | (body - bound.writes) | bound.reads
        return before | self._reads(node.subject)
