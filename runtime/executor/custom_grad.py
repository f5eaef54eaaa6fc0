"""``custom_grad``: a ``torch.autograd.Function`` made of the Operator's two Blocks, run by torch."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import TraceError
from runtime.executor.emitter import Emitter
from runtime.executor.held import Held, hold
from runtime.executor.modes import Modes
from runtime.ir import Block, Operator, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ops.custom_grad import backward_for

Generated = Callable[..., tuple[Any, ...]]


class CustomGrad(torch.autograd.Function):
    """``apply(record, captured, *inputs)``: the results of the forward Block; its residuals are kept for backward.

    ``record`` is (forward, choice of backward, number of results, results without a gradient, whether missing
    gradients are zeros, residuals that are held and not saved, where the call is if its backward asks for the autocast
    state, whether its gradients may not be differentiated, locate). Captured values take part, but get no gradient, as
    with any tensor that an eager ``Function`` closes over.
    """

    @staticmethod
    def forward(ctx: Any, record: tuple[Any, ...], captured: tuple[Any, ...], *inputs: Any) -> Any:
        """Run the forward Block; tensors among its residuals are saved, the rest is kept as it is."""
        forward, _, count, hidden, materialize, held, *_ = record
        values = forward(*captured[0], *inputs)
        kept = [*values[count:], *captured[1]]
        saved = [isinstance(value, torch.Tensor) and place not in held for place, value in enumerate(kept)]
        ctx.save_for_backward(*(value for value, one in zip(kept, saved) if one))
        ctx.others = [
            None if one else hold(value) if isinstance(value, torch.Tensor) else (value,)
            for value, one in zip(kept, saved)
        ]
        ctx.record = record
        ctx.residuals = len(values) - count
        ctx.set_materialize_grads(materialize)
        without = [values[index] for index in hidden]  # numbers among them
        ctx.mark_non_differentiable(*(value for value in without if isinstance(value, torch.Tensor)))
        return values[:count]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Run the backward Block; an input that needs no gradient gets None."""
        _, choose, *_, asked, once, locate = ctx.record
        if asked is not None and torch_internals.autocast_on():
            raise TraceError(
                "the backward of an autograd.Function asks for the autocast state, and a gradient is asked for under "
                "autocast", code="D2S213", location=asked, hint="Ask in forward, and keep the answer on ctx.")
        backward = choose([gradient is not None for gradient in gradients])
        if backward is None:
            return (None,) * len(ctx.needs_input_grad)
        saved = iter(ctx.saved_tensors)
        kept = [next(saved) if other is None else other.tensor if isinstance(other, Held) else other[0]
                for other in ctx.others]  # fmt: skip
        residuals, captured = kept[: ctx.residuals], kept[ctx.residuals :]
        try:
            # What runs without gradients says so, where backward itself says whether they are on.
            with torch.enable_grad() if once else contextlib.nullcontext():
                results = backward(*captured, *residuals, *gradients)
        except BaseException as error:
            raise locate(error)  # noqa: B904  # the same exception
        if once and torch.is_grad_enabled():
            results = torch_internals.differentiable_once(results, [*kept, *gradients])
        needs = ctx.needs_input_grad[2:]
        return (None, None, *(result if need else None for result, need in zip(results, needs)))


def emit(emitter: Emitter, op: Operator) -> None:
    """``y, = apply(record, (captured by forward, captured by backward), x)``."""
    forward, *backwards = op.blocks
    reads = emitter.live.captured(forward)
    seen = list(dict.fromkeys(var for block in backwards for var in emitter.live.captured(block)))
    name = _function(emitter, forward, reads)
    names = [_function(emitter, block, seen) for block in backwards]

    def choose(functions: Sequence[Generated], given: Sequence[bool]) -> Generated | None:
        index = backward_for(op, given)
        return None if index is None else functions[index - 1]

    choice = emitter.bind(choose, "f")
    hidden = tuple(op.attrs.get("not_differentiable", ()))
    held = _held(emitter, op)
    asked = emitter.bind(op.location, "v") if "autocast_asked" in op.attrs else None
    record = (f"({name}, partial({choice}, ({''.join(one + ', ' for one in names)})), {op.attrs['n_outputs']}, "
              f"{hidden}, {'given' not in op.attrs}, {held}, {asked}, {'once' in op.attrs}, "
              "locate)").replace("partial", emitter.bind(functools.partial, "f"))
    outside = f"{_tuple(emitter, reads)}, {_tuple(emitter, seen)}"
    args = [record, f"({outside})", *map(emitter.operand, op.args)]
    emitter.assign(op.outputs, f"{emitter.bind(CustomGrad.apply, 'f')}({', '.join(args)})", unpack=True)
    emitter.drop([*emitter.live.dying[id(op)], *emitter.live.unread[id(op)]])


def _held(emitter: Emitter, op: Operator) -> tuple[int, ...]:
    """The residuals that are not saved. A result is, where nobody writes: held, it would never be freed."""
    held, count = op.attrs.get("held", ()), op.attrs["n_outputs"]
    results, residuals = op.blocks[0].yields[:count], op.blocks[0].yields[count:]
    if any(residuals[place] in results for place in held):
        if not any(flow_of(one).kind is Kind.INLINE for one in emitter.program.block.walk()):
            return tuple(place for place in held if residuals[place] not in results)
    return tuple(held)


def _tuple(emitter: Emitter, variables: Sequence[Variable]) -> str:
    return "(" + "".join(emitter.name(var) + ", " for var in variables) + ")"


def _function(emitter: Emitter, block: Block, captured: Sequence[Variable]) -> str:
    """The Block as a function of what it captures and its arguments; autograd decides the modes it runs in."""
    with emitter.function([emitter.name(var) for var in (*captured, *block.args)], Modes()) as name:
        emitter.enter(block)
        emitter.operators(block)
        emitter.line("return (" + "".join(emitter.operand(value) + ", " for value in block.yields) + ")")
    return name
