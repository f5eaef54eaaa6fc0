"""Generators get a second form, turned inside out: what consumes them comes in as a function that takes each item.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(xs):
...     for x in xs:
...         if x > 0:
...             yield x
... ''', transform))
def f(xs):
    def _d2s_pull_1(xs):
        for x in _d2s.one_by_one(xs):
            if _d2s.decided(x > 0):
                yield x
    def _d2s_push_1(_d2s_give_1, xs):
        for x in xs:
            if x > 0:
                if _d2s_give_1(x):
                    return
    return _d2s.generator(_d2s_pull_1, _d2s_push_1, (xs,), 'f')

``give(x)`` runs the consumer on an item, and says whether it is done with the generator: everything happens in eager's
order, and both sides may decide on tensors. A generator that would see its consumer's exceptions (``yield`` inside
``with``, or ``try`` with handlers), or that takes values (``x = yield from g``), has the first form only.
"""

from __future__ import annotations

import builtins
import copy
from collections.abc import Iterable
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.flow import YIELDS, is_generator
from dy2static.analysis.scope import FUNCTIONS, own_nodes, parameter_names, scope_of
from dy2static.names import is_generated
from dy2static.template import replace
from dy2static.transforms.base import (
    Context,
    Transformer,
    constant,
    converts,
    docstring,
    name_node,
    operator,
    unpacking,
)


def transform(tree: Any, context: Context) -> Any:
    """Give every generator function its second form, where it can have one."""
    return _Generator(context).visit(tree)


class _Generator(Transformer):
    expressions = False

    def visit_FunctionDef(self, node: gast.AST) -> Any:
        super().visit_FunctionDef(node)
        if isinstance(node, gast.FunctionDef) and converts(node) and is_generator(node):
            if _can_push(node.body):
                self._split(node)
            else:
                said = docstring(node.body)
                _one_by_one(node.body)
                node.body = [*said, *_Waiting(self.context.namer.fresh).block(node.body[len(said) :])]
        return node

    def _split(self, node: gast.AST) -> None:
        parameters = parameter_names(node)
        fresh = self.context.namer.fresh
        pull, push, give = fresh("pull"), fresh("push"), fresh("give")
        said = docstring(node.body)
        body = node.body[len(said) :]
        pushed = _Push(give, fresh).block(copy.deepcopy(body))
        _decide(body)
        _one_by_one(body)
        body = _Waiting(fresh).block(body)
        (puller,) = replace("def pull(parameters):\n    body", pull=pull, parameters=parameters, body=body, origin=node)
        (pusher,) = replace(
            "def push(give, parameters):\n    body",
            push=push, give=give, parameters=parameters, body=pushed, origin=node,
        )  # fmt: skip
        for function in (puller, pusher):
            facts.put(function, Fact.LOCALS, scope_of(function).locals)
            converts(function)
        values = gast.Tuple([name_node(name, node) for name in parameters], gast.Load())
        name = "<genexpr>" if is_generated(node.name) else node.name
        call = replace(
            "return _d2s.generator(pull, push, values, text)",
            pull=pull, push=push, values=values, text=constant(name), origin=node,
        )  # fmt: skip
        node.body = [*said, puller, pusher, *call]
        node.decorator_list = [operator("decorator", one, origin=one) for one in node.decorator_list]
        facts.put(node, Fact.LOCALS, frozenset({*parameters, pull, push}))


def _decide(block: list[gast.AST]) -> None:
    """Conditions around a ``yield`` must be known when the generator is taken item by item."""
    for node in own_nodes(block):
        if isinstance(node, (gast.If, gast.While)) and any(isinstance(part, YIELDS) for part in own_nodes(node)):
            node.test = operator("decided", node.test, origin=node.test)


def _one_by_one(block: list[gast.AST]) -> None:
    """What loops around a ``yield`` go over, Python goes over as it is."""
    for node in own_nodes(block):
        if isinstance(node, gast.For) and any(isinstance(part, YIELDS) for part in own_nodes(node)):
            node.iter = operator("one_by_one", *unpacking(node), origin=node.iter)
        elif isinstance(node, gast.YieldFrom):
            node.value = operator("one_by_one", node.value, origin=node.value)


