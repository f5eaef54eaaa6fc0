"""``torch.utils.checkpoint.checkpoint`` inside a trace: the function is called, once, in a ``recompute()`` region.

    y = checkpoint(f, x)   ->   with recompute(): y = f(x)

Eager's backward calls the function a second time, a Program's computes the region again: no value changes. But a
function that counts its calls, or updates running statistics, then does so twice. Such functions are refused where a
gradient is asked for: what they change is found by tracing them a second time, in vain, from where the first call left
everything.

The second call looks things up once more. So the gradient of what the region gives goes through a test that they are as
they were (``lookups.py``):

    %0 = exp(%x)   ->   %0 = exp(%x); %y = custom_grad(%0) { ^(%a): yield alias(%a) } { ^(%g): unchanged(); yield %g }
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import checkpoint as torchs

from dy2static.operators.calls import lookups
from dy2static.operators.calls.call import call
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import NO_NAMES, Session, Staged
from runtime.errors import Dy2StaticError
from runtime.ir import Block, Location, Operator, Variable
from runtime.ir.operator import leaves
from runtime.ir.walk import copy_block
from runtime.kinds import is_a
from runtime.tracer.control.branches import Path, trace_path
from runtime.tracer.control.changes import Older, written_at
from runtime.tracer.control.slots import held
from runtime.tracer.python_state.guards import LookedUp
from runtime.tracer.recording import hooked_tensors
from runtime.tracer.recording.attempt import Attempt
from runtime.tracer.values import structure

_OWN = ("use_reentrant", "context_fn", "determinism_check", "debug", "early_stop", "preserve_rng_state")
"""What ``checkpoint`` does not hand on."""


def checkpoint(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``torch.utils.checkpoint.checkpoint(function, *args, **kwargs)``.

    Raises:
        TraceError: D2S275, for a function whose second call changes more.
    """
    kwargs = {key: value for key, value in kwargs.items() if key not in _OWN}

    def run() -> Any:
        with _inside(session):
            return call(*args, **kwargs)

    if not torch.is_grad_enabled():
        return run()
    older = Older(session, [], [args, kwargs])
    block, before = session.scope.block, [*session.scope.block.ops]
    session.journal.open()
    try:
        result, behind = _put_tests(session, run)
    finally:
        stored = session.journal.frames.pop()
        session.journal.frames[-1].disordered |= stored.disordered
        session.journal.frames[-1].perhaps |= stored.perhaps
    now = session.storages.snapshot()
    known = {**{storage: storage.origin for storage in now if storage.origin is not None}, **older.storages}
    changed = any(now.get(storage, value) is not value for storage, value in known.items())
    region: Block | None = None
    if (changed or not all(map(older.is_new, stored))) and _needs_gradient(session, result):
        region = _require_repeatable(session, run, [args, kwargs, result])
    if block.ops[: len(before)] == before:  # nothing was put there, as a hook may be
        region = region or Block([], block.ops[len(before) :])
        _watch(session, run, args[0] if args else kwargs.get("function"), behind, region)
    return result


def _watch(session: Session, run: Callable[[], Any], function: Any, behind: list[Operator], region: Block) -> None:
    """``region``: what a second call would compute now."""

    def again() -> Iterator[tuple[Block, Block]]:
        path = trace_path(session, "checkpoint", NO_NAMES, lambda: _put_tests(session, run))
        yield region, Block(path.scope.block.args, path.scope.block.ops)

    for op in behind:
        lookups.watch(session, function, op, set(region.captures()),
                      "the function that torch.utils.checkpoint was given", again)


def _put_tests(session: Session, run: Callable[[], Any]) -> tuple[Any, list[Operator]]:
    """What a region gives, and the Operators behind it."""
    before, block, start = session.storages.snapshot(), session.scope.block, len(session.scope.block.ops)
    with lookups.looking_up(session) as found:
        result = run()
    if session.code.transforms:
        return result, []
    made = {out: op for op in block.ops[start:] for out in op.outputs}
    values = dict.fromkeys(
        info.storage.value for info in session.known_tensors()
        if info.requires_grad and before.get(info.storage) is not info.storage.value and info.storage.value in made)
    lookups.leave_out_changed(session, found, made)
    return result, [_behind(session, value, found) for value in values]


