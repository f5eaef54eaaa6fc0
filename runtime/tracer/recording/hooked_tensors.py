"""Hooks that a function puts on tensors it has computed: where they stand in the Program.

    h = x * 2                   %0 = aten.mul.Tensor(%x, 2)
    h.register_hook(f)    ->    %h = custom_grad(%0) { ^(%a): yield alias(%a) } { ^(%g): yield f(%g) }

The tensor keeps its Variable and what made it gives another one, so that all who have read the tensor have read it
behind the hook. A second hook stands before the first: the first is called first. A gradient by the tensor itself is
that of what its maker gave, after all hooks (``before_hooks``).

What hooks read has to be there where they stand. So they may stand further down, before whoever the tensor's gradient
comes from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch

from runtime.ir import Block, Operator, TensorType, Variable
from runtime.ir.walk import map_operand, substitute
from runtime.kinds import is_a
from runtime.tracer.memory import hung
from runtime.tracer.memory.storage_table import TensorInfo, note_unknown_alias
from runtime.tracer.recording import leaf_changes
from runtime.tracer.recording.gradient_paths import reached
from runtime.tracer.recording.gradient_sources import Sources

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


@dataclass(frozen=True, eq=False)
class Hooked:
    """The hooks of one tensor."""

    source: Variable
    """What its maker gives."""
    ops: tuple[Operator, ...]
    """The Operators of its hooks, as they were registered."""
    block: Block
    """Where it is made."""


_FIRST = "Call register_hook() in the line after the one that makes the tensor"


def require_hookable(session: Session, tensor: torch.Tensor) -> None:
    """Refuse a tensor whose hooks others would have on some path, or that is not made in the Block at hand.

    Raises:
        TraceError: D2S245, D2S213.
    """
    if hung.others(session, tensor):
        raise session.error("register_hook() of a tensor that is another one on some path", code="D2S245",
                            hint="Register the hook in the branch or loop that makes the tensor, or on y = x.clone().")
    var = session.read(tensor)
    if session.inputs.own_variable(tensor) is not None:
        raise session.error("register_hook() of an argument that is no leaf: its hooks are the caller's", code="D2S213",
                            hint="Register the hook outside, or on y = x.clone(), and use y.")
    if all(var not in op.outputs for op in session.scope.block.ops):
        where = "made before this branch or loop" if all(var not in one.begins for one in session.scope.chain()) else (
            "that the loop hands from one iteration to the next")
        raise session.error(f"register_hook() of a tensor {where}: only some paths would have the hook", code="D2S213",
                            hint="Register the hook where the tensor is made, or on y = x.clone() here, and use y.")


def put(session: Session, tensor: torch.Tensor, op: Operator) -> None:
    """Let the gradient of a tensor go through an Operator, just recorded, that takes what the tensor holds.

    Raises:
        TraceError: D2S213, what the hook reads comes after who reads the tensor.
    """
    block, var = session.scope.block, session.read(tensor)
    before = session.graph.hooked.get(var)
    old = var if before is None else before.source
    maker = next(one for one in block.ops if old in one.outputs)
    _change(session, maker, op, *(() if before is None else before.ops))
    source = session.new_variable(old.type, old.hint)
    chain = [op, *reversed(before.ops if before else ())]
    block.ops[:] = [one for one in block.ops if one not in chain]
    needed = {one for hook in chain for inner in hook.blocks[1:] for one in inner.captures()}
    at = max([block.ops.index(maker), *(number for number, one in enumerate(block.ops)
                                        if not needed.isdisjoint(one.outputs) and one is not maker)])  # fmt: skip
    for between in block.ops[block.ops.index(maker) + 1 : at + 1]:
        for read_there in {var, old}:
            if _reads(between, read_there):
                _read_before(session, between, read_there, source)
    maker.outputs = tuple(source if one is old else one for one in maker.outputs)
    op.args, op.outputs = (source,), (old,)
    for inner in op.blocks:
        substitute(inner, {var: source})
    block.ops[at + 1 : at + 1] = chain
    if var in session.looks.of:
        session.looks.of[source] = session.looks.of[var]
    session.graph.hooked[var] = Hooked(source, (*(before.ops if before else ()), op), block)
    _stand_apart(session, tensor, var)


def _change(session: Session, *ops: Operator) -> None:
    """Operators from before open attempts are changed: these put them back."""
    for attempt in session.constructs.attempts:
        attempt.keep(ops)


def _reads(op: Operator, var: Variable) -> bool:
    return var in op.inputs or any(var in inner.captures() for inner in op.blocks)


def _read_before(session: Session, op: Operator, var: Variable, source: Variable) -> None:
    """An Operator reads the tensor before its hook can stand there: it reads what the maker gave, if no gradient comes
    from it."""
    if op.blocks or op.grad_mode != "off" and may_have_history(op):
        raise session.error(
            "register_hook() of a tensor that was used before what the hook reads was computed", code="D2S213",
            hint=f"{_FIRST}, when all that the hook reads is there. What it reads of the tensor, take of h.detach().")
    _change(session, op)
    op.args = tuple(map_operand(one, lambda a: source if a is var else a) for one in op.args)
    op.kwargs = {name: map_operand(one, lambda a: source if a is var else a) for name, one in op.kwargs.items()}


def may_have_history(op: Operator) -> bool:
    """Whether a gradient may come from what an Operator gives to what it reads."""
    return op.name != "aten.detach.default" and any(
        is_a(out.type, TensorType) and (
            out.type.dtype is None or out.type.dtype.is_floating_point or out.type.dtype.is_complex)
        for out in op.outputs)  # fmt: skip


def stand_behind(session: Session, var: Variable, op: Operator) -> None:
    """Move an Operator, the last in the Block, behind the maker of a value that it gives as it is: all who have read
    the value have read it behind that Operator."""
    block = session.scope.block
    maker = next(one for one in block.ops if var in one.outputs)
    _change(session, maker, op)
    source = session.new_variable(var.type, var.hint)
    maker.outputs = tuple(source if one is var else one for one in maker.outputs)
    op.args, op.outputs = (source,), (var,)
    block.ops.remove(op)
    block.ops.insert(block.ops.index(maker) + 1, op)
    if var in session.looks.of:
        session.looks.of[source] = session.looks.of[var]


def dissolve(session: Session) -> None:
    """At the end, leave out the Operators that do nothing: those that give what they are given, gradients included."""
    for op, block in session.looks.identities.items():
        (source,), (out,) = op.args, op.outputs
        maker = next((one for one in block.ops if source in one.outputs), None)
        if maker is not None and op in block.ops and not any(inner.ops for inner in op.blocks[1:]):
            maker.outputs = tuple(out if one is source else one for one in maker.outputs)
            block.ops.remove(op)


def _stand_apart(session: Session, tensor: torch.Tensor, var: Variable) -> None:
    """A view with a hook is memory of its own from here on: its views are taken of what is behind the hook.

    Raises:
        TraceError: D2S213, views of it were taken before.
    """
    info = session.info(tensor)
    if not info.steps:
        return
    for other in session.known_tensors():
        if other is not info and other.storage is info.storage and other.steps[: len(info.steps)] == info.steps:
            raise session.error("register_hook() of a view that others have been taken of", code="D2S213",
                                hint=f"{_FIRST}.")
    storage = session.storages.new(var, label=info.storage.label)
    note_unknown_alias(info.storage, storage, "it has a hook, and a history of its own", session.location())
    new = TensorInfo(storage, (), info.requires_grad, info.layout_known)
    new.grad_in_some_runs = info.grad_in_some_runs
    new.cached, new.cached_for = var, var
    leaf_changes.change(session, session.fake(tensor), new)


def take_off(session: Session, op: Operator) -> None:
    """The hook of an Operator is removed.

    Raises:
        TraceError: D2S213, only some paths remove it, or a gradient went through it whose graph is still there.
    """
    found = next(((var, one) for var, one in session.graph.hooked.items() if op in one.ops), None)
    if found is None:
        return
    var, hooked = found
    if op in session.graph.hooks_heard:
        if any(op in used.ops and used.when.always for used in session.graph.used_up):
            return  # no gradient comes this way any more
        raise session.error("a hook is removed after a gradient that retained the graph", code="D2S213",
                            hint="Remove it before, or ask for the last gradient without retain_graph=True.")
    if hooked.block is not session.scope.block:
        raise session.error("a hook is removed on a path that only some inputs take, or in a loop", code="D2S213",
                            hint="Remove it where it was registered, or let the hook decide what it does.")
    (source,), (out,) = op.args, op.outputs
    assert is_a(source, Variable)
    maker = next(one for one in hooked.block.ops if source in one.outputs)
    hooked.block.ops.remove(op)
    _change(session, maker, *(one for one in hooked.block.ops if _reads(one, source)))
    maker.outputs = tuple(out if one is source else one for one in maker.outputs)
    substitute(hooked.block, {source: out})
    left = tuple(one for one in hooked.ops if one is not op)
    if left:
        session.graph.hooked[var] = replace(hooked, ops=left, source=out if hooked.source is source else hooked.source)
    else:
        del session.graph.hooked[var]


def before_hooks(session: Session, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What stands for tensors whose gradient after all hooks is asked for: what their makers gave.

    Raises:
        TraceError: D2S213, a tensor that came out of a branch or loop where it got a hook.
    """
    if not session.graph.hooked:
        return list(tensors)
    _require_own(session, tensors)
    hooked = session.graph.hooked
    return [_like(session, one, hooked[var].source) if (var := session.read(one)) in hooked else one for one in tensors]


