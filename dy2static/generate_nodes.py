"""astor's source generator, extended to all syntax of Python 3.10 to 3.13 and with its mistakes mended.

Each override says what astor 0.8.1 does without it. Lines are never wrapped: a tree's lines map one to one.
"""

from __future__ import annotations

import ast
from typing import Any

from dy2static import generate_literals as literals
from dy2static.generate_patterns import PatternGenerator, Precedence, set_precedence


class SourceGenerator(PatternGenerator):
    """Prints canonical plain ast (see `dy2static.generate.canonical`)."""

    def __init__(self, indent_with: str, forbidden: tuple[str, ...] = ()) -> None:
        super().__init__(indent_with)
        self.forbidden = forbidden  # quotes of the f-strings around, where Python is older than 3.12

    # --- literals: astor's own strings may be re-quoted wrongly, and its f-strings need ast.Str

    def visit_Constant(self, node: ast.Constant) -> None:
        value = node.value
        if isinstance(value, (str, bytes)):
            self.write((node.kind or "") + literals.string(value, self.forbidden))
        elif value is Ellipsis:
            self.write("...")
        elif value is None or isinstance(value, bool):
            self.write(repr(value))
        else:
            with self.delimit(node):
                self.write(literals.number(value))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        self.write(literals.f_string(node, self.forbidden, self._in_braces))

    def _in_braces(self, node: ast.expr, forbidden: tuple[str, ...]) -> str:
        inner = SourceGenerator(self.indent_with, forbidden)
        set_precedence(Precedence.Or, node)  # a lambda's colon would start the format spec
        inner.visit(node)
        return "".join(inner.result)

    def visit_Expr(self, node: ast.Expr) -> None:
        value = node.value
        if isinstance(value, ast.Constant) and isinstance(value.value, str) and not value.kind:
            self.statement(node, literals.docstring(value.value, self.indent_with * self.indentation))
        else:
            super().visit_Expr(node)

    # --- functions and classes

    def visit_arguments(self, node: ast.arguments) -> None:
        """astor pairs defaults with the wrong arguments where there are positional-only ones."""
        positional = [*node.posonlyargs, *node.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(node.defaults))
        defaults += node.defaults
        parts: list[list[Any]] = []

        def add(prefix: str, argument: ast.arg, default: ast.expr | None) -> None:
            set_precedence(Precedence.Comma, default)
            equals = " = " if argument.annotation is not None else "="
            parts.append([prefix, argument] + ([] if default is None else [equals, default]))

        for index, (argument, default) in enumerate(zip(positional, defaults, strict=True)):
            add("", argument, default)
            if index + 1 == len(node.posonlyargs):
                parts.append(["/"])
        if node.vararg is not None:
            add("*", node.vararg, None)
        elif node.kwonlyargs:
            parts.append(["*"])
        for argument, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
            add("", argument, default)
        if node.kwarg is not None:
            add("**", node.kwarg, None)
        for index, part in enumerate(parts):
            self.write(", " if index else "", *part)

    def visit_arg(self, node: ast.arg) -> None:
        self.write(node.arg)
        set_precedence(Precedence.Comma, node.annotation)
        self.conditional_write(": ", node.annotation)

    def visit_FunctionDef(self, node: Any, is_async: bool = False) -> None:
        """astor knows no type parameters."""
        self._decorators(node)
        self.statement(node, "async def " if is_async else "def ", node.name)
        self._type_params(node)
        self.write("(")
        self.visit_arguments(node.args)
        self.write(")")
        if node.returns is not None:
            set_precedence(Precedence.Comma, node.returns)
            self.write(" -> ", node.returns)
        self.write(":")
        self.body(node.body)
        self._after_definition()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self._decorators(node)
        self.statement(node, "class ", node.name)
        self._type_params(node)
        parts: list[list[Any]] = [[base] for base in node.bases]
        set_precedence(Precedence.Comma, node.bases, [keyword.value for keyword in node.keywords])
        parts += [[f"{k.arg}=" if k.arg else "**", k.value] for k in node.keywords]
        if parts:
            self.write("(")
            for index, part in enumerate(parts):
                self.write(", " if index else "", *part)
            self.write(")")
        self.write(":")
        self.body(node.body)
        self._after_definition()

    def _decorators(self, node: Any) -> None:
        self.newline(extra=0 if self.indentation else 2)
        for decorator in node.decorator_list:
            set_precedence(Precedence.Comma, decorator)
            self.statement(decorator, "@", decorator)

    def _after_definition(self) -> None:
        if not self.indentation:
            self.newline(extra=2)

    def _type_params(self, node: Any) -> None:
        params = getattr(node, "type_params", [])
        if params:
            self.write("[")
            for index, param in enumerate(params):
                self.write(", " if index else "", param)
            self.write("]")

    def _type_param(self, node: Any, prefix: str) -> None:
        self.write(prefix, node.name)
        bound, default = getattr(node, "bound", None), getattr(node, "default_value", None)
        set_precedence(Precedence.Comma, bound, default)
        self.conditional_write(": ", bound)
        self.conditional_write(" = ", default)

    def visit_TypeVar(self, node: Any) -> None:
        self._type_param(node, "")

    def visit_TypeVarTuple(self, node: Any) -> None:
        self._type_param(node, "*")

    def visit_ParamSpec(self, node: Any) -> None:
        self._type_param(node, "**")

    def visit_TypeAlias(self, node: Any) -> None:
        set_precedence(Precedence.Comma, node.value)
        self.statement(node, "type ", node.name)
        self._type_params(node)
        self.write(" = ", node.value)

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """astor writes ``lambda : x``."""
        with self.delimit(node) as delimiters:
            set_precedence(delimiters.p, node.body)
            arguments = node.args
            empty = not (arguments.posonlyargs or arguments.args or arguments.kwonlyargs)
            empty = empty and arguments.vararg is None and arguments.kwarg is None
            self.write("lambda" if empty else "lambda ")
            self.visit_arguments(arguments)
            self.write(": ", node.body)

    # --- statements

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """astor drops the parentheses that a tuple annotation needs."""
        set_precedence(Precedence.Comma, node.annotation, node.value)
        parenthesise = isinstance(node.target, ast.Name) and not node.simple
        self.statement(
            node, "(" if parenthesise else "", node.target, ")" if parenthesise else "", ": ", node.annotation
        )
        self.conditional_write(" = ", node.value)

    def visit_For(self, node: Any, is_async: bool = False) -> None:
        """astor puts needless parentheses around what is iterated."""
        set_precedence(node, node.target)
        set_precedence(Precedence.Comma, node.iter)
        self.statement(node, "async for " if is_async else "for ", node.target, " in ", node.iter, ":")
        self.body_or_else(node)

    def visit_withitem(self, node: ast.withitem) -> None:
        set_precedence(Precedence.Comma, node.context_expr, node.optional_vars)
        self.write(node.context_expr)
        self.conditional_write(" as ", node.optional_vars)

    def visit_With(self, node: Any, is_async: bool = False) -> None:
        """astor's ``with (a, b):`` means two context managers since Python 3.9, not one tuple."""
        self.statement(node, "async with " if is_async else "with ")
        only = node.items[0] if len(node.items) == 1 else None
        if only is not None and only.optional_vars is None and isinstance(only.context_expr, ast.Tuple):
            self.write("(", only, ")")
        else:
            for index, item in enumerate(node.items):
                self.write(", " if index else "", item)
        self.write(":")
        self.body(node.body)

    def visit_Raise(self, node: ast.Raise) -> None:
        set_precedence(Precedence.Comma, node.exc, node.cause)
        self.statement(node, "raise")
        if self.conditional_write(" ", node.exc):
            self.conditional_write(" from ", node.cause)

    def visit_ExceptHandler(self, node: ast.ExceptHandler, star: str = "") -> None:
        set_precedence(Precedence.Comma, node.type)
        self.statement(node, "except", star)
        if self.conditional_write(" ", node.type):
            self.conditional_write(" as ", node.name)
        self.write(":")
        self.body(node.body)

    def visit_TryStar(self, node: Any) -> None:
        self.statement(node, "try:")
        self.body(node.body)
        for handler in node.handlers:
            self.visit_ExceptHandler(handler, "*")
        self.else_body(node.orelse)
        if node.finalbody:
            self.newline()
            self.write("finally:")
            self.body(node.finalbody)

    # --- expressions

    def visit_Slice(self, node: ast.Slice) -> None:
        """astor drops the parentheses of a tuple that is a bound."""
        set_precedence(Precedence.Comma, node.lower, node.upper, node.step)
        self.conditional_write(node.lower)
        self.write(":")
        self.conditional_write(node.upper)
        self.conditional_write(":", node.step)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        """``x[*a, b]`` needs Python 3.11, and ``x[*a]`` is a tuple there: keep parentheses."""
        starred = isinstance(node.slice, ast.Tuple) and any(isinstance(e, ast.Starred) for e in node.slice.elts)
        set_precedence(Precedence.Comma if starred else node, node.slice)
        self.write(node.value, "[", node.slice, "]")

    def visit_Dict(self, node: ast.Dict) -> None:
        """astor writes ``{**a or b}``, which does not parse."""
        with self.delimit("{}"):
            for index, (key, value) in enumerate(zip(node.keys, node.values, strict=True)):
                set_precedence(Precedence.Comma, key)
                set_precedence(Precedence.Comma if key is not None else Precedence.BitOr, value)
                self.write(", " if index else "", *([key, ": "] if key is not None else ["**"]), value)

    def visit_Starred(self, node: ast.Starred) -> None:
        set_precedence(Precedence.BitOr, node.value)
        self.write("*", node.value)

    def _comprehension(self, brackets: str, node: Any, *parts: Any) -> None:
        """astor puts needless parentheses around the element."""
        with self.delimit(brackets):
            set_precedence(Precedence.Comma, *(part for part in parts if isinstance(part, ast.AST)))
            self.write(*parts, *node.generators)

    def visit_ListComp(self, node: ast.ListComp) -> None:
        self._comprehension("[]", node, node.elt)

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self._comprehension("{}", node, node.elt)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self._comprehension("{}", node, node.key, ": ", node.value)

    def visit_YieldFrom(self, node: ast.YieldFrom) -> None:
        with self.delimit(node):
            set_precedence(Precedence.Comma, node.value)
            self.write("yield from ", node.value)
