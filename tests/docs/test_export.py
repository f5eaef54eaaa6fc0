"""The page about ONNX: its example gives what it says, its table is the code's."""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest

from runtime.export.capability import TABLE, TARGETS, Answer, No
from runtime.export.onnx import composites, lists, operators, scalars
from runtime.export.torch_export import scalars as torch_scalars

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "docs" / "export.md"


def _wrapped(names: Iterable[str]) -> str:
    text = ", ".join(f"`{name}`" for name in sorted(names))
    return "\n".join(textwrap.wrap(text, 118, break_long_words=False, break_on_hyphens=False))


def _answer(answer: Answer) -> str:
    return f"**no**: {answer.reason}" if isinstance(answer, No) else answer.text


def table() -> str:
    """The table as the page has it. ``python -m tests.docs.test_export`` writes it."""
    rows = [f"| what it needs | {' | '.join(one.name for one in TARGETS.values())} | what to write instead |",
            f"| {' | '.join(['---'] * (len(TARGETS) + 2))} |"]  # fmt: skip
    rows += [f"| {row.title} | {' | '.join(_answer(row.answers[one]) for one in TARGETS)} | {row.instead} |"
             for row in TABLE]  # fmt: skip
    ours = {name.split(".")[1] for name in (*operators.OWN, *composites.COMPOSITES, *composites.INSTEAD)}
    parts = ["\n".join(rows), f"Of Python's numbers, in ONNX:\n{_wrapped(scalars.operators())}",
             f"and in `torch.export` besides:\n{_wrapped(set(torch_scalars.operators()) - set(scalars.operators()))}",
             f"Of lists, in ONNX:\n{_wrapped(lists.operators())}",
             f"Of PyTorch's operators, in ONNX, beside those that its own ONNX converters write:\n"
             f"{_wrapped(ours | set(composites.RENAMED))}",
             "In `torch.export` every operator of PyTorch's has a form that its exporter takes; for C see "
             "[export_c.md](export_c.md)."]  # fmt: skip
    return "\n\n".join(parts)


_TABLE = re.compile(r"(<!-- table -->\n).*?(<!-- end -->)", re.S)


def test_the_table_is_that_of_the_code() -> None:
    assert f"<!-- table -->\n{table()}\n<!-- end -->" in FILE.read_text("utf-8"), (
        "python -m tests.docs.test_export writes the table")


def blocks(kind: str) -> list[str]:
    """The page's blocks of one language."""
    return re.findall(rf"```{kind}\n(.*?)```", FILE.read_text("utf-8"), re.S)


def test_the_example_gives_what_the_page_says(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(blocks("python")[0])
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, check=True, env={"PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout == blocks("text")[0]


@pytest.mark.slow
def test_the_exported_program_of_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "example.py").write_text(blocks("python")[1] + "print(tuple(y.shape), float(y.max()), int(steps))")
    done = subprocess.run([sys.executable, "-W", "ignore", "example.py"], cwd=tmp_path, check=True,
                          env={"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)  # fmt: skip
    shape, most, steps = re.fullmatch(r"(\(5, 3\)) (\S+) (\d+)\n", done.stdout).groups()  # type: ignore[union-attr]
    assert float(most) <= 1 and int(steps) > 0 and shape


if __name__ == "__main__":
    FILE.write_text(_TABLE.sub(lambda found: f"{found[1]}{table()}\n{found[2]}", FILE.read_text("utf-8")), "utf-8")
