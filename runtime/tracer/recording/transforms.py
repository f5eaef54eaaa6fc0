"""Torch's functions under a transform of ``torch.func`` (``vmap``, ``grad``, ``jvp``) that is being traced.

A transform wraps the stand-ins of a trace and lets what runs below it reach the recorder. So a call with wrapped
tensors is PyTorch's own business; what would take a value out of one, which only the run has, is refused.
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.kinds import is_a
from runtime.torch_internals import batches
from runtime.tracer.ambient.calls import tensors_in
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.recording.session import Session

_TAKES_A_VALUE = frozenset({
    "item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__", "equal",
    "allclose", "__format__", "__repr__", "is_nonzero", "numpy", "__array__", "data_ptr", "storage", "untyped_storage",
    "_typed_storage", "__dlpack__", "__reduce_ex__", "__deepcopy__", "save",
})  # fmt: skip
_OF_THE_GRAPH = frozenset({"backward", "retain_grad", "register_hook", "register_post_accumulate_grad_hook"})


def is_inside(session: Session, value: Any) -> bool:
    """Whether a value is a tensor that a transform has wrapped, of which the trace knows nothing."""
    return session.code.transforms > 0 and is_a(value, torch.Tensor) and batches.is_wrapped(value)


def is_under(session: Session, args: Any, kwargs: Any) -> bool:
    """Whether a call is one that a transform has to do with."""
    return session.code.transforms > 0 and any(map(batches.is_wrapped, tensors_in(args, kwargs)))


def called(session: Session, func: Any, name: str, args: Any, kwargs: Any) -> Any:
    """What a function of torch's, or a question about a tensor, gives under a transform.

    Raises:
        TraceError: D2S271, it asks for a value, or for what the transform does not have.
    """
    attribute = getattr(unasked(func, "__self__"), "__name__", "") if name in ("__get__", "__set__") else ""
    if name in _TAKES_A_VALUE:
        raise refusal(session, f".{name}() takes a value out of a tensor",
                      "Decide with torch.where, or apply dy2static.vmap or torch.func to the converted function.")
    if name in _OF_THE_GRAPH or name == "__set__" or attribute in ("data", "grad", "grad_fn", "is_leaf"):
        raise refusal(session, f"{f'.{attribute}' if attribute else f'.{name}()'} of a tensor",
                      "Do it outside of what the transform runs.")
    asked = (args[:2], kwargs.get("outputs"), kwargs.get("inputs")) if func is torch.autograd.grad else ()
    if any(map(session.knows, tensors_in(asked, {}))):
        raise refusal(session, "torch.autograd.grad is asked for a gradient by a tensor from outside",
                      "Give the tensor to the function that the transform runs.")
    return theirs(func, *args, **kwargs)


def refusal(session: Session, what: str, hint: str) -> Exception:
    """The error for what has no place inside of a transform."""
    return session.error(f"inside of what torch.func runs, {what}", code="D2S271", hint=hint)


__all__ = ["called", "is_inside", "is_under", "refusal"]
