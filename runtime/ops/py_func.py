"""``py_func``: a call of a Python function that was registered under a key, when the Program runs.

    %y : f32[3] = py_func(%x) attrs {function: "smooth"}

``unchanged``: a test of the same kind, which only raises. It stands in the backward of a user's
``autograd.Function``, and asks whether that would still find in Python what it found when it was traced.

    unchanged(%w) attrs {function: "lookups 0"}
"""

from __future__ import annotations

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.operator import Operator
from runtime.ops.arity import check_attrs, check_blocks, check_no_kwargs


def _verify_test(op: Operator, fail: Fail) -> None:
    _verify(op, fail)
    if op.outputs:
        fail("arity", "unchanged gives nothing")


def _verify(op: Operator, fail: Fail) -> None:
    check_no_kwargs(op, fail)
    check_blocks(op, fail, ())
    check_attrs(op, fail, {"function": (str,)}, required=["function"])


DEFINITION = OpDefinition("py_func", "Call a Python function.", verify=_verify, effect=True, passes_gradient=False)
UNCHANGED = OpDefinition("unchanged", "Test that Python still holds what a backward has found there.",
                         verify=_verify_test, effect=True, neutral=True, passes_gradient=False, only_reads=True)
