"""All results of a region from the words that C wrote, by one generated function.

    def read(call, words):
        if words[0] and words[1] < 0 and words[5] == 256 ...: r0 = empty(shape0, dtype=dtype0); copy(...)
        else: r0 = read0(call, words)
        r1 = words[15] if words[14] else None
        return (r0, r1, )

What is usual stands in it: a tensor that is all of some memory of C's, a stack in the room for small ones, a number.
The rest is left to the readers of ``serving``, one for each output.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.native.serving import SMALL, VIEW, Call, readers, words_of
from runtime.native.stack import Stack
from runtime.native.values import Number, Stacked, Tensor, Value


def reading(outputs: Sequence[Value | Stacked]) -> Callable[[Call, list[int]], tuple[Any, ...]]:
    """The function that gives the values of all outputs."""
    space: dict[str, Any] = {"empty": torch.empty, "copy": ctypes.memmove, "Stack": Stack,
                             "hooked": torch_internals.saved_tensor_hooks_active}  # fmt: skip
    lines = ["def read(call, words):", " made, objects, memory = call.made, call.objects, call.memory_of",
             " room, begin, space = call.room, call.begin, call.space"]  # fmt: skip
    if any(type(one) is Stacked for one in outputs):
        lines.append(" watched = hooked()")
    at = 0
    for number, (output, reader) in enumerate(zip(outputs, readers(outputs))):
        space[f"read{number}"] = reader
        quick = _quick(output, number, at, space)
        lines += quick
        lines.append(f" {'else' if quick else 'if 1'}: r{number} = read{number}(call, words)")
        at += words_of(output)
    lines.append(f" return ({''.join(f'r{number}, ' for number in range(len(outputs)))})")
    exec(compile("\n".join(lines) + "\n", "<results>", "exec"), space)  # names and numbers of ours
    read: Callable[[Call, list[int]], tuple[Any, ...]] = space["read"]
    return read


def _quick(output: Value | Stacked, number: int, at: int, space: dict[str, Any]) -> list[str]:
    """Lines that read an output where it is as usual; none where nothing is."""
    if isinstance(output, Number):
        if output.kind == "float":
            return []
        text = f"words[{at + 1}]" if output.kind == "int" else f"words[{at + 1}] != 0"
        return [f" if words[{at}]: r{number} = {text}"]
    if isinstance(output, Stacked):
        rank = output.rows.rank
        space[f"dtype{number}"] = output.rows.dtype
        return [
            f" size, start = words[{at + 5}], words[{at + 4}] - begin",
            f" if words[{at}] and words[{at + 1}] < 0 < size < {SMALL} and 0 <= start < space and not watched:",
            "  call.needed += (size + 63) & -64",
            f"  r{number} = Stack(room, words[{at + 6}:{at + 6 + rank}], dtype{number}, start)",
        ]
    if not isinstance(output, Tensor) or output.strides is not None or not output.straight:
        return []
    shape = tuple(size for size in output.dims if isinstance(size, int))
    size = math.prod(shape) * output.dtype.itemsize
    if len(shape) < output.rank or not size:
        return []
    space |= {f"shape{number}": shape, f"dtype{number}": output.dtype}
    return [
        f" buf, object = words[{at}], words[{at + 3}]",
        f" if words[{at + 5}] == {size} and words[{at + 1}] < 0 and buf and not object & {VIEW} "
        "and object not in objects and buf not in made and buf not in memory:",
        f"  r{number} = made[buf] = objects[object] = empty(shape{number}, dtype=dtype{number})",
        f"  copy(r{number}.data_ptr(), words[{at + 4}], {size})",
    ]


__all__ = ["reading"]
