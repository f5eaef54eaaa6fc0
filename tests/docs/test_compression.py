"""The page about compression: its example gives what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "compression.md").read_text("utf-8")


def test_the_example_gives_what_the_page_says(tmp_path: Path) -> None:
    code, text = (re.search(rf"```{kind}\n(.*?)```", PAGE, re.S)[1] for kind in ("python", "text"))  # type: ignore[index]
    (tmp_path / "example.py").write_text(code)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, check=True, env={"PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout == text
