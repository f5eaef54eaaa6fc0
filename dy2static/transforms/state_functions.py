"""Shared by ``if``, ``while`` and ``for``: a block as a local function, and the pair that reads and sets its state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.scope import bound_in
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Transformer, constant


@dataclass(frozen=True)
class StateFunctions:
    """``definitions`` of the two functions, their names, and the state's names as a tuple node."""

    definitions: list[gast.AST]
    get_state: str
    set_state: str
    names: gast.AST


class ConstructTransformer(Transformer):
    """A transform of ``if``, ``while`` or ``for``: knows which names a block must declare."""

    expressions = False

    def body_function(self, hint: str, block: list[gast.AST], node: gast.AST, item: Sequence[str] = ()) -> Any:
        """``block`` as a function definition with the parameters ``item``."""
        bound = bound_in(block)
        scope = facts.get(self.function, Fact.SCOPE)
        shared = [name for name in facts.get(node, Fact.STATE) if name in bound]
        global_names = sorted(bound & scope.globals)
        (function,) = replace(
            "def body_function(item):\n    global global_names\n    nonlocal shared",
            body_function=self.context.namer.fresh(hint), item=list(item), global_names=global_names, shared=shared,
            origin=node,
        )  # fmt: skip
        declarations = [statement for statement in function.body if not isinstance(statement, gast.Pass)]
        function.body = declarations + [_without_annotations(statement) for statement in block]
        facts.put(function, Fact.SCOPE, scope)
        facts.put(function, Fact.LEFT_ALONE, "")
        return function

    def state_functions(self, node: gast.AST) -> StateFunctions:
        """The functions that read and set the state of ``node``."""
        names = list(facts.get(node, Fact.STATE))
        fresh = self.context.namer.fresh
        get_state, set_state, values = fresh("get_state"), fresh("set_state"), fresh("values")
        outer = [name for name in names if name in facts.get(self.function, Fact.SCOPE).nonlocals]
        shown = _tuple([fresh("value") if name in outer else name for name in names])
        reads = [
            statement
            for name, value in zip(names, shown.elts)
            if name in outer
            for statement in replace(
                "try:\n    value = name\nexcept NameError:\n    value = _d2s.Undefined(text)",
                value=value, name=name, text=constant(name),
            )
        ]  # fmt: skip
        deletes = [
            statement
            for name in outer
            for statement in replace("if name.__class__ is _d2s.Undefined:\n    del name", name=name)
        ]
        getter = replace(
            "def get_state():\n    reads\n    return shown", get_state=get_state, reads=reads, shown=shown, origin=node
        )
        stores = replace("targets = values", targets=_tuple(names), values=values) if names else []
        setter = replace(
            "def set_state(values):\n    nonlocal names\n    stores\n    deletes",
            set_state=set_state, values=values, names=list(names), stores=stores, deletes=deletes, origin=node,
        )  # fmt: skip
        for function in (*getter, *setter):
            facts.put(function, Fact.PLAIN)
        return StateFunctions([*getter, *setter], get_state, set_state, _strings(names))


def _tuple(names: Sequence[str]) -> Any:
    return gast.Tuple([gast.Name(name, gast.Load(), None, None) for name in names], gast.Load())


def _strings(names: Sequence[str]) -> Any:
    return gast.Tuple([constant(name) for name in names], gast.Load())


def thunk(expression: gast.AST, origin: gast.AST) -> Any:
    """``lambda: expression``."""
    return replace_expr("lambda: expression", expression=expression, origin=origin)


def _without_annotations(statement: gast.AST) -> Any:
    return _Annotations().visit(statement)


class _Annotations(gast.NodeTransformer):
    """Python refuses an annotation on a name declared ``nonlocal``, and evaluates none in a function."""

    def visit_AnnAssign(self, node: gast.AST) -> Any:
        if not isinstance(node.target, gast.Name):
            return node
        if node.value is None:
            return replace("pass", origin=node)[0]
        return gast.copy_location(gast.Assign([node.target], node.value, None), node)

    def _stop(self, node: gast.AST) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _stop
