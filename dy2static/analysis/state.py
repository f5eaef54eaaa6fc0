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
from dy2static.analysis.flow import CONSTRUCTS, convertible, without_loop_test
from dy2static.analysis.scope import FUNCTIONS, Scope, bound_in, function_nodes, scope_of
from dy2static.names import is_generated
from dy2static.nodes import children

_COMPOUND = (
    gast.If, gast.While, gast.For, gast.With, gast.Try, gast.TryStar, gast.Match, gast.ExceptHandler, gast.match_case,
    gast.withitem,
)  # fmt: skip


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
    undefined = _placeholders(function.body, set(scope.parameters), scope)
    still_bound = bound_in(function.body) | set(scope.parameters)
    reads = {node.id for node in function_nodes(function) if facts.get(node, Fact.UNBOUND)}
    reads = reads.union(*(facts.get(node, Fact.UNBOUND_READS, ()) for node in function_nodes(function)))
    lost = {name for name in scope.locals - still_bound if name in scope.captured}
    undefined = (undefined | reads | lost | (scope.unbound & (shared | reads))) - set(scope.parameters)
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
        if len(without_loop_test(node)) < len(node.body):
            state.add(node.body[-1].test.id)  # it will be read between two runs of the body
    return state - scope.globals


def _placeholders(block: list[gast.AST], given: set[str], scope: Scope, inner: bool = False) -> set[str]:
    """Names that need a placeholder at the start of ``block``: those that a construct in it hands over, and that may
    be unbound before it or are bound in nobody but its functions. ``given`` are bound when the block starts; ``inner``:
    the block becomes a function of its own.
    """
    needed: set[str] = set()
    direct = given | _bound_directly(block)
    sure = _sure(block, given) if inner else {}
    for node in _constructs(block):
        state = set(facts.get(node, Fact.STATE))
        local = state & scope.locals
        needed |= (local - facts.get(node, Fact.BOUND)) | (local - direct)
        if inner:  # what the function bound before the block is another variable than the block's own
            needed |= local - sure[node]
        targets = bound_in([node.target]) if isinstance(node, gast.For) else set()
        for body, fact in (("body", Fact.UNDEFINED), ("orelse", Fact.UNDEFINED_ORELSE)):
            facts.put(node, fact, ordered(_placeholders(getattr(node, body), targets, scope, inner=True) - state))
    return needed


def _sure(block: Iterable[gast.AST], given: set[str]) -> dict[gast.AST, set[str]]:
    """For each of the outermost constructs in ``block``: what plain statements of the block bound before it."""
    bound = set(given)
    found: dict[gast.AST, set[str]] = {}
    for statement in block:
        found.update((node, set(bound)) for node in _constructs([statement]))
        if not isinstance(statement, (*CONSTRUCTS, *_COMPOUND)):
            bound |= bound_in([statement])
    return found


def _bound_directly(block: Iterable[gast.AST]) -> set[str]:
    """Names that ``block`` binds outside the constructs whose blocks become functions."""
    bound: set[str] = set()
    todo = list(block)
    while todo:
        node = todo.pop()
        if isinstance(node, CONSTRUCTS) and facts.get(node, Fact.CONVERTIBLE):
            todo.append(node.iter if isinstance(node, gast.For) else node.test)
        elif isinstance(node, _COMPOUND):
            todo.extend(children(node))
        else:
            bound |= bound_in([node])
    return bound


def _constructs(block: Iterable[gast.AST]) -> Iterator[gast.AST]:
    """The outermost convertible constructs in ``block``."""
    todo = list(block)
    while todo:
        node = todo.pop(0)
        if isinstance(node, CONSTRUCTS) and facts.get(node, Fact.CONVERTIBLE):
            yield node
        elif not isinstance(node, (*FUNCTIONS, gast.ClassDef, gast.expr)):
            todo.extend(children(node))
