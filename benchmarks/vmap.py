"""vmap over control flow: a loop over the rows, dy2static.vmap, torch.vmap where it can, and plain batched operators.

    python -m benchmarks.vmap

``plain`` is what a transformation to batched operators of ATen could reach for straight code: the same operators,
called on the batch by hand as tracing the batched call would record them, run by torch.fx.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch.fx.experimental.proxy_tensor import make_fx

import dy2static


def newton(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Rows end after different numbers of steps, and take a branch that others do not."""
    value = x**3 - a * x - 1
    while value.abs() > 1e-5:
        slope = 3 * x**2 - a
        if slope.abs() < 1e-3:
            x = x + 0.5
        else:
            x = x - value / slope
        value = x**3 - a * x - 1
    return x


def straight(a: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Twenty steps without a decision."""
    for _ in range(20):
        x = x - (x**3 - a * x - 1) / (3 * x**2 - a + 0.1)
    return x


def milliseconds(call: Callable[[], Any], least: float = 0.3) -> float:
    """The median of some calls."""
    call()
    times: list[float] = []
    begin = time.perf_counter()
    while time.perf_counter() - begin < least or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def main() -> None:
    """One line a size and function."""
    torch.set_num_threads(1)
    for function in (newton, straight):
        mapped = dy2static.vmap(function)
        for rows in (4, 32, 256, 2048):
            generator = torch.Generator().manual_seed(0)
            a = torch.rand(rows, generator=generator) * 4 - 1
            x = torch.full((rows,), 2.5)
            by_row = milliseconds(lambda: torch.stack([function(*row) for row in zip(a, x)]))  # noqa: B023
            text = f"{function.__name__:>9} of {rows:>5} rows: row by row {by_row:9.2f} ms, vmap {milliseconds(lambda: mapped(a, x)):7.2f} ms"  # noqa: B023, E501
            if function is straight:
                plain = make_fx(torch.vmap(function))(a, x)
                text += f", torch.vmap {milliseconds(lambda: torch.vmap(function)(a, x)):6.2f} ms"  # noqa: B023
                text += f", plain {milliseconds(lambda: plain(a, x)):6.2f} ms"  # noqa: B023
            print(text, flush=True)


if __name__ == "__main__":
    main()
