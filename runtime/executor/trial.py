"""A trial run: does a Program do on example tensors what its own types say?

    %y : f32[4] = aten.cat.default(%list, 0)    ->    %y : f32[4] = aten.cat.default(%list, 0)
                                                      py_func(%y) {function: "0"}       looks at the value

Nothing of the run is kept: the caller's tensors and random state stay as they are, nothing is printed. What the values
of the examples lead to (a ``raise``, a matrix that has no inverse, a loop without end) says nothing about the Program.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.errors import InternalError, ProgramError
from runtime.executor.executable import Executable
from runtime.ir import Block, Operator, Program, TensorType
from runtime.ir.definition import definition_of
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of, is_path
from runtime.ir.verify import verify
from runtime.ir.walk import copy_program
from runtime.ops.host import FAMILY

_LONGEST = 5.0
_MOST_LOOKS = 5_000
_OF_THE_TYPES = (TypeError, AttributeError, NameError, NotImplementedError, AssertionError, SystemError)
"""What an operator of PyTorch's raises for other kinds of arguments, never for other values."""


class _Enough(Exception):
    """The run takes long: it has shown what it can."""


def trial(
    program: Program, inputs: Sequence[Any], params: Sequence[Any], exceptions: Mapping[str, type[BaseException]]
) -> None:
    """Run a copy of the Program once and look at what it computes.

    Raises:
        InternalError: D2S291: a value is not what its type says, or an operator cannot take what it is given.
    """
    try:
        verify(program)  # a file that cannot be loaded is not to be written
    except ProgramError as error:
        raise InternalError(
            f"the Program breaks a rule: {error.summary}",
            hint="Your code is not to blame: please report it. Until it is mended, mark what this is about with "
            "not_to_static, or write it another way.",
            location=error.location, code="D2S291") from error
    if any(op.name == "py_func" or op.name.startswith(FAMILY) for op in program.block.walk()):
        return  # code of the user's, which would notice, or streams of random numbers, which would go on
    looks = _Looks()
    copy = copy_program(program)
    looks.into(copy.block)
    executable = Executable(copy, looks.functions, dict(exceptions), coverage=False, consuming=False)
    with torch.no_grad(), torch_internals.rng_restored(torch_internals.rng_state()):
        executable.attempt([*inputs, *params], looks.judge)


class _Looks:
    """The looks at values that were put into a Program."""

    def __init__(self) -> None:
        self.functions: dict[str, Callable[..., None]] = {}
        self._end = time.monotonic() + _LONGEST
        self._count = 0

    def into(self, block: Block) -> None:
        """Put a look behind every Operator that gives tensors, and leave out what is only said."""
        ops: list[Operator] = []
        for op in block.ops:
            if definition_of(op.name).says:
                continue
            ops.append(op)
            if is_path(op) or flow_of(op).named(op) is not None:
                for inner in op.blocks:
                    self.into(inner)
            key = str(len(self.functions))
            self.functions[key] = self._look(op)
            seen = tuple(var for var in op.outputs if isinstance(var.type, TensorType))
            if seen or flow_of(op).kind is Kind.LOOP:
                ops.append(Operator("py_func", seen, {}, (), (), {"function": key}, location=op.location))
        if block.ops or block.args:
            key = str(len(self.functions))
            self.functions[key] = self._count_up
            ops.append(Operator("py_func", (), {}, (), (), {"function": key}))
        block.ops[:] = ops

    def _count_up(self, *values: Any) -> None:
        self._count += 1
        if self._count > _MOST_LOOKS or time.monotonic() > self._end:
            raise _Enough

    def _look(self, op: Operator) -> Callable[..., None]:
        types = [var.type for var in op.outputs if isinstance(var.type, TensorType)]

        def look(*values: Any) -> None:
            self._count_up()
            for value, type_ in zip(values, types):
                wrong = _difference(value, type_)
                if wrong:
                    raise _wrong(op, f"gives {wrong}")

        return look

    def judge(self, error: BaseException, op: Operator | None) -> None:
        """What an exception that ended the run says about the Program."""
        if isinstance(error, InternalError):
            raise error
        if op is None or "." not in op.name or definition_of(op.name).about is not None:
            return
        if isinstance(error, _OF_THE_TYPES):
            raise _wrong(op, f"raises {type(error).__name__}: {error}") from error


def _difference(value: Any, type_: TensorType) -> str:
    """How a value differs from the type of its Variable."""
    if not isinstance(value, torch.Tensor):
        return ""  # of a path that has no value for it
    if type_.dtype is not None and value.dtype != type_.dtype:
        return f"a tensor of {value.dtype}, where {type_.dtype} was expected"
    if type_.device is not None and value.device != type_.device:
        return f"a tensor on {value.device}, where {type_.device} was expected"
    shape = type_.shape
    if shape is None:
        return ""
    fixed = [size if type(size) is int else "?" for size in shape]
    if len(shape) != value.dim() or any(a != "?" and a != b for a, b in zip(fixed, value.shape)):
        return f"a tensor of shape {tuple(value.shape)}, where ({', '.join(map(str, fixed))}) was expected"
    return ""


def _wrong(op: Operator, what: str) -> InternalError:
    name = op.name.split(".")[1] if "." in op.name else op.name
    return InternalError(
        f"a trial run of the Program on example tensors fails: {name} {what}",
        hint="Your code is not to blame: please report it, with this line. Until it is mended, mark what this line is "
        "in with not_to_static, or write it another way.",
        location=op.location,
        code="D2S291",
    )


__all__ = ["trial"]
