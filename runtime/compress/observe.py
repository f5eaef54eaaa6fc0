"""Calibration: the given batches go through the Programs, and the range of what comes into each product is noted.

    %y = linear(%x, %w)      ->      py_func(%x) {function: "observe 3"}; %y = linear(%x, %w)

The Programs that run are copies with observers; a path that no batch takes notes nothing. What a call would store
(running means, say) is not stored.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.compress.weights import Use, uses
from runtime.executor.executable import Executable, compile_program
from runtime.ir import Block, Operator
from runtime.ir.walk import copy_program
from runtime.storage.artefact import Artefact, Variant
from runtime.storage.types import exception_class
from runtime.translated import TranslatedLayer


@dataclass
class Range:
    """The least and largest of all numbers seen; ``seen`` says how many tensors there were."""

    low: float = math.inf
    high: float = -math.inf
    seen: int = 0

    def note(self, tensor: torch.Tensor) -> None:
        """See one more tensor."""
        self.seen += 1
        if tensor.numel():
            low, high = torch.aminmax(tensor.detach())
            self.low, self.high = min(self.low, low.item()), max(self.high, high.item())
            if math.isnan(low.item()):
                self.low = math.nan

    @property
    def known(self) -> bool:
        """Whether there were numbers, all of them finite."""
        return math.isfinite(self.low) and math.isfinite(self.high)


Ranges = dict[Operator, Range]
"""By the Operator that multiplies: the range of what comes into it."""


def observe(
    artefact: Artefact, batches: Iterable[Any], method: str, modes: Sequence[str]
) -> Ranges:
    """The ranges of what comes into every product of a method's Programs, over all batches and in all modes.

    A batch is a tuple of arguments, a dict of named ones, or the only argument.

    Errors raised: ValueError without batches; whatever the calls raise.
    """
    layer = TranslatedLayer(artefact)
    watched: dict[int, _Watched] = {}
    saved = artefact.methods[method].variants
    count = 0
    for batch in batches:
        count += 1
        args, kwargs = arguments_of(batch)
        done: set[int] = set()
        for mode in modes:
            if mode not in saved:
                continue
            layer.train(mode == "train")
            for grad in (False, True):
                with torch.set_grad_enabled(grad):
                    variant, inputs, params = layer.chosen(method, args, kwargs)
                if id(variant) in done:
                    continue
                done.add(id(variant))
                one = watched.setdefault(id(variant), _Watched(variant))
                with torch.no_grad(), torch.random.fork_rng():
                    one.executable.run(inputs, params)
    if not count:
        raise ValueError("calibration needs at least one batch")
    return {op: range_ for one in watched.values() for op, range_ in one.ranges.items()}


def arguments_of(batch: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """A batch as a call takes it.

    >>> arguments_of((1, 2)), arguments_of({"x": 1}), arguments_of([1])
    (((1, 2), {}), ((), {'x': 1}), (([1],), {}))
    """
    if type(batch) is tuple:
        return batch, {}
    if isinstance(batch, Mapping):
        return (), dict(batch)
    return (batch,), {}


class _Watched:
    """A Variant's Program with observers, and what these noted by the Operators of the original."""

    def __init__(self, variant: Variant) -> None:
        program = copy_program(variant.program)
        found = {use.op: use for use in uses(program)}
        self.ranges = {use.op: Range() for use in uses(variant.program)}
        keys = [f"observe {number}" for number in range(len(found))]
        _insert(program.block, dict(zip(found, zip(keys, found.values()))))
        functions: dict[str, Any] = {key: range_.note for key, range_ in zip(keys, self.ranges.values())}
        exceptions = {name: exception_class(name, base) for name, base in variant.exceptions.items()}
        self.executable: Executable = compile_program(program, functions=functions, exceptions=exceptions)


def _insert(block: Block, found: dict[Operator, tuple[str, Use]]) -> None:
    ops: list[Operator] = []
    for op in block.ops:
        if op in found:
            key, use = found[op]
            ops.append(Operator("py_func", (use.given,), {}, (), (), {"function": key}, location=op.location))
        for inner in op.blocks:
            _insert(inner, found)
        ops.append(op)
    block.ops[:] = ops


__all__ = ["Range", "Ranges", "arguments_of", "observe"]
