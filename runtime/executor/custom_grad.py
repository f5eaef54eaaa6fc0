"""``custom_grad``: a ``torch.autograd.Function`` made of the Operator's two Blocks, run by torch."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.executor.emitter import Emitter
from runtime.executor.modes import Modes
from runtime.ir import Block, Operator, Variable

Generated = Callable[..., tuple[Any, ...]]


class CustomGrad(torch.autograd.Function):
    """``apply(record, captured, *inputs)``: the results of the forward Block; its residuals are kept for backward.

    ``record`` is (forward, backward, number of results, locate). Captured values take part, but get no gradient, as
    with any tensor that an eager ``Function`` closes over.
    """

    @staticmethod
    def forward(ctx: Any, record: tuple[Any, ...], captured: tuple[Any, ...], *inputs: Any) -> Any:
        """Run the forward Block; tensors among its residuals are saved, the rest is kept as it is."""
        forward, _, count, _ = record
        values = forward(*captured[0], *inputs)
        kept = [*values[count:], *captured[1]]
        ctx.save_for_backward(*(value for value in kept if isinstance(value, torch.Tensor)))
        ctx.others = [None if isinstance(value, torch.Tensor) else (value,) for value in kept]
        ctx.record = record
        ctx.residuals = len(values) - count
        return values[:count]

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Run the backward Block; an input that needs no gradient gets None."""
        _, backward, _, locate = ctx.record
        saved = iter(ctx.saved_tensors)
        kept = [next(saved) if other is None else other[0] for other in ctx.others]
        residuals, captured = kept[: ctx.residuals], kept[ctx.residuals :]
        try:
            results = backward(*captured, *residuals, *gradients)
        except BaseException as error:
            raise locate(error)  # noqa: B904  # the same exception
        needs = ctx.needs_input_grad[2:]
        return (None, None, *(result if need else None for result, need in zip(results, needs)))


def emit(emitter: Emitter, op: Operator) -> None:
    """``y, = apply(record, (captured by forward, captured by backward), x)``."""
    forward, backward = op.blocks
    captured = [emitter.live.captured(block) for block in op.blocks]
    names = [_function(emitter, block, seen) for block, seen in zip((forward, backward), captured)]
    record = f"({names[0]}, {names[1]}, {op.attrs['n_outputs']}, locate)"
    outside = ", ".join(_tuple(emitter, seen) for seen in captured)
    args = [record, f"({outside})", *map(emitter.operand, op.args)]
    emitter.assign(op.outputs, f"{emitter.bind(CustomGrad.apply, 'f')}({', '.join(args)})", unpack=True)
    emitter.drop([*emitter.live.dying[id(op)], *emitter.live.unread[id(op)]])


def _tuple(emitter: Emitter, variables: Sequence[Variable]) -> str:
    return "(" + "".join(emitter.name(var) + ", " for var in variables) + ")"


def _function(emitter: Emitter, block: Block, captured: Sequence[Variable]) -> str:
    """The Block as a function of what it captures and its arguments; autograd decides the modes it runs in."""
    with emitter.function([emitter.name(var) for var in (*captured, *block.args)], Modes()) as name:
        emitter.enter(block)
        emitter.operators(block)
        emitter.line("return (" + "".join(emitter.operand(value) + ", " for value in block.yields) + ")")
    return name
