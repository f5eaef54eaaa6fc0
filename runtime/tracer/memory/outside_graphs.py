"""Gradients that a function asks for itself, and what the caller computed its arguments of.

    def f(y): return torch.autograd.grad((w * y).sum(), w)[0]
    f(w * 2)                in eager PyTorch the gradient goes on through the caller's graph to w; a Program's does not

So a call where it would is refused: while tracing, and at each call, as another one may hand on a tensor that has
another graph.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from runtime import torch_internals
from runtime.errors import TraceError
from runtime.ir import Location, Variable

if TYPE_CHECKING:
    from runtime.tracer.memory.inputs import Inputs


@dataclass(frozen=True)
class AskedGradient:
    """A gradient by inputs and parameters of the Program, and those that it comes through."""

    by: tuple[Variable, ...]
    through: tuple[Variable, ...]
    location: Location | None


def note(inputs: Inputs, by: Collection[Variable], found: Collection[Variable], location: Location | None) -> None:
    """A gradient is asked for ``by`` some values, and reaches those that are ``found``.

    Raises:
        TraceError: D2S213, it goes on outside to what it is asked by.
    """
    goals = tuple(var for var in by if inputs.real(var) is not None)
    through = tuple(var for var in found if var not in goals and inputs.real(var) is not None)
    if goals and through:
        asked = AskedGradient(goals, through, location)
        inputs.gradients.append(asked)
        require_apart([asked], {var: inputs.real(var) for var in (*goals, *through)})


def require_apart(gradients: Sequence[AskedGradient], values: dict[Variable, Any]) -> None:
    """Refuse a call in which a gradient would go on through the graph of an argument to what it is asked by.

    ``values``: the tensors of the call, by input and parameter; what only an attempt met that failed is not there.

    Raises:
        TraceError: D2S213.
    """
    for one in gradients:
        through = [var for var in one.through if var in values and values[var].grad_fn is not None]
        by = [var for var in one.by if var in values and values[var].requires_grad] if through else []
        goals = {id(values[var]): var for var in by}
        for var in through:
            met = torch_internals.first_reached(values[var], [values[goal] for goal in goals.values()])
            if met is not None:
                raise TraceError(
                    f"a gradient by {_said(goals[id(met)])} is asked for that goes back through {_said(var)}, which "
                    "the caller computed of it", hint="Pass a .detach() of it, or ask for the gradient outside.",
                    code="D2S213", location=one.location)


def _said(var: Variable) -> str:
    return f"'{var.hint}'" if var.hint else "a tensor from outside"


__all__ = ["AskedGradient", "note", "require_apart"]
