"""``copy.copy`` and ``copy.deepcopy`` inside a trace: what they make is new, what they copied is guarded."""

from __future__ import annotations

import copy
from typing import Any

from dy2static.operators.constructs import user_methods
from dy2static.operators.provenance import tensor_copies
from dy2static.operators.provenance.provenance import memo, note_attribute_read
from dy2static.operators.shared.staging import Choice, Session, Staged, distribute
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.values import tables


def _copy(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    (value,) = (*args, *kwargs.values())
    if is_a(value, Choice):
        return distribute(session, value, lambda option: _copy(session, (option,), {}))
    if is_a(value, Staged):
        return value
    if torch_internals.is_fake(value):
        return tensor_copies.shallow(session, value)
    value = tables.unbound(session, value)
    own = user_methods.called(session, value, "__copy__")
    if own is not user_methods.NOT_USERS:
        return own
    made = copy.copy(value)
    _note(session, value, made)
    return made


def _deepcopy(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    given = dict(zip(("x", "memo"), args)) | kwargs
    value = tables.unbound(session, given["x"])
    if is_a(value, Choice):
        return distribute(session, value, lambda option: _deepcopy(session, (option,), {}))
    if is_a(value, Staged):
        return value
    copies: Any = given.get("memo")
    own = user_methods.called(session, value, "__deepcopy__", {}) if copies is None else user_methods.NOT_USERS
    if own is not user_methods.NOT_USERS:
        return own
    if copies is None:
        copies = {}
    else:
        session.journal.note_content(copies)
    with tensor_copies.copying(session, value):
        made = copy.deepcopy(value, copies)
    for original in [value, *copies.get(id(copies), ())]:
        if id(original) in copies:
            _note(session, original, copies[id(original)])
    return made


def deepcopied(session: Session, value: Any) -> Any:
    """``copy.deepcopy(value)``."""
    return _deepcopy(session, (value,), {})


def _note(session: Session, original: Any, made: Any) -> None:
    """``made`` is of this trace; it holds what ``original`` held."""
    if made is original or is_a(original, type):
        return
    memo(session).created[id(made)] = made
    session.journal.note_copied(original, made)
    if objects.is_record(made) or session.holds_by_reference(type(made)):
        session.journal.note_made(made)
    for name, value in objects.attributes(original).items():
        note_attribute_read(session, original, name, value)


HANDLERS: list[tuple[Any, Any]] = [(copy.copy, _copy), (copy.deepcopy, _deepcopy)]
