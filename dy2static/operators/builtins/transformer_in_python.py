"""What ``torch.nn.TransformerEncoder`` does to padding, written without nested tensors: a trace runs this.

In eval mode and without gradients PyTorch's encoder takes the padding out of a batch before its layers (a nested tensor
has only the rows that are there), and puts zeros in its place afterwards. No Program holds nested tensors; the layers
compute the same for the rows that are there if the others are masked, so the zeros are all that is missing. The
conditions are those that ``TransformerEncoder.forward`` of PyTorch 2.11 to 2.15 asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F


def encoder_forward(
    encoder: Any, forward: Callable[..., Any], src: Any, mask: Any, src_key_padding_mask: Any, is_causal: Any
) -> Any:
    """``TransformerEncoder.forward``. ``src``: (batch, length, features), floating point."""
    if not takes_padding_out(encoder, src, mask, src_key_padding_mask):
        return forward(encoder, src, mask, src_key_padding_mask, is_causal)
    masked: Any = F._canonical_mask(src_key_padding_mask, "src_key_padding_mask", None, "mask", src.dtype)
    there = masked.logical_not()
    first = torch.arange(src.shape[1], device=src.device) < there.sum(1, keepdim=True)
    if getattr(encoder, "mask_check", True):
        aligned = (there == first).all()
        padding = torch.logical_and(first.logical_not(), aligned)
        masked = masked.masked_fill(padding, float("-inf"))  # whatever number a mask of floats has there
    else:
        masked = torch.zeros_like(masked).masked_fill(first.logical_not(), float("-inf"))
        padding = first.logical_not()
    out = src
    for layer in encoder.layers:
        out = layer(out, src_mask=None, is_causal=is_causal is True, src_key_padding_mask=masked)
    out = out.masked_fill(padding.unsqueeze(-1), 0.0)
    return out if encoder.norm is None else encoder.norm(out)


def takes_padding_out(encoder: Any, src: Any, mask: Any, src_key_padding_mask: Any) -> bool:
    """Whether eager's encoder makes a nested tensor, if rows begin with what is there."""
    if mask is not None or src_key_padding_mask is None or src.dim() != 3 or src.is_nested:
        return False
    if not torch.backends.mha.get_fastpath_enabled() or torch.is_autocast_enabled():
        return False
    layer = encoder.layers[0]
    if not getattr(encoder, "use_nested_tensor", False) or layer.training or src.device.type not in ("cpu", "cuda"):
        return False
    attention = layer.self_attn
    asked = (
        src, attention.in_proj_weight, attention.in_proj_bias, attention.out_proj.weight, attention.out_proj.bias,
        layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias, layer.linear1.weight,
        layer.linear1.bias, layer.linear2.weight, layer.linear2.bias,
    )  # fmt: skip
    return not (torch.is_grad_enabled() and any(one.requires_grad for one in asked))
