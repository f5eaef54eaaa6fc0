"""Loops whose gradients keep a few states: as eager, and bit for bit as the same loops without the option."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from dy2static import loop_options
from tests.conformance.family import Family, normal
from tests.oracle import check, run, same

family = Family("Checkpoints")
LENGTHS = (0, 1, 3, 4, 9)
"""Around the three states that are kept."""


def case(construct: str) -> Callable[[Any], Any]:
    """A function of a matrix, a weight, a number of iterations and how many states are kept; None: all."""

    def note(target: Any) -> Any:
        def held() -> None:
            x, w = normal(4, 4), normal(4, 4, seed=1)
            calls = [(x, w, torch.tensor(length), 3) for length in LENGTHS]
            static = check(target, *calls, tolerance=1e-5, paths=("program",))
            for call in calls:
                kept, all_kept = run(static, call), run(static, (*call[:-1], None))
                same(kept, all_kept, f"{int(call[2])} iterations")

        held.__name__ = f"checkpoints_{target.__name__}"
        family.scenario(construct)(held)
        return target

    return note


@case("while with a counter")
def counted(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = torch.tanh(x @ w) + x * 0.5
            i += 1
    return x, i


@case("while that the data ends")
def ended_by_data(x, w, n, most):
    with loop_options(checkpoints=most):
        while x.abs().max() > 0.1 and n > 0:
            x = torch.tanh(x @ w) * 0.5
    return x


@case("for over a number of the run's")
def ranged(x, w, n, most):
    with loop_options(checkpoints=most):
        for i in range(int(n)):
            x = torch.sin(x @ w) * (i + 1) * 0.1
    return x


@case("break and continue")
def leaving(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            i += 1
            if i % 3 == 2:
                continue
            x = torch.tanh(x @ w)
            if x.sum() > 3:
                break
    return x, i


@case("a branch in the body")
def branching(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            if x.sum() > 0:
                x = torch.tanh(x @ w)
            else:
                x = x * 0.5 + w
            i += 1
    return x


@case("loops in loops, both with the option")
def nested(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            j = 0
            with loop_options(checkpoints=most):
                while j < i:
                    x = torch.tanh(x @ w)
                    j += 1
            x = x * 0.9
            i += 1
    return x


@case("several states and numbers")
def several(x, w, n, most):
    y, total, i = x * 0.5, 0.0, 0
    with loop_options(checkpoints=most):
        while i < n:
            x, y = torch.tanh(y @ w), x * 0.8 + y * 0.1
            total = total + x.detach().sum().item()
            i += 1
    return x, y, total


@case("writes in place")
def written(x, w, n, most):
    state, i = x * 1.0, 0
    with loop_options(checkpoints=most):
        while i < n:
            state[0] = torch.tanh(state[1] @ w)
            state.mul_(0.9)
            i += 1
    return state


@case("views")
def viewed(x, w, n, most):
    v, i = x.t(), 0
    with loop_options(checkpoints=most):
        while i < n:
            v = (v @ w).t()[:].sin()
            i += 1
    return v


@case("a list that grows")
def growing(x, w, n, most):
    rows, i = [x], 0
    with loop_options(checkpoints=most):
        while i < n:
            rows.append(torch.tanh(rows[-1] @ w))
            i += 1
    return torch.stack(rows).sum(0), len(rows)


@case("random numbers")
def random(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = F.dropout(torch.tanh(x @ w), 0.3) + torch.rand(4, 4) * 0.1
            i += 1
    return x


@case("no_grad and detach in the body")
def cut(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            with torch.no_grad():
                scale = x.abs().max() + 1
            x = torch.tanh(x @ w) / scale + x.detach() * 0.1
            i += 1
    return x


@case("torch.utils.checkpoint in the body")
def recomputed(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = checkpoint(lambda y: torch.tanh(y @ w), x, use_reentrant=False)
            i += 1
    return x


@case("a custom autograd function in the body")
def own_formula(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most):
        while i < n:
            x = Halved.apply(torch.tanh(x @ w))
            i += 1
    return x


@case("a limit of iterations")
def limited(x, w, n, most):
    i = 0
    with loop_options(checkpoints=most, max_iterations=20):
        while i < n:
            x = torch.tanh(x @ w)
            i += 1
    return x


@case("a gradient inside of what the loop gives")
def asked_inside(x, w, n, most):
    i, h = 0, x
    with loop_options(checkpoints=most):
        while i < n:
            h = torch.tanh(h @ w) + h * 0.5
            i += 1
    (grad,) = torch.autograd.grad(h.square().sum(), x, retain_graph=True)
    return h, grad


class Halved(torch.autograd.Function):
    """Half of the tensor, with a gradient of its own."""

    @staticmethod
    def forward(ctx, x):
        """Half of it."""
        ctx.save_for_backward(x)
        return x / 2

    @staticmethod
    def backward(ctx, grad):
        """Another one than of the half."""
        (x,) = ctx.saved_tensors
        return grad * x.cos()
