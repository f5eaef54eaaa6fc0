"""Conditions on sizes that are decided while tracing, since the Program is for some sizes only, or since iterations of
a loop only add to a size.

A dimension is left open after calls with several sizes. Sizes 0 and 1 remain cases of their own, with other Programs.
So ``x.shape[0] > 1`` is True there, and ``x[-1:]`` has one row; that the size is 2 or more becomes an ``assume`` of the
Program.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import torch

from runtime.kinds import is_a
from runtime.torch_internals import assume
from runtime.tracer.numbers import selected
from runtime.tracer.numbers.scalars import Staged, StagedBool, StagedInt

if TYPE_CHECKING:
    import sympy
else:
    from runtime.tracer.numbers.symbols import sympy

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

SMALLEST = 2
"""The least of a size whose sizes 0 and 1 have Programs of their own."""


def _positive(difference: Any) -> bool | None:
    return difference.is_positive


def _not_negative(difference: Any) -> bool | None:
    return difference.is_nonnegative


def _zero(difference: Any) -> bool | None:
    return difference.is_zero


_TESTS = {
    "gt": (_positive, 1), "lt": (_positive, -1), "ge": (_not_negative, 1), "le": (_not_negative, -1), "eq": (_zero, 1),
}  # fmt: skip

DECIDED = frozenset({*_TESTS, "ne", "not_", "and_", "or_", "bool", "abs", "bit_length", "mod", "lshift", "rshift"})
"""Operations whose definition is kept, so that what they give can be decided."""


def decide(session: Session, value: Any) -> Any:
    """A staged bool, or the plain one that it is for every size that the Program is for."""
    if not is_a(value, StagedBool) or not (session.sizes.apart or session.sizes.has_added):
        return value
    symbols: set[sympy.Symbol] = set()
    truth = _truth(session, value, symbols)
    if truth is None:
        return value
    for symbol in sorted(filter(session.sizes.kept_apart, symbols), key=str):
        session.sizes.assume(sympy.Ge(symbol, SMALLEST))
    return truth


def rest_on_bounds(session: Session, sliced: torch.Tensor, dim: int = 0, *bounds: Any) -> None:
    """A slice with plain bounds: where a dimension has so many items in every call that the Program is for, that is
    assumed. Torch's rule says how long the slice is then: ``x[:, -1:]`` is 1, not ``n - max(0, n - 1)``."""
    if not session.sizes.apart or type(dim) is not int or not -sliced.dim() <= dim < sliced.dim():
        return
    size: Any = sliced.shape[dim]
    for bound in bounds if type(size) is torch.SymInt else ():
        if type(bound) is not int or bound in (0, sys.maxsize):
            continue
        left = size.node.expr - abs(bound)
        symbols: set[sympy.Symbol] = set()
        if session.shape_env.bound_sympy(left).lower < 0 and _holds(session, "ge", left, symbols):
            for symbol in sorted(filter(session.sizes.kept_apart, symbols), key=str):
                assume(session.sizes.of_expression(symbol) >= SMALLEST)


def hold_on_path(session: Session, flag: Any, truth: bool) -> None:
    """In the Block that is open, ``flag`` is so: where it says that sizes are equal, or that there are so many, nothing
    has to assume it there.

        if x.shape[1] == 1:
            y = x.reshape(x.shape[0], 4)       [n, 1, 4] -> [n, 4]: the sizes fit, on this path
    """
    meaning = session.sizes.meaning(flag) if is_a(flag, StagedBool) else None
    if meaning is None:
        return
    name, args = meaning
    if name == "not_" and _is_bool(args[0]):
        hold_on_path(session, args[0], not truth)
    elif name == selected.CHOSEN:
        selector, truths = args
        selected.hold(session, selector, frozenset(n for n, one in enumerate(truths) if one is truth))
    elif name in ("and_", "or_") and truth is (name == "and_"):
        for arg in args:
            hold_on_path(session, arg, truth)
    elif name in _OPPOSITE or name == "bool":
        first, second = args if name != "bool" else (*args, 0)
        selected.hold_compared(session, "ne" if name == "bool" else name, first, second, truth)
        left, right = (_expression(session, arg) for arg in (first, second))
        if left is not None and right is not None:
            said = "ne" if name == "bool" else name
            _relation_on_path(session, said if truth else _OPPOSITE[said], left, right)


