"""Where control goes: whether a block always leaves, and whether a construct can be taken apart at all."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import gast

from dy2static.analysis.scope import FUNCTIONS, function_nodes, own_nodes, scope_of
from dy2static.nodes import children

LOOPS = (gast.While, gast.For, gast.AsyncFor)
CONSTRUCTS = (gast.If, gast.While, gast.For)
YIELDS = (gast.Yield, gast.YieldFrom)
_FRAME_READERS = {"locals": 0, "vars": 0, "dir": 0, "eval": 99, "exec": 99}
"""Builtins that look at the caller's frame, when called with at most so many arguments."""


def leaves(block: list[gast.AST]) -> bool:
    """Whether the end of ``block`` is never reached: it returns, raises, breaks or continues on every path.

    >>> [leaves(gast.parse(f"def f():\\n for i in x:\\n  {text}").body[0].body[0].body) for text in (
    ...     "return 1", "a = 1", "raise E; b", "break", "if c: return\\n  else: raise E", "if c: return",
    ...     "while True: pass", "while True: break", "with a: return", "try: return\\n  finally: pass")]
    [True, False, True, True, True, False, True, False, False, True]
    """
    return any(_leaves(statement) for statement in block)


def _leaves(statement: gast.AST) -> bool:
    if isinstance(statement, (gast.Return, gast.Raise, gast.Break, gast.Continue)):
        return True
    if isinstance(statement, gast.If):
        return leaves(statement.body) and leaves(statement.orelse)
    if isinstance(statement, gast.While):
        always = isinstance(statement.test, gast.Constant) and bool(statement.test.value)
        return always and not any(isinstance(node, gast.Break) for node in loop_level(statement.body))
    if isinstance(statement, (gast.Try, gast.TryStar)):
        if leaves(statement.finalbody):
            return True
        normal = leaves(statement.body) or leaves(statement.orelse)
        return normal and all(leaves(handler.body) for handler in statement.handlers)
    if isinstance(statement, gast.Match):
        last = statement.cases[-1]
        return _irrefutable(last) and all(leaves(case.body) for case in statement.cases)
    return False


def _irrefutable(case: gast.AST) -> bool:
    patterns = case.pattern.patterns if isinstance(case.pattern, gast.MatchOr) else [case.pattern]
    last = patterns[-1]
    while isinstance(last, gast.MatchAs) and last.pattern is not None:
        last = last.pattern
    return case.guard is None and isinstance(last, gast.MatchAs)


def loop_level(block: Iterable[gast.AST]) -> Iterator[gast.AST]:
    """The nodes of a loop's body where ``break`` and ``continue`` belong to this loop."""
    todo = list(block)
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, LOOPS):
            todo.extend(node.orelse)
        elif not isinstance(node, (*FUNCTIONS, gast.ClassDef, gast.expr)):
            todo.extend(children(node))


def convertible(construct: gast.AST) -> bool:
    """Whether the blocks of an If, While or For can become functions: nothing in them leaves the construct."""
    if any(isinstance(node, (gast.Return, *YIELDS)) for node in own_nodes(construct)):
        return False
    if isinstance(construct, gast.If):
        inside = loop_level([*construct.body, *construct.orelse])
        return not any(isinstance(node, (gast.Break, gast.Continue)) for node in inside)
    if construct.orelse:
        return False
    return not any(isinstance(node, (gast.Break, gast.Continue)) for node in loop_level(without_loop_test(construct)))


def without_loop_test(loop: gast.AST) -> list[gast.AST]:
    """The body of a loop but for the statement that only leaves it (see Fact.LOOP_TEST)."""
    from dy2static.analysis import facts

    body: list[gast.AST] = loop.body
    return body[:-1] if body and facts.get(body[-1], facts.Fact.LOOP_TEST) else body


def left_alone(function: gast.AST) -> str:
    """Why the control flow of ``function`` is not converted; the empty string if it is.

    >>> left_alone(gast.parse("def f(): return g((yield 1))").body[0])
    'it is a generator that yields inside an expression'
    >>> left_alone(gast.parse("def f(): return [locals() for i in (1, 2)]").body[0])
    'it calls locals(), which looks at its variables'
    """
    if isinstance(function, gast.AsyncFunctionDef):
        return "it is a coroutine"
    own = scope_of(function).locals
    nodes = list(function_nodes(function))
    whole = {id(node.value) for node in nodes if isinstance(node, (gast.Expr, gast.Assign))}
    for node in nodes:
        if isinstance(node, YIELDS) and id(node) not in whole:
            return "it is a generator that yields inside an expression"
        if isinstance(node, (gast.Await, gast.AsyncFor, gast.AsyncWith)):
            return "it is a coroutine"
        if isinstance(node, gast.Call) and isinstance(node.func, gast.Name) and node.func.id not in own:
            limit = _FRAME_READERS.get(node.func.id)
            if asks_for_variables(node) and variables_written_out(function):
                continue
            if limit is not None and len(node.args) + len(node.keywords) <= limit:
                return f"it calls {node.func.id}(), {LOOKS_AT_VARIABLES}"
        if isinstance(node, (gast.Try, gast.TryStar)) and leaves_finally(node):
            inside = [*node.body, *node.orelse, *(part for handler in node.handlers for part in handler.body)]
            if jumps_out(inside) or is_generator(function):
                return LEAVING_FINALLY
    return ""


