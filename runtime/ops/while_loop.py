"""``while_loop``: a Block repeated while another says so.

    %n : int, %h : f32[3] = while_loop(0, %x) {
      ^(%i : int, %g : f32[3]):
        %more : bool = scalar.lt(%i, 10)
        yield %more
    } {
      ^(%j : int, %k : f32[3]):
        ...
        yield %next, %tanh
    } attrs {max_iterations: 10}

``max_iterations``: RuntimeError if the loop goes on after so many; ``already``: how many it did
before, for the message. ``checkpoints``: how many states of the loop its gradient may keep; it computes the others
again.

The arguments are the first carried values, undef where the first iteration gives one; both Blocks have one argument
for each. The outputs are the last ones.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.flow import First, Flow, Kind, Port
from runtime.ir.inference import check_flow
from runtime.ir.operator import Operator
from runtime.ir.types import Type
from runtime.ir.variable import UNDEF, Operand, Variable
from runtime.ops.arity import (
    check_attrs,
    check_backward,
    check_block,
    check_blocks,
    check_no_kwargs,
    check_outputs,
    is_truth,
)


def _verify(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_blocks(op, fail, ("test", "body"))
    check_outputs(op, fail, len(op.args))
    flags = {"recompute": (bool,), "checkpoint": (bool, int), "backward": (bool,)}
    check_attrs(op, fail, {"max_iterations": (int, type(None)), "already": (int,), "checkpoints": (int,), **flags})
    check_backward(op, fail)
    _verify_checkpoints(op, fail)
    for name in ("max_iterations", "already"):
        if (op.attrs.get(name) or 0) < 0:
            fail("attrs", f"the attribute {name!r} of while_loop must not be negative")
    test, body = op.blocks
    check_block(op, fail, "test", test, args=len(op.args), yields=1)
    check_block(op, fail, "body", body, args=len(op.args))
    if test.yields[0] is UNDEF:
        fail("undef", "the test block of while_loop must yield a value")
    check_flow(op, fail, "begins with", op.args, test.args)
    check_flow(op, fail, "carries on", body.yields, test.args)
    check_flow(op, fail, "gives the body", test.args, body.args)


def _verify_checkpoints(op: Operator, fail: Fail) -> None:
    """What backward runs again may not do anything outside the Program."""
    most = op.attrs.get("checkpoints")
    if most is None:
        return
    if most < 1:
        fail("attrs", "the attribute 'checkpoints' of while_loop must be at least 1")
    for inner in (inner for block in op.blocks for inner in block.walk()):
        if inner.name == "py_func" or inner.name.startswith("host."):
            fail("checkpoints", f"a while_loop with checkpoints must not call {inner.name}: its backward runs the body "
                 "again")


def _infer(op: Operator) -> list[Type | None]:
    return [arg.type for arg in op.blocks[0].args]


def _ports(op: Operator) -> list[Port]:
    return [Port(position, (position, position), (None, position), position) for position in range(len(op.args))]


def _decides(op: Operator) -> Sequence[Operand]:
    return op.blocks[0].yields


def _first(op: Operator) -> First | None:
    """The flag that it begins with, where the test only hands that on."""
    test = op.blocks[0]
    (going,) = test.yields
    if test.ops or not isinstance(going, Variable) or going not in test.args:
        return None
    if op.attrs.get("max_iterations") == 0:  # it raises before its body runs
        return None
    flag = op.args[test.args.index(going)]
    return First(flag) if isinstance(flag, Variable) or flag is True else None


def _raises(op: Operator) -> bool:
    return op.attrs.get("max_iterations") is not None or not is_truth(op.blocks[0].yields[0])


DEFINITION = OpDefinition(
    "while_loop", "Run the body while the test yields true, carrying values along.", verify=_verify, infer=_infer,
    undef_yields=True, undef_args=True,
    flow=Flow(Kind.LOOP, ("test", "body"), _ports, decides=_decides, first=_first), raises=_raises,
)
