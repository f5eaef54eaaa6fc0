"""Whether code asks objects for attributes by names that are no constants of its.

    getattr(box, NAME), hasattr(box, "on_" + kind), map(getattr, boxes, names)      it does
    getattr(box, "warm", 5)                                                         it does not
"""

from __future__ import annotations

import dis
import types

_READERS = frozenset({"getattr", "hasattr", "delattr"})
_JUMPS = frozenset((*dis.hasjrel, *dis.hasjabs))
_MATCH_CLASS = dis.opmap["MATCH_CLASS"]
_NOTHING = ("NOP", "EXTENDED_ARG", "CACHE")


def computes_names(code: types.CodeType) -> bool:
    """Whether a code object itself, without those nested in it, does that.

    >>> [computes_names(f.__code__) for f in (lambda x: getattr(x, "a", f(x)), lambda x, n: hasattr(x, n))]
    [False, True]
    """
    if "__getattribute__" in code.co_names or _matches_places(code.co_code):
        return True
    if not _READERS & set(code.co_names):
        return False
    found = [one for one in dis.get_instructions(code) if one.opname not in _NOTHING]
    return any(one.argval in _READERS and not _is_given_a_constant(found[place:]) for place, one in enumerate(found))


def _matches_places(steps: bytes) -> bool:
    """Whether there is a pattern like ``C(a, b)``: the names are in ``C.__match_args__``."""
    return any(step == _MATCH_CLASS and count for step, count in zip(steps[::2], steps[1::2]))


def _is_given_a_constant(rest: list[dis.Instruction]) -> bool:
    """Whether the function that the first instruction loads is called at once, and its second argument is a text.

    ``depth``: how many values lie above the function. What ends in the second place is the second argument.
    """
    if rest[0].opname not in ("LOAD_GLOBAL", "LOAD_NAME"):
        return False
    depth, is_constant = 0, False
    for number, one in enumerate(rest[1:]):
        if one.opcode in _JUMPS:
            return False
        if one.opname == "PUSH_NULL" and number == 0:
            continue
        before, depth = depth, depth + dis.stack_effect(one.opcode, one.arg, jump=False)
        if depth <= 0:
            return is_constant and one.opname.startswith(("CALL", "PRECALL"))
        if before <= 1 < depth:
            is_constant = before == 1 and depth == 2 and one.opname == "LOAD_CONST"
        elif depth == 2:
            is_constant = False
    return False


__all__ = ["computes_names"]
