"""Calls that a test file makes: its functions get code in which each call goes past a `Watch` first.

    def test_norm():                         def test_norm():
        y = lib.norm(x)              ->          y = __dy2static_called__(lib.norm)(x)

The file is compiled again after it was imported, and only the code of its functions is taken: the lines, the names and
what pytest makes of ``assert`` stay. Functions inside functions, lambdas and classes made in a test stay as they are:
they are what gets converted.
"""

from __future__ import annotations

import ast
import gc
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

NAME = "__dy2static_called__"
_LEFT = ("@py_builtins", "@pytest_ar", "super", "locals", "vars", "eval")
"""What pytest calls to explain an assertion, and what looks at its caller."""


class _Calls(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        root: ast.AST = node.func
        while isinstance(root, ast.Attribute):
            root = root.value
        if isinstance(root, ast.Name) and root.id in _LEFT:
            return node
        wrapped = ast.Call(ast.Name(NAME, ast.Load()), [node.func], [])
        for part in (wrapped, wrapped.func):
            ast.copy_location(part, node.func)
        node.func = wrapped
        return node

    def _leave(self, node: Any) -> Any:
        return node

    visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_ClassDef = _leave


def watched_codes(file: Path, rewrite_asserts: Callable[[ast.Module, bytes], None]) -> Iterator[types.CodeType]:
    """The code of a test file's functions with its calls sent past ``NAME``."""
    source = file.read_bytes()
    tree = ast.parse(source, str(file))
    rewrite_asserts(tree, source)
    for function in list(_functions(tree)):
        function.body = [_Calls().visit(statement) for statement in function.body]
    module = compile(tree, str(file), "exec", dont_inherit=True)
    todo = [code for code in module.co_consts if isinstance(code, types.CodeType)]
    for code in todo:
        if NAME in code.co_names:
            yield code
        elif not code.co_flags & 1:  # the body of a class
            todo += [inner for inner in code.co_consts if isinstance(inner, types.CodeType)]


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef]:
    """The functions of a file and the methods of its classes, those of ``nn.Module`` classes left out."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef):
            yield node
        elif isinstance(node, ast.ClassDef):
            if not any(isinstance(item, ast.FunctionDef) and item.name == "forward" for item in node.body):
                yield from _functions(node)
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            yield from _functions(node)


def replacements(
    file: Path, space: dict[str, Any], called: Callable[[Any], Any],
    rewrite_asserts: Callable[[ast.Module, bytes], None],
) -> dict[types.FunctionType, tuple[types.CodeType, types.CodeType]]:
    """For the functions of an imported test file: their code, and the code that is watched."""
    watched = {(code.co_name, code.co_firstlineno): code for code in watched_codes(file, rewrite_asserts)}
    space[NAME] = called
    found = {}
    for function in gc.get_objects():
        if type(function) is not types.FunctionType or function.__globals__ is not space:
            continue
        code = function.__code__
        other = watched.get((code.co_name, code.co_firstlineno))
        if other is not None and code.co_filename == str(file) and code.co_freevars == other.co_freevars:
            found[function] = code, other
    return found


__all__ = ["replacements"]