def _behind(session: Session, value: Variable, found: LookedUp) -> Operator:
    """Put an Operator behind a value that gives it as it is, and whose gradient is tested."""
    with session.open("custom_grad") as scope:
        (given,) = scope.block.args = [session.new_variable(value.type)]
        scope.block.yields += session.emit("aten.alias.default", [given], types=[value.type])
    path = trace_path(session, "custom_grad", NO_NAMES, lambda: None)
    block = path.scope.block
    block.args = [session.new_variable(value.type, scope=path.scope)]
    block.yields = [*block.args]
    if not session.call.ahead.in_file:
        lookups.put_test(session, found, path, session.location())
    op = session.emit_operator("custom_grad", [value], types=[value.type], blocks=[scope.block, block],
                               attrs={"n_outputs": 1}, modes=("inherit", None))
    hooked_tensors.stand_behind(session, value, op)
    session.looks.identities[op] = session.scope.block
    return op


@contextlib.contextmanager
def _inside(session: Session) -> Iterator[None]:
    memo(session).checkpointed += 1
    session.constructs.enter_region()
    try:
        yield
    finally:
        memo(session).checkpointed -= 1
        session.constructs.leave_region()


def _needs_gradient(session: Session, value: Any) -> bool:
    if is_a(value, torch.Tensor):
        return session.info(value).requires_grad
    if is_a(value, dict):
        value = value.values()
    elif not is_a(value, (list, tuple)):
        return structure.has_traced(value)
    return any(_needs_gradient(session, item) for item in value)


def _require_repeatable(session: Session, run: Callable[[], Any], values: list[Any]) -> Block:
    """What the second call computes, which leaves what the first one has left."""
    found: tuple[str, Location | None] | None = ("changes what cannot be compared", None)
    with contextlib.suppress(Dy2StaticError), Attempt(session) as tried:
        older = Older(session, [], values)
        path = trace_path(session, "checkpoint", NO_NAMES, lambda: _put_tests(session, run))
        found = _more(session, older, path)
        region = copy_block(path.scope.block, {}, session.new_name)
        tried.undo()
    if found is not None:
        raise session.error(
            f"torch.utils.checkpoint.checkpoint calls a function that {found[0]}: eager's backward calls it again, and "
            "does that twice", code="D2S275", location=found[1],
            hint="Call the function itself there, in a runtime.recompute() region if memory matters, or do that "
                 "outside of what is checkpointed.")
    return region


def _more(session: Session, older: Older, path: Path) -> tuple[str, Location | None] | None:
    """What a second call changes, and where."""
    for place in older.places(path):
        now, again = held(place), path.places[place]
        if place.kind == "content":
            with path.inside(session):
                again = held(place)
        if not _is_same(session, path, now, again):
            return f"stores to {place.describe()}", session.journal.first_stores.get(place)
    block = path.scope.block
    for storage, value in older.written(path):
        if _depends(block, value, older.storages[storage]):
            label = storage.label or storage.first.hint
            return f"writes to '{label}'" if label else "writes to a tensor", written_at(block, value)
    return None


def _is_same(session: Session, path: Path, now: Any, again: Any) -> bool:
    """Whether a second call leaves what the first one left, computed of the same."""
    if structure.same_known(now, again):
        return True
    if is_a(now, (torch.Tensor, Staged)) and is_a(again, (torch.Tensor, Staged)):
        before = session.operand(now)
        with path.inside(session):
            after = session.operand(again)
        return not (is_a(after, Variable) and is_a(before, Variable)) or not _depends(
            path.scope.block, after, before)
    if type(now) is not type(again):
        return False
    if is_a(now, (list, tuple)):
        return len(now) == len(again) and all(_is_same(session, path, a, b) for a, b in zip(now, again))
    if is_a(now, dict):
        return list(now) == list(again) and all(_is_same(session, path, now[key], again[key]) for key in now)
    return False


def _depends(block: Block, value: Variable, source: Variable) -> bool:
    """Whether something in a Block is computed from a Variable."""
    makers: dict[Variable, Operator] = {output: op for op in block.walk() for output in op.outputs}
    todo, seen = [value], set[Variable]()
    while todo:
        one = todo.pop()
        if one is source:
            return True
        if one in seen or one not in makers:
            continue
        seen.add(one)
        op = makers[one]
        todo += op.inputs
        for inner in op.blocks:
            todo += leaves(inner.yields)
            for part in inner.walk():
                todo += part.inputs
                for nested in part.blocks:
                    todo += leaves(nested.yields)
    return False


HANDLERS = [(torchs.checkpoint, checkpoint)]
