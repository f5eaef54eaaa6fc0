"""Where the trace stands, and where an exception was raised: the converter's answers, or plain ones without it."""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from runtime.ir import Location
from runtime.tracer.ambient import source_places
from runtime.tracer.recording.session import Session


def test_without_the_converter() -> None:
    """The module as it is before anything imports the converter."""
    spec = importlib.util.spec_from_file_location("fresh", source_places.__file__)
    assert spec is not None and spec.loader is not None
    fresh: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fresh)
    found = fresh.location_provider()
    assert (found.file, found.function) == (__file__, "test_without_the_converter")
    assert fresh.error_place(ValueError("a")) is None


def test_with_the_converter() -> None:
    found = source_places.location_provider()
    assert found is not None and (found.file, found.function) == (__file__, "test_with_the_converter")
    assert found.text.strip() == "found = source_places.location_provider()"


def test_where_an_exception_was_raised() -> None:
    try:
        int("a")
    except ValueError as error:
        found = source_places.error_place(error)
    assert found is None or (found.file, found.text.strip()) == (__file__, 'int("a")')


def test_the_session_asks_each_time(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for line in (1, 2):
        place = Location("a.py", line)
        monkeypatch.setattr(source_places, "location_provider", lambda place=place: place)
        assert session.location() == place and session.error("no").location == place
