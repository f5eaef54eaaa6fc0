"""``recursion`` and ``recur``: a Block that runs itself again, with other arguments, from inside.

    %y : f32[3] = recursion(%x) {
      ^(%a : f32[3]):
        %more : bool = ...
        %b : f32[3] = cond(%more) {
          %c : f32[3] = aten.div.Tensor(%a, 2)
          %d : f32[3] = recur(%c) attrs {name: "halve"}
          yield %d
        } {
          yield %a
        }
        yield %b
    } attrs {name: "halve"}

The Block of a ``recursion`` has one argument for each of its own, and gives one value for each result. ``recur`` stands
inside of it, at any depth, and names it: it takes as many arguments and gives as many results. Both may raise: Python's
recursion limit holds, as for the function that was traced.

What a call keeps for its gradient is a *frame*, of values of any kind:

    %f : object = frame.new(%x, %n)       %y : f32[3] = frame.get(%f, 0)
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.flow import Flow, Kind
from runtime.ir.inference import check_flow, type_of
from runtime.ir.operator import Operator
from runtime.ir.types import ObjectType, Type
from runtime.ir.variable import UNDEF
from runtime.ops.arity import check_attrs, check_backward, check_block, check_blocks, check_no_kwargs, check_plain


def name_of(op: Operator) -> str:
    """What a recursion is called."""
    name: str = op.attrs["name"]
    return name


def _verify_name(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_attrs(op, fail, {"name": (str,), "backward": (bool,)}, required=["name"])


def _verify(op: Operator, fail: Fail) -> None:
    _verify_name(op, fail)
    check_blocks(op, fail, ("body",))
    check_backward(op, fail)
    (body,) = op.blocks
    check_block(op, fail, "body", body, args=len(op.args))
    check_flow(op, fail, "begins with", op.args, body.args)


def _verify_again(op: Operator, fail: Fail) -> None:
    _verify_name(op, fail)
    check_blocks(op, fail, ())


def _infer(op: Operator) -> Sequence[Type | None]:
    return [None if value is UNDEF else type_of(value) for value in op.blocks[0].yields]


def _nothing_told(op: Operator) -> Sequence[Type | None]:
    return [None] * len(op.outputs)


def _verify_new(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_plain(op, fail, 0, None, 1)


def _verify_get(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_plain(op, fail, 2, 2, 1)
    if type_of(op.args[0]) != ObjectType():
        fail("type", "frame.get takes a value of a frame")
    if type(op.args[1]) is not int or op.args[1] < 0:
        fail("operand", "the place of a value in a frame must be a number")


def _infer_new(op: Operator) -> Sequence[Type | None]:
    return [ObjectType()]


DEFINITIONS = (
    OpDefinition(
        "recursion", "Run the block, which may run itself again.", verify=_verify, infer=_infer, undef_args=True,
        undef_yields=True, flow=Flow(Kind.FUNCTION, ("body",), named=name_of),
    ),
    OpDefinition(
        "recur", "Run the block of the recursion around it again.", verify=_verify_again, undef_args=True,
        infer=_nothing_told, again=name_of,
    ),
    OpDefinition(
        "frame.new", "Keep values for the gradient of a call.", verify=_verify_new, infer=_infer_new, neutral=True,
        passes_gradient=False, hands_on=True, raises=lambda op: False,
    ),
    OpDefinition(
        "frame.get", "A value that was kept.", verify=_verify_get, infer=_nothing_told, neutral=True,
        passes_gradient=False, hands_on=True, raises=lambda op: False,
    ),
)
