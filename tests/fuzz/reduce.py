"""Make a failing random program small: ``python -m tests.fuzz.reduce --seed 5001``, or ``--file program.py``.

Statements are left out, and bodies put in the place of what they stand in, as long as the program still ends in the
same outcome with the same code.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import copy
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch

from tests.fuzz.generator import Generator
from tests.fuzz.judging import Outcome, judge

_BODIES = ("body", "orelse", "finalbody", "handlers", "cases")


Judge = Callable[[str, int], Outcome]


def reduce(
    source: str, seed: int, *, wanted: Outcome | None = None, seconds: float = 600, judge: Judge = judge
) -> str:
    """The smallest program found in that time with the same outcome."""
    until = time.monotonic() + seconds
    tree = ast.parse(source)
    wanted = wanted or judge(source, seed)
    smaller = True
    while smaller:
        smaller = False
        position = 0
        while (candidate := _edit(tree, position)) is not None and time.monotonic() < until:
            position += 1
            if _still(candidate, seed, wanted, judge):
                tree, smaller = candidate, True
                position -= 1
    return ast.unparse(_without_unused(tree))


def _without_unused(tree: ast.Module) -> ast.Module:
    """The program without helpers that nothing in it names."""
    while True:
        kept = [
            node
            for node in tree.body
            if not isinstance(node, (ast.FunctionDef, ast.ClassDef))
            or node is tree.body[-1]
            or any(isinstance(n, ast.Name) and n.id == node.name for other in tree.body if other is not node
                   for n in ast.walk(other))
        ]  # fmt: skip
        if len(kept) == len(tree.body):
            return tree
        tree.body = kept


def _still(tree: ast.Module, seed: int, wanted: Outcome, judge: Judge) -> bool:
    text = ast.unparse(tree)
    try:
        compile(text, "candidate", "exec")
        with _limited():
            found = judge(text, seed)
    except (SyntaxError, NameError, AttributeError, _EndlessError):  # it is no program any more
        return False
    return (found.kind, found.code) == (wanted.kind, wanted.code)


class _EndlessError(BaseException):
    """A candidate does not end: what its loop counted by was left out."""


@contextlib.contextmanager
def _limited(seconds: int = 60) -> Iterator[None]:
    def stop(*_: object) -> None:
        raise _EndlessError

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def _edit(tree: ast.Module, number: int) -> ast.Module | None:
    """The tree with the edit of that number, biggest parts first; None if there are fewer."""
    changed = copy.deepcopy(tree)
    for count, (statements, index, replacement) in enumerate(_edits(changed)):
        if count == number:
            statements[index : index + 1] = replacement
            return ast.fix_missing_locations(changed)
    return None


def _edits(tree: ast.Module) -> Iterator[tuple[list[ast.stmt], int, list[ast.stmt]]]:
    changes = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("change_")]
    todo: list[ast.AST] = [tree.body[-1], *changes]  # the rest is the library
    while todo:
        node = todo.pop(0)
        for field in _BODIES:
            statements = getattr(node, field, None)
            if not isinstance(statements, list):
                continue
            for index in reversed(range(len(statements))):
                inner = statements[index]
                if len(statements) > 1 or field in ("orelse", "finalbody"):
                    yield statements, index, []
                elif not isinstance(inner, (ast.Pass, ast.ExceptHandler, ast.match_case)):
                    yield statements, index, [ast.Pass()]
                if isinstance(inner, (ast.If, ast.For, ast.While, ast.With, ast.Try)):
                    yield statements, index, inner.body
                    if isinstance(inner, ast.If) and inner.orelse:
                        yield statements, index, inner.orelse
                if isinstance(inner, ast.Match):
                    for case in inner.cases:
                        yield statements, index, case.body
            todo.extend(statements)


def main(arguments: list[str] | None = None) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seed", type=int, required=True, help="of the program and its inputs")
    parser.add_argument("--depth", type=int, default=3)
    parser.add_argument("--file", type=Path, help="a program to reduce, instead of the seed's")
    parser.add_argument("--seconds", type=float, default=600, help="stop making it smaller after so many seconds")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    source = options.file.read_text() if options.file else Generator(options.seed, depth=options.depth).source()
    wanted = judge(source, options.seed)
    if wanted.kind == "same":
        print("the program does what eager does")
        return 0
    small = reduce(source, options.seed, wanted=wanted, seconds=options.seconds)
    print(small)
    print(f"# {wanted.kind} {wanted.code}")
    print("# " + judge(small, options.seed).detail.replace("\n", "\n# "))
    return 1


if __name__ == "__main__":
    sys.exit(main())
