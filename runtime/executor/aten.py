"""ATen and custom operators: the overload is called once, with the Operator's arguments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from runtime import torch_internals
from runtime.executor.bindings import binding
from runtime.executor.emitter import Emitter
from runtime.ir import ArrayType, Operator, TensorType
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
    overload = aten.resolve(op.name)
    function = binding(op) or torch_internals.raw_call(overload)
    arguments = [emitter.operand(arg) for arg in op.args]
    for key, value in op.kwargs.items():
        plain = key.isidentifier() and key not in ("self", "from")
        arguments.append(f"{key}={emitter.operand(value)}" if plain else f"**{emitter.operand({key: value})}")
    call = f"{emitter.bind(function, 'f')}({', '.join(arguments)})"
    returns = overload._schema.returns
    lists = [str(one.type).startswith("List[") for one in returns]
    if len(returns) == 1:
        whole = len(op.outputs) == 1 and not isinstance(op.outputs[0].type, TensorType)
        emitter.assign(op.outputs, call, unpack=lists[0] and not whole)
    elif any(lists) and not any(isinstance(out.type, ArrayType) for out in op.outputs):
        emitter.assign(op.outputs, f"{emitter.bind(flat, 'f')}({call})", unpack=True)
    else:
        emitter.assign(op.outputs, call, unpack=True)
