"""Arguments of builtins that are a function or None, where a path chose which, and ``reverse`` that only a run knows.

    sorted(xs, key=f if flag else None)     sorted(xs, key=f), or sorted(xs, key=None): a branch
    filter(f if flag else None, xs)         lazy: None is a function that gives each item itself
    xs.sort(reverse=flag)                   xs.sort(reverse=True), or xs.sort(reverse=False)
"""

from __future__ import annotations

import bisect
import functools
import heapq
import itertools
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from dy2static.operators.calls.call import call
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, Staged, distribute
from runtime.kinds import is_a
from runtime.tracer.ambient import contents
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.control import cond as tracer_cond

Call = Callable[[tuple[Any, ...], dict[str, Any]], Any]


@dataclass(frozen=True)
class _Takes:
    """How a builtin takes its function."""

    place: int | None
    """Its position; None if it is only given by name."""
    name: str = "key"
    none: Callable[..., Any] | None = None
    """What None stands for, of one that calls its function later; None if the whole call is done for each option."""
    items: int | None = None
    """The position of an iterable of which all items are taken at once."""


def _itself(item: Any) -> Any:
    return item


_TAKES: dict[int, _Takes] = {
    id(sorted): _Takes(None, items=0), id(min): _Takes(None, items=0), id(max): _Takes(None, items=0),
    id(heapq.nsmallest): _Takes(2, items=1), id(heapq.nlargest): _Takes(2, items=1),
    id(filter): _Takes(0, "", _itself), id(itertools.filterfalse): _Takes(0, "", _itself),
    id(itertools.accumulate): _Takes(1, "func", operator.add),
}  # fmt: skip
_TAKES |= {id(one): _Takes(None) for one in (
    bisect.bisect_left, bisect.bisect_right, bisect.insort_left, bisect.insort_right)}  # fmt: skip
_SORT = _Takes(None)
"""Of lists."""


def settled(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any], run: Call) -> Any:
    """``run(args, kwargs)``, which calls ``f``, once for each function that it may be given, None being one of them,
    and each order; NotImplemented where there is nothing to decide.

    Errors raised: TraceError (D2S210) for ``itertools.groupby`` with such a function.
    """
    takes = _TAKES.get(id(f)) or (_SORT if _is_sort(f) else None)
    if takes is None:
        if f is itertools.groupby:
            _require_known_key(session, args, kwargs)
        return NotImplemented
    where: Any = takes.place if takes.place is not None and takes.place < len(args) else takes.name
    function = args[where] if is_a(where, int) else kwargs.get(where)
    if is_a(function, Choice) and any(option is None for option in function.options):
        if takes.none is not None:
            options = tuple(takes.none if option is None else option for option in function.options)
            return run(*_with(args, kwargs, where, Choice(function.selector, options)))
        args = _taken(args, takes)
        return distribute(session, function, lambda option: run(*_with(args, kwargs, where, option)))
    if f is not sorted and takes is not _SORT or not _is_open(kwargs.get("reverse")):
        return NotImplemented
    args, reverse = _taken(args, takes), kwargs["reverse"]
    if is_a(reverse, Choice):
        return distribute(session, reverse, lambda option: run(args, {**kwargs, "reverse": option}))
    paths = [functools.partial(run, args, {**kwargs, "reverse": flag}) for flag in (True, False)]
    flag = truth_of(session, call(operator.index, reverse))
    if not is_a(flag, Staged):
        return paths[not flag]()
    return tracer_cond.cond(session, flag, paths[0], paths[1], NO_NAMES)


def _is_sort(f: Any) -> bool:
    return unasked(f, "__name__") == "sort" and (f is list.sort or type(unasked(f, "__self__")) is list)


def _is_open(reverse: Any) -> bool:
    """Whether only the run knows an order that Python takes: an int, or a tensor that is one."""
    if is_a(reverse, torch.Tensor):
        return not reverse.is_floating_point() and not reverse.is_complex()
    return is_a(reverse, Choice) or (is_a(reverse, Staged) and reverse.kind in ("int", "bool"))


def _with(args: tuple[Any, ...], kwargs: dict[str, Any], where: Any, value: Any) -> tuple[Any, dict[str, Any]]:
    """The arguments with another in a place."""
    if is_a(where, int):
        return (*args[:where], value, *args[where + 1 :]), kwargs
    return args, {**kwargs, where: value}


def _taken(args: tuple[Any, ...], takes: _Takes) -> tuple[Any, ...]:
    """The arguments, with the items of an iterator as a list: each of several calls takes them."""
    place = takes.items
    if place is None or len(args) <= place or not contents.is_iterator(args[place]):
        return args
    return (*args[:place], call(list, args[place]), *args[place + 1 :])


def _require_known_key(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if is_a(args[1] if len(args) > 1 else kwargs.get("key"), Choice):
        raise session.error(
            "the key of itertools.groupby() differs between paths", code="D2S210",
            hint="Group in a loop of your own, or call groupby() on each path.")


__all__ = ["settled"]
