"""ATen and custom operators: the overload is called once, with the Operator's arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import TraceError
from runtime.executor import reuse, tested, warned
from runtime.executor.bindings import binding
from runtime.executor.emitter import Emitter
from runtime.executor.ownership import Owner
from runtime.ir import ArrayType, Operator, TensorType, Variable
from runtime.ops import aten


def flat(results: Any) -> Iterator[Any]:
    """The results of an operator that gives lists beside tensors, one after another."""
    if isinstance(results, (list, tuple)):
        for item in results:
            yield from flat(item)
    else:
        yield results


def emit(emitter: Emitter, op: Operator) -> None:
    """``y = f(x, 2)``; an operator that gives several results, or a list, is unpacked into its outputs."""
    if op.outputs and op.outputs[0] in emitter.tested and emitter.open[-1].current.grad == "off":
        left, sign, right = tested.operands(op)
        emitter.for_ordinary_calls = True
        read = f"{emitter.operand(right)}.item()" if isinstance(right, Variable) else emitter.operand(right)
        emitter.assign(op.outputs, f"{emitter.name(left)}.item() {sign} {read}", unpack=False)
        return
    overload = aten.resolve(op.name)
    function = warned.function_of(op) or binding(op) or torch_internals.raw_call(overload)
    arguments = [emitter.operand(arg) for arg in op.args]
    for key, value in op.kwargs.items():
        plain = key.isidentifier() and key not in ("self", "from")
        arguments.append(f"{key}={emitter.operand(value)}" if plain else f"**{emitter.operand({key: value})}")
    call = f"{emitter.bind(function, 'f')}({', '.join(arguments)})"
    owner = emitter.own.donated.get((id(op), 0), Owner.NO)
    if owner is not Owner.NO:
        call = _reusing(emitter, op, owner, arguments, call)
    returns = overload._schema.returns
    lists = [str(one.type).startswith("List[") for one in returns]
    if len(returns) == 1:
        whole = len(op.outputs) == 1 and not isinstance(op.outputs[0].type, TensorType)
        if lists[0] and not whole and aten.CHECKED in op.attrs:
            call = f"{emitter.bind(_Count(op), 'f')}({call})"
        emitter.assign(op.outputs, call, unpack=lists[0] and not whole)
    elif any(lists) and not any(isinstance(out.type, ArrayType) for out in op.outputs):
        emitter.assign(op.outputs, f"{emitter.bind(flat, 'f')}({call})", unpack=True)
    else:
        emitter.assign(op.outputs, call, unpack=True)
    for out, check in zip(op.outputs, checks(op)):
        if check is not None:
            emitter.line(f"{emitter.bind(check, 'f')}({emitter.name(out)})")


def checks(op: Operator) -> list[Callable[[torch.Tensor], None] | None]:
    """For each result that had to be taken for what it was while tracing, what tests that it is that."""
    return [None if check is None else _Check(op, *check) for check in op.attrs.get(aten.CHECKED, ())]


def _reusing(emitter: Emitter, op: Operator, owner: Owner, arguments: list[str], call: str) -> str:
    """The call that writes its result in the place of an operand, where that is owned."""
    base = reuse.candidate(op)
    assert base is not None
    emitter.for_ordinary_calls = True
    way = reuse.written(op)
    given = arguments if way.keyword is None else [*arguments, f"{way.keyword}={emitter.name(base)}"]
    writing = f"{emitter.bind(way.function, 'f')}({', '.join(given)})"
    return writing if owner is Owner.YES else f"{writing} if {emitter.flag(base)} else {call}"


class _Count:
    """A test that an operator gives as many results as for the sizes that were tried while tracing.

    Errors raised: TraceError (D2S235): it gives more or fewer.
    """

    def __init__(self, op: Operator) -> None:
        self.op = op

    def __call__(self, results: Sequence[torch.Tensor]) -> Sequence[torch.Tensor]:
        expected = len(self.op.outputs)
        if len(results) != expected:
            raise TraceError(
                f"{self.op.name.split('.')[1]} gives {len(results)} results here, where the sizes tried while tracing "
                f"gave {expected}", hint="Test the size with if, and call the function on each path.",
                location=self.op.location, code="D2S235")
        return results


class _Check:
    """A test that a result is what it was taken for while tracing, where torch's rules could not tell what it is.

    Errors raised: TraceError (D2S235): its dtype, sizes or memory layout are others.
    """

    def __init__(
        self, op: Operator, dtype: torch.dtype, sizes: Sequence[int | None], order: Sequence[int] | None
    ) -> None:
        self.op = op
        self.dtype, self.sizes = dtype, tuple(sizes)
        self.order = None if order is None else tuple(order)

    def __call__(self, result: torch.Tensor) -> None:
        fits = self._is_dtype(result) and result.dim() == len(self.sizes)
        if fits and all(size is None or size == real for size, real in zip(self.sizes, result.shape)):
            if self.order is None or result.permute(self.order).is_contiguous():
                return
        self._refuse(result)

    def _is_dtype(self, result: torch.Tensor) -> bool:
        if result.dtype == self.dtype:
            return True  # a loaded Program may be called under another autocast state than that of the trace
        return self.op.autocast is None and torch.is_autocast_enabled(result.device.type)

    def _refuse(self, result: torch.Tensor) -> None:
        sizes = ", ".join("any" if size is None else str(size) for size in self.sizes)
        raise TraceError(
            f"{self.op.name.split('.')[1]} gives a {result.dtype} of sizes {list(result.shape)} and strides "
            f"{list(result.stride())} here, where all numbers tried while tracing gave a {self.dtype} of sizes "
            f"[{sizes}]",
            hint="Choose between fixed values with if, and call the function on each path.",
            location=self.op.location, code="D2S235")