def asks_for_variables(call: gast.AST) -> bool:
    """Whether a call, by its text, gives the variables of the function that it stands in."""
    named = isinstance(call, gast.Call) and isinstance(call.func, gast.Name) and call.func.id in ("locals", "vars")
    return named and not call.args and not call.keywords


def variables_written_out(function: gast.AST) -> bool:
    """Whether ``locals()`` in a function can be given as a new dict: it stands there once, as Python before 3.13 gives
    the same one each time, or the others are only read where they stand, before it; in no comprehension, which has
    variables of its own, and beside no ``super()``.

    >>> [variables_written_out(gast.parse(f"def f(x):\\n {text}").body[0]) for text in (
    ...     "return locals()", "return [locals() for i in x]", "return locals(), locals()", "yield locals()",
    ...     "return locals()['x'], 'y' in locals(), g(**locals()), sorted(vars())")]
    [True, False, False, False, True]
    """
    if not isinstance(function, gast.FunctionDef) or is_generator(function):
        return False
    inside = [part for node in function_nodes(function) if isinstance(node, _COMPREHENSIONS) for part in _inner(node)]
    own = scope_of(function).locals
    named = {node.id for node in function_nodes(function) if isinstance(node, gast.Name)}
    if not named.isdisjoint(("super", "__class__")):  # its class is one of the variables, too
        return False
    found = [node for node in function_nodes(function) if asks_for_variables(node) and node.func.id not in own]
    if not found or any(call is part for call in found for part in inside):
        return False
    at_once = set(_read_at_once(function))
    kept = [call for call in found if id(call) not in at_once]
    if len(found) == 1 or not kept:
        return True
    loops = any(isinstance(node, (gast.For, gast.While)) for node in function_nodes(function))
    last = max(found, key=lambda call: (call.lineno, call.col_offset))
    return kept == [last] and not loops  # none comes after it


_COPYING = frozenset(("bool", "dict", "len", "list", "set", "sorted", "str", "tuple"))
"""Functions that keep nothing of a dict that they are given."""


def _read_at_once(function: gast.AST) -> Iterator[int]:
    """The expressions, by ``id``, whose value nobody has any more where the next one begins, if it is a dict."""
    for node in function_nodes(function):
        if isinstance(node, gast.Subscript) and isinstance(node.ctx, gast.Load):
            yield id(node.value)
        elif isinstance(node, gast.Compare) and all(isinstance(op, (gast.In, gast.NotIn)) for op in node.ops):
            yield id(node.comparators[-1])
        elif isinstance(node, gast.Call):
            yield from (id(keyword.value) for keyword in node.keywords if keyword.arg is None)
            if isinstance(node.func, gast.Name) and node.func.id in _COPYING:
                yield from map(id, node.args)
            if isinstance(node.func, gast.Attribute) and node.func.attr in ("copy", "get"):
                yield id(node.func.value)


def _inner(comprehension: gast.AST) -> Iterator[gast.AST]:
    """What is evaluated in the comprehension, rather than where it stands: all but the first iterable."""
    outside = {id(node) for node in own_nodes(comprehension.generators[0].iter)}
    return (node for node in own_nodes(comprehension) if id(node) not in outside)


_COMPREHENSIONS = (gast.ListComp, gast.SetComp, gast.DictComp, gast.GeneratorExp)


def is_generator(function: gast.AST) -> bool:
    """Whether calling ``function`` gives a generator."""
    return any(isinstance(node, YIELDS) for node in function_nodes(function))


LOOKS_AT_VARIABLES = "which looks at its variables"
LEAVING_FINALLY = "both a try block and its finally block leave by break, continue or return"
"""Such a finally swallows every exception, those of the tracer too."""


def leaves_finally(node: gast.AST) -> bool:
    """Whether a ``try`` statement's ``finally`` leaves by ``break``, ``continue`` or ``return``."""
    return jumps_out(node.finalbody)


def jumps_out(block: list[gast.AST]) -> bool:
    """Whether statements leave by ``return``, or by a ``break`` or ``continue`` of a loop around them."""
    if any(isinstance(node, gast.Return) for node in own_nodes(block)):
        return True
    return any(isinstance(node, (gast.Break, gast.Continue)) for node in loop_level(block))
