"""``torch.nn.TransformerEncoder`` and ``TransformerDecoder``: the zeros that eager puts in the place of padding, and
masks that may be causal.

Of a mask that eager PyTorch finds to be the causal one it tells its kernel so. A Program would have to ask at each run
and hold both ways for each layer, for results that differ in their last bits at most: it always gives the kernel the
mask.
"""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.builtins import transformer_in_python
from dy2static.operators.calls import functions
from dy2static.operators.shared.staging import Session, Staged
from runtime.kinds import is_a

_FORWARD: Any = torch.nn.TransformerEncoder.forward
_OURS: Any = transformer_in_python.encoder_forward


def _forward(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def given(
        encoder: Any, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: Any = None
    ) -> tuple[Any, ...]:
        return encoder, src, mask, src_key_padding_mask, is_causal

    encoder, src, mask, padding, is_causal = given(*args, **kwargs)
    if padding is None or mask is not None:
        return _native(session, encoder, src, mask, padding, is_causal)

    def forward(*given: Any) -> Any:
        return _native(session, *given)

    return functions.call_function(session, _OURS, (encoder, forward, src, mask, padding, is_causal), {})


def _native(session: Session, *given: Any) -> Any:
    return functions.call_function(session, _FORWARD, given, {})


def _is_causal(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    def given(mask: Any, is_causal: Any = None, size: Any = None) -> Any:
        return is_causal

    asked = given(*args, **kwargs)
    return asked if is_a(asked, Staged) else asked is True


_DETECT: Any = getattr(torch.nn.modules.transformer, "_detect_is_causal_mask", None)
HANDLERS: list[tuple[Any, Any]] = [(_FORWARD, _forward), *([(_DETECT, _is_causal)] if _DETECT is not None else [])]
