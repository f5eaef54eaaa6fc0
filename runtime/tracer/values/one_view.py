"""Tensors of written memory that lists which grow hold: each is one Variable, wherever it is read.

    a = b[:1]
    if c:
        w = a
    if d:
        grown.append(a)
    else:
        a[0] = 8
    return grown, w

A view is taken anew of its memory once that was written, in each Block that reads it; so what ``grown`` holds would be
another tensor than ``w``. Elsewhere results know by origins which of them are one. Which tensor an item of such a list
is, only a run knows: it has to be the very tensor. So where such a list gets a tensor of written memory, the trace
begins again, and from then on

- a view is taken in the outermost Block in which it can be, once for each content of its memory;
- where paths leave its memory in several contents, each path yields the view of its own;
- a tensor that a join gave is the older tensor that it is, where it is that one.
"""

from __future__ import annotations

import contextlib
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

import torch

from runtime.ir import Block, Variable
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.memory import aliases
from runtime.tracer.values import same_object

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import Storage, TensorInfo
    from runtime.tracer.recording.session import Scope, Session

_FOUND = Findings(listed=frozenset(("views",)))


def begin_again(session: Session) -> None:
    """A list that grows holds a tensor of written memory.

    Raises:
        Restart: The trace did not begin with that.
    """
    call = session.call
    if call.known.listed:
        return
    if not call.advanced:
        raise session.restart(_FOUND)
    call.known = call.known.and_also(_FOUND)  # from here on, at least


def note_listed(session: Session, tensor: torch.Tensor) -> None:
    """A tensor becomes an item of a list that grows.

    Errors raised: Restart.
    """
    info = session.info(tensor)
    if session.call.known.listed:
        session.containers.listed[id(tensor)] = tensor
    elif shows(info):
        roots, reached = aliases.few_roots(info, ())
        if any(storage.value is not storage.first for storage in (*reached, *(root.storage for root in roots))):
            begin_again(session)


def shows(info: TensorInfo) -> bool:
    """Whether a tensor shows memory that others show as well."""
    return bool(info.steps or info.storage.aliases or info.storage.dependents)


def read(session: Session, tensor: torch.Tensor, info: TensorInfo) -> Variable:
    """The Variable of a tensor."""
    reads, base = session.containers.reads, info.storage.value
    if info.cached is not None and info.cached_for is not None:
        reads[info.number, info.cached_for] = info.steps, info.cached
    steps, var = reads.get((info.number, base), (None, base))
    if steps is not info.steps or not session.visible(var):
        outermost = _outermost(session, info, base)
        with contextlib.nullcontext() if outermost is session.scope else session.reopen(outermost):
            type = session.type_of(session.fake(tensor))
            var = session.replay(base, info.steps, type if info.steps else None)
            if same_object.is_joined(session, tensor) and base is not info.storage.first:
                var = _older(session, tensor, info, aliases.of_roots(session, info, var, type))
        reads[info.number, base] = info.steps, var
    return var


def older_than(session: Session, entry: Container[Storage], changed: Container[Storage]) -> Iterator[torch.Tensor]:
    """The tensors from before a construct that are not just the memory which they show, and which was ``changed``."""
    for tensor, info in session.known_with_tensors() if session.call.known.listed else ():
        if info.storage in entry and info.storage in changed and _is_readable(session, info) and (
                info.steps or same_object.is_joined(session, tensor)):
            yield tensor


def _outermost(session: Session, info: TensorInfo, base: Variable) -> Scope:
    """The outermost Block, among those that are being recorded, in which a view can be taken."""
    needed = [base, *aliases.step_variables(info.steps)]
    closed = {id(end.scope) for ends in session.looks.path_ends.values() for end in ends}
    found = scope = session.scope
    while scope.parent is not None and id(scope) not in closed and scope.forward is None:
        scope = scope.parent
        if scope.before is not None:
            break
        if all(map(scope.sees, needed)):
            found = scope
    return found


def _older(session: Session, tensor: torch.Tensor, info: TensorInfo, var: Variable) -> Variable:
    """The Variable of a tensor that a join gave, ``var``: that of an older one, where it is that one."""
    for other in list(_candidates(session, info)):
        decision = same_object.may_be_one(session, tensor, other)
        if decision not in ("same", "open"):
            continue
        one = session.read(other)
        flag = session.operand(same_object.identical(session, tensor, other))
        if flag is True:
            return one
        if flag is not False:
            (var,) = session.emit("cond", [flag], None, [var.type], hints=[var.hint],
                                  blocks=[Block(yields=[one]), Block(yields=[var])])  # fmt: skip
    return var


def _candidates(session: Session, info: TensorInfo) -> Iterator[torch.Tensor]:
    """The older tensors that may be read here and that something is known of."""
    for other, theirs in session.known_with_tensors():
        if theirs.number < info.number and theirs.origin is not None and _is_readable(session, theirs) and (
                session.visible(theirs.storage.value)):
            yield other


def _is_readable(session: Session, info: TensorInfo) -> bool:
    return info.storage.lost is None and not info.storage.outdated and all(
        map(session.visible, aliases.step_variables(info.steps)))


__all__ = ["begin_again", "note_listed", "older_than", "read", "shows"]
