"""Methods of lists and deques whose length is only known at run time, put together from the operations of ``array``."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from runtime.kinds import is_a
from runtime.tracer.ambient.catching import require_uncaught_type
from runtime.tracer.values import array, structure

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

Method = Callable[..., Any]


def copy(target: Any) -> Any:
    """``target.copy()``."""
    items = array.copy(target)
    return deque(items, target.maxlen) if is_a(target, deque) else items


def _append(session: Session, target: Any, value: Any) -> None:
    array.append(session, target, value)
    drop(session, target, first=True)


def _appendleft(session: Session, target: Any, value: Any) -> None:
    array.store(session, target, array.concat(session, [value], target))
    drop(session, target, first=False)


def _extend(session: Session, target: Any, values: Any) -> None:
    if _takes_nothing(target):
        return
    if structure.growing(target) is not None:
        array.extend(session, target, values)
    else:  # but the values did
        array.store(session, target, array.concat(session, list(target), values))
    drop(session, target, first=True)


def _takes_nothing(target: Any) -> bool:
    return is_a(target, deque) and target.maxlen == 0


def _extendleft(session: Session, target: Any, values: Any) -> None:
    if _takes_nothing(target):
        return
    grown = structure.growing(values) is not None
    turned = array.slice_(session, values, slice(None, None, -1)) if grown else list(values)[::-1]
    array.store(session, target, array.concat(session, turned, list(target)))
    drop(session, target, first=False)


def drop(session: Session, target: Any, first: bool) -> None:
    """Keep as many items as the deque takes; ``first``: those at its start go."""
    if target.maxlen is not None:
        kept = slice(-target.maxlen, None) if first else slice(None, target.maxlen)
        array.store(session, target, array.slice_(session, target, kept))


def _pop(session: Session, target: Any) -> Any:
    require_index(session, target, -1, "pop from an empty deque")
    return array.pop(session, target, -1)


def _popleft(session: Session, target: Any) -> Any:
    require_index(session, target, 0, "pop from an empty deque")
    return array.pop(session, target, 0)


def _rotate(session: Session, target: Any, n: Any = 1) -> None:
    length = session.scalar("max", array.length(session, target), 1)
    place = session.scalar("mod", -n, length)
    head = array.slice_(session, target, slice(None, place))
    tail = array.slice_(session, target, slice(place, None))
    array.store(session, target, array.parts(session, tail, head))


def require_index(session: Session, target: Any, index: Any, message: str = "deque index out of range") -> None:
    """What a deque says where it has no item at an index."""
    length = array.length(session, target)
    inside = session.scalar("and_", length > index, length >= -index)
    require_uncaught_type(session, IndexError)
    session.emit("assert", [session.operand(inside)], attrs={"exception": "IndexError", "message": message})


LIST: dict[str, Method] = {
    "append": array.append, "extend": array.extend, "insert": array.insert, "pop": array.pop, "reverse": array.reverse,
    "clear": array.clear,
}  # fmt: skip
"""Methods that work on a list that has grown; ``copy`` and ``__len__`` are functions."""

DEQUE: dict[str, Method] = {
    "append": _append, "appendleft": _appendleft, "extend": _extend, "extendleft": _extendleft, "pop": _pop,
    "popleft": _popleft, "rotate": _rotate, "reverse": array.reverse, "clear": array.clear,
}  # fmt: skip
"""The same for deques."""