def asked_by(session: Session, tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """What stands for tensors that ``torch.autograd.grad`` is asked by: a gradient that goes on to another one of them
    is given as it arrives, one that ends here as hooks make it.

    Raises:
        TraceError: D2S213, only some paths let it go on; or as ``before_hooks``.
    """
    if not session.graph.hooked:
        return list(tensors)
    found = before_hooks(session, tensors)
    sources = [session.read(one) for one in found]
    for place, source in enumerate(sources):
        others = {one for one in sources if one is not source}
        ways = reached(session, [source], others).found if found[place] is not tensors[place] else {}
        goes_on = [ways[one] for one in others if one in ways]
        if any(goes_on):
            found[place] = tensors[place]
        elif goes_on:
            raise session.error("a gradient is asked for by a tensor with a hook, and by one that it was made of on "
                                "some paths only", code="D2S213", hint="Ask for them one after the other.")
    return found


def behind(session: Session, op: Operator) -> torch.Tensor:
    """What stands for the gradient that a hook is given."""
    tensor = session.graph.hook_records[op].tensor
    assert tensor is not None  # a hook's, whose gradient is asked for
    return _like(session, tensor, op.outputs[0])


def _like(session: Session, tensor: torch.Tensor, var: Variable) -> torch.Tensor:
    info = session.info(tensor)
    fake = session.fresh(session.clone_meta(session.fake(tensor)), var, requires_grad=True,
                         layout_known=info.layout_known)
    session.info(fake).grad_in_some_runs = info.grad_in_some_runs
    return fake


def _require_own(session: Session, tensors: Sequence[torch.Tensor]) -> None:
    sources = Sources(session)
    for tensor in tensors:
        if any(one in session.graph.hooked for one in sources.of(session.read(tensor))):
            raise session.error("a gradient is asked for by a tensor that got a hook in a branch or loop which it came "
                                "out of", code="D2S213", hint="Ask for it in there, or register the hook after it.")


def require_no_hook(session: Session, tensor: torch.Tensor) -> None:
    """Refuse to let go of a tensor with a hook: what is asked of it outside would not see that.

    Raises:
        TraceError: D2S228.
    """
    if not session.graph.hooked:
        return
    var = session.read(tensor)
    if any(one in session.graph.hooked for one in (var, *Sources(session).of(var))):
        raise session.error(
            "a tensor on which a hook was registered leaves the converted function", code="D2S228",
            hint="Return h.view_as(h), or register the hook outside, on what the function returns.")


__all__ = ["Hooked", "asked_by", "before_hooks", "behind", "dissolve", "may_have_history", "put", "require_hookable",
           "require_no_hook", "stand_behind", "take_off"]  # fmt: skip
