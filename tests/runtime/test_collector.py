"""Python's collector comes less often while a function is traced, and as before afterwards."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest
import torch

import dy2static
from runtime import collector


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    enabled, thresholds = gc.isenabled(), gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    (gc.enable if enabled else gc.disable)()


@pytest.mark.parametrize("first", [0, 700, collector.ALLOCATIONS, 2 * collector.ALLOCATIONS])
def test_eased(first: int) -> None:
    gc.set_threshold(first, 10, 10)
    before = gc.get_threshold()
    with collector.eased():
        inside = gc.get_threshold()
        with collector.eased():
            assert gc.get_threshold() == inside
    assert inside[0] == (collector.ALLOCATIONS if first == 700 else first)
    assert gc.get_threshold() == before


def test_another_threshold_stays() -> None:
    gc.set_threshold(700, 10, 10)
    with collector.eased():
        gc.set_threshold(500, 10, 10)
    assert gc.get_threshold()[0] == 500


@pytest.mark.parametrize("enabled", [True, False])
def test_resting(enabled: bool) -> None:
    (gc.enable if enabled else gc.disable)()
    with collector.resting():
        assert not gc.isenabled()
    assert gc.isenabled() == enabled


def f(x: torch.Tensor) -> torch.Tensor:
    if x.sum() > 0:
        raise ValueError("no")
    return x * 2


@pytest.mark.parametrize("value", [1.0, -1.0])
def test_a_trace_leaves_the_collector_as_it_was(value: float) -> None:
    gc.set_threshold(699, 9, 8)
    static = dy2static.to_static(f)
    if value > 0:
        with pytest.raises(ValueError, match="no"):
            static(torch.tensor([value]))
    else:
        assert static(torch.tensor([value])).item() == -2.0
    assert gc.get_threshold() == (699, 9, 8)
    assert gc.isenabled()


@pytest.mark.parametrize("error", [dy2static.Dy2StaticError, ZeroDivisionError])
def test_an_error_leaves_it_as_it_was(error: type[Exception]) -> None:
    def failing(x: torch.Tensor) -> torch.Tensor:
        if error is ZeroDivisionError:
            return x * (1 // 0)
        return x * id(x)

    before = gc.get_threshold()
    with pytest.raises(error):
        dy2static.to_static(failing)(torch.ones(2))
    assert gc.get_threshold() == before
