"""What shows a container that is changed elsewhere: views of dicts, mapping proxies, iterators.

    seen = d.values()
    if x.sum() > 0: d["b"] = x        # ``seen`` has another item now, on one path

They read Python's own storage, in which a container whose content differs between paths keeps a stand-in for it.
"""

from __future__ import annotations

import gc
import itertools
import types
from collections import OrderedDict, deque
from typing import Any

from runtime.kinds import is_a
from runtime.tracer.ambient import contents

_DICTS: tuple[dict[Any, Any], ...] = ({}, OrderedDict())
VIEWS: dict[type, str] = {
    type(getattr(one, name)()): name for one in _DICTS for name in ("keys", "values", "items")
}  # fmt: skip
"""The classes of views of dicts, and the method that gives one."""

_ITERATORS = (*contents.READING, *(
    one for one in vars(itertools).values() if is_a(one, type) and hasattr(one, "__next__")
), type(iter(OrderedDict())), type(iter(set())), type(iter(deque())), type(reversed(deque())),
    *map(type, itertools.tee([])), itertools._tee_dataobject)  # type: ignore[attr-defined]  # fmt: skip
_STEPS = 64


def shows(value: Any) -> bool:
    """Whether a value shows what a dict holds, whatever that is by then."""
    return type(value) in VIEWS or type(value) is types.MappingProxyType


def dict_behind(value: Any) -> Any:
    """The dict that a view or mapping proxy shows; None if it is no dict."""
    return next((one for one in gc.get_referents(value) if is_a(one, dict)), None)


def like(value: Any, owner: Any) -> Any:
    """A view or proxy of the same kind, of another dict."""
    name = VIEWS.get(type(value))
    return types.MappingProxyType(owner) if name is None else getattr(type(owner), name)(owner)


def read_by(iterator: Any) -> list[Any]:
    """The lists, dicts, sets and deques that an iterator of Python's own goes on reading."""
    found: list[Any] = []
    todo, seen = [(iterator, 0)], set()
    while todo:
        value, depth = todo.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if is_a(value, _ITERATORS) or (depth and type(value) is tuple) or shows(value):
            if depth < _STEPS:
                todo += [(one, depth + 1) for one in gc.get_referents(value)]
        elif depth and is_a(value, (list, dict, set, deque)):
            found.append(value)
    return found


__all__ = ["VIEWS", "dict_behind", "like", "read_by", "shows"]
