"""A ``raise`` under a condition, caught in the same function: the handlers move to where it stands.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(x):
...     try:
...         if x > 0:
...             raise ValueError(x)
...         y = g(x)
...     except ValueError as e:
...         y = e
... ''', transform))
def f(x):
    _d2s_attempt_1 = _d2s.attempt()
    try:
        if x > 0:
            try:
                raise ValueError(x)
            except ValueError as e:
                with _d2s.handling(_d2s_attempt_1):
                    y = e
        else:
            y = g(x)
    except ValueError as e:
        _d2s.outside(_d2s_attempt_1, e)
        y = e

So the exception never leaves the path that a tensor decides, and what follows it in the body runs on the other one.
What a handler raises itself passes by the handlers around it. An ``assert`` that a handler may catch becomes such a
``raise``. Those inside an inner ``with`` or ``try`` stay: leaving these has effects of its own.

Where a handler names IndexError, so does what a subscript, ``pop`` or ``popleft`` raises; where it names
ZeroDivisionError, a division; where it names ValueError, ``index``, ``remove``, ``int``, ``float``, ``chr`` and some
functions of ``math``. An operator asks before it whether the item is there, or the divisor is 0, where only the run
knows (see ``operators.builtins.lookup``):

>>> print(rewritten('''
... def f(d):
...     try:
...         y = d[2]
...     except IndexError:
...         y = 0
... ''', transform))
def f(d):
    _d2s_attempt_1 = _d2s.attempt()
    try:
        if _d2s.lacks(d, 2, 'get'):
            try:
                raise _d2s.lookup_error(d, 2, 'get')
            except IndexError:
                with _d2s.handling(_d2s_attempt_1):
                    y = 0
        else:
            _d2s.holds(d, 2, 'get')
            y = d[2]
    except IndexError as _d2s_error_1:
        _d2s.outside(_d2s_attempt_1, _d2s_error_1)
        y = 0
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Iterator
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import LOOPS, loop_level
from dy2static.analysis.scope import FUNCTIONS
from dy2static.names import Namer
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer
from dy2static.transforms.fault_sites import (
    CALL,
    DIVISIONS,
    SEARCHES,
    SIMPLE,
    Site,
    first_site,
    is_fixed,
    looks_up,
    named,
)
from dy2static.transforms.leaving import Leaving, filled

_HINT = ("container", "key")
_HINTS = {CALL: ("argument", "function")} | dict.fromkeys(DIVISIONS, ("dividend", "divisor"))
_MOST = 8
"""Raises in one ``try``: each gets a copy of the handlers."""


class _Jump(gast.Raise):
    """A ``raise`` that the ``try`` at hand may catch."""


def transform(tree: Any, context: Context) -> Any:
    """Move handlers to the raises they catch."""
    return _CaughtRaise(context).visit(tree)


class _CaughtRaise(Transformer):
    expressions = False

    def visit_Try(self, node: gast.AST) -> Any:
        self.generic_visit(node)
        if not node.handlers:
            return node
        body = _Mark(node.handlers, self.context.namer).block(node.body)
        jumps = [part for statement in body for part in _walk(statement) if isinstance(part, _Jump)]
        if not jumps or len(jumps) > _MOST or (leaves_loop(node.handlers) and any(map(_jumps_in_loop, body))):
            return node
        return self._lower(node, body)

    def _lower(self, node: gast.AST, body: list[gast.AST]) -> list[gast.AST]:
        attempt, flag = self.context.namer.fresh("attempt"), self.context.namer.fresh("raised")

        def handled(jump: gast.AST) -> list[gast.AST]:
            error = gast.copy_location(gast.Raise(jump.exc, jump.cause), jump)
            handlers = copy.deepcopy(node.handlers)
            for handler in handlers:
                handler.body = replace("with _d2s.handling(attempt):\n    body", attempt=attempt, body=handler.body,
                                       origin=handler)
            return [gast.copy_location(gast.Try([error], handlers, [], []), jump)]

        def leave_loop(loop: gast.AST) -> None:
            _InLoop(handled, flag).body(loop)

        leaving = Leaving(_Jump, flag, handled, leave_loop, sets="always" if node.orelse else "needed")
        original = copy.deepcopy(node.handlers)
        node.body = filled(leaving.lower(body), node)
        if node.orelse:
            node.orelse = replace("if not flag:\n    rest", flag=flag, rest=node.orelse, origin=node.orelse[0])
        node.handlers = original
        for handler in node.handlers:
            self._let_pass(handler, attempt)
        facts.put(node, Fact.ATTEMPT, attempt)
        before = replace("attempt = _d2s.attempt()", attempt=attempt, origin=node)
        if node.orelse or leaving.guarded:
            before += replace("flag = False", flag=flag, origin=node)
        return [*before, node]

    def _let_pass(self, handler: gast.AST, attempt: str) -> None:
        if handler.type is None:
            handler.type = gast.copy_location(gast.Name("BaseException", gast.Load(), None, None), handler)
        if handler.name is None:
            name = self.context.namer.fresh("error")
            handler.name = gast.copy_location(gast.Name(name, gast.Store(), None, None), handler)
        handler.body = [
            *replace("_d2s.outside(attempt, error)", attempt=attempt, error=handler.name.id, origin=handler),
            *handler.body,
        ]


class _Mark(gast.NodeTransformer):
    """Copies a body, with a _Jump for every ``raise`` (and ``assert``) under a condition that a handler may catch."""

    def __init__(self, handlers: list[gast.AST], namer: Namer) -> None:
        self.handlers = handlers
        self.namer = namer
        self.conditions = 0
        self.kinds = named(handlers)

    def block(self, body: list[gast.AST]) -> list[gast.AST]:
        """The new statements."""
        found = []
        for statement in copy.deepcopy(body):
            new = self.visit(statement)
            found += new if isinstance(new, list) else [new]
        return found

    def visit(self, node: gast.AST) -> Any:
        if isinstance(node, (gast.expr, *FUNCTIONS, gast.ClassDef, gast.With, gast.AsyncWith, gast.Try, gast.TryStar)):
            return node
        if self.kinds and isinstance(node, SIMPLE):
            return self._simple(node)
        if isinstance(node, gast.Assert) and _may_catch(self.handlers, "AssertionError"):
            return self._assertion(node)
        if isinstance(node, gast.Raise):
            if not self.conditions or node.exc is None or not _may_catch(self.handlers, _name(node.exc)):
                return node
            return gast.copy_location(_Jump(node.exc, node.cause), node)
        conditional = isinstance(node, (gast.If, gast.Match, *LOOPS))
        self.conditions += conditional
        self.generic_visit(node)
        self.conditions -= conditional
        return node

    def _simple(self, node: gast.AST) -> list[gast.AST]:
        """A statement behind tests of what it looks up and divides by."""
        if isinstance(node, gast.Assign) and len(node.targets) == 1 and looks_up(node.targets[0], self.kinds):
            before: list[gast.AST] = []
            node.value = self._kept(node.value, "value", before, node)
            return [*(part for one in before for part in self._simple(one)), *self._tested(node)]
        return self._tested(node)

    def _tested(self, node: gast.AST) -> list[gast.AST]:
        site = first_site(node, self.kinds)
        if site is None:
            return [node]
        before: list[gast.AST] = []
        asked = self._operands(site, before, node)
        for kind in site.tests or (site.kind,):
            holes: dict[str, Any] = copy.deepcopy({
                "first": asked[0], "kind": gast.Constant(kind, None),
                "second": asked[1] if len(asked) > 1 else gast.Constant(None, None),
            })  # fmt: skip
            (test,) = replace("if _d2s.lacks(first, second, kind):\n    raise _d2s.lookup_error(first, second, kind)",
                              origin=node, **copy.deepcopy(holes))  # fmt: skip
            test.body[0] = gast.copy_location(_Jump(test.body[0].exc, None), node)
            before += [test, *replace("_d2s.holds(first, second, kind)", origin=node, **holes)]
        if site.whole is None:  # the statement does it
            return [*before, node]
        name = self.namer.fresh("item")
        rest = _Replaced(site.whole, gast.copy_location(gast.Name(name, gast.Load(), None, None), site.whole)).visit(
            copy.copy(node))  # fmt: skip
        after = self._tested(rest)
        if len(after) == 1:
            return [*before, _Renamed(name, site.whole).visit(rest)]
        return [*before, *replace("name = value", name=name, value=site.whole, origin=node), *after]

    def _operands(self, site: Site, before: list[gast.AST], node: gast.AST) -> list[gast.AST]:
        """Names or constants for what a place reads, which are evaluated before the statement."""
        for operand in site.earlier:
            operand.set(self._kept(operand.get(), "value", before, node, site.calls))
        found: list[gast.AST] = []
        for position, operand in enumerate(site.operands):
            value = operand.get()
            if site.kind == CALL and not position:
                value = gast.copy_location(replace_expr(
                    "_d2s.number_for(value, function)", value=value, function=site.operands[1].get()), value)
            elif position and not isinstance(value, gast.Constant) and site.kind not in {CALL} | DIVISIONS | SEARCHES:
                index = replace_expr("_d2s.position(container, key)", container=copy.deepcopy(found[0]), key=value)
                value = gast.copy_location(index, value)
            later = site.calls and position + 1 < len(site.operands)
            value = self._kept(value, _HINTS.get(site.kind, _HINT)[position], before, node, later)
            if not isinstance(getattr(value, "ctx", None), gast.Store):
                operand.set(value)
            read = copy.deepcopy(value)
            if isinstance(read, gast.Name):
                read.ctx = gast.Load()
            found.append(read)
        return found

    def _kept(
        self, value: gast.AST, hint: str, before: list[gast.AST], origin: gast.AST, changes: bool = False
    ) -> gast.AST:
        """A name or constant for an expression, which is evaluated before the statement; one of our own where what
        comes then may bind (``changes``) a name of the user's anew."""
        if is_fixed(value) and not (changes and isinstance(getattr(value, "ctx", None), gast.Load)):
            return value
        name = self.namer.fresh(hint)
        before += replace("name = value", name=name, value=value, origin=origin)
        return gast.copy_location(gast.Name(name, gast.Load(), None, None), value)

    def _assertion(self, node: gast.AST) -> list[gast.AST]:
        message = [node.msg] if node.msg is not None else []
        (new,) = replace(
            "if not test:\n    raise _d2s.AssertionError(message)", test=node.test, message=message, origin=node
        )
        if not message:
            new.body[0].exc = new.body[0].exc.func
        new.body[0] = gast.copy_location(_Jump(new.body[0].exc, None), new.body[0])
        return [new]


