"""Do two code objects come from the same text? Python's own equality also compares line tables, which is too strict."""

from __future__ import annotations

import sys
import types
from typing import Any


def same_code(fresh: types.CodeType, live: types.CodeType, positions: bool) -> bool:
    """True if both have the same instructions, constants and names; ``positions`` compares places too (3.11+).

    >>> f, g, h = (lambda x: x + 1), (lambda x: x + 1), (lambda x: x + 2)
    >>> [same_code(f.__code__, o.__code__, places) for o, places in [(g, False), (h, False)]]
    [True, False]
    """
    fields = (
        "co_name", "co_argcount", "co_posonlyargcount", "co_kwonlyargcount", "co_flags",
        "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars",
    )  # fmt: skip
    if any(getattr(fresh, name) != getattr(live, name) for name in fields):
        return False
    if positions and sys.version_info >= (3, 11) and list(fresh.co_positions()) != list(live.co_positions()):
        return False
    return len(fresh.co_consts) == len(live.co_consts) and all(
        _same_constant(left, right, positions) for left, right in zip(fresh.co_consts, live.co_consts, strict=True)
    )


def _same_constant(left: Any, right: Any, positions: bool) -> bool:
    if isinstance(left, types.CodeType) and isinstance(right, types.CodeType):
        return same_code(left, right, positions)
    if isinstance(left, tuple) and isinstance(right, tuple):
        return len(left) == len(right) and all(_same_constant(a, b, positions) for a, b in zip(left, right))
    if isinstance(left, frozenset) and isinstance(right, frozenset):
        return left == right
    return type(left) is type(right) and repr(left) == repr(right)


def similar_code(fresh: types.CodeType, live: types.CodeType) -> bool:
    """For code that an import hook rewrote: same arguments and closure, and all names of the text still there."""
    count = fresh.co_argcount + fresh.co_kwonlyargcount
    return (
        (fresh.co_argcount, fresh.co_posonlyargcount, fresh.co_kwonlyargcount)
        == (live.co_argcount, live.co_posonlyargcount, live.co_kwonlyargcount)
        and fresh.co_varnames[:count] == live.co_varnames[:count]
        and set(fresh.co_freevars) == set(live.co_freevars)
        and set(fresh.co_names) <= set(live.co_names)
        and set(fresh.co_varnames) <= set(live.co_varnames)
    )
