"""How many lines converted code has for each line of the user's: is it still code that a person can read?

    python scripts/converted_lines.py               # the conformance suite, the example, some of the standard library

Both sides are printed by the same generator and blank lines and docstrings are not counted, so how the user breaks
lines does not matter. "dense" are the functions in which at least every fourth line is an ``if``, ``while`` or ``for``.
"""

from __future__ import annotations

import argparse
import ast
import os
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gast

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from dy2static.analysis.flow import CONSTRUCTS  # noqa: E402
from dy2static.errors import ConversionError, converting  # noqa: E402
from dy2static.generate import to_source  # noqa: E402
from dy2static.pipeline import Level, convert_tree  # noqa: E402
from dy2static.source import Candidate, FunctionSource, candidates, describe  # noqa: E402
from dy2static.transforms.base import converts  # noqa: E402

LIBRARY = Path(os.__file__).parent
MODULES = (
    "argparse.py", "bisect.py", "configparser.py", "contextlib.py", "copy.py", "difflib.py", "fractions.py",
    "json/decoder.py", "shlex.py", "textwrap.py",
)  # fmt: skip


@dataclass
class Count:
    """Lines before and after."""

    user: int = 0
    converted: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.user + other.user, self.converted + other.converted)

    @property
    def ratio(self) -> float:
        return self.converted / max(self.user, 1)


def groups() -> dict[str, list[Path]]:
    """The files of each row of the table."""
    return {
        "conformance suite": sorted((ROOT / "tests/conformance/cases").glob("*.py")),
        "example": [ROOT / "examples/adaptive_classifier.py"],
        "standard library": [LIBRARY / name for name in MODULES],
    }


def outermost(path: Path) -> Iterator[tuple[Candidate, FunctionSource]]:
    """The functions of a file that stand in no other function."""
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines(keepends=True)
    end = 0
    for candidate in candidates(text, str(path), 0):
        node = candidate.node
        if isinstance(node, ast.Lambda) or node.lineno <= end:
            continue
        end = node.end_lineno or node.lineno
        yield candidate, describe(candidate, str(path), lines, "module", node.name, node.name)


def lines_of(tree: Any) -> int:
    """The lines of a function, printed, without docstrings and blank lines."""
    return sum(bool(line.strip()) for line in to_source(_without_docstrings(tree)).splitlines())


def _without_docstrings(tree: Any) -> Any:
    for node in gast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and len(body) > 1 and isinstance(body[0], gast.Expr):
            value = body[0].value
            if isinstance(value, gast.Constant) and isinstance(value.value, str):
                node.body = body[1:]
    return tree


def measure(path: Path, level: Level) -> Iterator[tuple[str, bool, Count]]:
    """Each function that converts: its name, whether it is dense, its lines."""
    for _, source in outermost(path):
        user = lines_of(source.tree)
        dense = 4 * sum(isinstance(node, CONSTRUCTS) for node in gast.walk(source.tree)) >= user
        try:
            with converting(source):
                if not converts(source.tree):
                    continue
                tree = convert_tree(source.tree, source, level)
        except ConversionError:
            continue
        yield source.qualname, dense, Count(user, lines_of(tree))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--level", choices=["full", "control_flow"], default="full")
    parser.add_argument("--functions", action="store_true", help="a row for each function, the longest last")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(f"{'':24}{'user':>8}{'converted':>11}{'ratio':>8}{'dense: user':>14}{'converted':>11}{'ratio':>8}")
    for name, paths in groups().items():
        whole, dense = Count(), Count()
        rows: list[tuple[Count, str]] = []
        for path in paths:
            for function, is_dense, count in measure(path, options.level):
                whole += count
                dense += count if is_dense else Count()
                rows.append((count, f"{path.name}:{function}"))
        print(f"{name:24}{whole.user:8}{whole.converted:11}{whole.ratio:8.2f}"
              f"{dense.user:14}{dense.converted:11}{dense.ratio:8.2f}")  # fmt: skip
        if options.functions:
            for count, function in sorted(rows, key=lambda row: row[0].ratio):
                print(f"    {count.user:5}{count.converted:7}{count.ratio:7.2f}  {function}")


if __name__ == "__main__":
    main()
