"""In-place writes to tensors with which autograd's graph begins: PyTorch refuses them while gradients are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.tracer.memory.aliases import few_roots
from runtime.tracer.memory.conditions import ALWAYS, NEVER, PathCondition, when
from runtime.tracer.memory.deferred import Needed, needed
from runtime.tracer.recording import shape_rules
from runtime.tracer.recording.gradient_sources import Sources
from runtime.tracer.recording.raising import raise_where
from runtime.tracer.values import same_object

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import RecordedStep, TensorInfo
    from runtime.tracer.recording.session import Session


_WRITE_LEAVES = frozenset(f"aten::logical_{name}_" for name in ("and", "not", "or", "xor"))
"""In-place operators that autograd lets write leaves: it knows nothing of them."""


def bare(source: TensorInfo, step: RecordedStep, needs: bool) -> PathCondition:
    """When a new view has no history; ``needs``: whether it gets one where ``source`` has it."""
    # One may not be written (``nonwritable_views``), the other is no view to autograd.
    if not torch.is_grad_enabled() or step.detaches:
        return NEVER
    if not needs:
        return ALWAYS
    return when(Needed(source.storage.value, negated=True)) if source.grad_in_some_runs else NEVER


def note_history(session: Session, info: TensorInfo, without: PathCondition) -> None:
    """A view is read, or written: it has its memory's history now, but where that had none (``without``)."""
    if info in session.graph.bare:
        session.graph.bare[info] &= without


def note_history_of_paths(session: Session, tensor: torch.Tensor, without: PathCondition) -> None:
    """The same for views that the tensor which is written is, as they are, on some paths only."""
    info = session.info(tensor)
    if not info.storage.aliases:
        return
    storages = {root.storage for root in few_roots(info, ())[0]}
    scopes = set(session.scope.chain())
    for one, other in session.known_with_tensors():
        before = session.graph.bare.get(other, NEVER)
        if before.never or other is info or other.storage not in storages:
            continue
        if session.graph.bare_in.get(other) not in scopes:
            continue
        if same_object.may_be_one(session, tensor, one) in ("same", "open"):
            flag = same_object.identical(session, tensor, one)
            apart = NEVER if flag is True else when(session.operand(session.scalar("not_", flag)))
            session.graph.bare[other] = before & (apart | without)


def require_no_leaf(
    session: Session, info: TensorInfo, func: Any, args: Sequence[Any], kwargs: dict[str, Any]
) -> None:
    """Raise what autograd raises where ``func`` writes a leaf; where it is one on some paths, on those.

    Raises:
        RuntimeError: The tensor is a leaf that requires grad, or a view of one, or PyTorch takes it for one.
        TraceError: D2S213, one that ``requires_grad_()`` made on some paths only.
    """
    if not torch.is_grad_enabled() or session.replaying is not None or func._schema.name in _WRITE_LEAVES:
        return
    while info.itself is not None:  # eager has that tensor, not another one of its memory
        info = session.info(info.itself)

    def said(what: str) -> RuntimeError:
        own = of_out(session, func, args, kwargs)
        return RuntimeError(own or f"{what} that requires grad is being used in an in-place operation.")

    for root in few_roots(info, ())[0]:
        origin = root.storage.origin
        real = session.inputs.real(origin) if origin is not None else None
        if any(step.detaches for step in root.steps):
            continue
        what = "a view of a leaf Variable" if root.steps else "a leaf Variable"
        value = root.storage.value
        if origin is None and session.graph.made_leaves and info.requires_grad and session.visible(value):
            sources = Sources(session)
            if sources.is_leaf(value, outside=False):
                raise_where(session, root.when, said(what))
            elif sources.may_be_made_leaf(value):
                raise session.error(
                    f"an in-place write to a tensor that is {what} on some paths only, which PyTorch refuses there",
                    code="D2S213", hint="Write out of place (x = x + y instead of x += y), or under torch.no_grad().")
        if origin is None or real is None:
            continue
        if origin in session.inputs.undecided:
            session.inputs.no_leaves.add(origin)
        if not real.requires_grad:
            continue
        session.inputs.leaves[origin] = real.is_leaf
        if real.is_leaf:
            raise_where(session, root.when, said(what))
    if info in session.graph.bare and info.requires_grad and not info.detached:
        raise_where(session, session.graph.bare[info] & needed(info), said("a leaf Variable"))


def of_out(session: Session, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> str | None:
    """What autograd says where an operator is given a leaf as ``out=``; None for one that is given none."""
    outs = [out for out, _ in shape_rules.places(func, *shape_rules.call_fakes(session, args, kwargs))]
    if not outs:
        return None
    fakes = shape_rules.call_fakes(session, args, kwargs)
    return torch_internals.graph_error(func, *fakes, dict.fromkeys(map(id, outs), True))


__all__ = ["bare", "note_history", "note_history_of_paths", "of_out", "require_no_leaf"]
