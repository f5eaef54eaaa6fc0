"""A value that outlives its trace: the error says so where it is used, and after the trace alone."""

from __future__ import annotations

import pytest

from runtime.errors import TraceError
from runtime.ir import Location
from runtime.tracer.ambient import source_places, state
from runtime.tracer.ambient.leaked import leaked
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording.session import Session


def test_the_error_stands_where_the_value_is_used() -> None:
    error = leaked()
    assert isinstance(error, TraceError) and error.code == "D2S211" and error.hint
    assert error.location is not None and error.location.file == __file__
    assert error.location.text.strip() == "error = leaked()"


def test_the_place_is_what_the_converter_says(monkeypatch: pytest.MonkeyPatch) -> None:
    place = Location("a.py", 3)
    monkeypatch.setattr(source_places, "location_provider", lambda: place)
    assert leaked().location == place
    monkeypatch.setattr(source_places, "location_provider", lambda: None)
    assert leaked().location is None


def test_a_number_after_its_trace(session: Session, number: object) -> None:
    staged = number()  # type: ignore[operator]
    assert isinstance(staged, Staged) and isinstance(staged + 1, Staged)
    before = state.enter(None)
    try:
        with pytest.raises(TraceError, match="D2S211"):
            staged + 1
    finally:
        state.enter(before)
