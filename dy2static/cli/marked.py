"""Which functions of a file are to be converted: those that the file gives to ``to_static``, by decorator or by call.

    @to_static                     decorated
    net = to_static(Net())         the forward of a class of the file
    step = to_static(self.step)    methods and functions of that name
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

NAME = "to_static"
Function = ast.FunctionDef | ast.AsyncFunctionDef


def definitions(node: ast.AST, prefix: str = "") -> Iterator[tuple[Function, str]]:
    """Every function of a tree with its qualified name."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield child, prefix + child.name
            yield from definitions(child, f"{prefix}{child.name}.<locals>.")
        else:
            yield from definitions(child, f"{prefix}{child.name}." if isinstance(child, ast.ClassDef) else prefix)


def marked(tree: ast.Module) -> set[str]:
    """The qualified names of the functions that a file gives to ``to_static``.

    >>> sorted(marked(ast.parse("class Net(Module):\\n  def forward(self, x): ...\\nnet = Net()\\nto_static(net)")))
    ['Net.forward']
    """
    return _Marks(tree).found()


class _Marks:
    def __init__(self, tree: ast.Module) -> None:
        self.tree = tree
        self.functions = [qualname for _, qualname in definitions(tree)]
        self.names = {NAME}
        self.bases: dict[str, list[str]] = {}
        self.classes: dict[str, set[str]] = {}
        """By variable (or attribute): the classes of the file that objects of that name are made of."""
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                self.names |= {alias.asname or alias.name for alias in node.names if alias.name == NAME}
            elif isinstance(node, ast.ClassDef):
                self.bases[node.name] = [last for base in node.bases if (last := _last(base))]
        for node in ast.walk(tree):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(
                node, (ast.AnnAssign, ast.NamedExpr)) else []  # fmt: skip
            made = self._class_of(getattr(node, "value", None)) if targets else ""
            for target in targets:
                if made and (name := _last(target)):
                    self.classes.setdefault(name, set()).add(made)

    def found(self) -> set[str]:
        result = {
            qualname for node, qualname in definitions(self.tree)
            if any(self._is_to_static(decorator) for decorator in node.decorator_list)
        }  # fmt: skip
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and self._is_to_static(node.func):
                given = node.args[:1] + [keyword.value for keyword in node.keywords if keyword.arg == "function"]
                for value in given:
                    result |= self._functions_of(value)
        return result

    def _is_to_static(self, node: ast.expr) -> bool:
        """Whether an expression is ``to_static``, or ``to_static(...)`` with options."""
        if isinstance(node, ast.Call):
            partial = _last(node.func) == "partial" and bool(node.args) and self._is_to_static(node.args[0])
            return partial or self._is_to_static(node.func)
        return isinstance(node, (ast.Name, ast.Attribute)) and _last(node) in self.names

    def _functions_of(self, value: ast.expr) -> set[str]:
        made = self._class_of(value)
        if made:
            return self._method(made, "forward") or self._method(made, "__call__")
        if isinstance(value, ast.Call) and _last(value.func) == "partial" and value.args:
            return self._functions_of(value.args[0])
        name = _last(value)
        if isinstance(value, ast.Attribute):
            owner = _last(value.value)
            classes = {owner} if owner in self.bases else self.classes.get(owner, set())
            found = {method for cls in classes for method in self._method(cls, name)}
            if found:
                return found
        found = {method for cls in self.classes.get(name, ()) for method in self._method(cls, "forward")}
        return found or {one for one in self.functions if name and one.split(".")[-1] == name}

    def _class_of(self, value: ast.expr | None) -> str:
        """The class of the file that an expression makes an object of; empty for others."""
        if not isinstance(value, ast.Call):
            return ""
        name = _last(value.func)
        return name if name in self.bases else ""

    def _method(self, cls: str, name: str, seen: tuple[str, ...] = ()) -> set[str]:
        """A method of a class of the file, its own or one of a base."""
        own = {one for one in self.functions if one == f"{cls}.{name}" or one.endswith(f".{cls}.{name}")}
        if own or cls in seen:
            return own
        return {one for base in self.bases.get(cls, ()) for one in self._method(base, name, (*seen, cls))}


def _last(node: ast.expr) -> str:
    """The last name of ``a.b.c``."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


__all__ = ["definitions", "marked"]
