"""What PyTorch's exporter offers under no public name."""

from __future__ import annotations

import contextlib
import importlib
from typing import Any

import torch


def any_size() -> contextlib.AbstractContextManager[None]:
    """While this is entered, the exporter takes open sizes for any: it does not tell 0 and 1 from others.

    Else a Program that was exported for open sizes refuses those for which PyTorch has taken another path.
    """
    config = importlib.import_module("torch.fx.experimental._config")
    if not hasattr(config, "backed_size_oblivious"):
        return contextlib.nullcontext()
    found: contextlib.AbstractContextManager[None] = config.patch(backed_size_oblivious=True)
    return found


def require(condition: Any, said: str = "") -> None:
    """The run of what is exported ends where a condition on sizes or numbers of the run does not hold."""
    torch._check(condition, (lambda: said) if said else None)


__all__ = ["any_size", "require"]
