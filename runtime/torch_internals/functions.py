"""``torch.autograd.Function.apply``: a Python function until torch 2.14, a builtin one since."""

from __future__ import annotations

from typing import Any

import torch

from runtime.torch_internals.batches import without_transforms

PLAIN_APPLY = torch.autograd.Function.__dict__["apply"]


def plain_apply(cls: type) -> Any:
    """``cls.apply`` as torch defines it, whatever ``torch.autograd.Function`` says now."""
    return PLAIN_APPLY.__get__(None, cls)


def apply_takes_keywords() -> bool:
    """Whether ``apply`` takes arguments by name also where a function has no ``setup_context``: not in torch 2.11."""
    try:
        with without_transforms():
            plain_apply(_Probe)(number=1)
    except TypeError:
        return False
    return True


class _Probe(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, number: int) -> int:
        return number


def is_plain_apply(method: Any) -> bool:
    """Whether something callable is ``SomeFunction.apply`` as torch defines it."""
    owner = getattr(method, "__self__", None)
    return isinstance(owner, type) and issubclass(owner, torch.autograd.Function) and method == plain_apply(owner)
