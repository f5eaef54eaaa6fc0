"""Rooms, arrows and cycles of the import graph: ``python scripts/import_graph.py [REVISION]``.

A room is a package. An arrow is a room whose files import files of another when they run: imports inside functions
count, those under ``if TYPE_CHECKING`` do not. A cycle is a set of files of which each leads to all others. With a
revision, it is that commit of the repository that is looked at.
"""

from __future__ import annotations

import argparse
import ast
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("runtime", "dy2static")
Graph = Mapping[str, set[str]]


def sources(revision: str | None = None) -> dict[str, str]:
    """The text of every module, by dotted name; a package's is that of its ``__init__``."""
    if revision is None:
        files = {str(file.relative_to(ROOT)): file.read_text()
                 for package in PACKAGES for file in sorted((ROOT / package).rglob("*.py"))}  # fmt: skip
    else:
        listed = _git("ls-tree", "-r", "--name-only", revision, *PACKAGES).splitlines()
        files = {file: _git("show", f"{revision}:{file}") for file in listed if file.endswith(".py")}
    return {file.removesuffix(".py").replace("/", ".").removesuffix(".__init__"): text for file, text in files.items()}


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def graph(modules: Mapping[str, str]) -> dict[str, set[str]]:
    """Which modules each module imports when it runs."""
    found = {}
    for name, text in modules.items():
        imported = {
            f"{base}.{part}" if f"{base}.{part}" in modules else base
            for base, part in _imports(ast.parse(text), name, modules)
        }
        found[name] = {one for one in imported if one in modules and one != name}
    return found


def _imports(node: ast.AST, name: str, modules: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING":
            continue
        if isinstance(child, ast.Import):
            yield from ((alias.name, "") for alias in child.names)
        elif isinstance(child, ast.ImportFrom) and not child.level and child.module:
            yield from ((child.module, alias.name) for alias in child.names)
        else:
            yield from _imports(child, name, modules)


def cycles(graph: Graph) -> list[list[str]]:
    """The sets of modules that lead to each other (Tarjan's strongly connected components), the largest first."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = lowest[module] = len(number)
        stack.append(module)
        for other in graph[module]:
            if other not in number:
                visit(other)
            if other in stack:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == number[module]:
            component = stack[stack.index(module) :]
            del stack[stack.index(module) :]
            if len(component) > 1:
                found.append(sorted(component))

    for module in graph:
        if module not in number:
            visit(module)
    return sorted(found, key=len, reverse=True)


def room_of(module: str, modules: Mapping[str, str]) -> str:
    """The package that a module is in; a package's own file is in it."""
    is_package = any(other.startswith(f"{module}.") for other in modules)
    return module if is_package else module.rpartition(".")[0]


def arrows(graph: Graph) -> Counter[tuple[str, str]]:
    """How many imports there are from one room to another."""
    found: Counter[tuple[str, str]] = Counter()
    for module, imported in graph.items():
        for other in imported:
            one, two = room_of(module, graph), room_of(other, graph)
            if one != two:
                found[one, two] += 1
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("revision", nargs="?", help="a commit; what lies in the working tree if not given")
    modules = sources(parser.parse_args().revision)
    found = graph(modules)
    between = arrows(found)
    rooms: dict[str, list[str]] = {}
    for module in modules:
        rooms.setdefault(room_of(module, modules), []).append(module)
    print(f"{len(modules)} files, {len(rooms)} rooms, {len(between)} arrows")
    for room, members in sorted(rooms.items()):
        lines = sum(modules[member].count("\n") for member in members)
        to = ", ".join(f"{other} ({count})" for (one, other), count in sorted(between.items()) if one == room)
        print(f"\n{room}: {len(members)} files, {lines} lines\n    -> {to or 'nothing'}")
    tangled = cycles(found)
    print(f"\ncycles among files: {len(tangled)}")
    for component in tangled:
        print(f"    {len(component)}: {', '.join(component)}")


if __name__ == "__main__":
    main()
