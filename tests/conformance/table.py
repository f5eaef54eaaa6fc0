"""Writes docs/conformance.md from the suite: ``python -m tests.conformance.table``."""

from __future__ import annotations

from pathlib import Path

from tests.conformance.suite import families
from tests.conformance.uses import grown, record

_PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"

_HEAD = """# What of Python works

Each row is a construct; each stands for programs in `tests/conformance/cases` that are run converted and not, on
inputs that take every path: values, structure, Python types, gradients, buffers, attributes and the random stream
are equal. *works*: in all of them. A code instead: the program is refused, at the user's line, with that error.
The page is written by `python -m tests.conformance.table`.
"""


def page() -> str:
    """The text of the page."""
    lines = [_HEAD]
    every = families()
    cases = [case for family in every for case in family.cases]
    refused = sum(bool(case.refused) for case in cases)
    lines.append(f"{len(cases)} programs: {len(cases) - refused} work, {refused} are refused.\n")
    for family in every:
        lines += [f"## {family.name}\n", "| construct | programs | result |", "| --- | --- | --- |"]
        rows: dict[tuple[str, str], int] = {}
        for case in family.cases:
            key = (case.construct, case.refused)
            rows[key] = rows.get(key, 0) + 1
        for (construct, code), count in rows.items():
            result = f"refused with {code}" if code else "works"
            lines.append(f"| {construct.replace('|', chr(92) + '|')} | {count} | {result} |")
        lines.append("")
    lines += [*record.section(), "", *grown.section()]
    return "\n".join(lines).rstrip() + "\n"


if __name__ == "__main__":
    _PAGE.parent.mkdir(exist_ok=True)
    _PAGE.write_text(page())
    print(f"wrote {_PAGE.name}")
