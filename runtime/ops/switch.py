"""``switch``: one of many Blocks, chosen by an int as in indexing a Python sequence.

    %y : f32[3] = switch(%n) { yield %a } { yield %b } { yield %c }

Negative indices count from the end; out of range raises IndexError("list index out of range") at run time.
"""

from __future__ import annotations

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.flow import Flow, Kind, Port
from runtime.ir.operator import Operator
from runtime.ops.arity import check_args, check_attrs, check_backward, check_block, check_no_kwargs
from runtime.ops.cond import decides, infer


def _verify(op: Operator, fail: Fail) -> None:
    check_args(op, fail, 1, 1)
    check_no_kwargs(op, fail)
    check_attrs(op, fail, {"checkpoint": (bool, int), "backward": (bool,)})
    check_backward(op, fail)
    if not op.blocks:
        fail("blocks", "switch has at least 1 block, not 0")
    for position, block in enumerate(op.blocks):
        check_block(op, fail, f"{position}.", block, args=0)


def _ports(op: Operator) -> list[Port]:
    return [Port(yields=(position,) * len(op.blocks), output=position) for position in range(len(op.outputs))]


def _taken(op: Operator) -> int | None:
    index, count = op.args[0], len(op.blocks)
    return index % count if isinstance(index, int) and -count <= index < count else None


DEFINITION = OpDefinition(
    "switch", "Run the block at an index, counted like a Python sequence index.", verify=_verify, infer=infer,
    undef_yields=True, flow=Flow(Kind.BRANCH, ("block {}",), _ports, decides=decides, taken=_taken),
    raises=lambda op: _taken(op) is None,
)
