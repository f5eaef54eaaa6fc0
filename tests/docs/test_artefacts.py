"""The page about artefacts: its examples give what stands there, and its codes are codes."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from runtime.storage.upgrade import VERSION

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "artefacts.md"


def test_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    failed, run = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0 and run >= 20
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
        "coder.d2s", "doubled.d2s", "encoder.d2s", "linear.d2s"]


def test_what_it_names() -> None:
    text = PAGE.read_text("utf-8")
    errors = (ROOT / "docs" / "errors.md").read_text("utf-8")
    assert all(f"### {code}:" in errors for code in re.findall(r"D2S\d{3}", text))
    assert f'| `format`, `version` | `"dy2static artefact"`, {VERSION} |' in text
    for name in re.findall(r"`(docs/\w+\.md)`", text):
        assert (ROOT / name).exists()
