"""``torch.utils.checkpoint.checkpoint`` inside a trace: the function is called, once, in a ``recompute()`` region.

    y = checkpoint(f, x)   ->   with recompute(): y = f(x)

Eager's backward calls the function a second time, a Program's computes the region again: no value changes. But a
function that counts its calls, or updates running statistics, then does so twice. Such functions are refused where a
gradient is asked for: what they change is found by tracing them a second time, in vain, from where the first call left
everything.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import checkpoint as torchs

from dy2static.operators.calls.call import call
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import NO_NAMES, Session, Staged
from runtime.errors import Dy2StaticError
from runtime.ir import Block, Location, Operator, Variable
from runtime.ir.operator import leaves
from runtime.tracer.control.branches import Path, trace_path
from runtime.tracer.control.changes import Older, written_at
from runtime.tracer.control.slots import held
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
    session.journal.open()
    try:
        result = run()
    finally:
        stored = session.journal.frames.pop()
    now = session.storages.snapshot()
    before = {**{storage: storage.origin for storage in now if storage.origin is not None}, **older.storages}
    changed = any(now.get(storage, value) is not value for storage, value in before.items())
    if (changed or not all(map(older.is_new, stored))) and _needs_gradient(session, result):
        _require_repeatable(session, run, [args, kwargs, result])
    return result


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
    if isinstance(value, torch.Tensor):
        return session.info(value).requires_grad
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return structure.has_traced(value)
    return any(_needs_gradient(session, item) for item in value)


def _require_repeatable(session: Session, run: Callable[[], Any], values: list[Any]) -> None:
    found: tuple[str, Location | None] | None = ("changes what cannot be compared", None)
    with contextlib.suppress(Dy2StaticError), Attempt(session) as tried:
        older = Older(session, [], values)
        found = _more(session, older, trace_path(session, "checkpoint", NO_NAMES, run))
        tried.undo()
    if found is not None:
        raise session.error(
            f"torch.utils.checkpoint.checkpoint calls a function that {found[0]}: eager's backward calls it again, and "
            "does that twice", code="D2S275", location=found[1],
            hint="Call the function itself there, in a runtime.recompute() region if memory matters, or do that "
                 "outside of what is checkpointed.")


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
    if isinstance(now, (torch.Tensor, Staged)) and isinstance(again, (torch.Tensor, Staged)):
        before = session.operand(now)
        with path.inside(session):
            after = session.operand(again)
        return not (isinstance(after, Variable) and isinstance(before, Variable)) or not _depends(
            path.scope.block, after, before)
    if type(now) is not type(again):
        return False
    if isinstance(now, (list, tuple)):
        return len(now) == len(again) and all(_is_same(session, path, a, b) for a, b in zip(now, again))
    if isinstance(now, dict):
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
