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

Generators stay generators: they are lazy. A comprehension in a lambda, or with ``:=``, stays as it is.
"""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.scope import has_walrus, scope_of
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer, converts

_EMPTY = {"listcomp": "[]", "setcomp": "{*()}", "dictcomp": "{}"}


def transform(tree: Any, context: Context) -> Any:
    """Replace list, set and dict comprehensions."""
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

    def _function(self, node: gast.AST, kind: str, store: str, **parts: Any) -> Any:
        if not self.hoisting or has_walrus(node):
            return self._comprehension(node)
        fresh = self.context.namer.fresh
        name, iterable, result = fresh(kind), fresh("iterable"), fresh("result")
        first, node.generators[0].iter = node.generators[0].iter, None
        body = replace(store, result=result, **parts, origin=node)
        for index, generator in reversed(list(enumerate(node.generators))):
            for test in reversed(generator.ifs):
                body = replace("if test:\n    body", test=test, body=body, origin=test)
            source = generator.iter if index else iterable
            body = replace(
                "for target in source:\n    body", target=generator.target, source=source, body=body, origin=node
            )
        (function,) = replace(
            f"def name(iterable):\n    result = {_EMPTY[kind]}\n    body\n    return result",
            name=name, iterable=iterable, result=result, body=body, origin=node,
        )  # fmt: skip
        scope = scope_of(function)
        facts.put(function, Fact.LOCALS, scope.locals)
        facts.put(function, Fact.IMMEDIATE)
        converts(function)
        self.enter(function)  # what is nested in it
        self.before.append(function)
        call = replace_expr("name(iterable)", name=name, iterable=self.visit(first), origin=node)
        facts.put(call.func, Fact.READS, scope.free)
        return call
