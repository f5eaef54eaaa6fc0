"""Operators made of others for which torch's own rule for open sizes does not do what they do.

Where a size is open, torch asks a function of Python for them, by position. Some have the parameters of what users
call: ``nll_loss(x, y, None, 0)`` is one without ``size_average`` there, not one of the reduction 0. Those of ``fft``
give contiguous results whatever the dimension. What such an operator is made of tells its results.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any


@functools.cache
def is_misread(func: Any) -> bool:
    """Whether an operator is made of others, and torch's function for it is not to be asked."""
    from torch._decomp import decomposition_table  # with torch's compiler; whoever has a fake tensor has it

    rule: Any = decomposition_table.get(func)
    if rule is None or func.namespace != "aten" or not func._can_decompose():
        return False
    if rule.__module__ in _OF_USERS:
        return True
    parameters = inspect.signature(rule).parameters.values()
    names = {one.name for one in func._schema.arguments}
    asked = (one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty)
    if any(one.name not in names for one in asked):
        return True
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return False
    by_place = [one.name for one in parameters if one.kind is not one.KEYWORD_ONLY]
    given = [one.name for one in func._schema.arguments if not one.kwarg_only]
    elsewhere = {one.name for one in parameters}
    moved = any(theirs != name and name in elsewhere for name, theirs in zip(given, by_place))
    return moved or len(given) > len(by_place)


_OF_USERS = ("torch._refs.nn.functional", "torch._refs.fft")
"""Functions that users call: their reductions are words, and their layouts not those of the kernels."""
