"""``==`` of lists, tuples and dicts that hold what is only known while the Program runs.

Python compares the lengths and then the items, by identity first. A list that grew has its length in the Program.
Objects of classes derived from these, named tuples among them, are compared as what they hold, unless their class says
otherwise.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
from collections import OrderedDict
from typing import Any

import torch

from dy2static.operators.calls import growing
from dy2static.operators.calls.call import call, traced
from dy2static.operators.calls.sequences import StagedRange
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs.if_expr import if_expr
from dy2static.operators.constructs.user_methods import NOT_USERS, operated, says_equal
from dy2static.operators.provenance.identity import identical_tensors
from dy2static.operators.shared.staging import Choice, Session, Staged, distribute
from dy2static.operators.shared.stored import stored_items
from dy2static.operators.values import sequences_in_python
from dy2static.operators.values.attribute import attr
from runtime.errors import TraceError
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.python_state.held import RowKey
from runtime.tracer.values import array, containers, structure
from runtime.tracer.values.heaps import identical

_DEPTH = 1_000
_OPEN = (torch.Tensor, Staged, StagedRange, Choice, structure.Growing, containers.Several, RowKey)


def kind_of(value: Any, method: str = "__eq__") -> Any:
    """Which of list, tuple and dict compares a value by what it holds; None for what says itself how it compares.

    ``method``: that of the operator.
    """
    cls = type(value)
    if cls in _KINDS or not is_a(value, _KINDS):
        return cls if cls in _KINDS else None
    kind: Any = next(one for one in _KINDS if issubclass(cls, one))
    return kind if getattr(cls, method) in (getattr(kind, method), getattr(OrderedDict, method)) else None


_KINDS = (list, tuple, dict)


def is_open(value: Any) -> bool:
    """Whether a tensor, a staged value or a list that grew is inside lists, tuples and dicts."""
    return any(map(_is_open, walk([value], _parts, _DEPTH + 1)))


def _parts(value: Any) -> Any:
    kind = kind_of(value)
    if kind is dict:
        return *dict.keys(value), *dict.values(value)
    return () if kind is None else value if type(value) is kind else stored_items(value)


def _is_open(value: Any) -> bool:
    if is_a(value, _OPEN):
        return True
    if is_a(value, set):
        return any(type(item) is containers.Several for item in value)
    return says_equal(value)


def equal(session: Session, a: Any, b: Any) -> Any:
    """``a == b`` for two of one kind (see ``kind_of``), a plain or staged bool.

    Raises:
        TraceError: D2S253 for lists that grew whose items are tensors.
    """
    if growing.is_growing(a) or growing.is_growing(b):
        return _grown(session, a, b)
    if not is_open(a) and not is_open(b):
        return a == b
    if is_a(a, dict):
        if dict.keys(a) != dict.keys(b) or all(is_a(one, OrderedDict) for one in (a, b)) and [*a] != [*b]:
            return False
        return _all(session, [(value, dict.__getitem__(b, key)) for key, value in dict.items(a)])
    items, others = stored_items(a), stored_items(b)
    return len(items) == len(others) and _all(session, list(zip(items, others)))


def equal_rows(session: Session, a: Any, b: Any) -> Any:
    """``a == b`` for two objects of one class, which lists that grow hold by reference; NOT_USERS where their class
    says itself what is equal."""
    method = getattr(type(a), "__eq__", None)
    if method is object.__eq__:
        return identical(session, a, b)
    generated = getattr(unasked(method, "__code__"), "co_filename", "").startswith("<")
    if not (generated and dataclasses.is_dataclass(type(a))):
        return NOT_USERS
    names = [field.name for field in dataclasses.fields(a) if field.compare]
    first, second = (tuple(attr(one, name) for name in names) for one in (a, b))
    return equal(session, first, second)


def any_equal(session: Session, container: Any, value: Any) -> Any:
    """``value in container`` for a list, tuple or dict among others."""
    found: Any = False
    items = list(container)
    for number, item in enumerate(items):
        same = _same(session, item, value)
        if same is True:
            return True
        if same is not False:
            found = same if found is False else session.scalar("or_", found, same)
            rest = items[number + 1 :]
            if rest and not all(map(_is_quiet, (*rest, value))):  # Python asks no more once one is equal
                return if_expr(found, lambda: True, functools.partial(any_equal, session, rest, value))
    return found


def may_be_sequence(value: Any) -> bool:
    """Whether a path chose which of several values it is, and one of them is a list, tuple or dict."""
    return is_a(value, Choice) and any(kind_of(one) is not None for one in value.options)


def _all(session: Session, pairs: list[tuple[Any, Any]]) -> Any:
    found: Any = True
    for number, (one, other) in enumerate(pairs):
        same = _same(session, one, other)
        if same is False:
            return False
        if same is not True:
            found = same if found is True else session.scalar("and_", found, same)
            rest = pairs[number + 1 :]
            if not all(_is_quiet(one) and _is_quiet(other) for one, other in rest):  # nor once two are not
                return if_expr(found, functools.partial(_all, session, rest), lambda: False)
    return found


def _is_quiet(value: Any) -> bool:
    """Whether comparing it runs no user's code and cannot raise."""
    around: list[int] = []
    known: set[int] = set()

    def is_quiet(value: Any) -> bool:
        if is_a(value, torch.Tensor):
            return value.dim() == 0 and not value.is_sparse
        if kind_of(value) is not None:
            if id(value) in known:
                return True
            if id(value) in around or len(around) > _DEPTH:
                return False
            around.append(id(value))
            found = all(map(is_quiet, _parts(value)))
            around.pop()
            known.add(id(value))  # is asked only if all were
            return found
        return not says_equal(value)

    return is_quiet(value)


