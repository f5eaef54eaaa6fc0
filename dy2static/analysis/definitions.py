"""Definite assignment: which names are certainly bound where, and which reads may find their name unbound.

>>> function = gast.parse('''
... def f(c):
...     if c:
...         y = 1
...     return y + c
... ''').body[0]
>>> analyse(function)
>>> [node.id for node in gast.walk(function) if facts.get(node, Fact.UNBOUND)]
['y']
"""

from __future__ import annotations

from collections.abc import Iterable

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.scope import COMPREHENSIONS, FUNCTIONS, function_nodes, scope_of, uses

Names = frozenset[str]


def analyse(function: gast.AST) -> None:
    """Put BOUND on every statement in the function's own scope, and UNBOUND on reads that may find nothing."""
    for node in function_nodes(function):
        facts.drop(node, Fact.BOUND)
        facts.drop(node, Fact.UNBOUND)
        facts.drop(node, Fact.UNBOUND_READS)
    scope = scope_of(function)
    definitions = _Definitions(scope.locals, scope.unbound)
    start = frozenset(scope.parameters) - scope.unbound
    if isinstance(function.body, list):
        definitions.block(function.body, start)
    else:
        definitions.expression(function.body, start)


class _Definitions:
    """Names not certainly bound are what matters; a point that is never reached has all names bound."""

    def __init__(self, own: Names, never: Names) -> None:
        self.own = own
        self.everything = own
        self.never = never  # nested functions may delete these at any call
        self.breaks: list[Names] = []
        self.continues: list[Names] = []

    def block(self, body: list[gast.AST], bound: Names) -> Names:
        for statement in body:
            bound = self.statement(statement, bound)
        return bound

    def statement(self, node: gast.AST, bound: Names) -> Names:
        facts.put(node, Fact.BOUND, facts.get(node, Fact.BOUND, self.everything) & bound)
        method = getattr(self, f"_{type(node).__name__}", None)
        after: Names = method(node, bound) if method is not None else self._simple(node, bound)
        return after - self.never

    def _simple(self, node: gast.AST, bound: Names) -> Names:
        for child in gast.iter_child_nodes(node):
            bound = self.expression(child, bound)
        return bound

    # --- expressions, in the order of evaluation

    def expression(self, node: gast.AST | None, bound: Names) -> Names:
        """Check the reads in ``node``; returns ``bound`` with the names it certainly binds."""
        if node is None:
            return bound
        if isinstance(node, gast.Name):
            return self._name(node, bound)
        if isinstance(node, gast.NamedExpr):
            return self.expression(node.value, bound) | self._bind(node.target)
        if isinstance(node, (gast.BoolOp, gast.IfExp, gast.Compare)):
            return self._lazy(node, bound)
        if isinstance(node, COMPREHENSIONS):
            return self._comprehension(node, bound)
        if isinstance(node, gast.Lambda):
            return self._each([*node.args.defaults, *node.args.kw_defaults], bound)
        if isinstance(node, gast.Dict):
            return self._each([part for pair in zip(node.keys, node.values) for part in pair], bound)
        return self._each(gast.iter_child_nodes(node), bound)

    def _each(self, nodes: Iterable[gast.AST | None], bound: Names) -> Names:
        for node in nodes:
            bound = self.expression(node, bound)
        return bound

    def _name(self, node: gast.AST, bound: Names) -> Names:
        missing = (facts.get(node, Fact.READS, frozenset()) & self.own) - bound
        if missing:
            facts.put(node, Fact.UNBOUND_READS, missing | facts.get(node, Fact.UNBOUND_READS, frozenset()))
        if node.id not in self.own:
            return bound
        if isinstance(node.ctx, gast.Store):
            return bound | {node.id}
        if node.id not in bound:
            facts.put(node, Fact.UNBOUND)
        return bound - {node.id} if isinstance(node.ctx, gast.Del) else bound

    def _bind(self, target: gast.AST) -> Names:
        return frozenset({target.id}) & self.own

    def _lazy(self, node: gast.AST, bound: Names) -> Names:
        """The first operand (of a comparison: two) is evaluated always, the others perhaps."""
        if isinstance(node, gast.IfExp):
            bound = self.expression(node.test, bound)
            return self.expression(node.body, bound) & self.expression(node.orelse, bound)
        parts = node.values if isinstance(node, gast.BoolOp) else [node.left, *node.comparators]
        certain = 1 if isinstance(node, gast.BoolOp) else 2
        bound = perhaps = self._each(parts[:certain], bound)
        for part in parts[certain:]:
            perhaps = self.expression(part, perhaps)
        return bound

    def _comprehension(self, node: gast.AST, bound: Names) -> Names:
        bound = self.expression(node.generators[0].iter, bound)
        inside = bound
        targets: set[str] = set()
        for index, generator in enumerate(node.generators):
            targets |= uses(generator.target).writes
            inside |= targets
            parts = [generator.iter if index else None, *generator.ifs]
            inside = self._each(parts, inside)
        self._each([node.key, node.value] if isinstance(node, gast.DictComp) else [node.elt], inside)
        return bound

    # --- simple statements whose order of evaluation is not that of their fields

    def _Assign(self, node: gast.AST, bound: Names) -> Names:
        return self._each(node.targets, self.expression(node.value, bound))

    def _AnnAssign(self, node: gast.AST, bound: Names) -> Names:
        bound = self.expression(node.value, bound)
        if node.value is None and isinstance(node.target, gast.Name):
            return bound
        return self.expression(node.target, bound)

    def _AugAssign(self, node: gast.AST, bound: Names) -> Names:
        if not isinstance(node.target, gast.Name):
            return self._each([node.target, node.value], bound)
        if node.target.id in self.own and node.target.id not in bound:
            facts.put(node.target, Fact.UNBOUND)
        return self.expression(node.value, bound) | self._bind(node.target)

    def _binds_name(self, node: gast.AST, bound: Names) -> Names:
        outside: list[gast.AST | None] = [*node.decorator_list]
        if isinstance(node, FUNCTIONS):
            outside += [*node.args.defaults, *node.args.kw_defaults]
        else:
            outside += [*node.bases, *node.keywords]
            self._class_body(node.body, bound)
        return self._each(outside, bound) | (frozenset({node.name}) & self.own)

    _FunctionDef = _AsyncFunctionDef = _ClassDef = _binds_name

    def _class_body(self, body: list[gast.AST], bound: Names) -> None:
        """Reads there happen at once, of names outside or of the class; the class binds nothing outside."""
        _Definitions(self.own - uses(body).writes, self.never).block(body, bound)

    def _Import(self, node: gast.AST, bound: Names) -> Names:
        return bound | (frozenset(uses(node).writes) & self.own)

    _ImportFrom = _Import

    # --- control flow

    def _If(self, node: gast.AST, bound: Names) -> Names:
        bound = self.expression(node.test, bound)
        return self.block(node.body, bound) & self.block(node.orelse, bound)

    def _loop(self, node: gast.AST, bound: Names, test: gast.AST | None, target: gast.AST | None) -> Names:
        outside = self.breaks, self.continues
        always = isinstance(test, gast.Constant) and bool(test.value)
        head = bound
        while True:
            self.breaks, self.continues = [], []
            tested = self.expression(test, head)
            start = self.expression(target, tested)
            end = self.block(node.body, start).intersection(*self.continues)
            if head <= end:
                break
            head = head & end
        breaks = self.breaks
        self.breaks, self.continues = outside
        finished = self.everything if always else self.block(node.orelse, tested)
        return finished.intersection(*breaks)

    def _While(self, node: gast.AST, bound: Names) -> Names:
        return self._loop(node, bound, node.test, None)

    def _For(self, node: gast.AST, bound: Names) -> Names:
        return self._loop(node, self.expression(node.iter, bound), None, node.target)

    _AsyncFor = _For

    def _Break(self, node: gast.AST, bound: Names) -> Names:
        self.breaks.append(bound)
        return self.everything

    def _Continue(self, node: gast.AST, bound: Names) -> Names:
        self.continues.append(bound)
        return self.everything

    def _leaves(self, node: gast.AST, bound: Names) -> Names:
        self._simple(node, bound)
        return self.everything

    _Return = _Raise = _leaves

    def _With(self, node: gast.AST, bound: Names) -> Names:
        for item in node.items:
            bound = self._each([item.context_expr, item.optional_vars], bound)
        end = self.block(node.body, bound)
        swallowed = bound - uses(node.body).deletes  # the context manager may swallow an exception
        return end & swallowed

    _AsyncWith = _With

    def _Try(self, node: gast.AST, bound: Names) -> Names:
        failed = bound - uses(node.body).deletes
        end = self.block(node.orelse, self.block(node.body, bound))
        for handler in node.handlers:
            start = self.expression(handler.type, failed)
            name = self._bind(handler.name) if handler.name is not None else frozenset()
            end &= self.block(handler.body, start | name) - name
        if node.finalbody:
            inside = uses([*node.body, *node.handlers, *node.orelse])
            self.block(node.finalbody, bound - inside.deletes)
            end = self.block(node.finalbody, end)
            removed = uses(node.finalbody).deletes
            self.breaks = [names - removed for names in self.breaks]
            self.continues = [names - removed for names in self.continues]
        return end

    _TryStar = _Try

    def _Match(self, node: gast.AST, bound: Names) -> Names:
        bound = self.expression(node.subject, bound)
        end = bound  # no case may match
        for case in node.cases:
            names = uses(case.pattern)
            start = self._each([part for part in gast.walk(case.pattern) if isinstance(part, gast.Name)], bound)
            start = self.expression(case.guard, start | (names.writes & self.own))
            end &= self.block(case.body, start)
        return end
