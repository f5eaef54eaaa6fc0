"""One function, three roads: eager, the interpreter under torch's autograd, the backward Program; and differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.autodiff import Runner, gradient_path
from runtime.ir.verify import verify
from tests.oracle import same


@dataclass
class Outcome:
    """What a run and its backward did: everything that the three roads must agree on."""

    values: list[Any]
    needs: list[bool]
    grads: list[torch.Tensor | None]
    buffers: list[torch.Tensor]
    random: torch.Tensor


def flat(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [item for one in value.values() for item in flat(one)]
    return [item for one in value for item in flat(one)] if isinstance(value, (list, tuple)) else [value]


def leaf_tensors(function: Any, args: Sequence[Any], parameters: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    own = list(function.parameters()) if isinstance(function, torch.nn.Module) else []
    return [t for t in [*flat(args), *own, *parameters] if isinstance(t, torch.Tensor) and t.requires_grad]


def outcome(call: Callable[..., Any], args: Sequence[Any], leaves: list[torch.Tensor], buffers: list[torch.Tensor],
            seed: int, use: Sequence[int] | None) -> Outcome:
    for leaf in leaves:
        leaf.grad = None
    torch.manual_seed(seed)
    results = [r for r in flat(call(*args))]
    tensors = [r for r in results if isinstance(r, torch.Tensor)]
    random = torch.rand(3)
    roots = [t for i, t in enumerate(tensors) if t.requires_grad and (use is None or i in use)]
    if roots:
        generator = torch.Generator().manual_seed(7)
        given = [torch.randn(t.shape, generator=generator, dtype=torch.float64).to(t.dtype) for t in roots]
        torch.autograd.backward(roots, given)
    return Outcome(
        [r.detach().clone() if isinstance(r, torch.Tensor) else r for r in results],
        [t.requires_grad for t in tensors],
        [None if leaf.grad is None else leaf.grad.clone() for leaf in leaves],
        [b.detach().clone() for b in buffers], random,
    )


def agree(a: Outcome, b: Outcome, rtol: float, atol: float, what: str) -> None:
    tolerance = max(rtol, atol)
    same(b.values, a.values, f"{what}: values", tolerance)
    same(b.needs, a.needs, f"{what}: requires_grad")
    same(b.grads, a.grads, f"{what}: gradients", tolerance)
    same(b.buffers, a.buffers, f"{what}: buffers", tolerance)
    same(b.random, a.random, f"{what}: random stream")


def runner_of(static: Any) -> Runner:
    """The Runner behind a converted function's last call."""
    target = static.forward if isinstance(static, torch.nn.Module) else static
    found = target.specialization().ready.runner
    assert isinstance(found, Runner)
    return found


def differences(call: Callable[..., Any], args: Sequence[Any], leaves: list[torch.Tensor], got: Outcome, seed: int,
                use: Sequence[int] | None) -> None:
    """Central differences of the same weighted sum of results along one random direction per leaf."""
    step = 1e-6

    def total() -> float:
        torch.manual_seed(seed)
        with torch.no_grad():
            results = [r for r in flat(call(*args)) if isinstance(r, torch.Tensor)]
        generator = torch.Generator().manual_seed(7)
        value = 0.0
        for i, (result, needed) in enumerate(zip(results, got.needs)):
            if needed and (use is None or i in use):
                weight = torch.randn(result.shape, generator=generator, dtype=torch.float64)
                value += float((weight * result.detach()).sum())
        return value

    for index, leaf in enumerate(leaves):
        generator = torch.Generator().manual_seed(index)
        direction = torch.randn(leaf.shape, generator=generator, dtype=leaf.dtype)
        before = leaf.detach().clone()
        with torch.no_grad():
            leaf.copy_(before + step * direction)
            high = total()
            leaf.copy_(before - step * direction)
            low = total()
            leaf.copy_(before)
        numeric = (high - low) / (2 * step)
        grad = got.grads[index]
        analytic = 0.0 if grad is None else float((grad * direction).sum())
        assert abs(numeric - analytic) <= 1e-5 * max(1.0, abs(numeric)), f"leaf {index}: {numeric} is not {analytic}"


@pytest.fixture
def same_gradients() -> Callable[..., Runner | None]:
    """``same_gradients(f, args...)``: the three roads agree, and a backward Program exists (unless told otherwise)."""
    made: dict[int, Any] = {}

    def check(function: Any, *args: Any, parameters: Sequence[torch.Tensor] = (), seed: int = 0, rtol: float = 1e-10,
              atol: float = 1e-10, program: bool = True, numeric: bool | None = None,
              use: Sequence[int] | None = None) -> Runner | None:
        module = function if isinstance(function, torch.nn.Module) else None
        if id(function) not in made:
            made[id(function)] = (function, to_static(function if module is None else type(module).forward))
        static = made[id(function)][1]
        static_call: Callable[..., Any] = static if module is None else static.bind(module)
        leaves = leaf_tensors(function, args, parameters)
        buffers = list(module.buffers()) if module is not None else []
        start = [b.clone() for b in buffers]
        given = [a.clone() if isinstance(a, torch.Tensor) and not a.requires_grad else a for a in args]
        found = {}
        for road in ("eager", "autograd", "program"):
            with torch.no_grad():
                for buffer, value in zip(buffers, start):
                    buffer.copy_(value)
                for arg, value in zip(args, given):
                    if isinstance(arg, torch.Tensor) and not arg.requires_grad:
                        arg.copy_(value)
            if road == "eager":
                found[road] = outcome(function, args, leaves, buffers, seed, use)
                continue
            with gradient_path(road):
                found[road] = outcome(static_call, args, leaves, buffers, seed, use)
        agree(found["eager"], found["autograd"], rtol, atol, "interpreter under autograd")
        agree(found["eager"], found["program"], rtol, atol, "backward program")
        runner = runner_of(static_call)
        halves = [one for one in runner._halves.values()]
        if program and leaves:
            assert halves and all(one is not None for one in halves), "no backward program was made"
            for one in halves:
                assert one is not None
                verify(one.derivative.forward)
                for stage in one.derivative.stages:
                    verify(stage.backward)
        doubles = all(leaf.dtype == torch.float64 for leaf in leaves)
        if numeric if numeric is not None else doubles and leaves:
            differences(function, args, leaves, found["program"], seed, use)
        return runner

    return check
