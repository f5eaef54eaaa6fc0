"""Hooks on results that no gradient reaches, where one eager node gives them with others that one may reach.

    s, m = torch.std_mean(x); s.register_hook(h); m.sum().backward()      h(None), before the hooks on m

The node of a run gives results of several eager nodes, so PyTorch's None alone does not say that h is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from runtime.autodiff.stages import Stage

Unheard = tuple[int, Callable[..., Any]]
"""The place of a result in its stage, and a hook on it that got None."""


class Call(Protocol):
    """What is known of one node of a run."""

    stage: Any
    lengths: list[int | None]
    """For each result: how many items, if it is a list."""
    unheard: list[Unheard]


def hears(call: Call, number: int, hook: Callable[..., Any] | None) -> None:
    """A hook on a tensor that the node gives got None; None for it: one is about to be called with a gradient.

    Raises:
        RuntimeError: Another hook, which is called before, gives a gradient for None.
    """
    if hook is not None:
        call.unheard.append((_places(call)[number], hook))
    elif call.unheard:
        together = _stage(call).together
        mine = together.get(_places(call)[number])
        if mine is not None:
            _call(call, [one for one in call.unheard if together.get(one[0]) == mine])


def call_unheard(call: Call, reached: Sequence[bool]) -> None:
    """Call with None the hooks whose eager node runs; ``reached``: for each tensor whether it has a gradient.

    Raises:
        RuntimeError: A hook gives a gradient for None.
    """
    together = _stage(call).together
    places = {place for place, one in zip(_places(call), reached) if one}
    _call(call, [one for one in call.unheard if not places.isdisjoint(together.get(one[0], ()))])
    call.unheard.clear()


def _call(call: Call, unheard: list[Unheard]) -> None:
    for one in unheard:
        call.unheard.remove(one)
        if one[1](None) is not None:
            call.unheard.clear()
            raise RuntimeError("can't replace a None gradient with a non-None value")


def _stage(call: Call) -> Stage:
    plan: Stage = call.stage.plan
    return plan


def _places(call: Call) -> list[int]:
    """For each tensor that the node gives, the place of the result that it is, or is an item of."""
    return [place for place, length in enumerate(call.lengths) for _ in range(1 if length is None else length)]


__all__ = ["Unheard", "call_unheard", "hears"]
