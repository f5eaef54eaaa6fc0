"""Pages with one example: it gives what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page", ["compression", "serving"])
def test_the_example_gives_what_the_page_says(page: str, tmp_path: Path) -> None:
    text = (ROOT / "docs" / f"{page}.md").read_text("utf-8")
    code, said = (re.search(rf"```{kind}\n(.*?)```", text, re.S)[1] for kind in ("python", "text"))  # type: ignore[index]
    (tmp_path / "example.py").write_text(code)
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, check=True, env={"PYTHONPATH": str(ROOT)},
                          capture_output=True, text=True)  # fmt: skip
    assert done.stdout == said
