"""``update``: writes, on the base itself where it is owned and dies here, on a copy of it everywhere else.

Under autograd the tensor that was copied counts a write, so that a backward that needs its content raises as eager's
does; so do other tensors that eager has as the same memory (``same_memory``). What was written through ``.data``, which
nothing counts, is written in the tensor itself: backward reads that.
"""

from __future__ import annotations

import torch

from runtime.executor.emitter import Emitter
from runtime.executor.held import note_write
from runtime.executor.ownership import Owner
from runtime.executor.same_memory import link
from runtime.executor.same_memory import note_write as note_write_of_linked
from runtime.ir import Operator, TensorType, Variable
from runtime.ops.update import is_counted, is_unnoticed


def copy_of(base: torch.Tensor) -> torch.Tensor:
    """A copy with memory of its own for every element; strides are kept where the base has that too.

    It keeps the base's gradient history even where gradients are off, as writing the base itself would.
    """
    if not base.requires_grad:
        return base.clone()
    with torch.enable_grad():
        try:
            return base.clone()
        except RuntimeError:
            if not _is_lost(base):
                raise
    return _lost_copy_of(base)


def _is_lost(view: torch.Tensor) -> bool:
    """Whether autograd lets nobody read a view where gradients are recorded: it was made under ``no_grad``, and what it
    is a view of was written since. The user's code may still write it, or have it as a result."""
    try:
        _ = view.grad_fn
    except RuntimeError:
        return True
    return False


def _lost_copy_of(view: torch.Tensor) -> torch.Tensor:
    """A copy of such a view that nobody may read either."""
    with torch.no_grad():
        base = view.clone().requires_grad_()
        copy = base.view_as(base)
    torch.autograd.graph.increment_version(base)
    return copy


def count_write(base: torch.Tensor, written: torch.Tensor) -> None:
    """For autograd a tensor was written of which a copy was: also for what the write itself has kept of its memory."""
    if written is not base:
        torch.autograd.graph.increment_version(base)
        note_write(base, written)


def refuse(text: str, *tensors: torch.Tensor) -> None:
    """Errors raised: RuntimeError with that text if one of the tensors needs a gradient and gradients are recorded."""
    if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors):
        raise RuntimeError(text)


def _linked(op: Operator) -> Variable | None:
    """What an ``update`` that repeats a write copies: the memory that was written under another name."""
    if not op.attrs.get("repeats"):
        return None
    copies = [inner for inner in op.blocks[0].ops if inner.name == "aten.copy_.default"]
    source = copies[-1].args[1] if copies else None
    return source if isinstance(source, Variable) else None


def _links(emitter: Emitter) -> bool:
    """Whether some memory has several names, of which each is a tensor of its own."""
    if emitter.links is None:
        emitter.links = any(_linked(op) is not None for op in emitter.program.block.walk())
    return emitter.links


def emit(emitter: Emitter, op: Operator) -> None:
    """``b = copy(base)``, then the Block's writes on ``b``. An owned base keeps its local: it is the new value."""
    (block,) = op.blocks
    live = emitter.live
    # Inside a function that autograd runs there is no history to keep: autograd gives the results theirs.
    root = emitter.open[-1].modes.root.grad
    cloner = torch.clone if root == "inherit" else copy_of
    unread = live.unread[id(op)]
    tried = op.attrs.get("repeats") and all(out in unread for out in op.outputs)  # nobody has what was written
    counts = root == "on" and is_counted(block) and not tried and not op.attrs.get("unnoticed")
    linked = _linked(op) if root == "on" and not tried else None
    kept_source = emitter.fresh("w")
    if linked is not None:
        emitter.line(f"{kept_source} = {emitter.name(linked)}")
    elif root == "on" and is_counted(block) and _links(emitter):
        for base in op.args:
            emitter.line(f"{emitter.bind(note_write_of_linked, 'f')}({emitter.operand(base)})")
    counted: list[tuple[str, str]] = []
    if root == "on" and "refused" in op.attrs:
        read = dict.fromkeys(var for var in [*op.inputs, *block.captures()] if isinstance(var.type, TensorType))
        operands = ", ".join([emitter.bind(op.attrs["refused"]), *map(emitter.name, read)])
        emitter.line(f"{emitter.bind(refuse, 'f')}({operands})")
    captured = set(live.captured(block))
    shared: list[str] = []
    dying = {var: None for var in live.dying[id(op)] if var not in captured}
    for position, (base, arg, out) in enumerate(zip(op.args, block.args, op.outputs)):
        assert isinstance(base, Variable)
        source = emitter.name(base)
        if root == "on" and is_unnoticed(op):
            emitter.line(f"{emitter.name(out)} = {source}")
            emitter.line(f"{emitter.name(arg)} = {source}.data")
            shared.append(emitter.name(arg))
            continue
        owner = emitter.own.donated.get((id(op), position), Owner.NO)
        if owner is Owner.YES and base in dying:
            del dying[base]
            emitter.names[arg] = emitter.names[out] = source
            continue
        copy = f"{emitter.bind(cloner, 'f')}({source})"
        if owner is Owner.DYNAMIC:
            copy = f"{source} if {emitter.flag(base)} else {copy}"
        if counts:
            counted.append((emitter.fresh("w"), emitter.name(arg)))
            emitter.line(f"{counted[-1][0]} = {source}")
        emitter.line(f"{emitter.name(arg)} = {copy}")
        emitter.names[out] = emitter.name(arg)
    emitter.drop(dying)
    emitter.enter(block)
    emitter.operators(block)
    count = len(block.args)
    for value, out in zip(block.yields[count:], op.outputs[count:]):
        if out not in unread:
            emitter.line(f"{emitter.name(out)} = {emitter.operand(value)}")
    for kept, written in counted:
        emitter.line(f"{emitter.bind(count_write, 'f')}({kept}, {written})")
        emitter.line(f"del {kept}")
    if linked is not None:
        emitter.line(f"{emitter.bind(link, 'f')}({kept_source}, {emitter.name(block.args[0])})")
        emitter.line(f"del {kept_source}")
    if shared:
        emitter.line("del " + ", ".join(shared))
    emitter.drop(live.at_exit[id(block)])
    emitter.drop(out for out in op.outputs[:count] if out in unread)
