"""Tensors that the same number chooses among again: what was chosen is the tensor, not another one that is equal.

    loss = f(p["w"])                        p: one of two dicts, as %which says; a switch over what each has there
    grad(loss, list(p.values()))            the same tensors by the same number: what the first switch gave

A second result would be right about values, but no gradient of what was computed from the first one reaches it. On a
path that says what the number is, what it chose is the option.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import torch

from runtime.ir import Variable
from runtime.tracer.numbers import selected
from runtime.tracer.recording.session import Session

Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class Selection:
    """What was chosen, and the state in which all of them were then."""

    selector: Variable
    options: tuple[torch.Tensor, ...]
    chosen: torch.Tensor
    state: Key


def once(session: Session, selector: Variable, options: Sequence[torch.Tensor], chosen: torch.Tensor) -> torch.Tensor:
    """The tensor that ``selector`` chose among ``options`` before, if none has changed since, or the one that they all
    are; else ``chosen``, which it chooses now."""
    if all(one is options[0] for one in options):
        return options[0]
    key = (selector, *map(id, options))
    for scope in session.scope.chain():
        earlier = scope.selections.get(key)
        if earlier is not None and earlier.state == _state(session, (*options, earlier.chosen)):
            return earlier.chosen
    made = Selection(selector, tuple(options), chosen, _state(session, (*options, chosen)))
    session.scope.selections[key] = session.scope.selections[id(chosen)] = made
    return chosen


def known(session: Session, tensor: torch.Tensor) -> torch.Tensor:
    """Which of some tensors ``tensor`` is, where the path that the trace is on says it; else ``tensor``."""
    for scope in session.scope.chain():
        made = scope.selections.get(id(tensor))
        if made is None:
            continue
        number = selected.only(session, made.selector)
        if number is not None and made.state == _state(session, (*made.options, made.chosen)):
            return known(session, made.options[number])
        break
    return tensor


def _state(session: Session, tensors: Sequence[torch.Tensor]) -> Key:
    """What their memory holds, and what autograd is told of each."""
    infos = [session.info(tensor) for tensor in tensors]
    return tuple(
        (info.storage.value, info.steps, info.requires_grad, info.grad_in_some_runs, info.perhaps_retains, info.fixed)
        for info in infos)  # fmt: skip


__all__ = ["known", "once"]
