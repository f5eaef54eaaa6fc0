"""``unbind``, ``split`` and unpacking of a tensor of which only the run knows how long it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.utils._pytree import tree_leaves

import dy2static
from dy2static import InputSpec, to_static
from tests.oracle import same


def summed(*rows: torch.Tensor) -> Any:
    return sum(rows)


def running(x: torch.Tensor) -> Any:
    h, kept = torch.zeros(3), []
    for row in x.unbind(0):
        if row.sum() > 1:
            h = h + row
        kept.append(h)
    return torch.stack(kept), h


def last_and_count(x: torch.Tensor) -> Any:
    rows = torch.unbind(x, dim=-2)
    return rows[-1] * len(rows), rows


USES: dict[str, Callable[[torch.Tensor], Any]] = {
    "a loop that decides": running,
    "an item and the length": last_and_count,
    "comprehension": lambda x: torch.stack([row * 2 for row in x.unbind()]),
    "star of a list": lambda x: torch.stack([*x, x[0]]),
    "star of a call": lambda x: summed(*x),
    "star of a tuple": lambda x: torch.stack((*x, x[0])),
    "parts of two": lambda x: torch.cat([part.mean(0, keepdim=True) for part in x.split(2)]),
    "sizes of parts": lambda x: [part.shape[0] for part in torch.split(x, 2, dim=0)],
    "zip": lambda x: list(zip(x.unbind(0), x.split(1))),
}


def unpacked(x: torch.Tensor) -> torch.Tensor:
    a, b = x
    return a - b


def starred(x: torch.Tensor) -> Any:
    a, *rest = x
    return a + sum(rest)


def chosen(x: torch.Tensor) -> torch.Tensor:
    return x[x[:, 0] > 0.3]


def compare(function: Callable[..., Any], plain: Callable[..., Any], rows: int) -> None:
    torch.manual_seed(rows)
    x = torch.rand(rows, 3) + 0.2
    results = []
    for one in (function, plain):
        given = x.clone().requires_grad_()
        try:
            found = one(given)
        except ValueError as error:
            results.append(str(error))
            continue
        total = sum(leaf.sum() for leaf in tree_leaves(found) if isinstance(leaf, torch.Tensor))
        if isinstance(total, torch.Tensor):
            total.backward()
        results.append((found, given.grad))
    same(results[0], results[1])


@pytest.mark.parametrize("use", [*USES.values(), unpacked, starred], ids=[*USES, "unpacked", "starred"])
def test_one_file_serves_every_length(use: Callable[..., Any], tmp_path: Path) -> None:
    loaded = dy2static.load(dy2static.save(use, tmp_path / "net", input_spec=[InputSpec([None, 3], "float32")]))
    for rows in (2, 5, 1):
        compare(loaded, use, rows)


@pytest.mark.parametrize("use", [running, unpacked, starred], ids=lambda one: one.__name__)
def test_lengths_that_depend_on_data(use: Callable[..., Any]) -> None:
    def of_some(x: torch.Tensor) -> Any:
        return use(chosen(x))

    static = to_static(of_some)
    for rows in (3, 7, 2):
        compare(static, of_some, rows)
    assert len(static.programs) <= 2


def test_lengths_that_vary_are_one_program() -> None:
    static = to_static(running)
    for rows in (2, 5, 7, 4, 3, 9):
        compare(static, running, rows)
    assert len(static.programs) == 2  # the first length, and all others
