"""Operands of an in-place operator that are memory it writes on some paths only.

PyTorch refuses most operators that read other elements of the memory they write (``c[1:] += c[:-1]``). A Program reads
such an operand from where paths were joined, and would go on: so the operator runs once more, on the paths where the
two are one, with both as views of that memory, to raise what it raises there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Block, Operand, Type
from runtime.kinds import is_a
from runtime.tracer.ambient.calls import tensors_in
from runtime.tracer.memory.aliases import Root, few_roots, key

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import TensorInfo
    from runtime.tracer.recording.session import Session


@dataclass(frozen=True, eq=False)
class Call:
    """An in-place call that is about to be recorded."""

    func: Any
    name: str
    args: Any
    kwargs: Any
    written: Sequence[torch.Tensor]
    infos: Mapping[int, TensorInfo]
    """What is known of its tensors, by identity."""
    types: Sequence[Type]
    """Of its results."""


def check(session: Session, call: Call) -> None:
    """Record what raises where a call reads other elements of what it writes, if that is so on some paths only."""
    reads = {id(tensor): tensor for tensor in tensors_in(call.args, call.kwargs)}
    for target in call.written:
        info = call.infos[id(target)]
        for number, tensor in reads.items():
            if call.infos[number].storage is not info.storage:
                for mine, theirs in _overlaps(session, call, info, call.infos[number]):
                    _run_on_one(session, call, info, tensor, mine, theirs)


def _overlaps(session: Session, call: Call, written: TensorInfo, read: TensorInfo) -> Iterator[tuple[Root, Root]]:
    """How two tensors are views of one memory."""
    if not (written.storage.aliases or read.storage.aliases):
        return
    if call.func.namespace != "aten" or torch.Tag.nondeterministic_seeded in call.func.tags:
        return  # running it once more would be seen
    others = few_roots(read, ())[0]
    for mine in few_roots(written, ())[0]:
        for theirs in others:
            same_way = any(storage in theirs.through for storage in mine.through)
            if mine.storage is not theirs.storage or same_way or not session.visible(mine.storage.value):
                continue
            if torch.Tag.pointwise in call.func.tags and key(mine.steps) == key(theirs.steps):
                continue  # each element is read where it is written
            yield mine, theirs


def _run_on_one(session: Session, call: Call, info: TensorInfo, read: torch.Tensor, mine: Root, theirs: Root) -> None:
    """Record the call with what it writes and ``read`` as views of one memory, where they are."""
    for late in (*mine.pending, *theirs.pending):
        late.demand(session)
    flag = (mine.when & theirs.when).operand(session)
    way = mine.steps[: len(mine.steps) - len(info.steps)]
    location, modes = session.location(), ("off", session.modes()[1])
    beside = dict.fromkeys(call.infos[id(one)].storage for one in call.written)
    beside.pop(info.storage)
    bases = [mine.storage.value, *(storage.value for storage in beside)]
    with session.open("cond") as taken:
        with session.open("update") as scope:
            scope.block.args.extend(session.new_variable(base.type, base.hint) for base in bases)
            inner, *others = scope.block.args
            own = dict(zip(beside, others))

            def operand(value: Any) -> Operand:
                if is_a(value, torch.Tensor):
                    type_ = session.type_of(session.fake(value))
                    if value is read:
                        return session.replay(inner, theirs.steps, type_)
                    if call.infos[id(value)].storage is info.storage:
                        return session.replay(inner, (*way, *call.infos[id(value)].steps), type_)
                    if call.infos[id(value)].storage in own:
                        return session.replay(own[call.infos[id(value)].storage], call.infos[id(value)].steps, type_)
                    return session.read(value)
                if type(value) in (list, tuple):
                    return type(value)(operand(item) for item in value)
                return value  # an operand already

            operands = [operand(arg) for arg in call.args]
            keywords = {name: operand(value) for name, value in call.kwargs.items()}
            session.emit(call.name, operands, keywords, call.types, modes=modes, location=location)
            scope.block.yields.extend(scope.block.args)
        types = [base.type for base in bases]
        session.emit("update", bases, None, types, blocks=[scope.block], modes=modes, location=location,
                     attrs={"repeats": True})  # nothing is written: what the operator reads keeps its version
    session.emit("cond", [flag], None, [], blocks=[taken.block, Block()], location=location)
