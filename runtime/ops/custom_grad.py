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
gradients of the results, and yields a gradient or None for each argument.
"""

from __future__ import annotations

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ir.variable import UNDEF
from runtime.ops.arity import check_block, check_blocks, check_no_kwargs, check_outputs


def _verify(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_blocks(op, fail, ("forward", "backward"))
    results = op.attrs.get("n_outputs")
    if type(results) is not int or results < 0:
        fail("attrs", f"the attribute 'n_outputs' of custom_grad must be a number of outputs, not {results!r}")
    check_outputs(op, fail, results)
    forward, backward = op.blocks
    if len(forward.args) != len(op.args):
        fail("block-args", f"the forward block of custom_grad needs {len(op.args)} arguments, not {len(forward.args)}")
    if len(forward.yields) < results:
        fail("yields", f"the forward block of custom_grad yields {len(forward.yields)} values, fewer than n_outputs")
    check_block(op, fail, "backward", backward, args=len(forward.yields), yields=len(op.args))
    if any(value is UNDEF for value in (*forward.yields, *backward.yields)):
        fail("undef", "the blocks of custom_grad must yield values")


DEFINITION = OpDefinition(
    "custom_grad", "Compute the forward block; its gradient is the backward block.", verify=_verify
)
