"""The nodes of autograd's graph by name: what a tensor's text says of its history."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

from runtime.torch_internals.generators import rng_restored, rng_state
from runtime.torch_internals.operators import _ABOVE, _Key

LEAF = "leaf"
"""Stands for the name of a node where a tensor is the start of a graph."""

PARAMETER = "parameter"
"""Stands for it where the tensor is a Parameter."""


@functools.cache
def _function(name: str) -> Any:
    class Named(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, tensor: torch.Tensor) -> torch.Tensor:
            return tensor.view_as(tensor)

        @staticmethod
        def backward(ctx: Any, *grads: Any) -> Any:
            raise RuntimeError("a tensor that was made for its text has no gradient")

    Named._backward_cls.__name__ = name  # torch's metaclass makes it
    return Named


def with_node(tensor: torch.Tensor, name: str) -> torch.Tensor:
    """The same value as a tensor whose text says that a node called ``name`` made it."""
    start = tensor.detach().requires_grad_()
    if name == LEAF:
        return start
    with torch.enable_grad():
        result: torch.Tensor = _function(name).apply(start)
    return result


def node_name(tensor: torch.Tensor) -> str | None:
    """What the text of a tensor says of its history: the name of its node, LEAF, or None where there is none."""
    try:
        node: Any = tensor.grad_fn
    except RuntimeError:
        return "Invalid"
    if node is None:
        return LEAF if tensor.requires_grad else None
    name = type(node).__name__
    return str(node.name()).rsplit("::", 1)[-1] if name == "CppFunction" else name


def under_autograd(run: Callable[[], Any], grad: bool, autocast: Iterable[tuple[str, bool, str]]) -> Any:
    """What ``run`` gives with real tensors, as in an eager program: none of the modes of a trace is there."""
    with _disable_current_modes(), torch._C.DisableTorchFunction(), rng_restored(rng_state()):
        exclude = torch._C._dispatch_tls_local_exclude_set()
        for key in (*_ABOVE, _Key.AutogradCUDA):
            exclude = exclude.remove(key)
        include = torch._C._dispatch_tls_local_include_set()
        with torch._C._ForceDispatchKeyGuard(include, exclude), torch.set_grad_enabled(grad):
            regions = [torch.autocast(device, dtype=getattr(torch, dtype.removeprefix("torch.")), enabled=on)
                       for device, on, dtype in autocast]
            for region in regions:
                region.__enter__()
            try:
                return run()
            finally:
                for region in reversed(regions):
                    region.__exit__(None, None, None)


def example(shape: Sequence[int], strides: Sequence[int] | None, dtype: torch.dtype, device: Any) -> torch.Tensor:
    """A tensor of this kind with numbers between 0 and 1, or zeros where there are whole ones; meta has none."""
    if strides is None or any(type(stride) is not int for stride in strides):
        made = torch.empty(tuple(shape), dtype=dtype, device=device)
    else:
        made = torch.empty_strided(tuple(shape), tuple(strides), dtype=dtype, device=device)
    if torch.device(device).type != "meta":
        if dtype.is_floating_point or dtype.is_complex:
            spread = (torch.arange(1, made.numel() + 1, device=device, dtype=torch.float64) * 0.618) % 1
            made.copy_(spread.reshape(made.shape))
        else:
            made.zero_()
    return made


__all__ = ["LEAF", "PARAMETER", "example", "node_name", "under_autograd", "with_node"]
