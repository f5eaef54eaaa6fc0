"""What became of each use when it was last run: ``python -m tests.conformance.uses.record`` runs and writes all.

    python -m tests.conformance.uses.record --every 10 --first 3     one in ten; the rest of the record stays
"""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from tests.conformance.uses.uses import KINDS, TABLES, Outcome, Use, every, outcomes

_FILE = Path(__file__).parent / "record.txt"
_BATCH = 200


def word_of(outcome: Outcome) -> str:
    """How the record says it: "equal", "raises", a code, or what is wrong."""
    return outcome.detail if outcome.word == "refused" else outcome.word


def read() -> dict[Use, str]:
    """The record: a line for each use, a word for each kind of value, ``-`` where it was not run."""
    found: dict[Use, str] = {}
    for line in _FILE.read_text().splitlines() if _FILE.exists() else ():
        table, name, number, *words = line.split("\t")
        for kind, word in zip(KINDS, words):
            if word != "-":
                found[Use(table, name, int(number), kind)] = word
    return found


def write(record: dict[Use, str]) -> None:
    """Write the record, in the order of the tables."""
    lines = []
    for table, names in TABLES.items():
        for name, uses in names.items():
            for number in range(len(uses)):
                words = [record.get(Use(table, name, number, kind), "-") for kind in KINDS]
                lines.append("\t".join([table, name, str(number), *words]))
    _FILE.write_text("\n".join(lines) + "\n")


def section() -> list[str]:
    """The lines of the page: how many uses of each function work, of those that Python itself takes."""
    record = read()
    words = Counter("refused" if word.startswith("D2S") else word for word in record.values())
    lines = [
        "## Values that only the run knows, given to everything of Python's\n",
        "Every builtin, method and function of the standard library that takes a value, applied to one of two values "
        "that a branch chose (text, an Enum member, text or None, a dtype, a class, a tuple) and to a number or text "
        "that is computed while the Program runs. A cell: how many uses give what eager gives, of those that eager "
        "takes; the others are refused with a code. Written by `python -m tests.conformance.uses.record`.\n",
        f"{len(record)} programs run: {words['equal']} equal, {words['raises']} raise what eager raises, "
        f"{words['refused']} refused, {words['silent']} silently different, {words['internal']} internal errors.\n",
        f"| | | {' | '.join(KINDS)} |", f"| --- | --- | {' | '.join('---' for _ in KINDS)} |",
    ]  # fmt: skip
    for table, names in TABLES.items():
        for name, uses in names.items():
            cells = []
            for kind in KINDS:
                said = [record.get(Use(table, name, number, kind), "raises") for number in range(len(uses))]
                taken = [word for word in said if word != "raises"]
                cells.append(f"{taken.count('equal')} of {len(taken)}" if taken else "")
            if any(cells):
                lines.append(f"| {table} | {name.replace('|', chr(92) + '|')} | {' | '.join(cells)} |")
    return lines


def main() -> None:
    """Run uses and write what became of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    chosen = every()[options.first :: options.every]
    for start in range(0, len(chosen), _BATCH):
        found = dict(outcomes(chosen[start : start + _BATCH]))
        write(read() | {use: word_of(outcome) for use, outcome in found.items()})
        for use, outcome in found.items():
            if outcome.word in ("silent", "internal"):
                print(outcome.word, use.kind, "|", use.text, "|", outcome.detail.replace("\n", " ")[:300], flush=True)
        print(f"{min(start + _BATCH, len(chosen))} of {len(chosen)}", flush=True)


if __name__ == "__main__":
    main()
