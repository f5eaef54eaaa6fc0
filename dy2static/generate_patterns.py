"""Match statements and their patterns as text: astor has none.

match x:
    case [1, *rest] | {"k": (A() | B()) as v, **others} if v: ...
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Sequence

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # astor looks up ast.Num and others, deprecated since 3.12
    from astor.code_gen import SourceGenerator as AstorGenerator
    from astor.code_gen import set_precedence
    from astor.op_util import Precedence


class PatternGenerator(AstorGenerator):
    """Adds match statements to astor's generator."""

    def visit_Match(self, node: ast.Match) -> None:
        set_precedence(Precedence.Comma, node.subject)
        self.statement(node, "match ", node.subject, ":")
        self.body(node.cases)

    def visit_match_case(self, node: ast.match_case) -> None:
        set_precedence(Precedence.Comma, node.guard)
        self.newline()
        self.write("case ")
        self._pattern(node.pattern, nested=False)
        self.conditional_write(" if ", node.guard)
        self.write(":")
        self.body(node.body)

    def _pattern(self, node: ast.pattern, nested: bool = True) -> None:
        compound = isinstance(node, ast.MatchOr) or (isinstance(node, ast.MatchAs) and node.pattern is not None)
        self.write("(" if nested and compound else "")
        self.visit(node)
        self.write(")" if nested and compound else "")

    def _patterns(self, parts: Sequence[tuple[str | ast.expr, str, ast.pattern | None]]) -> None:
        for index, (left, middle, pattern) in enumerate(parts):
            self.write(", " if index else "", left, middle)
            if pattern is not None:
                self._pattern(pattern)

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        set_precedence(Precedence.Comma, node.value)
        self.write(node.value)

    def visit_MatchSingleton(self, node: ast.MatchSingleton) -> None:
        self.write(repr(node.value))

    def visit_MatchSequence(self, node: ast.MatchSequence) -> None:
        self.write("[")
        self._patterns([("", "", pattern) for pattern in node.patterns])
        self.write("]")

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        set_precedence(Precedence.Comma, *node.keys)
        self.write("{")
        rest = [("**" + node.rest, "", None)] if node.rest else []
        self._patterns([*((key, ": ", value) for key, value in zip(node.keys, node.patterns, strict=True)), *rest])
        self.write("}")

    def visit_MatchClass(self, node: ast.MatchClass) -> None:
        self.write(node.cls, "(")
        named = zip(node.kwd_attrs, node.kwd_patterns, strict=True)
        self._patterns([*(("", "", p) for p in node.patterns), *((name, "=", p) for name, p in named)])
        self.write(")")

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self.write("*" + (node.name or "_"))

    def visit_MatchAs(self, node: ast.MatchAs) -> None:
        if node.pattern is not None:
            self._pattern(node.pattern)
            self.write(" as ")
        self.write(node.name or "_")

    def visit_MatchOr(self, node: ast.MatchOr) -> None:
        for index, pattern in enumerate(node.patterns):
            self.write(" | " if index else "")
            self._pattern(pattern)
