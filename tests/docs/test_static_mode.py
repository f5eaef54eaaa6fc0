"""The page about static-graph mode: its example prints what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_example_prints_what_the_page_says(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "static_mode.md").read_text("utf-8")
    code, printed = (re.search(rf"```{kind}\n(.*?)```", text, re.S) for kind in ("python", "text"))
    assert code is not None and printed is not None
    file = tmp_path / "example.py"
    file.write_text(code[1])
    done = subprocess.run(
        [sys.executable, file], capture_output=True, text=True, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, check=False)
    assert done.stdout == printed[1], done.stderr
