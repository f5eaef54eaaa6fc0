"""What builtins make of a generator: its items as a list, its first item, or another generator around it.

    any(v > 0 for v in x)       stops the generator at the first item that is true
    map(f, g), filter(f, g)     lazy, as the generator itself
"""

from __future__ import annotations

import enum
import types
import weakref
from collections.abc import Callable, Generator, Iterator
from typing import Any

from dy2static.operators.calls import growing
from dy2static.operators.calls.sequences import StagedSequence
from dy2static.operators.calls.truth import truth_of
from dy2static.operators.constructs import user_methods
from dy2static.operators.iteration import length_hint
from dy2static.operators.iteration.generator import Give, generator_of, is_fresh, is_unheld, remember
from dy2static.operators.iteration.one_of_several import items_chosen
from dy2static.operators.iteration.traced_for import as_list, by_place, drive, iterate
from dy2static.operators.provenance.provenance import note_content_write
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.load import settle
from dy2static.operators.shared.staging import NO_NAMES, Choice, LocalNames, Session, Staged, Undefined, python_method
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.values.containers import opened


def is_alone(session: Session, value: Any) -> bool:
    """Whether an argument of a call is a fresh generator that nothing but the call has."""
    return is_fresh(session, value) and is_unheld(session, value)


def is_shared(session: Session, value: Any) -> bool:
    """Whether an argument of a call is an iterator that something else may take items from as well."""
    if not hasattr(type(value), "__next__"):
        return False
    is_fresh(session, value)  # refuses one that is being looped over
    return not is_unheld(session, value)


def source_of(session: Session, value: Any, whole: bool = True) -> Any:
    """The generator to be driven for an argument of a call, None if that is something else.

    ``whole``: all its items are taken, so that others may have it as well.
    """
    if is_fresh(session, value):
        return value if is_unheld(session, value) or whole else None
    return generator_of(session, value)


class _Cells:
    """Values that a consumer keeps from item to item."""

    def __init__(self, *values: Any) -> None:
        self.values = list(values)
        self.names = LocalNames(("",) * len(values), lambda: tuple(self.values), self._set)

    def _set(self, values: tuple[Any, ...]) -> None:
        self.values[:] = values


def append(session: Session, items: list[Any], item: Any) -> None:
    """``items.append(item)``, on whatever path the trace is."""
    if growing.is_growing(items):
        growing.method(session, items, "append", (item,), {})
    else:
        note_content_write(session, items)
        items.append(item)


def collected(session: Session, source: Any) -> list[Any]:
    """``list(source)`` for a fresh generator; its length may be staged."""
    items: list[Any] = []
    drive(session, source, lambda item: append(session, items, item), None, LocalNames((), tuple, lambda values: None))
    return items


class Asks(enum.Enum):
    """Whom what takes items asks how many there are."""

    NOBODY = enum.auto()
    ITSELF = enum.auto()
    """What has the items: ``list(w)``, ``[*w]``, ``f(*w)``, ``items.extend(w)``."""
    ITERATOR = enum.auto()
    """What ``iter`` gave, which it makes a list of: ``text.join(w)``, ``items[1:] = w``."""


def listed(session: Session, value: Any, asks: Asks = Asks.NOBODY) -> Any:
    """The items of a fresh generator as a list, or one of several lists, or those that a user's methods give; anything
    else as it is."""
    value = items_chosen(session, value)
    source = source_of(session, value)
    if source is not None:
        if asks is Asks.ITSELF:
            length_hint.ask(session, value)
        return opened(collected(session, source))
    if is_a(value, StagedSequence):
        return as_list(session, value)
    if not gives_items(session, value):
        return value
    items = iterate(session, value, hinted=asks is Asks.ITSELF)
    return list(iterate(session, items, hinted=True) if asks is Asks.ITERATOR else items)


def mapped_items(session: Session, value: Any) -> Any:
    """What a dict is made of, or updated by, where a user's methods give it: a dict, or a list of pairs; anything else
    as it is."""
    value = value if growing.is_growing(value) else user_methods.mapping_of(value)
    if is_a(value, Choice) or hasattr(type(value), "keys") or growing.is_growing(value):
        return value
    value = listed(session, value)
    if type(value) in (list, tuple) and not growing.is_growing(value):
        if any(gives_items(session, one) for one in value):
            return [listed(session, one, Asks.ITERATOR) for one in value]
    return value


def gives_items(session: Session, value: Any) -> bool:
    """Whether a user's class says what the items are, in code that may decide on tensors."""
    method = python_method(value, "__iter__")
    if method is None:
        if by_place(value) is not None:
            return True
        asked_methods.require_items(session, "what takes the items of an object", [value])
    return method is not None and (user_methods.is_users(method) or user_methods.holds_grown(session, value))


