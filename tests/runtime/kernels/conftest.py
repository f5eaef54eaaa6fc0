"""Kernels run on the CPU, in place of a device, or on a device if tests have one (``tests.devices``); every run of
Operators that can be kernels is."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from runtime.kernels import emitter, launch, region
from tests import devices
from tests.runtime.kernels.host import COMPILER, Card, Host


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Iterator[Host | Card]:
    """The machine that kernels run on."""
    if COMPILER is None and not devices.on_cuda():
        pytest.skip("no g++: the text of kernels cannot run on the CPU")
    made = Card() if devices.on_cuda() else Host()
    monkeypatch.setattr(launch, "machine", made)
    monkeypatch.setattr(emitter, "GAIN", -9)
    monkeypatch.setattr(region, "PATIENCE", 10**9)
    yield made
