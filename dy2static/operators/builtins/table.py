"""Python's builtin functions, for values that are only known while the Program runs: one table, by identity."""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any

from dy2static.operators.builtins import (
    casts,
    checkpointed,
    checks,
    conversions,
    copying,
    heaps_and_bisection,
    identifiers,
    iteration,
    itertools_,
    json_,
    mathematics,
    module_methods,
    objects,
    one_hot,
    operator_functions,
    pending,
    print_,
    ragged,
    records,
    reporting,
    scalers,
    sizes,
    stack,
    statistics_,
    suppress,
    torch_functions,
    transformers,
)
from dy2static.operators.calls import gradient_hooks
from dy2static.operators.iteration import generator_functions
from dy2static.operators.provenance import environment
from dy2static.operators.shared.staging import Session
from dy2static.operators.values import compiled
from runtime.kinds import is_a

Handler = Callable[[Session, tuple[Any, ...], dict[str, Any]], Any]

_TABLE: dict[int, Handler] = {
    id(function): handler
    for module in (
        casts, checkpointed, checks, compiled, conversions, copying, environment, generator_functions,
        gradient_hooks, heaps_and_bisection, identifiers, iteration, itertools_, json_, mathematics, module_methods,
        objects, one_hot, operator_functions, pending, print_, ragged, records, reporting, scalers, sizes, stack,
        statistics_, suppress, torch_functions, transformers,
    )
    for function, handler in module.HANDLERS
}


def handler_of(function: Any) -> Handler | None:
    """What stands for a builtin inside a trace, None if it runs as it is; what gives NotImplemented lets it run."""
    found = _TABLE.get(id(function))
    if found is None and is_a(function, types.BuiltinFunctionType) and function == itertools.chain.from_iterable:
        return itertools_.FROM_ITERABLE
    return found
