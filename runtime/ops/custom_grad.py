"""``custom_grad``: a computation with its own gradient.

    %y : f32[3] = custom_grad(%x) {
      ^(%a : f32[3]):
        %e : f32[3] = aten.exp.default(%a)
        yield %e, %e
    } {
      ^(%e_1 : f32[3], %g : f32[3]):
        %d : f32[3] = aten.mul.Tensor(%g, %e_1)
        yield %d
    } attrs {n_outputs: 1}

The forward Block yields ``n_outputs`` results, then residuals; the backward Block takes the residuals, then the
gradients of the results, and yields a gradient or None for each argument. ``not_differentiable`` lists results that
have no gradient. Where a missing gradient is None, not zeros, there is a backward Block for each combination that may
arrive: ``given`` says for each Block which results have a gradient. Backward Blocks run in the gradient mode of who
asks for gradients, so that these can be differentiated; with ``once`` a Block has modes of its own, and they cannot.
``held`` lists residuals that are not saved (``ctx.x = x``): what is written to one later, backward reads; a write to
one that is saved makes backward raise.
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.flow import Flow, Kind
from runtime.ir.inference import type_of
from runtime.ir.operator import Operator
from runtime.ir.types import Type
from runtime.ir.variable import UNDEF
from runtime.ops.arity import check_block, check_blocks, check_no_kwargs, check_outputs


def _verify(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    given = op.attrs.get("given")
    check_blocks(op, fail, ("forward", *("backward" for _ in given or [None])))
    results = op.attrs.get("n_outputs")
    if type(results) is not int or results < 0:
        fail("attrs", f"the attribute 'n_outputs' of custom_grad must be a number of outputs, not {results!r}")
    check_outputs(op, fail, results)
    _check_positions(op, fail, op.attrs.get("not_differentiable", []), results)
    if given is not None and not all(isinstance(one, (list, tuple)) and len(one) == results for one in given):
        fail("attrs", "each item of 'given' must say for every result whether its gradient is there")
    _check_positions(op, fail, op.attrs.get("held", []), len(op.blocks[0].yields) - results, "held")
    for name in ("once", "autocast_asked"):
        if type(op.attrs.get(name, False)) is not bool:
            fail("attrs", f"the attribute {name!r} of custom_grad must be a bool, not {op.attrs[name]!r}")
    forward, *backwards = op.blocks
    if len(forward.args) != len(op.args):
        fail("block-args", f"the forward block of custom_grad needs {len(op.args)} arguments, not {len(forward.args)}")
    if len(forward.yields) < results:
        fail("yields", f"the forward block of custom_grad yields {len(forward.yields)} values, fewer than n_outputs")
    for backward in backwards:
        check_block(op, fail, "backward", backward, args=len(forward.yields), yields=len(op.args))
    if any(value is UNDEF for block in op.blocks for value in block.yields):
        fail("undef", "the blocks of custom_grad must yield values")


def _check_positions(
    op: Operator, fail: Fail, positions: object, results: int, name: str = "not_differentiable"
) -> None:  # fmt: skip
    if not isinstance(positions, (list, tuple)) or any(
        type(one) is not int or not 0 <= one < results for one in positions
    ):
        what = "results" if name == "not_differentiable" else "residuals"
        fail("attrs", f"'{name}' must list positions of {what}, not {positions!r}")


def backward_for(op: Operator, given: Sequence[bool]) -> int | None:
    """Which Block computes the gradients where those of the ``given`` results have arrived; None if none does."""
    patterns = op.attrs.get("given")
    if patterns is None:
        return 1
    wanted = [bool(one) for one in given]
    return next((1 + index for index, one in enumerate(patterns) if list(one) == wanted), None)


def _infer(op: Operator) -> list[Type | None]:
    return [type_of(value) for value in op.blocks[0].yields[: len(op.outputs)]]


def _gradient(op: Operator) -> list[bool]:
    rows = zip(*(block.yields for block in op.blocks[1:]))
    return [all(grad is not None for grad in row) for row in rows]


DEFINITION = OpDefinition(
    "custom_grad", "Compute the forward block; its gradient is the backward block.", verify=_verify, infer=_infer,
    flow=Flow(Kind.FUNCTION, ("forward", "backward")), own_gradient=_gradient, raises=lambda op: False,
)