_OPPOSITE = {"eq": "ne", "ne": "eq", "gt": "le", "le": "gt", "lt": "ge", "ge": "lt"}


def _relation_on_path(session: Session, name: str, left: Any, right: Any) -> None:
    if name == "eq":
        session.sizes.note_on_path(left, right)
    elif name == "ne":
        for one, other in ((left, right), (right, left)):
            if one.is_Symbol and other == 0 and session.shape_env.bound_sympy(one).lower == 0:
                session.sizes.note_least_on_path(one, 1)
    else:
        larger, smaller = (left, right) if name in ("gt", "ge") else (right, left)
        for symbol in larger.free_symbols:
            least = symbol - (larger - smaller) + int(name in ("gt", "lt"))
            if least.is_Integer:
                session.sizes.note_least_on_path(symbol, int(least))


def not_negative(session: Session, value: Any) -> bool:
    """Whether an int is surely 0 or more: a size, a counter of a loop, what is computed from these."""
    if not is_a(value, Staged):
        return bool(value >= 0)
    if value.kind == "bool" or value.var in session.sizes.natural:
        return True
    expression = session.sizes.expression(value)
    if expression is not None and session.shape_env.bound_sympy(expression).lower >= 0:
        return True
    name, args = session.sizes.definition(value) or ("", ())
    signs = [type(arg) in (int, StagedInt, StagedBool) and not_negative(session, arg) for arg in args]
    if name in ("abs", "bit_length"):
        return True
    if name == "mod":  # has the sign of what it is divided by
        return signs[1]
    if name == "max":
        return any(signs)
    return name in ("add", "mul", "floordiv", "pos", "min", "lshift", "rshift") and all(signs)


def _truth(session: Session, value: Any, symbols: set[sympy.Symbol]) -> bool | None:
    if not is_a(value, Staged):
        return bool(value)
    definition = session.sizes.definition(value)
    if definition is None:
        return None
    name, args = definition
    if name in ("and_", "or_"):
        parts = [_truth(session, arg, symbols) if _is_bool(arg) else None for arg in args]
        stop = name == "or_"
        if stop in parts:
            return stop
        return None if None in parts else not stop
    if name == "not_":
        inner = _truth(session, args[0], symbols) if _is_bool(args[0]) else _compare(session, "ne", args[0], 0, symbols)
        return None if inner is None else not inner
    if name == "bool":
        return _compare(session, "ne", args[0], 0, symbols)
    return _compare(session, name, args[0], args[1], symbols) if name in _TESTS or name == "ne" else None


def _is_bool(value: Any) -> bool:
    return type(value) is bool or is_a(value, StagedBool)


def _compare(session: Session, name: str, a: Any, b: Any, symbols: set[sympy.Symbol]) -> bool | None:
    """Whether ``a`` is less than, equal to... ``b`` for all sizes, None if that is not known."""
    left, right = _expression(session, a), _expression(session, b)
    return None if left is None or right is None else _holds(session, name, left - right, symbols)


def _holds(session: Session, name: str, difference: Any, symbols: set[sympy.Symbol]) -> bool | None:
    """The same of a difference and 0; ``symbols`` gets those that it was told by."""
    free = difference.free_symbols
    least = {symbol: session.sizes.least(symbol) for symbol in free}
    if not free or None in least.values():
        return None
    above = {symbol: sympy.Dummy(integer=True, nonnegative=True) + number for symbol, number in least.items()}
    difference = sympy.expand(difference.xreplace(above))
    if name == "ne":
        same = _zero(difference)
        result = None if same is None else not same
    else:
        test, sign = _TESTS[name]
        result = test(sign * difference)
    if result is not None:
        symbols |= free
    return result


def _expression(session: Session, value: Any) -> Any:
    if type(value) is int:
        return sympy.Integer(value)
    if not is_a(value, Staged) or value.kind != "int":
        return None
    known = session.sizes.expression(value)
    if known is not None:
        return known
    definition = session.sizes.definition(value)
    if definition is None or definition[0] not in EXACT:
        return None
    parts = [_expression(session, arg) for arg in definition[1]]
    return None if None in parts else EXACT[definition[0]](*parts)


EXACT: dict[str, Any] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "neg": lambda a: -a,
    "pos": lambda a: a,
}  # fmt: skip
"""Operations that say the same of expressions as of numbers."""


__all__ = ["DECIDED", "EXACT", "SMALLEST", "decide", "not_negative", "rest_on_bounds"]
