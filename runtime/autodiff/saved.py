"""What one run keeps for its backward.

Tensors go through ``save_for_backward``: version checks and saved-tensor hooks see them. Stacks of loops, thousands of
tensors that mostly nobody else can reach, are kept as lists, checked by version, and given up item by item while
backward consumes them. Under saved-tensor hooks their items go the first way too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime import torch_internals


@dataclass
class Saved:
    """The residuals of one run: ``plan`` says for each where it is."""

    plan: list[Any] = field(default_factory=list)
    versions: list[Any] = field(default_factory=list)
    hooked: bool = False


class _Slot:
    """A tensor that went through ``save_for_backward``."""

    __slots__ = ()


_SLOT = _Slot()


def save(ctx: Any, residuals: Sequence[Any], results: Sequence[Any]) -> Saved:
    """Keep the residuals of a run whose results autograd is about to see."""
    saved = Saved(hooked=torch_internals.saved_tensor_hooks_active())
    seen = {id(result) for result in results}
    tensors: list[torch.Tensor] = []

    def keep(value: Any, stacked: bool) -> Any:
        if isinstance(value, torch.Tensor):
            if not stacked or saved.hooked:
                tensors.append(value)
                return _SLOT
            # A result that holds its own node would never be freed.
            return value.detach() if id(value) in seen else value
        return [keep(item, True) for item in value] if type(value) is list else value

    saved.plan = [keep(value, False) for value in residuals]
    saved.versions = [_versions(value) if type(value) is list else None for value in saved.plan]
    ctx.save_for_backward(*tensors)
    return saved


def load(ctx: Any, saved: Saved, *, keep: bool) -> list[Any]:
    """The residuals again. ``keep``: backward may be asked once more; otherwise lists are handed over.

    Errors raised: RuntimeError if one was modified in place since, or if they were handed over before.
    """
    tensors = iter(ctx.saved_tensors)
    if saved.plan is _GONE:
        raise RuntimeError(
            "Trying to backward through the graph a second time (or directly access saved tensors after they have "
            "already been freed). Specify retain_graph=True if you need to backward through the graph a second time."
        )

    def get(value: Any) -> Any:
        if value is _SLOT:
            return next(tensors)
        return [get(item) for item in value] if type(value) is list else value

    for value, versions in zip(saved.plan, saved.versions):
        if versions is not None and versions != _versions(value):
            raise RuntimeError(
                "one of the variables needed for gradient computation has been modified by an inplace operation: "
                "a value that a loop of a converted function kept for its gradient"
            )
    if keep or saved.hooked:
        return [get(value) for value in saved.plan]
    found = [next(tensors) if value is _SLOT else value for value in saved.plan]
    saved.plan = _GONE
    return found


_GONE: list[Any] = []


def _versions(value: Any) -> Any:
    if type(value) is list:
        return [_versions(item) for item in value]
    return value._version if isinstance(value, torch.Tensor) else None
