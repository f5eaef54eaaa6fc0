"""One compiled Program, many threads: each call has memory of its own."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from dy2static import to_static

THREADS = 8


def walk(x: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, int, list[torch.Tensor]]:
    """A loop that makes memory, lists and numbers, as many as the data says."""
    kept = []
    count = 0
    while x.abs().sum() > 1 and count < 9:
        x = torch.tanh(x * w) * 0.8
        if x.sum() > 0:
            kept.append(x + count)
        count += 1
    return x @ w, count, kept


@pytest.fixture(autouse=True)
def often() -> Iterator[None]:
    """Threads take turns often."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def bits(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().numpy().tobytes()
    return [bits(one) for one in value] if isinstance(value, (list, tuple)) else value


def together(call: Callable[[int], Any], calls: int) -> None:
    """Each thread gets what it got alone, at each call."""
    expected = [bits(call(number)) for number in range(THREADS)]
    assert len({str(one) for one in expected}) == THREADS
    wrong: list[Any] = []
    start = threading.Barrier(THREADS)

    def work(number: int) -> None:
        start.wait()
        try:
            for _ in range(calls):
                got = bits(call(number))
                if got != expected[number]:
                    wrong.append((number, got))
                    return
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong, wrong[:3]


def inputs() -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Another size for each thread."""
    torch.manual_seed(3)
    return [(torch.randn(2 + number) * 3, torch.rand(2 + number) + 0.4) for number in range(THREADS)]


def forward(calls: int) -> None:
    given = inputs()
    static = to_static(walk, backend="c")
    together(lambda number: static(*given[number]), calls)
    assert all(part.state == "compiled" and not part.reason for one in static.compiled for part in one.parts)


def backward(calls: int) -> None:
    given = inputs()
    static = to_static(walk, backend="c")

    def call(number: int) -> Any:
        x, w = given[number]
        w = w.clone().requires_grad_()
        last, count, kept = static(x, w)
        torch.stack([last, *(one.sum() for one in kept)]).sum().backward()
        return w.grad, count

    together(call, calls)
    assert all(part.state == "compiled" and not part.reason for one in static.compiled for part in one.parts)


@pytest.mark.parametrize("work", [forward, backward])
def test_eight_threads(work: Callable[[int], None]) -> None:
    work(1_000 if work is forward else 250)


@pytest.mark.slow
@pytest.mark.parametrize("work", [forward, backward])
def test_eight_threads_for_long(work: Callable[[int], None]) -> None:
    work(10_000)
