"""``print``: Python's print, when the Program runs.

    print("loss", %loss) attrs {sep: " ", end: "\\n"}
"""

from __future__ import annotations

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ops.arity import check_attrs, check_blocks, check_no_kwargs, check_outputs


def _verify(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_outputs(op, fail, 0)
    check_blocks(op, fail, ())
    check_attrs(op, fail, {"sep": (str, type(None)), "end": (str, type(None)), "flush": (bool,)})


DEFINITION = OpDefinition(
    "print", "Print values to the current sys.stdout.", verify=_verify, effect=True,
    neutral=True, passes_gradient=False, says=True, raises=lambda op: False,
)
