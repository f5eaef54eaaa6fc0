"""``gradients``: what ``torch.autograd.grad`` gives, inside a Program.

    %g : f32[3] = gradients([%loss], [%w], None) attrs {create_graph: False, allow_unused: False}

The arguments are the values to differentiate, the values to differentiate by, and None or, for each of the first, its
gradient (None: one). There is an output for each of the second; it may be None where ``allow_unused`` says so.
"""

from __future__ import annotations

from typing import Any

import torch

from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.inference import type_of
from runtime.ir.operator import Operator
from runtime.ir.types import TensorType, Type
from runtime.ir.variable import Variable
from runtime.ops.arity import check_attrs, check_no_kwargs, check_plain

ATTRS = {"create_graph": (bool,), "allow_unused": (bool,), "retain_graph": (bool,), "materialize_grads": (bool,)}


def gradients(
    outputs: list[torch.Tensor], inputs: list[torch.Tensor], given: list[torch.Tensor | None] | None,
    *, create_graph: bool, allow_unused: bool, retain_graph: bool = False, materialize_grads: bool = False,
) -> list[Any]:
    """The reference: torch's autograd over what was just computed."""
    found = torch.autograd.grad(
        outputs, inputs, given, retain_graph=retain_graph or create_graph, create_graph=create_graph,
        allow_unused=allow_unused or materialize_grads, materialize_grads=materialize_grads,
    )  # fmt: skip
    return list(found)


def _verify(op: Operator, fail: Fail) -> None:
    check_plain(op, fail, 3, 3, len(op.outputs))
    check_no_kwargs(op, fail)
    check_attrs(op, fail, ATTRS, required=("create_graph", "allow_unused"))
    outputs: Any
    inputs: Any
    given: Any
    outputs, inputs, given = op.args
    for what, values in (("differentiates", outputs), ("differentiates by", inputs)):
        if type(values) is not list or not values:
            fail("type", f"gradients needs a list of what it {what}, not {values!r}")
        for value in values:
            if not isinstance(value, Variable) or not isinstance(value.type, TensorType):
                fail("type", f"gradients {what} tensor Variables, not {value!r}")
    if len(inputs) != len(op.outputs):
        fail("arity", f"gradients by {len(inputs)} values has as many outputs, not {len(op.outputs)}")
    if given is not None and (type(given) is not list or len(given) != len(outputs)):
        fail("arity", f"gradients of {len(outputs)} values is given None or as many gradients, not {given!r}")


def _infer(op: Operator) -> list[Type | None]:
    inputs: Any = op.args[1]
    return [type_of(value) for value in inputs]


DEFINITION = OpDefinition("gradients", "What torch.autograd.grad gives.", verify=_verify, infer=_infer)
