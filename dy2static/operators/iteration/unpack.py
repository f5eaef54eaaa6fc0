"""Unpacking, stars, and iteration by Python itself: what asks a container for a length that must be known.

    a, b = xs             ->   a, b = unpack(xs, 2)
    a, *b, c = xs         ->   a, b, c = unpack(xs, 1, 1)
    f(*xs), (*xs,)        ->   call(f, *star(xs)), (*star_of_tuple(xs),)
    f(**d)                ->   call(f, **keywords(d))
    lambda: [v for v in xs if v]    ->   lambda: [v for v in each(xs) if tested(v)]
    for v in xs: yield v       ->   for v in one_by_one(xs): yield v
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from dy2static.operators.calls import boundary, growing
from dy2static.operators.calls.call import KEYWORDS, Broken, PerhapsUnfit, Unfit, call, is_mapping
from dy2static.operators.calls.sequences import StagedSequence, spelled
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import generator_uses
from dy2static.operators.iteration.generator_uses import Asks
from dy2static.operators.iteration.one_of_several import as_one_list, differ_in_length
from dy2static.operators.iteration.traced_for import as_list, iterate
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, Staged, active, distribute
from runtime.kinds import is_a
from runtime.tracer.ambient.state import current
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.numbers.scalars import StagedBool, StagedFloat, StagedInt
from runtime.tracer.recording import reads
from runtime.tracer.values import array, containers
from runtime.tracer.values.containers import one_list, opened


def unpack(value: Any, before: int, after: int | None = None) -> Any:
    """What ``before`` targets, or those before and ``after`` a starred one, are given: as many items as targets.

    >>> unpack([1, 2, 3, 4], 1, 1)
    (1, [2, 3], 4)
    """
    session = active()
    if session is not None:
        value = _rows(session, opened(value))
        if is_a(value, StagedSequence):
            value = as_list(session, value)
        if growing.is_growing(value):
            return _grown(session, array.copy(value), before, after)
        if differ_in_length(value):
            return distribute(session, value, lambda option: taken_apart(option, before, after))
        if generator_uses.gives_items(session, value):
            return _taken_one_by_one(session, value, before, after)
    if after is None:
        return value
    items = _all_of(value)
    if len(items) < before + after:
        raise ValueError(_too_few(before, after, len(items)))
    end = len(items) - after
    return (*items[:before], items[before:end], *items[end:])


def _taken_one_by_one(session: Session, value: Any, before: int, after: int | None) -> Any:
    """Items that a user's methods give: no more are asked for than Python asks for."""
    source = generator_uses.source_of(session, value)
    if source is not None:
        return unpack(generator_uses.collected(session, source), before, after)
    items = iterate(session, value)
    first = list(itertools.islice(items, before + (after is None)))
    if after is None or len(first) < before:
        return unpack(first, before, after)
    return unpack([*first, *list(iterate(session, items, hinted=True))], before, after)


@acts_for_user
def _all_of(value: Any) -> list[Any]:
    (*items,) = value
    return items


def taken_apart(value: Any, before: int, after: int | None) -> tuple[Any, ...]:
    """The items of one of several, as a tuple: what the others give is joined with it item by item."""
    found = unpack(value, before, after)
    if after is not None or (is_a(found, tuple) and len(found) == before):
        return tuple(found)
    if not is_a(found, Iterable):
        raise TypeError(f"cannot unpack non-iterable {type(found).__name__} object")
    (*items,) = found
    if len(items) < before:
        raise ValueError(_too_few(before, None, len(items)))
    if len(items) > before:
        raise ValueError(_too_many(current(), before, len(items)))
    return tuple(items)


def _rows(session: Session, value: Any) -> Any:
    """The rows of a tensor of which only the run knows how many it has, the characters of text; others themselves."""
    is_open = is_a(value, torch.Tensor) and reads.is_open_along(session, value, 0)
    return call(torch.unbind, value) if is_open else spelled(value)


def _grown(session: Session, items: list[Any], before: int, after: int | None) -> tuple[Any, ...]:
    length = array.length(session, items)
    for short in range(before + (after or 0)):
        _raise_where(session, length == short, lambda short=short: _too_few(before, after, short))  # type: ignore[misc]
    if after is None:
        _raise_where(session, length > before, lambda: _too_many(session, before, length))
    first = [array.get(session, items, index) for index in range(before)]
    if after is None:
        return tuple(first)
    rest = array.slice_(session, items, slice(before, length - after))
    return (*first, rest, *(array.get(session, items, index - after) for index in range(after)))


def _raise_where(session: Session, flag: Any, message: Callable[[], Any]) -> None:
    def fail() -> None:
        raise ValueError(message())

    tracer_cond.cond(session, flag, fail, lambda: None, NO_NAMES)


def _too_few(before: int, after: int | None, found: int) -> str:
    expected = f"{before}" if after is None else f"at least {before + after}"
    return f"not enough values to unpack (expected {expected}, got {found})"


def _too_many(session: Session, expected: int, found: Any) -> Any:
    if sys.version_info < (3, 14):
        return f"too many values to unpack (expected {expected})"
    return f"too many values to unpack (expected {expected}, got " + session.scalar("str", found) + ")"


