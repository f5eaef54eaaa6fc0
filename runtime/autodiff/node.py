"""One autograd node: to the eager world a whole Program is one function with its own backward.

``Runner.run`` runs a Program. Where a gradient may be asked for, it runs the derived forward half and registers the
backward half as one ``torch.autograd`` node; where that is not possible, the interpreter runs under torch's autograd.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import torch

from runtime import torch_internals
from runtime.autodiff.derive import Derivative, derive
from runtime.autodiff.forward import NotDifferentiable
from runtime.ir import Program
from runtime.ops.registry import definition


class Executable(Protocol):
    """A compiled Program."""

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """The flat yields of the main Block."""


Compile = Callable[[Program], Executable]


class _Path(threading.local):
    name = "program"


_path = _Path()


@contextlib.contextmanager
def gradient_path(name: str) -> Iterator[None]:
    """Choose how gradients are computed in this thread: ``"program"`` (backward Programs) or ``"autograd"`` (the
    interpreter under torch's autograd, the oracle).

    Raises:
        ValueError: Another name.
    """
    if name not in ("program", "autograd"):
        raise ValueError(f"the gradient path is 'program' or 'autograd', not {name!r}")
    before, _path.name = _path.name, name
    try:
        yield
    finally:
        _path.name = before


class Runner:
    """Runs one Program, with gradients."""

    def __init__(self, program: Program, compile: Compile, skip: Sequence[int] = ()) -> None:
        self.program = program
        self.compile = compile
        self.skip = tuple(skip)
        self.plain = compile(program)
        """The Program itself: for runs without gradients, and the oracle."""
        self._halves: dict[Any, _Halves | None] = {}
        self._lock = threading.Lock()

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """The flat yields of the main Block; tensors among them carry their gradient history."""
        arguments = [*inputs, *params]
        if (
            _path.name != "program"
            or not torch.is_grad_enabled()
            or not any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments)
        ):
            return self.plain.run(inputs, params)
        halves = self.halves(arguments)
        if halves is None:
            return self.plain.run(inputs, params)
        return halves.apply(arguments, len(inputs))

    def halves(self, arguments: Sequence[Any]) -> _Halves | None:
        """The compiled halves for such arguments; None where torch's autograd has to do it."""
        key = (
            tuple(a.requires_grad for a in arguments),
            tuple(
                (a.dtype, a.device, a.is_contiguous() or tuple(a.stride())) if a.layout is torch.strided else id(a)
                for a in arguments
            ),
            torch_internals.autocast_state(),
        )
        found = self._halves.get(key, self)
        if found is not self:
            return found  # type: ignore[return-value]
        with self._lock:
            if key not in self._halves:
                self._halves[key] = self._derive(arguments)
            return self._halves[key]

    def _derive(self, arguments: Sequence[Any]) -> _Halves | None:
        if not all(
            type(a) in (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer) and a.layout is torch.strided
            for a in arguments
        ):
            return None
        try:
            derivative = derive(self.program, arguments, [a.requires_grad for a in arguments], self.skip)
        except NotDifferentiable:
            return None
        return _Halves(self, derivative)


class _Halves:
    """The compiled halves of one derivative."""

    def __init__(self, runner: Runner, derivative: Derivative) -> None:
        self.runner = runner
        self.derivative = derivative
        self.forward = runner.compile(derivative.forward)
        self.backward = runner.compile(derivative.backward)
        self.random = any(definition(op.name).random for op in runner.program.block.walk())

    def apply(self, arguments: Sequence[Any], n_inputs: int) -> list[Any]:
        """Run the forward half; its differentiable results get one node."""
        call = _Call(self, n_inputs)
        results = ProgramNode.apply(call, *arguments)
        values = list(call.values)
        for position, result in zip(self.derivative.differentiable, results):
            values[position] = result
        return values


class _Call:
    """One run: what the node's forward leaves for its caller and for its backward."""

    def __init__(self, halves: _Halves, n_inputs: int) -> None:
        self.halves = halves
        self.n_inputs = n_inputs
        self.values: list[Any] = []
        self.rng = torch_internals.rng_state() if halves.random else None
        self.autocast = torch_internals.autocast_state()


class ProgramNode(torch.autograd.Function):
    """The node of one run: forward half now, backward half when autograd asks."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *arguments: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Run the forward half; residuals that are tensors are saved with version checks and saved-tensor hooks."""
        halves = call.halves
        derivative = halves.derivative
        with torch_internals.autocast_off(call.autocast):
            values = halves.forward.run(arguments, [])
        call.values = values[: derivative.results]
        residuals = values[derivative.results + len(derivative.flags) :]
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.arguments = arguments
        results = tuple(call.values[position] for position in derivative.differentiable)
        not_needed = [call.values[position] for position, flag in derivative.flags.items() if not values[flag]]
        if not_needed:
            ctx.mark_non_differentiable(*not_needed)
        tensors = [value for value in residuals if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*tensors)
        ctx.others = [None if isinstance(value, torch.Tensor) else (value,) for value in residuals]
        return results

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        """Run the backward half; with ``create_graph`` run everything again under torch's autograd."""
        call: _Call = ctx.call
        derivative = call.halves.derivative
        if torch.is_grad_enabled():
            return (None, *_again(ctx, call, grads))
        saved = iter(ctx.saved_tensors)
        residuals = [next(saved) if other is None else other[0] for other in ctx.others]
        given = [grad if grad is None or grad.is_contiguous() else grad.contiguous() for grad in grads]
        result: list[Any] = [None] * len(ctx.arguments)
        if any(grad is not None for grad in given):
            with torch_internals.autocast_off(call.autocast):
                found = call.halves.backward.run([*residuals, *given], [])
            for position, grad in zip(derivative.needs, found):
                result[position] = grad
        return (None, *result)


def _again(ctx: Any, call: _Call, grads: Sequence[torch.Tensor | None]) -> list[Any]:
    """Gradients that can be differentiated again: the Program is run once more by the interpreter under autograd."""
    halves = call.halves
    views = [a.view_as(a) if a.requires_grad else a for a in ctx.arguments]
    needed = [view for view, a in zip(views, ctx.arguments) if a.requires_grad]
    with torch_internals.autocast_as(call.autocast), torch_internals.rng_restored(call.rng), torch.enable_grad():
        values = halves.runner.plain.run(views[: call.n_inputs], views[call.n_inputs :])
    pairs = [
        (values[position], grad)
        for position, grad in zip(halves.derivative.differentiable, grads)
        if grad is not None and values[position].requires_grad
    ]
    if not pairs:
        return [None] * len(views)
    found = iter(
        torch.autograd.grad(
            [value for value, _ in pairs], needed, [grad for _, grad in pairs], create_graph=True, allow_unused=True
        )
    )
    return [next(found) if a.requires_grad else None for a in ctx.arguments]
