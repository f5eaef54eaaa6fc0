"""Training steps to be converted, and what there is to see after each call: used by the tests of training inside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from dy2static import to_static
from tests.oracle import Comparison

Make = Callable[[Any], Optimizer]
Step = Callable[[nn.Module, Optimizer, torch.Tensor, torch.Tensor], Any]

_generator = torch.Generator().manual_seed(3)
X, Y = torch.randn(5, 3, generator=_generator), torch.randn(5, 1, generator=_generator)


def model() -> nn.Sequential:
    """Two layers, the same ones each time."""
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def straight(net: nn.Module, opt: Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """One step."""
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
    return loss.detach()


def rolled(net: nn.Module, opt: Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Twenty steps."""
    loss = x.sum()
    for _ in range(20):
        opt.zero_grad()
        loss = ((net(x) - y) ** 2).mean()
        loss.backward()
        opt.step()
    return loss.detach()


def branch(net: nn.Module, opt: Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """A step that is left out where the loss is no number."""
    opt.zero_grad()
    loss = ((net(x) - y) ** 2).mean()
    loss.backward()
    if torch.isfinite(loss):
        opt.step()
    return loss.detach()


PLACEMENTS: dict[str, Step] = {"straight": straight, "rolled": rolled, "branch": branch}


def seen(net: nn.Module, opt: Optimizer, result: Any) -> dict[str, Any]:
    """What a step leaves behind. The state's tensors are the optimizer's own: which they are is part of it."""
    return {
        "result": result,
        "parameters": [one.detach() for one in net.parameters()],
        "gradients": [one.grad for one in net.parameters()],
        "state": opt.state_dict(),
        "tensors": [[held.get(name) for name in held] for held in opt.state.values()],
        "kinds": [[type(value) for value in held.values()] for held in opt.state.values()],
    }


def outcome(step: Callable[..., Any], net: nn.Module, opt: Optimizer, call: tuple[Any, ...]) -> Any:
    """What a step gives, or the exception that it ends with."""
    try:
        return step(net, opt, *call)
    except RuntimeError as error:
        return (type(error).__name__, str(error))


def state_tensors(opt: Optimizer) -> Iterator[torch.Tensor]:
    """The tensors in an optimizer's state."""
    for held in opt.state.values():
        yield from (value for value in held.values() if isinstance(value, torch.Tensor))


def check(step: Step, make: Make, calls: int = 3, between: Callable[[Optimizer, int], None] | None = None) -> Any:
    """Hold a converted step against the step itself, call by call; the converted one.

    ``between``: done to the optimizer before each call. From the second call on the state's tensors are the very same.
    """
    nets = [model(), model()]
    opts = [make(net.parameters()) for net in nets]
    static = to_static(step)
    for number in range(calls):
        kept = [list(map(id, state_tensors(opt))) for opt in opts]
        if between is not None:
            for opt in opts:
                between(opt, number)
        got, expected = (
            seen(net, opt, outcome(run, net, opt, (X, Y))) for run, net, opt in zip((static, step), nets, opts)
        )
        Comparison(strides=True).compare(got, expected, f"call {number}")
        after = [list(map(id, state_tensors(opt))) for opt in opts]
        same = [[one == other for one, other in zip(*pair)] for pair in zip(kept, after)]
        assert same[0] == same[1], f"call {number}: state tensors that are the same as before: {same}"
    return static


def loops(static: Any) -> list[int]:
    """How many staged loops each Program of a converted function has."""
    return [sum(op.name == "while_loop" for op in program.block.walk()) for program in static.programs]
