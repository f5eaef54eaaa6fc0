"""Programs with lists whose length only the run knows, held against eager: what the tests of them share."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import dy2static
from tests.oracle import check, check_saved

CALLS = [(3, True), (3, False), (2, True), (1, False), (4, True)]
TERMS: dict[str, Any] = {"paths": ("program",), "tolerance": 1e-6, "gradient_tolerance": 1e-5}


def calls(requires_grad: bool) -> list[tuple[torch.Tensor, ...]]:
    """A vector, a count and a choice."""
    x = [0.5, -1.0, 2.0]
    return [
        (torch.tensor(x, requires_grad=requires_grad), torch.tensor(count), torch.tensor(choice))
        for count, choice in CALLS
    ]


def hold(function: Callable[..., Any], folder: Path, traced: int) -> None:
    """It does what eager does, and so does its file; ``traced``: for how many calls the file has Programs."""
    for requires_grad in (False, True):
        check(function, *calls(requires_grad), **TERMS)
    converted = dy2static.to_static(function)
    for call in calls(True)[:traced]:
        converted(*call)
    check_saved(function, converted, folder / "saved.d2s", *calls(True), **TERMS)
