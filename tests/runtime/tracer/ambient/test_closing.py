"""A trace in which a value had to be fixed that was to be open: an error with its place, which callers tell apart."""

from __future__ import annotations

import pytest

from runtime.errors import Dy2StaticError, TraceError
from runtime.ir import Location
from runtime.tracer.ambient.closing import CannotBeOpen


def test_it_is_a_located_error() -> None:
    with pytest.raises(TraceError) as found:
        raise CannotBeOpen("the items are counted", location=Location("a.py", 3, 0, "f", "len(xs)"), hint="Fix it.")
    assert isinstance(found.value, Dy2StaticError) and "the items are counted" in str(found.value)
    assert "a.py:3" in str(found.value) and "Fix it." in str(found.value)


def test_other_errors_are_none() -> None:
    assert not isinstance(TraceError("no"), CannotBeOpen) and issubclass(CannotBeOpen, TraceError)