class _Replaced(gast.NodeTransformer):
    """Puts one node in another's place."""

    def __init__(self, old: gast.AST, new: gast.AST) -> None:
        self._old, self._new = old, new

    def visit(self, node: gast.AST) -> Any:
        return self._new if node is self._old else self.generic_visit(node)


class _Renamed(gast.NodeTransformer):
    """Puts an expression in a name's place."""

    def __init__(self, name: str, new: gast.AST) -> None:
        self._name, self._new = name, new

    def visit_Name(self, node: gast.AST) -> Any:
        return self._new if node.id == self._name else node


class _InLoop(gast.NodeTransformer):
    """Inside a loop, a jump sets the flag and breaks; so does every loop around it."""

    def __init__(self, keep: Any, flag: str) -> None:
        self.keep = keep
        self.flag = flag

    def body(self, node: gast.AST) -> None:
        """Lower the loop's body."""
        new = [self.visit(statement) for statement in node.body]
        node.body = [part for item in new for part in (item if isinstance(item, list) else [item])]

    def visit(self, node: gast.AST) -> Any:
        if isinstance(node, _Jump):
            return [*self.keep(node), *replace("flag = True\nbreak", flag=self.flag, origin=node)]
        if isinstance(node, (gast.expr, *FUNCTIONS, gast.ClassDef)):
            return node
        if isinstance(node, LOOPS) and any(isinstance(part, _Jump) for part in _walk(node)):
            self.generic_visit(node)
            return [node, *replace("if flag:\n    break", flag=self.flag, origin=node)]
        return self.generic_visit(node)


