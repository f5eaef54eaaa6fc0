"""What lists, tuples and deques do with a count, an index or items that only the run knows.

    [pad] * int(n)                a list of unknown length
    items.insert(int(n), x)       the items behind it move, each where the index says so
    (cost, i) < (best, j)         the costs, and where those are equal the numbers
"""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.calls import functions, growing
from dy2static.operators.calls.call import traced
from dy2static.operators.calls.sequences import StagedRange
from dy2static.operators.constructs import user_methods
from dy2static.operators.shared.staging import Session, Staged, any_staged, stages
from dy2static.operators.shared.stored import stored_items
from dy2static.operators.values import equality, sequences_in_python
from runtime.kinds import is_a
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers.scalars import StagedBool, StagedInt
from runtime.tracer.recording import reads
from runtime.tracer.values import structure

NOT_DONE = object()
"""Python's own operator does it as well."""

_COMPARES: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip

_REFLECTED = {"<": "__gt__", "<=": "__ge__", ">": "__lt__", ">=": "__le__"}
"""The method of the right operand that may be asked."""


_REPEATED: dict[type, Callable[..., Any]] = {
    list: sequences_in_python.repeated, tuple: sequences_in_python.repeated_tuple,
    deque: sequences_in_python.repeated_deque,
}  # fmt: skip


def _run(session: Session, function: Any, *args: Any) -> Any:
    return functions.call_function(session, function, args, {})


def multiplied(session: Session, a: Any, b: Any) -> Any:
    """``a * b`` if one is a list or tuple and the other a number that only the run knows."""
    items, count = (a, b) if is_a(a, (list, tuple, deque)) else (b, a)
    count = _count(session, items, count)
    function: Any = _REPEATED.get(type(items))
    if function is None or count is None:
        return NOT_DONE
    return _run(session, function, items, count)


def multiply(session: Session, target: Any, count: Any) -> bool:
    """``target *= count`` of a list or deque, for such a number; whether that is done."""
    count = _count(session, target, count)
    if type(target) not in (list, deque) or count is None:
        return False
    function: Any = sequences_in_python.repeat if type(target) is list else sequences_in_python.repeat_deque
    _run(session, function, target, count)
    return True


def _count(session: Session, items: Any, count: Any) -> Any:
    if not is_a(items, (list, tuple, deque)):
        return None
    if is_a(count, torch.Tensor) and session.knows(count) and not session.fake(count).dim():
        dtype = session.fake(count).dtype
        return None if dtype.is_floating_point or dtype.is_complex else reads.index(session, count)
    if is_a(count, StagedBool):
        return session.scalar("int", count)
    return count if is_a(count, StagedInt) else None


_AT_AN_INDEX = {"insert": 2, "pop": 1}
"""Methods that take an index, and how many arguments they have then."""


def at_index(session: Session, owner: Any, name: str, args: tuple[Any, ...]) -> Any:
    """``owner.name(index, ...)`` of a list or deque, for an index that only the run knows."""
    if len(args) != _AT_AN_INDEX.get(name) or not _is_open_list(owner) or (name == "pop" and type(owner) is deque):
        return NOT_DONE
    index = _count(session, owner, args[0])
    if index is None:
        return NOT_DONE
    function: Any = sequences_in_python.insert if name == "insert" else sequences_in_python.pop
    return _run(session, function, owner, index, *args[1:])


def delete(session: Session, owner: Any, key: Any) -> bool:
    """``del owner[key]`` for such an index or slice; whether that is done."""
    if is_a(key, slice):
        return set_part(session, owner, key, [])
    index = _count(session, owner, key)
    if index is None or not _is_open_list(owner):
        return False
    error = f"{'list assignment' if type(owner) is list else 'deque'} index out of range"
    _run(session, sequences_in_python.delete, owner, index, error)
    return True


def set_part(session: Session, owner: Any, key: slice, values: Any) -> bool:
    """``owner[key] = values`` for a slice of a list that only the run knows; whether that is done."""
    if type(owner) is not list or (key.step is not None and (is_a(key.step, Staged) or key.step != 1)):
        return False
    values = values if type(values) is list else traced(session, list, (values,), {})
    _run(session, sequences_in_python.set_part, owner, key.start, key.stop, values)
    return True


def part(session: Session, items: Any, where: slice) -> Any:
    """``items[where]`` of a list or tuple with items that can be changed, for a slice that only the run knows."""
    if where.step is not None and (is_a(where.step, Staged) or where.step != 1):
        return NOT_DONE
    return _run(session, sequences_in_python.part, items, where.start, where.stop)


def contained(session: Session, items: Any, value: Any) -> Any:
    """``value in items`` of a list whose length only the run knows."""
    if is_a(value, torch.Tensor) and value.dim():  # the very item, or another one: no truth is known of it
        return NOT_DONE
    return _run(session, sequences_in_python.contained, items, value)


def _is_open_list(owner: Any) -> bool:
    """Whether items may be put into it one by one: its length is known."""
    if type(owner) is deque and owner.maxlen is not None:
        return False
    return type(owner) in (list, deque) and not growing.is_growing(owner)


def ordered(session: Session, a: Any, op: str, b: Any) -> Any:
    """``a <op> b`` of two lists or tuples with items that only the run can compare."""
    kind = equality.kind_of(a, f"__{_COMPARES[op].__name__}__")
    if kind not in (list, tuple) or equality.kind_of(b, _REFLECTED[op]) is not kind or not (
            any(map(growing.is_growing, (a, b))) or any(map(decides, (*stored_items(a), *stored_items(b))))):
        return NOT_DONE
    for one, other in ((a, b), (b, a)):
        grown = structure.growing(one)
        if grown is not None and other and is_a(grown.item, structure.Tensor) and grown.item.shape != ():
            raise session.error(
                f"a {type(one).__name__} of tensors whose length is only known while the Program runs is compared by "
                "order, which asks which tensors its items are",
                hint="Compare lengths, or what the tensors hold.", code="D2S253")
    first, second = (one if growing.is_growing(one) else stored_items(one) for one in (a, b))
    return _run(session, sequences_in_python.ordered, first, second, _COMPARES[op])


def require_sortable(session: Session, items: Any) -> None:
    """Refuse to sort a list that grew of tuples with tensors of several elements: Python asks which tensors they are.

    Raises:
        TraceError: D2S253.
    """
    grown = structure.growing(items)
    parts = grown.item.items if grown is not None and is_a(grown.item, structure.Sequence) else ()
    if any(is_a(part, structure.Tensor) and part.shape != () for part in parts):
        raise session.error(
            "a list whose length is only known while the Program runs is sorted, which asks which tensors its items "
            "hold", hint="Sort by a key, or put the numbers first.", code="D2S253")


def decides(value: Any) -> bool:
    """Whether comparing a value may be for the run; a list may hold itself."""
    return stages(value) or any_staged([value]) or any(map(_decides, walk([value], _items, 4)))


def _decides(value: Any) -> bool:
    return is_a(value, (torch.Tensor, StagedRange)) or growing.is_growing(value) or user_methods.orders(value)


def _items(value: Any) -> Any:
    return value if is_a(value, (tuple, list)) else ()


__all__ = [
    "NOT_DONE", "at_index", "contained", "decides", "delete", "multiplied", "multiply", "ordered", "part",
    "require_sortable", "set_part",
]  # fmt: skip
