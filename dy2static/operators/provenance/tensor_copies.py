"""``copy.deepcopy`` of tensors inside a trace: memory of its own, no history, a leaf where the tensor is one."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

from dy2static.operators.provenance.library_reads import note_given
from dy2static.operators.provenance.provenance import note_module
from dy2static.operators.shared.staging import Session, active
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.memory import hung
from runtime.tracer.memory.storage_table import Storage
from runtime.tracer.recording import gradients

_PATCHED: tuple[Any, ...] = (torch.Tensor, torch.nn.Parameter)
_NO_LEAF = (
    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you "
    "were attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
    "https://github.com/pytorch/pytorch/pull/103001"
)


@contextlib.contextmanager
def copying(session: Session, value: Any) -> Iterator[None]:
    """While the block runs, tensors are deep-copied by Operators; a module's are found where the module has them."""
    if is_a(value, torch.nn.Module) and id(value) not in session.objects.created:
        for module in value.modules():
            note_module(session, module)
    note_given(session, [value])
    before = [cls.__dict__["__deepcopy__"] for cls in _PATCHED]
    storages: set[Storage] = set()

    def copied(tensor: torch.Tensor, memo: dict[Any, Any]) -> Any:
        return _deepcopy(tensor, memo, storages)

    for cls in _PATCHED:
        cls.__deepcopy__ = copied  # for the length of the copy
    try:
        yield
    finally:
        for cls, method in zip(_PATCHED, before):
            cls.__deepcopy__ = method  # as it was


def _deepcopy(tensor: torch.Tensor, memo: dict[Any, Any], storages: set[Storage]) -> Any:
    """One tensor's copy; ``storages``: the memory of those that were copied before."""
    session = active()
    assert session is not None
    if id(tensor) in memo:
        return memo[id(tensor)]
    info = session.info(tensor)
    session.inputs.decide(tensor)
    is_parameter = isinstance(tensor, torch.nn.Parameter)
    if info.requires_grad and not is_parameter and not _is_leaf(session, tensor):
        raise RuntimeError(_NO_LEAF)
    hung.require_none(session, tensor, "is deep-copied")
    if info.storage in storages or info.grad_in_some_runs:
        raise session.error("tensors that share memory, or need a gradient on some paths, are deep-copied together",
                            hint="Use .clone() of each.", code="D2S246")
    storages.add(info.storage)
    with torch.no_grad():
        made = tensor.detach().clone()
    strides = [torch_internals.strides_of(session.fake(one)) for one in (made, tensor)]
    if not info.layout_known or strides[0] != strides[1]:
        raise session.error("a tensor that does not fill its memory is deep-copied", hint="Use .clone() instead.",
                            code="D2S246")
    if is_parameter:
        made = torch.nn.Parameter(made, requires_grad=info.requires_grad)
    elif info.requires_grad:
        gradients.requires_grad_(session, made)
    memo[id(tensor)] = made
    return made


def shallow(session: Session, tensor: torch.Tensor) -> Any:
    """``copy.copy(tensor)``: another tensor without a history, of the same memory.

    Raises:
        TraceError: D2S246 for a tensor that requires grad, as the copy would be a leaf of the same memory.
    """
    info = session.info(tensor)
    hung.require_none(session, tensor, "is copied")
    if info.requires_grad or isinstance(tensor, torch.nn.Parameter):
        raise session.error("a tensor that requires grad, or a Parameter, is copied by copy.copy()",
                            hint="Use .detach(), or .clone().", code="D2S246")
    return tensor.detach()


def _is_leaf(session: Session, tensor: torch.Tensor) -> bool:
    """Whether autograd's graph begins with a tensor that requires grad; of the caller's it is a condition."""
    own = session.inputs.own_variable(tensor)
    real = session.inputs.real(own) if own is not None else None
    if own is None or real is None:
        return gradients.is_leaf(session, session.info(tensor))
    session.inputs.leaves[own] = real.is_leaf
    return real.is_leaf


__all__ = ["copying", "shallow"]
