"""Replaying a Program on fake tensors under torch's autograd: the session, the modes and the arguments."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff.assumed import Assumed
from runtime.autodiff.forward import Forward
from runtime.autodiff.replay_recorder import ReplayRecorder
from runtime.ir import Program, ScalarType, TensorType, Variable
from runtime.tracer.ambient import state
from runtime.tracer.boundary.tracing import trace_lock
from runtime.tracer.memory.storage_table import TensorInfo
from runtime.tracer.numbers import scalars
from runtime.tracer.numbers.symbols import sympy
from runtime.tracer.recording.session import Replaying, Session


@contextlib.contextmanager
def replaying(name: str, *, lowering: bool = False) -> Iterator[tuple[Session, Forward]]:
    """A session that records what a ``Forward`` replays. ``lowering``: Operators keep the grad mode they had."""
    session = Session(name)
    session.replaying = Replaying(lowering=lowering)
    recorder = ReplayRecorder(session)
    with trace_lock:
        before = state.enter(session)
        try:
            with (
                torch.inference_mode(False),
                torch.enable_grad(),
                torch_internals.quiet_shapes(),
                torch_internals.without_autocast_cache(),
                recorder,
            ):
                yield session, Forward(session, recorder)
        finally:
            state.enter(before)


def argument(session: Session, forward: Forward, old: Variable, real: Any) -> Variable:
    """A Variable and its stand-in for an argument of the Program."""
    if isinstance(old.type, ScalarType):
        var = session.new_variable(old.type, old.hint or old.name, session.scope)
        forward.env[old] = scalars.wrap(var)
        return var
    assert isinstance(old.type, TensorType)
    dynamic = {}
    if old.type.device is not None:
        forward.devices[old.type.device] = real.device
    shape = old.type.shape or ()
    for dim, size in enumerate(shape):
        if isinstance(size, str):
            dynamic[dim] = (
                forward.sizes[size]
                if size in forward.sizes
                else session.sizes.new_input_symbol(old.name, dim, real.shape[dim])
            )
    fake = torch_internals.fake_like(session.fake_mode, real, dynamic)
    var = session.new_variable(session.type_of(fake), old.hint or old.name, session.scope)
    for dim, symbol in dynamic.items():
        session.sizes.bind_size(fake.shape[dim], var, dim)
        forward.sizes.setdefault(shape[dim], symbol)  # type: ignore[arg-type]  # a symbol's name, as seen above
    info = TensorInfo(session.storages.new(var, origin=var, label=old.hint))
    info.cached, info.cached_for = var, var
    forward.env[old] = session.register(fake, info)
    return var


def assumed(
    session: Session, forward: Forward, program: Program, args: Sequence[Variable], arguments: Sequence[Any]
) -> Assumed | None:
    """What a replay assumed of the sizes of ``arguments``, as a formula, or an operator that is made of others, takes
    another way for other sizes; None if that is no more than what the Program assumes itself.

    ``args``: what stands for the arguments.
    """
    fixed = [
        (index, dim, real.shape[dim]) for index, (old, var, real) in enumerate(zip(program.block.args, args, arguments))
        if isinstance(var.type, TensorType)
        for dim, (now, then) in enumerate(zip(session.dims(forward.env[old]), var.type.shape or ())) if now != then
    ]  # fmt: skip
    names = {symbol.node.expr: sympy.Symbol(name) for name, symbol in forward.sizes.items()}
    known = {assume.expr for assume in program.assumes}
    facts = {fact for fact in session.sizes.facts_of_inputs() if str(fact.xreplace(names)) not in known}
    if not fixed and not facts:
        return None
    return Assumed(tuple(fixed), tuple(facts), session.sizes.places(facts, [old.name for old in program.block.args]))


__all__ = ["Forward", "Session", "argument", "assumed", "replaying"]
