"""The page says what the tests declare; this needs none of the libraries."""

from __future__ import annotations

import importlib.metadata

import pytest

from tests.third_party import table


def test_the_page_is_up_to_date() -> None:
    text = table.PAGE.read_text()
    assert text == table.page(table.versions_of(text)), "run python -m tests.third_party.table"


def test_a_library_that_is_missing_is_named_with_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", missing)
    before = table.PAGE.read_text()
    with pytest.raises(SystemExit) as caught:
        table.main()
    assert "third-party" in str(caught.value.code) and "\n" not in str(caught.value.code)
    assert table.PAGE.read_text() == before


def test_every_model_has_a_kind() -> None:
    assert sorted(name for names in table.KINDS.values() for name in names) == sorted(table.MODELS)


def test_every_component_has_three_sizes() -> None:
    for name, one in table.COMPONENTS.items():
        shapes = {tuple(arg.shape for arg in call if hasattr(arg, "shape")) for call in one.calls}
        assert len(one.calls) == len(shapes) == 3, name
        assert bool(one.refused) == bool(one.why), name


@pytest.mark.parametrize("name", table.LIBRARIES)
def test_every_library_says_what_it_shows(name: str) -> None:
    library = table.LIBRARIES[name]
    assert library.why if library.refused else library.loop or library.what
    assert not library.stages or library.loop or library.what


def test_there_are_enough() -> None:
    assert len(table.MODELS) >= 60
    taken = [one for one in table.PIECES.values() if not one.refused]
    assert len(taken) >= 120
    assert len({one.package for one in taken}) >= 35
    assert sum(bool(one.loop) for one in taken) >= 60