class _Waiting(gast.NodeTransformer):
    """Says where a generator may wait inside of a ``try`` or ``with``, and where it leaves that."""

    def __init__(self, fresh: Any) -> None:
        self.fresh = fresh

    def block(self, body: list[gast.AST]) -> list[gast.AST]:
        new = [self.visit(statement) for statement in body]
        return [part for item in new for part in (item if isinstance(item, list) else [item])]

    def visit(self, node: gast.AST) -> Any:
        if isinstance(node, (gast.expr, *FUNCTIONS, gast.ClassDef)) or not _yields(node):
            return node
        return super().visit(node)

    def visit_Try(self, node: gast.AST) -> Any:
        waits = self.fresh("waits")
        self.generic_visit(node)
        for block in [node.finalbody, *(one.body for one in node.handlers if _may_end(one.type))]:
            if block:
                block[:0] = replace("_d2s.left(waits)", waits=waits, origin=block[0])
        return replace("with _d2s.waiting() as waits:\n    body", waits=waits, body=[node], origin=node)

    visit_TryStar = visit_Try

    def visit_With(self, node: gast.AST) -> Any:
        waits = self.fresh("waits")
        self.generic_visit(node)
        for item in node.items:
            item.context_expr = operator(
                "within", name_node(waits, item.context_expr), item.context_expr, origin=item.context_expr)
        return replace("with _d2s.waiting() as waits:\n    body", waits=waits, body=[node], origin=node)


def _yields(node: gast.AST) -> bool:
    return any(isinstance(part, YIELDS) for part in own_nodes(node))


def _may_end(caught: Any) -> bool:
    """Whether an ``except`` clause may be for what ends a generator."""
    if isinstance(caught, gast.Tuple):
        return any(map(_may_end, caught.elts))
    name = caught.id if isinstance(caught, gast.Name) else ""
    known = getattr(builtins, name, None)
    return not (isinstance(known, type) and issubclass(known, Exception))


class _Push(gast.NodeTransformer):
    """``yield x`` -> ``if give(x): return``."""

    def __init__(self, give: str, fresh: Any) -> None:
        self.give = give
        self.fresh = fresh

    def block(self, body: list[gast.AST]) -> list[gast.AST]:
        new = [self.visit(statement) for statement in body]
        return [part for item in new for part in (item if isinstance(item, list) else [item])]

    def visit(self, node: gast.AST) -> Any:
        if isinstance(node, (*FUNCTIONS, gast.ClassDef)):
            return node
        if isinstance(node, gast.expr):
            return node
        return super().visit(node)

    def visit_Expr(self, node: gast.AST) -> Any:
        if isinstance(node.value, gast.Yield):
            return self._hand_over(node.value.value or constant(None), node)
        if isinstance(node.value, gast.YieldFrom):
            item = self.fresh("item")
            return replace(
                "for item in source:\n    body",
                item=item, source=node.value.value, body=self._hand_over(name_node(item, node), node), origin=node,
            )  # fmt: skip
        return node

    def visit_Assign(self, node: gast.AST) -> Any:
        if not isinstance(node.value, gast.Yield):
            return node
        given = self._hand_over(node.value.value or constant(None), node)
        node.value = gast.copy_location(constant(None), node)  # a consumer that is run sends nothing
        return [*given, node]

    def visit_Return(self, node: gast.AST) -> Any:
        if node.value is None or (isinstance(node.value, gast.Constant) and node.value.value is None):
            return gast.copy_location(gast.Return(None), node)
        return replace("return _d2s.returned(value)", value=node.value, origin=node)

    def _hand_over(self, value: gast.AST, origin: gast.AST) -> list[gast.AST]:
        return replace("if give(value):\n    return", give=self.give, value=value, origin=origin)


def _can_push(block: Iterable[gast.AST]) -> bool:
    return all(_fits(statement) for statement in block)


def _fits(node: gast.AST) -> bool:
    """Whether the consumer may run inside this statement: nothing in it sees what the consumer raises."""
    if not any(isinstance(part, YIELDS) for part in own_nodes(node)):
        return True
    if isinstance(node, gast.Assign):
        return isinstance(node.value, gast.Yield)
    if isinstance(node, (gast.With, gast.AsyncWith)):
        return False
    if isinstance(node, (gast.Try, gast.TryStar)):
        return not node.handlers and _can_push([*node.body, *node.orelse]) and not any(
            isinstance(part, YIELDS) for part in own_nodes(node.finalbody)
        )  # fmt: skip
    inner = [getattr(node, name, []) for name in ("body", "orelse")]
    if isinstance(node, gast.Match):
        inner = [case.body for case in node.cases]
    return all(_can_push(block) for block in inner)