def star(value: Any) -> Any:
    """What stands behind a star in a call.

    Items are taken here, before the arguments to the right are worked out; what has none is for the call to say.
    """
    if is_a(value, Choice) and not all(map(_may_have_items, value.options)):
        value = distribute(current(), value, lambda option: _taken(option) if _may_have_items(option) else option,
                           itself=True)  # fmt: skip
        if is_a(value, Choice):
            return (PerhapsUnfit(value, _may_have_items, star_of_tuple),)
    return star_of_tuple(value) if _may_have_items(value) else (Unfit(value),)


def _taken(value: Any) -> Any:
    items = star_of_tuple(value)
    return items if growing.is_growing(items) else tuple(items)


def _may_have_items(value: Any) -> bool:
    cls = type(value)
    return cls not in _NO_ITEMS and (hasattr(cls, "__iter__") or hasattr(cls, "__getitem__"))


_NO_ITEMS = (StagedInt, StagedFloat, StagedBool)


def _require_items(value: Any) -> None:
    if type(value) in _NO_ITEMS:
        raise TypeError(f"Value after * must be an iterable, not {value.kind}")


def star_of_set(value: Any) -> Any:
    """The same in a display of a set, which asks nobody how many items there are."""
    return star_of_tuple(value, hinted=False)


def star_of_tuple(value: Any, hinted: bool = True) -> Any:
    """What stands behind a star in a display of a tuple.

    A list whose length only the run knows gives what stands for its items (see ``starred_call``).
    """
    session = active()
    if session is None:
        return value
    _require_items(value)
    value = _rows(session, generator_uses.listed(session, opened(value), Asks.ITSELF if hinted else Asks.NOBODY))
    if is_a(value, StagedSequence):
        value = as_list(session, value)
    if differ_in_length(value):
        value = as_one_list(session, value)
        if containers.several(value) is not None:
            raise session.error(
                "what stands behind a star is one of several lists of several lengths, which hold lists, dicts or "
                "values of several kinds", code="D2S254",
                hint="Pass the list itself, or give every path as many items.")
    if growing.is_growing(value):
        return array.copy(value)
    return _items_of(value)


def _items_of(value: Any) -> Any:
    """The items of one of several of one length as a list: Python asks what it takes apart how many there are."""
    options: Any = value
    return [item for item in options] if is_a(value, Choice) else value  # noqa: C416  # list() asks as well


def keywords(value: Any) -> Any:
    """What stands behind two stars in a call: a dict is taken apart by ``call``, once for every dict that it may be."""
    try:
        return _keywords(value)
    except KeyError as error:
        return {f"{KEYWORDS}{next(_numbers)}": Broken(error)}


def _keywords(value: Any) -> Any:
    session = active()
    if session is None:
        return value if hasattr(value, "keys") else {f"{KEYWORDS}{next(_numbers)}": Unfit(value)}
    value = opened(value)
    asked_methods.require_items(session, "'**'", [value], is_converted=False)
    note_answers(session, value)
    if not is_a(value, Choice) and not is_mapping(value):
        return {f"{KEYWORDS}{next(_numbers)}": Unfit(value)}
    if is_a(value, Choice):  # what they hold now: an argument to the right may change it
        value = distribute(session, value, lambda option: dict(option) if type(option) is dict else option, itself=True)
    elif type(value) is dict:
        value = dict(value)
    else:
        value = user_methods.mapping_of(value)
    return {f"{KEYWORDS}{next(_numbers)}": value} if is_a(value, Choice) or type(value) is dict else value


_numbers = itertools.count()


def star_of_list(value: Any) -> Any:
    """The same in a display of a list, which has a length that only the run knows where the value has."""
    session = active()
    if session is None:
        return value
    _require_items(value)
    value = _rows(session, generator_uses.listed(session, opened(value), Asks.ITSELF))
    if is_a(value, StagedSequence):
        value = as_list(session, value)
    if not differ_in_length(value):
        return _items_of(value)
    found = one_list(session, call(list, value))
    return as_one_list(session, value) if is_a(found, Choice) else found


def one_by_one(iterable: Any, unpacks: bool = False) -> Any:
    """What a loop around a ``yield``, or a ``yield from``, goes over where the generator is taken item by item."""
    session = active()
    if session is None:
        return iterable
    if growing.is_growing(iterable) or containers.several(iterable) is not None:
        raise session.error(
            "a generator goes over a container of which only the run knows what it holds, and its items are taken one "
            "by one: by next(), zip(), unpacking, or code that is not converted", code="D2S212",
            hint="Let one for loop, list(), sum() or the like take all its items.")
    found = iterate(session, iterable)
    return _to_unpack(session, found) if unpacks else found


def _to_unpack(session: Session, items: Iterable[Any]) -> Iterator[Any]:
    """Items that Python unpacks itself."""
    for item in items:
        note_answers(session, item)
        yield item


def each(iterable: Any, unpacks: bool = False) -> Any:
    """What Python itself iterates over, in a comprehension that stays one; ``unpacks``: and unpacks each item."""
    session = active()
    if session is not None:
        boundary.require_none(session, "a comprehension inside a lambda, or with :=,", [iterable])
        found = iterate(session, opened(iterable))
        return _to_unpack(session, found) if unpacks else found
    return iterable


def tested(value: Any) -> Any:
    """A condition of such a comprehension, which must be known now."""
    session = active()
    if session is not None:
        value = truth_of(session, value)
        if is_a(value, Staged):
            raise session.error(
                "a condition of a comprehension inside a lambda, or with :=, is only known while the Program runs",
                hint="Make the lambda a function (def).", code="D2S212")
    return value
