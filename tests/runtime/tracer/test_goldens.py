"""Small functions and what the tracer makes of each: the Program's text, which does what eager does."""

from __future__ import annotations

from pathlib import Path

import pytest

import dy2static
from tests import goldens
from tests.goldens import Golden
from tests.oracle import check, check_module

ALL = [golden for file in sorted(Path(__file__).parent.rglob("*.txt")) for golden in goldens.read(file)]


@pytest.mark.parametrize("golden", ALL, ids=lambda golden: f"{golden.file.stem}-{golden.title.replace(' ', '_')}")
def test_golden(golden: Golden, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    with goldens.no_passes():
        code, calls = goldens.code_of(golden, tmp_path), goldens.calls_of(golden)
        if isinstance(code, type):
            static = check_module(code, *calls, paths=("program",)).forward
        else:
            static = check(code, *calls, paths=("program",))
        text = goldens.text_of(static)
    if request.config.getoption("--goldens"):
        goldens.write(golden, text)
    else:
        assert text == golden.text


def test_titles_differ() -> None:
    assert len({(golden.file, golden.title) for golden in ALL}) == len(ALL) >= 40


def test_a_golden_that_differs_is_found(tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text("[one]\ncalls: (POS,)\ndef f(x):\n    return x + 1\n----\nnothing\n")
    (golden,) = goldens.read(file)
    static = dy2static.to_static(goldens.code_of(golden, tmp_path))
    static(*goldens.calls_of(golden)[0])
    assert goldens.text_of(static) != golden.text
    goldens.write(golden, goldens.text_of(static))
    (again,) = goldens.read(file)
    assert again.text == goldens.text_of(static) and again.source == golden.source


def test_a_golden_that_lacks_a_part_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "one.txt"
    file.write_text("[one]\ndef f(x):\n    return x + 1\n")
    with pytest.raises(ValueError, match="one.txt, \\[one\\]"):
        goldens.read(file)
