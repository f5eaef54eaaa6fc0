"""``:=`` where it will not stay in its function: in a loop's test, and in operands that become lambdas.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(g):
...     while (y := g()) > 0:
...         print(y)
...     return y and (z := g(y))
... ''', transform))
def f(g):
    _d2s_test_1 = (y := g()) > 0
    while _d2s_test_1:
        print(y)
        _d2s_test_1 = (y := g()) > 0
    _d2s_value_1 = y
    if _d2s_value_1:
        _d2s_value_1 = (z := g(y))
    return _d2s_value_1

What is evaluated before goes into temporaries, so that the order stays. Inside a lambda or comprehension there is no
place for statements: the expression stays as it is.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import gast

from dy2static.analysis.scope import COMPREHENSIONS, has_walrus
from dy2static.template import replace
from dy2static.transforms.base import Context, Transformer, name_node


def transform(tree: Any, context: Context) -> Any:
    """Hoist every ``:=`` that a later transform would put into a lambda."""
    return _Walrus(context).visit(tree)


def lazily_bound(node: gast.AST) -> bool:
    """Whether ``node`` will hand operands over in lambdas, and one of these binds a name."""
    return any(has_walrus(part) for part in lazy_parts(node))


def lazy_parts(node: gast.AST) -> list[gast.AST]:
    """The operands that `bool_ops`, `if_expr` and `compare_chain` put into lambdas."""
    if isinstance(node, gast.BoolOp):
        return list(node.values)
    if isinstance(node, gast.IfExp):
        return [node.body, node.orelse]
    if isinstance(node, gast.Compare) and len(node.comparators) > 1:
        return [node.left, *node.comparators]
    return []


class _Walrus(Transformer):
    def visit_While(self, node: gast.AST) -> Any:
        self.generic_visit_blocks(node)
        if not has_walrus(node.test):
            return node
        flag = self.context.namer.fresh("test")
        before, test = self._hoist(node.test)
        before += replace("flag = test", flag=flag, test=test, origin=node.test)
        node.test = name_node(flag, node.test)
        node.body = [*node.body, *copy.deepcopy(before)]
        return [*before, node]

    def generic_visit_blocks(self, node: gast.AST) -> None:
        node.body = self.block(node.body)
        node.orelse = self.block(node.orelse)

    def visit_If(self, node: gast.AST) -> Any:
        node.test = self._expression(node.test)
        self.generic_visit_blocks(node)
        return node

    def visit_For(self, node: gast.AST) -> Any:
        node.iter = self._expression(node.iter)
        self.generic_visit_blocks(node)
        return node

    def _simple(self, node: gast.AST) -> Any:
        if node.value is not None:
            node.value = self._expression(node.value)
        return node

    visit_Assign = visit_Return = visit_Expr = visit_AnnAssign = _simple

    def visit_With(self, node: gast.AST) -> Any:
        node.items[0].context_expr = self._expression(node.items[0].context_expr)
        return self.generic_visit(node)

    def visit_Assert(self, node: gast.AST) -> Any:
        node.test = self._expression(node.test)
        return node

    def visit_Raise(self, node: gast.AST) -> Any:
        if node.exc is not None:
            node.exc = self._expression(node.exc)
        return node

    def _expression(self, node: gast.AST) -> Any:
        before, node = self._hoist(node)
        self.before += before
        return self.visit(node)

    # --- an expression as statements, in the order of evaluation

    def _hoist(self, node: Any) -> tuple[list[gast.AST], Any]:
        """Statements to run first, and the expression that is left."""
        if not _needs_hoisting(node):
            return [], node
        if lazily_bound(node):
            return self._lazy(node)
        if isinstance(node, (gast.Lambda, *COMPREHENSIONS)):
            return [], node
        slots = _operands(node)
        last = max(index for index, (value, _) in enumerate(slots) if _needs_hoisting(value))
        before: list[gast.AST] = []
        for index, (value, store) in enumerate(slots[: last + 1]):
            new, value = self._hoist(value)
            before += new
            if index < last and not isinstance(value, gast.Constant):
                temporary = self.context.namer.fresh("value")
                before += replace("name = value", name=temporary, value=value, origin=value)
                value = name_node(temporary, value)
            store(value)
        return before, node

    def _lazy(self, node: Any) -> tuple[list[gast.AST], Any]:
        result = self.context.namer.fresh("value")
        if isinstance(node, gast.IfExp):
            before, test = self._hoist(node.test)
            before += replace(
                "if test:\n    body\nelse:\n    orelse",
                test=test, body=self._store(result, node.body), orelse=self._store(result, node.orelse), origin=node,
            )  # fmt: skip
        elif isinstance(node, gast.BoolOp):
            template = "if result:\n    rest" if isinstance(node.op, gast.And) else "if not result:\n    rest"
            before = self._store(result, node.values[-1])
            for value in reversed(node.values[:-1]):
                before = [*self._store(result, value), *replace(template, result=result, rest=before, origin=node)]
        else:
            before = self._chain(result, node)
        return before, name_node(result, node)

    def _store(self, name: str, value: Any) -> list[gast.AST]:
        before, value = self._hoist(value)
        return before + replace("name = value", name=name, value=value, origin=value)

    def _chain(self, result: str, node: Any) -> list[gast.AST]:
        """``a < b < c``, operand by operand."""
        left = self.context.namer.fresh("value")
        first = self._store(left, node.left)

        def step(left: str, ops: list[Any], rest: list[Any]) -> list[gast.AST]:
            right = self.context.namer.fresh("value")
            compare = gast.Compare(name_node(left, node), [ops[0]], [name_node(right, node)])
            done = [*self._store(right, rest[0]), *replace("result = value", result=result, value=compare, origin=node)]
            if len(rest) > 1:
                more = step(right, ops[1:], rest[1:])
                done += replace("if result:\n    more", result=result, more=more, origin=node)
            return done

        return first + step(left, node.ops, node.comparators)


def _needs_hoisting(node: gast.AST) -> bool:
    """Whether something in ``node`` is lazily bound, where statements can still take its place."""
    todo = [node]
    while todo:
        part = todo.pop()
        if isinstance(part, (gast.Lambda, *COMPREHENSIONS)):
            continue
        if lazily_bound(part):
            return True
        todo.extend(gast.iter_child_nodes(part))
    return False


def _operands(node: Any) -> list[tuple[Any, Callable[[Any], None]]]:
    """The operands in order of evaluation, each with a function that exchanges it."""
    slots: list[tuple[Any, Callable[[Any], None]]] = []

    def add(owner: Any, key: Any) -> None:
        value = owner[key] if isinstance(owner, list) else getattr(owner, key)
        if isinstance(value, (gast.Starred, gast.keyword)):
            add(value, "value")
        elif isinstance(value, gast.Slice):
            for name in ("lower", "upper", "step"):
                add(value, name)
        elif isinstance(value, gast.expr):
            exchange = list.__setitem__ if isinstance(owner, list) else setattr
            slots.append((value, partial(exchange, owner, key)))

    if isinstance(node, gast.Dict):
        for index in range(len(node.keys)):
            add(node.keys, index)
            add(node.values, index)
        return slots
    for name, value in gast.iter_fields(node):
        if isinstance(value, list):
            for index in range(len(value)):
                add(value, index)
        else:
            add(node, name)
    return slots

