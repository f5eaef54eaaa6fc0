"""A small transform that the tests of the command line put in place of the pipeline."""

from __future__ import annotations

from typing import Any

import gast
import pytest

from dy2static.cli import rewrite
from dy2static.generate import canonical
from dy2static.names import Namer
from dy2static.source import FunctionSource
from dy2static.template import replace


class Outline(gast.NodeTransformer):
    """Every ``if`` becomes two functions and a call; with ``loops``, a ``while`` becomes one."""

    def __init__(self, namer: Namer) -> None:
        self.namer = namer

    def visit_If(self, node: Any) -> Any:
        self.generic_visit(node)
        names = sorted({n.id for n in gast.walk(node) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store)})
        return replace(
            "def body():\n    nonlocal names\n    stmts\n"
            "def orelse():\n    nonlocal names\n    other\n"
            "_d2s.if_stmt(test, body, orelse, (texts,))",
            origin=node, body=self.namer.fresh("if_body"), orelse=self.namer.fresh("if_orelse"), test=node.test,
            names=names, texts=[gast.Constant(name, None) for name in names], stmts=node.body, other=node.orelse,
        )  # fmt: skip

    def visit_Return(self, node: Any) -> Any:
        """A changed simple statement: ``return f(x)`` -> ``return _d2s.call(f, x)``."""
        if isinstance(node.value, gast.Call):
            node.value = gast.copy_location(
                gast.Call(
                    gast.Attribute(gast.Name("_d2s", gast.Load(), None, None), "call", gast.Load()),
                    [node.value.func, *node.value.args],
                    node.value.keywords,
                ),
                node.value,
            )
        return node


@pytest.fixture
def own_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line with `Outline` in place of the pipeline: what it shows is its own work alone."""

    def convert(source: FunctionSource, full: bool) -> Any:
        return canonical(Outline(Namer(source.tree)).visit(source.tree))

    monkeypatch.setattr(rewrite, "convert", convert)
