"""Operators that a replay records whole: what they raise is what the user is to see.

Under autograd a composite operator is taken apart, and its parts test less than it does, or say it in other words. It
is recorded

    whole              where no gradient flows through it, and it may raise
    whole, and apart   where it tests the values it is given, or its parts come with tests of sizes: it is there for its
                       exception, and its parts have the derivative formulas
    apart              otherwise
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Operator, Variable
from runtime.ir.definition import definition_of
from runtime.ops.raising import may_raise
from runtime.tracer.recording import unknown_sizes

if TYPE_CHECKING:
    from runtime.autodiff.forward import Forward

_TESTS_VALUES = frozenset({"aten.quantile", "aten.nanquantile"})
"""Composite operators that test the values they are given, where there are any: their parts, recorded on stand-ins, do
not. Those without gradient are recorded as a whole anyway."""


def recorded(forward: Forward, overload: Any, op: Operator) -> Any:
    """The results of an ATen Operator on stand-ins."""
    if not torch_internals.is_composite(overload) or op.autocast is not None or not may_raise(op):
        return forward.call(overload, op)
    if not any(forward.is_active(var) or _has_history(forward, var) for var in op.inputs):
        return _whole(forward, overload, op)
    if op.name.rpartition(".")[0] in _TESTS_VALUES:
        _whole(forward, overload, op)
        return forward.call(overload, op)
    if op.kwargs or not unknown_sizes.depends_on_data(forward.session, forward.value(op.args)):
        return forward.call(overload, op)
    ops = forward.session.scope.block.ops
    before = len(ops)
    _whole(forward, overload, op)
    whole = next((one for one in reversed(ops[before:]) if one.name == op.name), None)
    left = unknown_sizes.with_size_left(forward.session, overload, forward.value(op.args))
    if left is not None:
        return overload(*left)
    result = forward.call(overload, op)
    if whole is not None and not any(definition_of(one.name).asserts for one in ops[before:]):
        ops.remove(whole)  # nothing is tested that it would have to say first
    return result


def _whole(forward: Forward, overload: Any, op: Operator) -> Any:
    with torch_internals.below_autograd():
        return forward.call(overload, op)


def _has_history(forward: Forward, var: Variable) -> bool:
    value = forward.plain(var)
    return isinstance(value, torch.Tensor) and value.requires_grad


__all__ = ["recorded"]
