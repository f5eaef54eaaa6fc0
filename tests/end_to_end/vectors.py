"""Arguments that take every path of small functions of a vector: what several tests are called with."""

from __future__ import annotations

from typing import Any

import torch


def on_every_path() -> list[tuple[Any, ...]]:
    """Calls with three numbers whose signs, sums and counts of positive ones differ, without and with gradient."""
    values = ([1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [5.0, -1.0, -1.0], [-1.0, 5.0, -9.0], [-1.0, 5.0, 9.0])
    made = [torch.tensor(value) for value in values]
    return [(x.clone(),) for x in made] + [(x.clone().requires_grad_(),) for x in made]