def _same(session: Session, one: Any, other: Any) -> Any:
    """Whether two items are equal."""
    if one is other:
        return True
    row = identical(session, one, other) if session.containers.has_rows else None
    if row is not None and row is not False:
        rest = _same_values(session, one, other) if row is not True else True
        return True if rest is True else row if rest is False else session.scalar("or_", row, rest)
    return _same_values(session, one, other)


def _same_values(session: Session, one: Any, other: Any) -> Any:
    first, second = containers.opened(one), containers.opened(other)
    if first is not one:
        return distribute(session, first, lambda option: _same(session, option, other))
    if second is not other:
        return distribute(session, second, lambda option: _same(session, one, option))
    if is_a(one, torch.Tensor) and is_a(other, torch.Tensor):
        return equal_tensors(session, one, other)
    if may_be_sequence(one):
        return distribute(session, one, lambda option: _same(session, option, option if other is one else other))
    if may_be_sequence(other):
        return distribute(session, other, lambda option: _same(session, one, option))
    if kind_of(one) is not None and kind_of(one) is kind_of(other):
        return equal(session, one, other)
    if session.containers.has_rows and type(one) is type(other) and structure.row_of(one) is not None:
        found = equal_rows(session, one, other)
        if found is not NOT_USERS:
            return found
    users = operated(session, one, "==", other)
    return truth_of(session, one == other if users is NOT_USERS else users)


def equal_tensors(session: Session, one: torch.Tensor, other: torch.Tensor) -> Any:
    """Whether two items are equal: one object is, whatever its elements are."""
    try:
        same = identical_tensors(session, one, other)
    except TraceError as error:
        if error.code != "D2S264" or session.scope.parent is None:
            raise
        return _equal_anyway(session, one, other)
    return if_expr(same, lambda: True, lambda: truth_of(session, one == other))


def _equal_anyway(session: Session, one: torch.Tensor, other: torch.Tensor) -> Any:
    """Whether two items are equal of which nobody knows whether they are one object: by their element, of which it
    makes no difference. A run ends where it would: at several elements, or NaN. (A heap compares its last parts only
    where all before are equal, which is never so where one of them counts.)"""
    single = call(operator.eq, call(one.numel), 1)
    is_told = if_expr(single, lambda: truth_of(session, (one == one) & (other == other)), lambda: False)
    session.emit("assert", [session.operand(is_told)], attrs={
        "exception": "RuntimeError",
        "message": "two tensors are compared as items: they may be one object, which is not known, and are then equal",
    })  # fmt: skip
    return truth_of(session, one == other)


def _grown(session: Session, a: Any, b: Any) -> Any:
    """One of the lists grew: their lengths are compared first, then, where those agree, the items."""
    if a is b:
        return True
    grown, other = (a, b) if growing.is_growing(a) else (b, a)
    if not growing.is_growing(other) and not stored_items(other):  # no item is looked at
        return array.length(session, grown) == 0
    if _has_tensors(array.content(grown).item) or growing.is_growing(other) and _has_tensors(array.content(other).item):
        raise growing.refusal(session, "'=='")
    if growing.is_growing(other):
        return traced(session, sequences_in_python.are_equal, (a, b), {})

    def items() -> Any:
        return _all(session, [(array.get(session, grown, index), item) for index, item in enumerate(other)])

    return if_expr(array.length(session, grown) == len(other), items, lambda: False)


def _has_tensors(item: structure.Structure) -> bool:
    """Whether items are or hold tensors: Python asks first whether they are the same object."""
    if is_a(item, (structure.Sequence, structure.Fields)):
        return any(_has_tensors(inner) for inner in item.items)
    if is_a(item, structure.Options):
        return any(_has_tensors(option) for option in item.options)
    return not is_a(item, (structure.Number, structure.Known))
