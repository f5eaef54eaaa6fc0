"""ATen operators: called once, on batched tensors. Numbers that differ between rows go in as tensors where the operator
has a form that takes one; else it is called once for each of the numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime import torch_internals
from runtime.batching import row_by_row, without_sizes
from runtime.batching.joining import filled_in
from runtime.batching.machine import Machine, Scope, refuse
from runtime.batching.numbers import with_tensors
from runtime.batching.rows import Mask, Rows
from runtime.executor.aten import checks, flat
from runtime.executor.bindings import binding
from runtime.ir import ArrayType, Operator, TensorType
from runtime.ir.walk import map_leaves
from runtime.ops import aten

_NO_STATIC_SIZE = ("data-dependent", "dynamic", "nonzero", "masked_select", "unbacked")
_NO_RULE = ("Batching rule not implemented", "isn't supported yet")


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The operator's results."""
    args = [machine.read(arg, scope) for arg in op.args]
    kwargs = {key: machine.read(value, scope) for key, value in op.kwargs.items()}
    numbers: list[Rows] = []
    map_leaves([args, kwargs], lambda value: numbers.append(value) if isinstance(value, Rows) else None)
    call = machine.plan.kept.get(id(op)) or machine.plan.kept.setdefault(id(op), _call(op))
    if not numbers:
        return _results(machine, op, call, args, kwargs)
    found = with_tensors(machine, op, args, kwargs)
    if found is not None:
        return [found]
    places = {id(one): place for place, one in enumerate(numbers)}

    def one(mask: Mask | None, values: list[Any]) -> Sequence[Any]:
        def given(value: Any) -> Any:
            if isinstance(value, Rows):
                return values[places[id(value)]]
            return value if mask is None else filled_in(mask, value)

        return _results(machine, op, call, map_leaves(args, given), map_leaves(kwargs, given))

    return machine.by_value(op, numbers, one)


def _call(op: Operator) -> Callable[..., Any]:
    found: Callable[..., Any] = binding(op) or torch_internals.raw_call(aten.resolve(op.name))
    return found


def _results(
    machine: Machine, op: Operator, call: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Sequence[Any]:
    overload = aten.resolve(op.name)
    try:
        given = without_sizes.run(op, args) if op.name in without_sizes.NAMES else NotImplemented
        given = call(*args, **kwargs) if given is NotImplemented else given
    except RuntimeError as error:
        if not _has_no_rule(op, str(error)):
            raise
        if aten.writes(overload):
            refuse(op, None, f"PyTorch has no rule for {op.name.split('.')[1]} on many rows at once",
                   "Let it give a new tensor, in place of writing one.", "D2S285")
        given = row_by_row.run(machine, op, call, args, kwargs)
    if not op.outputs:
        return ()
    if len(overload._schema.returns) == 1:
        is_list = str(overload._schema.returns[0].type).startswith("List[")
        whole = len(op.outputs) == 1 and not isinstance(op.outputs[0].type, TensorType)
        results: list[Any] = list(given) if is_list and not whole else [list(given) if is_list else given]
    elif any(isinstance(out.type, ArrayType) for out in op.outputs):
        results = list(given)
    else:
        results = list(flat(given))
    for check, result in zip(checks(op), results):
        if check is not None:
            check(result)
    return results


def _has_no_rule(op: Operator, text: str) -> bool:
    """Whether torch has no way to call the operator for all rows at once.

    Raises:
        TraceError: There can be none.
    """
    if text.startswith("vmap:") and any(word in text for word in _NO_STATIC_SIZE):
        out = op.outputs[0] if op.outputs else None
        refuse(op, out, f"{op.name.split('.')[1]} gives another number of elements in each row",
               "Keep one size and say with a mask, as with torch.where, what counts.")
    return any(word in text for word in _NO_RULE)
