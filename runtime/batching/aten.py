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
from runtime.ir import ArrayType, Operator, TensorType, Variable
from runtime.ir.walk import map_leaves
from runtime.ops import aten

_NO_STATIC_SIZE = ("data-dependent", "dynamic", "nonzero", "masked_select", "unbacked")
_NO_RULE = ("Batching rule not implemented", "isn't supported yet")


class _Prepared:
    """What is known of an Operator before it runs."""

    def __init__(self, op: Operator) -> None:
        overload = aten.resolve(op.name)
        self.call: Callable[..., Any] = binding(op) or torch_internals.raw_call(overload)
        self.plain = all(not isinstance(arg, (list, tuple, dict, slice)) for arg in op.args) and not op.kwargs
        """Whether its operands are Variables and constants, and none of them by name."""
        self.numbers = any(not isinstance(var.type, TensorType) for var in op.inputs)
        """Whether one of its operands may be a number."""
        self.special = op.name in without_sizes.NAMES
        self.writes = aten.writes(overload)
        self.checks = [check for check in enumerate(checks(op)) if check[1] is not None]
        returns = overload._schema.returns
        is_list = len(returns) == 1 and str(returns[0].type).startswith("List[")
        whole = len(op.outputs) == 1 and not isinstance(op.outputs[0].type, TensorType)
        self.results: Callable[[Any], Sequence[Any]]
        if not op.outputs:
            self.results = _none
        elif len(returns) == 1:
            self.results = _one_list if is_list and whole else list if is_list else _one
        elif any(isinstance(out.type, ArrayType) for out in op.outputs):
            self.results = list
        else:
            self.results = _flat


def _none(given: Any) -> Sequence[Any]:
    return ()


def _one(given: Any) -> Sequence[Any]:
    return (given,)


def _one_list(given: Any) -> Sequence[Any]:
    return (list(given),)


def _flat(given: Any) -> Sequence[Any]:
    return list(flat(given))


def run(machine: Machine, op: Operator, scope: Scope) -> Sequence[Any]:
    """The operator's results."""
    prepared: _Prepared | None = machine.plan.kept.get(id(op))
    if prepared is None:
        prepared = machine.plan.kept[id(op)] = _Prepared(op)
    if prepared.plain:
        args = [scope[arg] if isinstance(arg, Variable) else arg for arg in op.args]
        kwargs: dict[str, Any] = {}
    else:
        args = [machine.read(arg, scope) for arg in op.args]
        kwargs = {key: machine.read(value, scope) for key, value in op.kwargs.items()}
    if prepared.writes and any(arg is args[0] for arg in args[1:]):  # autograd would find what it kept written over
        args = [args[0], *(arg.clone() if arg is args[0] else arg for arg in args[1:])]
    if not prepared.numbers:
        return _results(machine, op, prepared, args, kwargs)
    numbers: list[Rows] = []
    map_leaves([args, kwargs], lambda value: numbers.append(value) if isinstance(value, Rows) else None)
    if not numbers:
        return _results(machine, op, prepared, args, kwargs)
    histories = machine.domain.histories([args, kwargs])
    found = with_tensors(machine, op, args, kwargs)
    if found is not None:
        return machine.domain.following((found,), histories)
    places = {id(one): place for place, one in enumerate(numbers)}

    def one(mask: Mask | None, values: list[Any]) -> Sequence[Any]:
        def given(value: Any) -> Any:
            if isinstance(value, Rows):
                return values[places[id(value)]]
            return value if mask is None else filled_in(mask, value)

        return _results(machine, op, prepared, map_leaves(args, given), map_leaves(kwargs, given))

    return machine.by_value(op, numbers, one)


def _results(
    machine: Machine, op: Operator, prepared: _Prepared, args: Sequence[Any], kwargs: dict[str, Any]
) -> Sequence[Any]:
    histories = machine.domain.histories([args, kwargs])
    try:
        given = without_sizes.run(op, args) if prepared.special else NotImplemented
        given = prepared.call(*args, **kwargs) if given is NotImplemented else given
    except RuntimeError as error:
        if not _has_no_rule(op, str(error)):
            raise
        if prepared.writes:
            refuse(op, None, f"PyTorch has no rule for {op.name.split('.')[1]} on many rows at once",
                   "Let it give a new tensor, in place of writing one.", "D2S285")
        given = row_by_row.run(machine, op, prepared.call, args, kwargs)
    results = prepared.results(given)
    for position, check in prepared.checks:
        check(results[position])  # type: ignore[misc]
    return machine.domain.following(results, histories)


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