def _walk(node: gast.AST) -> Iterator[gast.AST]:
    yield node
    if not isinstance(node, (gast.expr, *FUNCTIONS, gast.ClassDef)):
        for child in gast.iter_child_nodes(node):
            yield from _walk(child)


def _jumps_in_loop(node: gast.AST) -> bool:
    return any(
        isinstance(part, LOOPS) and any(isinstance(inner, _Jump) for inner in _walk(part)) for part in _walk(node)
    )


def leaves_loop(handlers: list[gast.AST]) -> bool:
    """Whether a handler breaks or continues a loop around the ``try``: inside another loop that would be another."""
    return any(
        isinstance(node, (gast.Break, gast.Continue)) for handler in handlers for node in loop_level(handler.body)
    )


def _name(error: gast.AST) -> str:
    target = error.func if isinstance(error, gast.Call) else error
    return target.id if isinstance(target, gast.Name) else ""


def _may_catch(handlers: list[gast.AST], name: str) -> bool:
    """Whether a handler may catch an exception of this name; yes unless both are builtin and it does not."""
    raised = getattr(builtins, name, None) if name else None
    for handler in handlers:
        types = handler.type.elts if isinstance(handler.type, gast.Tuple) else [handler.type]
        for one in types:
            caught = getattr(builtins, one.id, None) if isinstance(one, gast.Name) else None
            if not isinstance(caught, type) or not isinstance(raised, type) or issubclass(raised, caught):
                return True
    return False
