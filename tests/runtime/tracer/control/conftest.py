"""A trace in which calls of torch are recorded, and branches and loops are staged by hand."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.tracer.recording.session import Session
from tests.runtime.tracer.control.staging import Staging


@pytest.fixture
def staging(session: Session) -> Iterator[Staging]:
    """A trace in which calls of torch are recorded."""
    made = Staging(session)
    made.enter()
    yield made
    made.leave()
