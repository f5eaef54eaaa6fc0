"""Shared by ``if``, ``while`` and ``for``: a block as a local function that shares its variables."""

from __future__ import annotations

from typing import Any

import gast

from dy2static.analysis import facts
from dy2static.analysis.facts import Fact
from dy2static.analysis.scope import bound_in
from dy2static.template import replace, replace_expr
from dy2static.transforms.base import Context, Transformer, constant
from dy2static.transforms.private_names import mangled


class ConstructTransformer(Transformer):
    """A transform of ``if``, ``while`` or ``for``: knows which names a block must declare."""

    expressions = False

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.class_name = context.class_name

    def visit_ClassDef(self, node: gast.AST) -> Any:
        outside, self.class_name = self.class_name, node.name
        super().visit_ClassDef(node)
        self.class_name = outside
        return node

    def body_function(self, hint: str, block: list[gast.AST], node: gast.AST, item: str | None = None) -> Any:
        """``block`` as a function definition; ``item`` is its parameter."""
        bound = bound_in(block)
        scope = facts.get(self.function, Fact.SCOPE)
        shared = [name for name in facts.get(node, Fact.STATE) if name in bound]
        global_names = sorted(bound & scope.globals)
        (function,) = replace(
            "def body_function(item):\n    global global_names\n    nonlocal shared",
            body_function=self.context.namer.fresh(hint), item=[item] if item else [], global_names=global_names,
            shared=shared, origin=node,
        )  # fmt: skip
        declarations = [statement for statement in function.body if not isinstance(statement, gast.Pass)]
        annotations = _Annotations(bound - set(shared))
        kept = [annotations.visit(statement) for statement in block]
        function.body = declarations + [statement for statement in kept if statement is not None]
        facts.put(function, Fact.SCOPE, scope)
        facts.put(function, Fact.LEFT_ALONE, "")
        facts.put(function, Fact.BLOCK)
        return function

    def state(self, node: gast.AST) -> list[gast.AST]:
        """The last argument of the operator: the names that ``node`` hands over; none if there are none."""
        names = facts.get(node, Fact.STATE)
        return [constant(" ".join(mangled(name, self.class_name) for name in names))] if names else []


def thunk(expression: gast.AST, origin: gast.AST) -> Any:
    """``lambda: expression``."""
    return replace_expr("lambda: expression", expression=expression, origin=origin)


class _Annotations(gast.NodeTransformer):
    """Takes the annotations off all names but the block's own: on one declared ``nonlocal`` Python refuses them. In a
    function it evaluates none."""

    def __init__(self, own: set[str]) -> None:
        self.own = own

    def visit_AnnAssign(self, node: gast.AST) -> Any:
        if facts.get(node, Fact.PLAIN) or not isinstance(node.target, gast.Name) or node.target.id in self.own:
            return node
        if node.value is None:
            return None
        return gast.copy_location(gast.Assign([node.target], node.value, None), node)

    def _stop(self, node: gast.AST) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _stop
