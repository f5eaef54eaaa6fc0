"""Comprehensions become loops in a local function, so that what they iterate and test may be staged.

>>> from dy2static.transforms.base import rewritten
>>> print(rewritten('''
... def f(xs, w):
...     return [x * w for x in xs if x > 0]
... ''', transform))
def f(xs, w):
    def _d2s_listcomp_1(_d2s_iterable_1):
        _d2s_result_1 = []
        for x in _d2s_iterable_1:
            if x > 0:
                _d2s_result_1.append(x * w)
        return _d2s_result_1
    return _d2s_listcomp_1(xs)

A generator expression becomes the call of a generator function. What ``:=`` binds in a comprehension is ``nonlocal`` in
its function. A comprehension in a lambda stays as it is, and one that binds a global name.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.scope import is_consumed, scope_of, walrus_names
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer, consumed, converts, name_node, operator, unpacking

_EMPTY = {"listcomp": "[]", "setcomp": "{*()}", "dictcomp": "{}"}


def transform(tree: Any, context: Context) -> Any:
    """Replace comprehensions and generator expressions."""
    return _Comprehension(context).visit(tree)


class _Comprehension(Transformer):
    def visit_ListComp(self, node: gast.AST) -> Any:
        return self._function(node, "listcomp", "result.append(value)", value=node.elt)

    def visit_SetComp(self, node: gast.AST) -> Any:
        return self._function(node, "setcomp", "result.add(value)", value=node.elt)

    def visit_DictComp(self, node: gast.AST) -> Any:
        fresh = self.context.namer.fresh("key")
        return self._function(
            node, "dictcomp", "fresh = key\nresult[fresh] = value", value=node.value, key=node.key, fresh=fresh
        )

    def visit_GeneratorExp(self, node: gast.AST) -> Any:
        return self._function(node, "genexpr", "yield value", value=node.elt)

    def visit_Call(self, node: gast.AST) -> Any:
        if is_consumed(node):
            facts.put(node.args[0], Fact.IMMEDIATE, "consumed")
        return self.generic_visit(node)

    def _function(self, node: gast.AST, kind: str, store: str, **parts: Any) -> Any:
        bound = walrus_names(node)
        if not self.hoisting or (bound and not self._shares(bound, kind, node)):
            self._comprehension(node)
            for generator in node.generators:
                if not generator.is_async:
                    generator.iter = operator("each", *unpacking(generator), origin=generator.iter)
                generator.ifs = [operator("tested", test, origin=test) for test in generator.ifs]
            return node
        fresh = self.context.namer.fresh
        name, iterable, result = fresh(kind), fresh("iterable"), fresh("result")
        first = node.generators[0].iter
        node.generators[0].iter = gast.Constant(None, None)  # the statement around it may be looked at before it goes
        lazy = kind == "genexpr"
        body = replace(store, **({} if lazy else {"result": result}), **parts, origin=node)
        for index, generator in reversed(list(enumerate(node.generators))):
            for test in reversed(generator.ifs):
                body = replace("if test:\n    body", test=test, body=body, origin=test)
            source = generator.iter if index else self._first(iterable, lazy, node)
            body = replace(
                "for target in source:\n    body", target=generator.target, source=source, body=body, origin=node
            )
        if not lazy:
            body = [
                *replace(f"result = {_EMPTY[kind]}", result=result, origin=node), *body,
                *replace("return result", result=result, origin=node),
            ]  # fmt: skip
        if bound:
            body = [gast.copy_location(gast.Nonlocal(sorted(bound)), node), *body]
        (function,) = replace(
            "def name(iterable):\n    body", name=name, iterable=iterable, body=body, origin=node
        )
        scope = scope_of(function)
        facts.put(function, Fact.LOCALS, scope.locals)
        immediate = facts.get(node, Fact.IMMEDIATE) if lazy else "inlined"
        if immediate:
            facts.put(function, Fact.IMMEDIATE, immediate)
        converts(function)
        self.enter(function)  # what is nested in it
        self.before.append(function)
        value = self.visit(first)
        if lazy:
            value = operator("Held", consumed(value), origin=node)
        call = replace_expr("name(iterable)", name=name, iterable=value, origin=node)
        if immediate:
            facts.put(call.func, Fact.READS, scope.free)
        return call

    def _shares(self, names: set[str], kind: str, node: gast.AST) -> bool:
        """Whether a function in the one at hand can bind these names in it."""
        if kind == "genexpr" and not facts.get(node, Fact.IMMEDIATE):
            return False  # it may run when its function is done
        scope = scope_of(self.function)
        if not names <= scope.locals | scope.nonlocals:
            return False
        own = names & scope.locals  # the function's own text will bind them no more
        facts.put(self.function, Fact.BOUND_INSIDE, own | facts.get(self.function, Fact.BOUND_INSIDE, set()))
        return True

    def _first(self, iterable: str, lazy: bool, node: gast.AST) -> gast.AST:
        name = name_node(iterable, node)
        return operator("take", name, origin=node) if lazy else name
