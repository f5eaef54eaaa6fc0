"""The page about exported C: its example gives what it says, its list of operators is the code's."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from runtime.export.c.rules import operators
from tests.runtime.export.c.harness import CC, needs_cc

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "export_c.md"


def listed() -> str:
    """The list of operators as the page has it. ``python -m tests.docs.test_export_c`` writes it."""
    names = ", ".join(f"`{name}`" for name in operators())
    return "\n".join(textwrap.wrap(names, 118, break_long_words=False, break_on_hyphens=False))


_LIST = re.compile(r"(<!-- operators -->\n).*?(<!-- end -->)", re.S)


def test_the_list_of_operators_is_that_of_the_code() -> None:
    assert f"<!-- operators -->\n{listed()}\n<!-- end -->" in FILE.read_text("utf-8"), (
        "python -m tests.docs.test_export_c writes the list")


def block(kind: str) -> str:
    """The page's block of one language."""
    found = re.search(rf"```{kind}\n(.*?)```", FILE.read_text("utf-8"), re.S)
    assert found is not None
    return found[1]


@pytest.mark.slow
@needs_cc
def test_the_example_gives_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(block("python"))
    subprocess.run([sys.executable, "example.py"], cwd=tmp_path, check=True, env={"PYTHONPATH": str(ROOT)})
    folder = tmp_path / "settle"
    (folder / "mine.c").write_text(block("c"))
    assert CC is not None
    subprocess.run([CC, "-std=c11", "-Wall", "-Wextra", "-Werror", "-O3", "-march=native", "mine.c", "settle.c", "-o",
                    "mine", "-lm"], cwd=folder, check=True)  # fmt: skip
    done = subprocess.run(["./mine"], cwd=folder, capture_output=True, text=True, check=True)
    assert done.stdout == block("text")


if __name__ == "__main__":
    FILE.write_text(_LIST.sub(rf"\1{listed()}\n\2", FILE.read_text("utf-8")), "utf-8")
