"""What became of each use of a list or deque that grew: ``python -m tests.conformance.uses.grown`` runs and writes all.

    python -m tests.conformance.uses.grown --every 10 --first 3      one in ten; the rest of the record stays

The uses are those of ``tests.end_to_end.grown_uses``, the programs of lists in lists those of ``nested_uses``.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import warnings
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

from dy2static.program_cache import RetraceWarning
from tests.end_to_end import grown_uses, nested_uses

_FILE = Path(__file__).parent / "grown.txt"
_BATCH = 100
COLUMNS = {
    "list of tensors": ("loop", "tensors"), "list of ints": ("loop", "ints"), "list of pairs": ("loop", "pairs"),
    "deque of tensors": ("deque_loop", "tensors"),
}  # fmt: skip
"""What grows: how it is made, and what it holds."""
_GROUPS = {
    "method": "methods", "deque": "methods of deques", "syntax": "syntax", "builtin": "builtins and methods of others",
    "library": "functions of libraries",
}  # fmt: skip

Key = tuple[str, str, str]
"""A group, a use and a column."""


def every() -> list[Key]:
    """All uses, of each column that has them."""
    return [(group, use, column) for group in _GROUPS for use in grown_uses.uses(group) for column in COLUMNS
            if group != "deque" or column.startswith("deque")]  # fmt: skip


def read() -> dict[Key, str]:
    """The record: a line for each use, a word for each column, ``-`` where it was not run."""
    found: dict[Key, str] = {}
    for line in _FILE.read_text().splitlines() if _FILE.exists() else ():
        group, use, *words = line.split("\t")
        use = use.replace("\\n", "\n")
        found |= {(group, use, column): word for column, word in zip(COLUMNS, words) if word != "-"}
    return found


def write(record: dict[Key, str]) -> None:
    """Write the record, in the order of the uses."""
    lines = []
    for group in _GROUPS:
        for use in grown_uses.uses(group):
            words = [record.get((group, use, column), "-") for column in COLUMNS]
            lines.append("\t".join([group, use.replace("\n", "\\n"), *words]))
    _FILE.write_text("\n".join(lines) + "\n")


def section() -> list[str]:
    """The lines of the page: how many uses of lists that grew work."""
    record = read()
    words = Counter("refused" if word.startswith("D2S") else word for word in record.values())
    lines = [
        "## Lists and deques whose length only the run knows\n",
        "What can be done with a list or deque which grew in a loop over a tensor. A cell: how many uses do what eager "
        "does, errors included, of those that were run; the others are refused with a code. Written by "
        "`python -m tests.conformance.uses.grown`.\n",
        f"{len(record)} programs run: {words['equal']} equal, {words['refused']} refused, {words['different']} "
        f"different, {words['internal']} internal errors.\n",
        f"| | {' | '.join(COLUMNS)} |", f"| --- | {' | '.join('---' for _ in COLUMNS)} |",
    ]  # fmt: skip
    for group, name in _GROUPS.items():
        cells = []
        for column in COLUMNS:
            said = [word for (one, _, where), word in record.items() if one == group and where == column]
            cells.append(f"{said.count('equal')} of {len(said)}" if said else "")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    works, caught, refused = map(len, (nested_uses.EQUAL, nested_uses.CAUGHT, nested_uses.REFUSED))
    lines += [
        "",
        f"Lists in such lists, changed through the outer one or by another name: of {works + caught + refused} "
        f"programs (`tests/end_to_end/nested_uses.py`) {works + caught} do what eager does, {caught} of them with an "
        f"error that is caught; {refused} are refused.\n",
    ]
    return lines


def main() -> None:
    """Run uses and write what became of them."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore", RetraceWarning)
    chosen = every()[options.first :: options.every]
    for start in range(0, len(chosen), _BATCH):
        batch, found = chosen[start : start + _BATCH], {}
        with tempfile.TemporaryDirectory() as folder:
            sources = [grown_uses.program(*COLUMNS[column], use) for _, use, column in batch]
            for key, function in zip(batch, grown_uses.load(sources, Path(folder))):
                with redirect_stdout(io.StringIO()):
                    word, why = grown_uses.judge(function, COLUMNS[key[2]][1])
                found[key] = why.split()[0] if word == "refused" else word
                if word in ("different", "internal"):
                    print(word, key, "|", why.replace("\n", " ")[:300], flush=True)
        write(read() | found)
        print(f"{min(start + _BATCH, len(chosen))} of {len(chosen)}", flush=True)


if __name__ == "__main__":
    main()
