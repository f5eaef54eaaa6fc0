"""The functions of ``dataclasses`` inside a trace: for an instance that is one of several, done to each."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from typing import Any

from dy2static.operators.builtins import copying
from dy2static.operators.calls import dataclass_methods, growing
from dy2static.operators.provenance.provenance import memo, note_attribute_read
from dy2static.operators.shared.staging import Choice, Session, distribute
from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.ambient.unasked import has_unasked
from runtime.tracer.values import containers, tables
from runtime.tracer.values.structure import row_of


def _fields(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _each(session, dataclasses.fields, args, kwargs)


def _is_dataclass(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _each(session, dataclasses.is_dataclass, args, kwargs)


def _each(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    first, *rest = (*args, *kwargs.values())
    if is_a(first, Choice):
        return distribute(session, first, lambda option: function(option, *rest))
    return function(*args, **kwargs)


def _replace(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    value, *rest = args
    if is_a(value, Choice):
        return distribute(session, value, lambda option: _replace(session, (option, *rest), kwargs))
    given = tables.unbound(session, value)
    with dataclass_methods.converted_parts(session, type(given).__init__, (given,)):
        made = dataclasses.replace(given, *rest, **kwargs)
    memo(session).created[id(made)] = made
    if objects.is_record(made):
        session.journal.note_made(made)
    for name, item in objects.attributes(value).items() if row_of(value) is None else ():
        note_attribute_read(session, value, name, item)
    return made


def _asdict(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _taken_apart(session, dataclasses.asdict, args, kwargs)


def _astuple(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return _taken_apart(session, dataclasses.astuple, args, kwargs)


def _taken_apart(session: Session, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``asdict`` and ``astuple``, whose own code knows no value that is one of several."""
    given = dict(zip(("obj",), args)) | kwargs
    value = given.pop("obj")
    if is_a(value, Choice):
        return distribute(session, value, lambda option: _taken_apart(session, function, (option,), given))
    if not dataclasses.is_dataclass(type(value)):
        return function(value, **given)  # raises
    make = given.get("dict_factory", dict) if function is dataclasses.asdict else given.get("tuple_factory", tuple)

    def inner(item: Any) -> Any:
        item = containers.opened(item)
        if is_a(item, Choice):
            return distribute(session, item, inner)
        if dataclasses.is_dataclass(type(item)):
            names = [field.name for field in dataclasses.fields(item)]
            items = [getattr(tables.unbound(session, item), name) for name in names]
            for name, one in zip(names, items) if row_of(item) is None else ():
                note_attribute_read(session, item, name, one)
            parts = [inner(one) for one in items]
            return make(list(zip(names, parts)) if function is dataclasses.asdict else parts)
        if is_a(item, tuple) and has_unasked(item, "_fields"):
            return type(item)(*map(inner, item))
        if is_a(item, (list, tuple)) and not growing.is_growing(item):
            return type(item)(map(inner, item))
        if is_a(item, dict):
            pairs = [(inner(key), inner(one)) for key, one in item.items()]
            return type(item)(item.default_factory, pairs) if is_a(item, defaultdict) else type(item)(pairs)
        return copying.deepcopied(session, item)

    return inner(value)


HANDLERS: list[tuple[Any, Any]] = [
    (dataclasses.fields, _fields),
    (dataclasses.is_dataclass, _is_dataclass),
    (dataclasses.replace, _replace),
    (dataclasses.asdict, _asdict),
    (dataclasses.astuple, _astuple),
]
