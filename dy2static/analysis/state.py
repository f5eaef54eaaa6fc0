"""What an ``if``, ``while`` or ``for`` hands over: the names that must be shared when its blocks become functions.

STATE of an ``if``: names bound in a branch that are read after it, or in the same branch before being bound.
STATE of a loop: names bound in the body that are read after it, in its test, or by a later iteration.
A name bound inside and read only inside stays local to the block. A name of STATE that nothing but blocks binds needs a
declaration in the function (or block) that owns it: DECLARED.

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
>>> facts.get(loop, Fact.STATE), facts.get(loop.body[1], Fact.STATE), facts.get(function, Fact.DECLARED)
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
    """Run all analyses on one function (not on those nested in it) and put STATE, DECLARED and UNSURE."""
    scope = scope_of(function)
    facts.put(function, Fact.SCOPE, scope)
    definitions.analyse(function)
    if not isinstance(function.body, list):
        return
    liveness.analyse(function)
    result = _note_results(function)
    shared: set[str] = set()
    nodes = list(function_nodes(function))
    for node in nodes:
        if isinstance(node, CONSTRUCTS):
            facts.put(node, Fact.CONVERTIBLE, convertible(node))
            if facts.get(node, Fact.CONVERTIBLE):
                state = _state(node, scope) - {result}
                shared |= state
                facts.put(node, Fact.STATE, ordered(state))
    parameters = set(scope.parameters)
    reads = {node.id for node in nodes if facts.get(node, Fact.UNBOUND)}
    reads = reads.union(*(facts.get(node, Fact.UNBOUND_READS, ()) for node in nodes))
    dropped = (scope.captured | reads) & scope.locals - bound_in(function.body) - parameters
    given = parameters | {node.target.id for node in _direct(function.body) if _is_declaration(node)}
    dropped |= (reads & scope.locals) - _bound_directly(function.body) - given  # else they find another variable
    facts.put(function, Fact.DECLARED, ordered(
        _declared(function.body, given, scope) | dropped | set(facts.get(function, Fact.BOUND_INSIDE, ())) - given))
    unsure = reads | dropped | (_unsure(function.body) & scope.locals) | (scope.unbound & (shared | reads))
    unsure |= (shared | reads) & scope.locals & (scope.deleted | scope.unbound)
    facts.put(function, Fact.UNSURE, frozenset(unsure))


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


def _note_results(function: gast.AST) -> str | None:
    """Put RESULT on the ``if`` statement that a function ends with, and on those that its branches end with, if all
    they do with a value is to note it for the ``return`` behind: then they give it. Returns the value's name."""
    node, last = function.body[-2:] if len(function.body) > 1 else (None, None)
    if not isinstance(last, gast.Return) or not isinstance(last.value, gast.Name):
        return None
    if not isinstance(node, gast.If) or not convertible(node):
        return None
    name: str = last.value.id
    ends = list(_ends(node))
    kept = [end for end in ends if _keeps(end, name)]
    mentions = sum(isinstance(part, gast.Name) and part.id == name for part in function_nodes(function))
    known = is_generated(name) and all(_keeps(end, name) or isinstance(end, gast.Raise) for end in ends)
    if not known or not kept or mentions != len(kept) + 1 or name in scope_of(function).captured:
        return None
    for construct in _last_constructs(node):
        facts.put(construct, Fact.RESULT, name)
    return name


def _last_constructs(node: gast.AST) -> Iterator[gast.AST]:
    """An ``if`` statement and those that its branches end with."""
    yield node
    for block in (node.body, node.orelse):
        if block and isinstance(block[-1], gast.If):
            yield from _last_constructs(block[-1])


def _ends(node: gast.AST) -> Iterator[gast.AST | None]:
    """The last statements of all branches; None for one that is empty."""
    for construct in _last_constructs(node):
        for block in (construct.body, construct.orelse):
            if not block or not isinstance(block[-1], gast.If):
                yield block[-1] if block else None


def _keeps(statement: gast.AST | None, name: str) -> bool:
    """Whether this is ``name = ...``."""
    return isinstance(statement, gast.Assign) and [
        target.id if isinstance(target, gast.Name) else None for target in statement.targets
    ] == [name]


def _unsure(block: Iterable[gast.AST]) -> set[str]:
    """Names that the constructs in ``block`` hand over, and that may be unbound before them."""
    return {name for node in _constructs(block) for name in facts.get(node, Fact.STATE)
            if name not in facts.get(node, Fact.BOUND)}  # fmt: skip


def _declared(block: list[gast.AST], given: set[str], scope: Scope) -> set[str]:
    """Names that constructs in ``block`` hand over to it, and that only they bind; puts those of the blocks in it.
    ``given`` are bound when the block starts.
    """
    direct = given | _bound_directly(block)
    needed: set[str] = set()
    for node in _constructs(block):
        state = set(facts.get(node, Fact.STATE))
        needed |= (state & scope.locals) - direct
        targets = bound_in([node.target]) if isinstance(node, gast.For) else set()
        for body, fact in (("body", Fact.DECLARED), ("orelse", Fact.DECLARED_ORELSE)):
            facts.put(node, fact, ordered(_declared(getattr(node, body), targets, scope) - state))
    return needed


def _is_declaration(node: gast.AST) -> bool:
    return isinstance(node, gast.AnnAssign) and isinstance(node.target, gast.Name)


def _bound_directly(block: Iterable[gast.AST]) -> set[str]:
    """Names that ``block`` binds outside the constructs whose blocks become functions."""
    return bound_in(_direct(block))


def _direct(block: Iterable[gast.AST]) -> Iterator[gast.AST]:
    """The simple statements, targets and expressions in ``block`` that no construct in it takes into its functions."""
    todo = list(block)
    while todo:
        node = todo.pop()
        if isinstance(node, CONSTRUCTS) and facts.get(node, Fact.CONVERTIBLE):
            todo.append(node.iter if isinstance(node, gast.For) else node.test)
        elif isinstance(node, _COMPOUND):
            todo.extend(children(node))
        else:
            yield node


def _constructs(block: Iterable[gast.AST]) -> Iterator[gast.AST]:
    """The outermost convertible constructs in ``block``."""
    todo = list(block)
    while todo:
        node = todo.pop(0)
        if isinstance(node, CONSTRUCTS) and facts.get(node, Fact.CONVERTIBLE):
            yield node
        elif not isinstance(node, (*FUNCTIONS, gast.ClassDef, gast.expr)):
            todo.extend(children(node))
