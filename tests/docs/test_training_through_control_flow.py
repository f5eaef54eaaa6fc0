"""The table of tools in README.md says what the page that `benchmarks/who_is_right.py` wrote says."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PAGE = (ROOT / "docs" / "training_through_control_flow.md").read_text()


def rows(text: str, first: str) -> list[list[str]]:
    """The cells of the table whose header begins with ``first``, without the header."""
    lines = text[text.index(f"| {first} |") :].split("\n\n")[0].splitlines()
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("| ---")]


def counted() -> list[list[str]]:
    """How often each tool of the page is right, wrong without a word, and refuses."""
    header, *cases, total = rows(PAGE, "function")
    assert total[0] == "**right**" and len(cases) == 10
    found = []
    for column, tool in enumerate(header[1:], 1):
        cells = [case[column] for case in cases]
        right = cells.count("right")
        wrong = sum(cell.startswith("**wrong**") for cell in cells)
        assert total[column] == f"**{right} of 10**"
        rest = len(cells) - right - wrong
        found.append([tool.split(" ")[0], f"{right} of 10", str(wrong or ""), str(rest or "")])
    return found


def test_the_counts_are_the_pages():
    said = [[row[0].split(",")[0].strip("`"), *row[1:]] for row in rows(README, "tool")[1:]]
    assert said == counted()


def test_the_version_is_the_pages():
    said = re.search(r"\(PyTorch ([\d.]+), `python benchmarks/who_is_right.py`", README)
    ran = re.search(r"Run with PyTorch (\d+\.\d+)\.", PAGE)
    assert said is not None and ran is not None and said[1] == ran[1]
