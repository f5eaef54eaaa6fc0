"""Items of a dict under a number or text that only the run knows: one of those that are there, or none."""

from __future__ import annotations

import enum
import numbers
import types
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import numpy
import torch

from dy2static.operators.calls.call import call
from dy2static.operators.constructs.user_methods import is_users
from dy2static.operators.provenance import keyed_keys
from dy2static.operators.provenance.provenance import CONTAINERS
from dy2static.operators.shared.staging import NO_NAMES, Choice, Session, Staged, python_method
from runtime.kinds import is_a
from runtime.tracer.control import cond as tracer_cond
from runtime.tracer.numbers.staged_size import StagedSize
from runtime.tracer.python_state.held import held_in

_AT_MOST = 256
Read = Callable[[Session, Any, Any], Any]


def item(session: Session, obj: dict[Any, Any], key: Staged, read: Read) -> Any:
    """``obj[key]``; ``read`` reads the item of a plain key.

    Raises:
        TraceError: D2S265, a key is none of Python's own kinds, or the dict would get the key.
    """
    missing = python_method(obj, "__missing__")
    if missing is not None:
        return _chosen(session, obj, key, read, lambda: call(missing, obj, key))
    if is_a(obj, defaultdict) and obj.default_factory is not None:
        keyed_keys.become(session, obj, key)
        raise session.error(
            "whether a number becomes a key of a defaultdict is only known while the Program runs", code="D2S265",
            hint="Use get(), or add the keys before.")
    if is_a(obj, Counter):
        return _chosen(session, obj, key, read, lambda: 0)

    def fail() -> Any:
        raise KeyError(key)

    return _chosen(session, obj, key, read, fail)


def get(session: Session, obj: dict[Any, Any], key: Staged, default: Any, read: Read) -> Any:
    """``obj.get(key, default)``."""
    return _chosen(session, obj, key, read, lambda: default)


def _chosen(session: Session, obj: dict[Any, Any], key: Staged, read: Read, other: Callable[[], Any]) -> Any:
    keys = _like(session, obj, key)
    place: Any = len(keys)
    for position, one in enumerate(keys):
        place = session.scalar("select", session.scalar("eq", key, one), position, place)
    if not keys:
        return other()
    held = [dict.__getitem__(obj, one) for one in keys]
    if all(is_a(value, CONTAINERS) for value in held):  # they stay themselves, so that they can be changed
        ended: list[Any] = []

        def without() -> Any:
            ended.append(other())
            return None

        tracer_cond.cond(session, place < len(keys), lambda: None, without, NO_NAMES)
        if not ended:  # there is no other item: it raises
            return Choice(place, tuple(read(session, obj, one) for one in keys))
        if is_a(ended[0], CONTAINERS):
            return Choice(place, (*(read(session, obj, one) for one in keys), ended[0]))
    paths: list[Callable[[], Any]] = [_path(session, obj, one, read) for one in keys]
    return tracer_cond.switch(session, place, [*paths, other], NO_NAMES)


def _path(session: Session, obj: Any, key: Any, read: Read) -> Callable[[], Any]:
    return lambda: read(session, obj, key)


def _like(session: Session, obj: dict[Any, Any], key: Staged) -> list[Any]:
    """The keys that may be equal to a number or text.

    Raises:
        TraceError: D2S265.
    """
    if held_in(obj) is not None or dict.__len__(obj) > _AT_MOST:
        raise refusal(session, "a key of", obj)
    if key.kind == "str":
        return _texts(session, obj)
    found = []
    for one in dict.__iter__(obj):
        if type(one) in (int, float, bool) or is_a(one, enum.IntEnum):
            found.append(one)
        elif not is_a(one, _NO_NUMBERS) and is_users(python_method(one, "__eq__")) or (
                is_a(one, (numbers.Number, numpy.generic))):  # fmt: skip
            raise refusal(session, "a key of", obj)
    return found


def _texts(session: Session, obj: dict[Any, Any]) -> list[str]:
    """The keys that are text. Another one is equal to text if its class says so."""
    for one in dict.__iter__(obj):
        if type(one) is not str and (is_a(one, numpy.generic) or is_users(python_method(one, "__eq__"))):
            raise refusal(session, "a key of", obj)
    return [one for one in dict.__iter__(obj) if is_a(one, str)]


_NO_NUMBERS = (str, bytes, type(None), tuple, frozenset, type, types.FunctionType, torch.dtype, torch.device)


def refusal(session: Session, what: str, obj: Any) -> Exception:
    """The located error, to be raised."""
    name = "Size" if is_a(obj, StagedSize) else type(obj).__name__
    return session.error(
        f"{what} a {name} is a number or text that is only known while the Program runs", code="D2S265",
        hint="Index a list with a single int, or use a tensor and index that.")


__all__ = ["get", "item", "refusal"]