def folded(session: Session, source: Any, start: Any, step: Callable[[Any, Any], Any]) -> Any:
    """``step(... step(start, first item) ..., last item)``."""
    cells = _Cells(start)

    def body(item: Any) -> None:
        cells.values[0] = step(cells.values[0], item)

    drive(session, source, body, None, cells.names)
    return cells.values[0]


def any_all(session: Session, source: Any, stop: bool) -> Any:
    """``any`` (``stop`` is True) or ``all`` of a fresh generator: no further item once the answer is known."""
    cells = _Cells(not stop)

    def body(item: Any) -> None:
        cells.values[0] = truth_of(session, item)

    def test() -> Any:
        (flag,) = cells.values
        if not is_a(flag, Staged):
            return flag is not stop
        return session.scalar("not_", flag) if stop else flag

    drive(session, source, body, test, cells.names)
    return cells.values[0]


def first(session: Session, source: Any, *default: Any) -> Any:
    """``next(source)`` or ``next(source, default)`` for a fresh generator that nothing takes another item from."""
    absent = Undefined("")
    cells = _Cells(absent, True)

    def body(item: Any) -> None:
        cells.values[:] = item, False

    returned = drive(session, source, body, lambda: cells.values[1], cells.names)
    value, missing = cells.values
    if returned is not None and not default and missing is not False:
        if is_a(missing, Staged) or returned[1] is not session.scope:
            raise session.error(
                "next() of a generator that returns a value, and only the run knows whether it has an item first",
                hint="Give next() a default, or take the items with a for loop.", code="D2S266")

    def found() -> Any:
        return settle(session, value, Undefined, "StopIteration", None) if is_a(value, Choice) else value

    if is_a(missing, Staged) and default:
        return tracer_cond.cond(session, missing, lambda: default[0], found, NO_NAMES)
    if not is_a(value, Undefined):
        return found()
    if default:
        return default[0]
    raise StopIteration(*(returned[:1] if returned is not None else ()))


def enumerated(session: Session, source: Any, start: Any) -> Generator[Any, None, None]:
    """``enumerate(source, start)``."""

    def push(give: Give) -> None:
        cells = _Cells(start, True)

        def body(item: Any) -> None:
            position = cells.values[0]
            cells.values[0] = position + 1
            cells.values[1] = _not(session, give((position, item)))

        drive(session, source, body, lambda: cells.values[1], cells.names)

    return _made(session, lambda: enumerate(iterate(session, source), start), push)


def mapped(session: Session, function: Callable[[Any], Any], source: Any) -> Generator[Any, None, None]:
    """``map(function, source)``."""

    def push(give: Give) -> None:
        cells = _Cells(True)

        def body(item: Any) -> None:
            cells.values[0] = _not(session, give(function(item)))

        drive(session, source, body, lambda: cells.values[0], cells.names)

    return _standing_for(map, _made(session, lambda: map(function, iterate(session, source)), push))


def filtered(session: Session, function: Callable[[Any], Any], source: Any) -> Generator[Any, None, None]:
    """``filter(function, source)``."""

    def push(give: Give) -> None:
        cells = _Cells(True)

        def body(item: Any) -> None:
            def keep() -> None:
                cells.values[0] = _not(session, give(item))

            flag = truth_of(session, function(item))
            if is_a(flag, Staged):
                tracer_cond.cond(session, flag, keep, lambda: None, cells.names)
            elif flag:
                keep()

        drive(session, source, body, lambda: cells.values[0], cells.names)

    def pull() -> Iterator[Any]:
        return filter(_plainly(session, function), iterate(session, source))

    return _standing_for(filter, _made(session, pull, push))


_KINDS: weakref.WeakKeyDictionary[Generator[Any, None, None], type] = weakref.WeakKeyDictionary()
"""What eager has in place of a generator."""


def _standing_for(kind: type, made: Generator[Any, None, None]) -> Generator[Any, None, None]:
    _KINDS[made] = kind
    return made


def kind_of(generator: Generator[Any, None, None]) -> type:
    """The class of what eager has in its place."""
    return _KINDS.get(generator, types.GeneratorType)


def _not(session: Session, flag: Any) -> Any:
    return session.scalar("not_", flag) if is_a(flag, Staged) else not flag


def _plainly(session: Session, function: Callable[[Any], Any]) -> Callable[[Any], bool]:
    """The truth of what a function gives, which must be known now."""
    return lambda item: bool(truth_of(session, function(item)))


def _made(session: Session, pull: Callable[[], Iterator[Any]], push: Callable[[Give], None]) -> Any:
    def items() -> Generator[Any, None, None]:
        yield from pull()

    made = items()
    remember(session, made, push)
    return made


__all__ = [
    "any_all", "append", "collected", "enumerated", "filtered", "first", "folded", "is_alone", "listed", "mapped",
]  # fmt: skip
