"""``py_func``: a call of a Python function that was registered under a key, when the Program runs.

    %y : f32[3] = py_func(%x) attrs {function: "smooth"}
"""

from __future__ import annotations

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ops.arity import check_attrs, check_blocks, check_no_kwargs


def _verify(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_blocks(op, fail, ())
    check_attrs(op, fail, {"function": (str,)}, required=["function"])


DEFINITION = OpDefinition("py_func", "Call a Python function.", verify=_verify, effect=True, passes_gradient=False)
