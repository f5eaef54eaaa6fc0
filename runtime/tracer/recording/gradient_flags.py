"""Whether a gradient that was asked for with ``create_graph=True`` needs a gradient itself.

    g, = grad((x * 2).sum(), x, create_graph=True)      2: a constant, g.requires_grad is False
    g, = grad(x.exp().sum(), x, create_graph=True)      exp(x), which is made of x: True

Each Operator on the way is asked: it runs once on stand-ins, and its derivative says whether it needs a gradient where
the gradient that arrives does, or does not. What has Blocks has no such answer: then the run tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from typing import Any

import torch

from runtime.ir import Operator, Variable
from runtime.tracer.recording.gradient_paths import Paths
from runtime.tracer.recording.histories import on_stand_ins
from runtime.tracer.recording.session import Session

Flag = bool | None
"""Whether a gradient needs one; None: the run tells."""


def flags(session: Session, paths: Paths, starts: dict[Variable, Flag], wanted: Iterable[Variable]) -> list[Flag]:
    """Whether the gradients by ``wanted`` need one. ``starts``: whether those do that the roots are given."""
    makers = {out: op for scope in session.scope.chain() for op in scope.block.ops for out in op.outputs}
    wanted = list(wanted)
    leading = paths.leading(set(wanted))
    users: dict[Variable, list[Variable]] = {}
    for var, sources in paths.made_of.items():
        for source in dict.fromkeys(sources) if var in leading else ():
            users.setdefault(source, []).append(var)
    found: dict[Variable, Flag] = {}
    todo = wanted[:]
    while todo:
        var = todo[-1]
        waiting = [user for user in users.get(var, ()) if user not in found]
        if waiting and var not in found:
            todo += waiting
            continue
        todo.pop()
        if var not in found:
            shares = [starts[var]] if var in starts else []
            shares += [_through(session, makers.get(user), user, var, found[user]) for user in users.get(var, ())]
            found[var] = True if True in shares else None if None in shares or not shares else False
    return [found[var] for var in wanted]


def _through(session: Session, op: Operator | None, result: Variable, operand: Variable, given: Flag) -> Flag:
    """Whether the share of a gradient that goes through an Operator needs one; ``given``: what arrives does."""
    if op is None:
        return None
    ask = partial(_derivative_needs, op.outputs.index(result), operand)
    alone = None if given is True else on_stand_ins(session, op, operand, partial(ask, False))
    if alone is True or given is False:
        return alone
    both = on_stand_ins(session, op, operand, partial(ask, True))
    return both if given is True or both is False else None


def _derivative_needs(
    place: int, operand: Variable, given: bool, results: list[Any], stand_ins: dict[Variable, Any]
) -> bool:
    """Whether the derivative of a result by an operand needs a gradient where that of the result is ``given`` one."""
    result = results[place]
    start = torch.ones_like(result.detach()).requires_grad_(given)
    (share,) = torch.autograd.grad(result, stand_ins[operand], start, create_graph=True, allow_unused=True)
    return share is not None and bool(share.requires_grad)


__all__ = ["Flag", "flags"]
