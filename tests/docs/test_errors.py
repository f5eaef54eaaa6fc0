"""The page of errors: every example raises its error, every code has its entry, every message can be acted on."""

from __future__ import annotations

import re
import runpy
import sys
import traceback
from dataclasses import dataclass
from pathlib import Path

import pytest

import dy2static
import runtime
from dy2static.errors import Dy2StaticError

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "errors.md").read_text("utf-8")
BASES = {"D2S000", "D2S100", "D2S200", "D2S300", "D2S500"}
"""Codes of the base classes, which nothing raises as they are."""
ELSEWHERE = {"D2S111": "changing.py", "D2S400": "<program>"}
"""Errors that are about a file other than the one that calls."""
OURS = tuple(str(Path(str(package.__file__)).parent) for package in (dy2static, runtime))
SECRETS = re.compile(r"_d2s|\b[usz]u?f?\d+\b|zuf\d|Fake|Staged|Choice|TODO|dy2static_\w+/")
"""What no message may hold: names of generated code, of symbols, of classes of ours."""


@dataclass
class Entry:
    code: str
    title: str
    text: str

    @property
    def example(self) -> str | None:
        found = re.search(r"```python\n(.*?)```", self.text, re.S)
        return None if found is None else found[1]


IMPORTS = str(re.search(r"```python\n(.*?)```", PAGE, re.S)[1])  # type: ignore[index]
ENTRIES = [Entry(*found) for found in re.findall(r"^### (D2S\d+): (.*?)\n(.*?)(?=^##|\Z)", PAGE, re.S | re.M)]
EXAMPLES = [entry for entry in ENTRIES if entry.example]


def raised_codes() -> dict[str, list[str]]:
    """Every code in the source, with the files that name it."""
    found: dict[str, list[str]] = {}
    for package in OURS:
        for file in sorted(Path(package).rglob("*.py")):
            for code in re.findall(r"\"(D2S\d{3})\"", file.read_text("utf-8")):
                found.setdefault(code, []).append(file.name)
    return found


def test_every_code_has_one_entry_and_every_entry_a_code() -> None:
    listed = [entry.code for entry in ENTRIES]
    assert listed == sorted(set(listed))
    assert set(listed) == set(raised_codes()) - BASES | {"D2S400"}


def test_errors_that_can_be_shown_are_shown() -> None:
    rare = [entry for entry in ENTRIES if not entry.example]
    assert len(EXAMPLES) >= 69
    assert all(len(entry.text.split()) >= 9 for entry in rare)


def raised_by(entry: Entry, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Dy2StaticError, Path]:
    file = folder / "example.py"
    file.write_text(f"{IMPORTS}\n{entry.example}", "utf-8")
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "path", [*sys.path])
    with pytest.raises(Dy2StaticError) as caught:
        runpy.run_path(str(file), run_name="__main__")
    return caught.value, file


@pytest.mark.parametrize("entry", EXAMPLES, ids=lambda entry: entry.code)
def test_example(entry: Entry, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    error, file = raised_by(entry, tmp_path, monkeypatch)
    message = str(error)
    assert error.code == entry.code, message
    assert message.startswith(f"[{entry.code}] "), message

    location = error.location
    assert location is not None, message
    name = ELSEWHERE.get(entry.code, "example.py")
    assert f"{name}:{location.line}" in message
    if name == "example.py":
        assert Path(location.file) == file
        line = file.read_text("utf-8").splitlines()[location.line - 1]
        assert location.text == line and line.strip() in message
        assert re.search(r"^ +\^$", message, re.M), message
    assert error.hint, message
    assert not SECRETS.search(message.replace(str(tmp_path), "")), message

    frames = [
        frame.filename for frame in traceback.extract_tb(error.__traceback__)
        if frame.name != "watched_call"  # of the watch for leaks
    ]  # fmt: skip
    ours = [frame for frame in frames if frame.startswith(OURS)]
    assert str(file) in frames
    assert len(ours) <= 2 or entry.code == "D2S400", "only the call that raises"
    assert not any("dy2static_" in frame for frame in frames), "no generated file"


def test_what_the_examples_name() -> None:
    """Codes are unique to a meaning: no two entries share a title."""
    assert len({entry.title for entry in ENTRIES}) == len(ENTRIES)
