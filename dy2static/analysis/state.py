"""What an ``if``, ``while`` or ``for`` hands over: the names that must be shared when its blocks become functions.

STATE of an ``if``: names bound in a branch that are read after it, or in the same branch before being bound.
STATE of a loop: names bound in the body that are read after it, in its test, or by a later iteration.
A name bound inside and read only inside stays local to the block. A name of STATE that may be unbound before the
construct needs a placeholder at the start of the function (or block) that owns it: UNDEFINED.

>>> function = gast.parse('''
... def f(n):
...     while n > 0:
...         step = n // 2
...         if step > 3:
...             last = step
...         n = n - step
...     return n, last
... ''').body[0]
>>> analyse(function)
>>> loop = function.body[0]
>>> facts.get(loop, Fact.STATE), facts.get(loop.body[1], Fact.STATE), facts.get(function, Fact.UNDEFINED)
(('last', 'n'), ('last',), ('last',))
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import gast

from dy2static.analysis import definitions, facts, liveness
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import CONSTRUCTS, convertible
from dy2static.analysis.scope import FUNCTIONS, Scope, bound_in, function_nodes, scope_of
from dy2static.names import is_generated


def analyse(function: gast.AST) -> None:
    """Run all analyses on one function (not on those nested in it) and put STATE and UNDEFINED."""
    scope = scope_of(function)
    facts.put(function, Fact.SCOPE, scope)
    definitions.analyse(function)
    if not isinstance(function.body, list):
        return
    liveness.analyse(function)
    shared: set[str] = set()
    for node in function_nodes(function):
        if isinstance(node, CONSTRUCTS):
            facts.put(node, Fact.CONVERTIBLE, convertible(node))
            if facts.get(node, Fact.CONVERTIBLE):
                state = _state(node, scope)
                shared |= state
                facts.put(node, Fact.STATE, ordered(state))
    undefined = _placeholders(function.body, frozenset(), scope)
    still_bound = bound_in(function.body) | set(scope.parameters)
    reads = {node.id for node in function_nodes(function) if facts.get(node, Fact.UNBOUND)}
    lost = {name for name in scope.locals - still_bound if name in scope.captured}
    undefined |= (reads | lost | (scope.unbound & (shared | reads))) - set(scope.parameters)
    facts.put(function, Fact.UNDEFINED, ordered(undefined))
    facts.put(function, Fact.TRACKED, frozenset(undefined | reads | (shared & scope.locals)))


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """The user's names first, by the alphabet."""
    return tuple(sorted(names, key=lambda name: (is_generated(name), name)))


def _state(node: gast.AST, scope: Scope) -> set[str]:
    after = facts.get(node, Fact.LIVE_OUT)
    if isinstance(node, gast.If):
        state: set[str] = set()
        for block, live in ((node.body, Fact.LIVE_BODY), (node.orelse, Fact.LIVE_ORELSE)):
            bound = bound_in(block)
            state |= bound & (after | facts.get(node, live))
    else:
        bound = bound_in(node.body) | (bound_in([node.target]) if isinstance(node, gast.For) else set())
        head = facts.get(node, Fact.LIVE_IN) if isinstance(node, gast.While) else facts.get(node, Fact.LIVE_BODY)
        state = bound & (after | head)
    return state - scope.globals


def _placeholders(block: list[gast.AST], inherited: frozenset[str], scope: Scope) -> set[str]:
    """Names that need a placeholder at the start of ``block``; ``inherited``: names that an outer function owns."""
    needed: set[str] = set()
    for node in _constructs(block):
        state = facts.get(node, Fact.STATE)
        missing = set(state) & (scope.locals - facts.get(node, Fact.BOUND))
        needed |= missing - inherited
        for body, fact in (("body", Fact.UNDEFINED), ("orelse", Fact.UNDEFINED_ORELSE)):
            inside = getattr(node, body)
            facts.put(node, fact, ordered(_placeholders(inside, frozenset(state), scope)))
    return needed


def _constructs(block: Iterable[gast.AST]) -> Iterator[gast.AST]:
    """The outermost convertible constructs in ``block``."""
    todo = list(block)
    while todo:
        node = todo.pop(0)
        if isinstance(node, CONSTRUCTS) and facts.get(node, Fact.CONVERTIBLE):
            yield node
        elif not isinstance(node, (*FUNCTIONS, gast.ClassDef, gast.expr)):
            todo.extend(gast.iter_child_nodes(node))
