"""Who hears the warnings and log records of a Program, and that the trace sees nothing of what they make of them.

    logger.addHandler(handler)     a store takes place when a Program has run, a record is given while it runs
    logger.warning("w")
    handler.records                what a user's handler does to a record is not traced, and what it holds is read

The converter refuses a record where what hears it is changed by then (``changed``). At the end of a trace it is asked
whether the trace reads or changes what users' handlers, filters and ``showwarning`` hold (``require_unseen``).
"""

from __future__ import annotations

import logging
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.ambient.unasked import module_name
from runtime.tracer.ambient.walks import walk
from runtime.tracer.recording.session import Session

_DEEP = 5
_NOT_USERS = sys.stdlib_module_names | {"_pytest"}
"""Packages whose handlers look at nothing but the record that they are given: pytest's keep it, with its arguments."""


def changed(session: Session, hearers: Iterable[Any]) -> bool:
    """Whether any of these, or what it holds, is another at this place of the trace than before the call."""
    ids = set(map(id, hearers))
    return any(
        id(place.owner) in ids and not _is_same(place.get(), before)
        for place, before in session.journal.frames[0].items()
    )


def _is_same(now: Any, before: Any) -> bool:
    if type(now) is type(before) is list:
        return len(now) == len(before) and all(one is other for one, other in zip(now, before))
    return now is before


def of_logger(logger: logging.Logger) -> Iterator[Any]:
    """What decides who hears a logger's records, and who hears them."""
    one: logging.Logger | None = logger
    yield logger.manager
    while one is not None:
        yield from (one, one.handlers, one.filters)
        yield from one.filters
        for handler in one.handlers:
            yield from (handler, handler.filters, handler.formatter)
            yield from handler.filters
        one = one.parent


def of_warnings() -> Iterator[Any]:
    """The same for warnings."""
    yield from (warnings, warnings.filters, warnings.showwarning, warnings.formatwarning)


def require_unseen(session: Session) -> None:
    """Refuse a function that reads or changes what users' code does with its warnings and records.

    Raises:
        TraceError: D2S268.
    """
    told: dict[str, Any] = {}
    for op in session.program.block.walk():
        if op.name in ("log", "warn"):
            told.setdefault(op.attrs.get("logger", ""), op)
    for name, op in told.items():
        log = op.name == "log"
        users = set(map(id, _held(of_logger(logging.getLogger(name)) if log else of_warnings())))
        if session.guards.reads_any(users) or any(id(place.owner) in users for place in session.journal.frames[0]):
            what = f"a record of logger '{logging.getLogger(name).name}'" if log else "a warning"
            raise session.error(
                f"{what} in a function that reads or changes what a handler, a filter or showwarning of yours holds, "
                "which may do so as well", code="D2S268", location=op.location,
                hint="Read or change it outside, around the call of the converted function.")


def _held(hearers: Iterable[Any]) -> Iterator[Any]:
    """What code of users' that hears can reach: all that their handlers hold, and what their functions name."""
    return walk(filter(_is_users, hearers), _parts, _DEEP)


def _is_users(value: Any) -> bool:
    home = value.__module__ if is_a(value, (type, types.FunctionType)) else module_name(type(value))
    return str(home).partition(".")[0] not in _NOT_USERS


def _parts(value: Any) -> Iterable[Any]:
    if is_a(value, types.FunctionType):
        named = (value.__globals__.get(name) for name in value.__code__.co_names)
        cells = (cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType())
        return [one for one in (*named, *cells) if not is_a(one, types.ModuleType)]
    if is_a(value, type):
        return [one for one in vars(value).values() if is_a(one, types.FunctionType)]
    if is_a(value, dict):
        return list(dict.values(value))
    if is_a(value, (list, tuple, set)):
        return value
    classes = (cls for cls in type(value).__mro__ if _is_users(cls))
    return [*classes, *objects.attributes(value).values()]


__all__ = ["changed", "of_logger", "of_warnings", "require_unseen"]
