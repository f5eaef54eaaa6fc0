"""``cond``: one of two Blocks.

    %y : f32[3] = cond(%flag) {
      %a : f32[3] = aten.relu.default(%x)
      yield %a
    } {
      yield %x
    }

The flag is a bool Variable or a tensor of one element with PyTorch's truth rules. A yield may be UNDEF: no value on
that path.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.flow import Flow, Kind, Port
from runtime.ir.inference import common, type_of
from runtime.ir.operator import Operator
from runtime.ir.types import Type
from runtime.ir.variable import UNDEF, Operand, Variable
from runtime.ops.arity import (
    check_args,
    check_attrs,
    check_backward,
    check_block,
    check_blocks,
    check_no_kwargs,
    is_truth,
)

BLOCKS = ("true", "false")


def _verify(op: Operator, fail: Fail) -> None:
    check_args(op, fail, 1, 1)
    check_no_kwargs(op, fail)
    check_blocks(op, fail, BLOCKS)
    check_attrs(op, fail, {"checkpoint": (bool, int), "backward": (bool,)})
    check_backward(op, fail)
    for name, block in zip(BLOCKS, op.blocks, strict=True):
        check_block(op, fail, name, block, args=0)


def _ports(op: Operator) -> list[Port]:
    return [Port(yields=(position, position), output=position) for position in range(len(op.outputs))]


def decides(op: Operator) -> Sequence[Operand]:
    """What says which Block runs."""
    return op.args[:1]


def _taken(op: Operator) -> int | None:
    return None if isinstance(op.args[0], Variable) else 0 if op.args[0] else 1


def infer(op: Operator) -> list[Type | None]:
    """What all paths give, those left out that give nothing."""
    columns = zip(*(block.yields for block in op.blocks))
    return [common(type_of(value) for value in column if value is not UNDEF) for column in columns]


DEFINITION = OpDefinition(
    "cond", "Run the first block if the flag is true, else the second.", verify=_verify, infer=infer,
    undef_yields=True,
    flow=Flow(Kind.BRANCH, ("true branch", "false branch"), _ports, decides=decides, taken=_taken),
    raises=lambda op: not is_truth(op.args[0]),
)
