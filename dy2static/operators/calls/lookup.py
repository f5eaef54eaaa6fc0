"""Indexing in a ``try`` that catches IndexError, where only the run knows how long the list, deque or tuple is; a dict
is asked for the key, which may be looked up in what such a list gives.

    if _d2s.lacks(d, i, "get"):
        raise _d2s.lookup_error(d, i, "get")     # a jump to the handler (see ``transforms.caught_raise``)
    _d2s.holds(d, i, "get")
    v = d[i]                                     # does not raise

Anything else is asked nothing: Python's own exception comes where it stands.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import torch

from dy2static.operators.calls import growing
from dy2static.operators.shared.staging import Session, Staged, active, python_method
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.held import held_in
from runtime.tracer.recording import reads
from runtime.tracer.values import array
from runtime.tracer.values.containers import several

_ENDS = {"pop": -1, "popleft": 0}
_METHODS = {"get": "__getitem__", "set": "__setitem__", "del": "__delitem__", "pop": "pop", "popleft": "popleft"}


def position(target: Any, key: Any) -> Any:
    """An index of such a list, deque or tuple as an int; anything else as it is."""
    session = active()
    if session is not None and isinstance(key, torch.Tensor) and growing.is_growing(target):
        return reads.index(session, key)
    return key


def lacks(target: Any, key: Any, kind: str) -> Any:
    """Whether a list, deque or tuple whose length only the run knows has no item there.

    ``kind``: "get", "set", "del", or the method "pop" or "popleft", for which ``key`` is None where none is given.
    """
    session = active()
    if session is None:
        return False
    if kind in ("get", "del") and type(target) is dict and is_plain(key):
        row = held_in(target)
        return key not in row.heap.columns if row is not None else several(target) is None and key not in target
    if not _is_asked(target, kind):
        return False
    key = _key(session, target, key, kind)
    if key is None:
        return False
    length = array.length(session, target)
    return session.scalar("not_", session.scalar("and_", length > key, length >= -key))


def holds(target: Any, key: Any, kind: str) -> None:
    """The item is there, as ``lacks`` said: what follows does not raise."""
    session = active()
    if session is None or not _is_asked(target, kind):
        return
    key = _key(session, target, key, kind)
    if key is not None:
        growing.note_present(session, target, key)


def lookup_error(target: Any, key: Any, kind: str) -> LookupError:
    """What Python raises where the item is not there."""
    if isinstance(target, dict):
        return KeyError(key)
    if kind in _ENDS:
        return IndexError("pop from an empty deque" if isinstance(target, deque) else "pop from empty list")
    if isinstance(target, deque):
        return IndexError("deque index out of range")
    if isinstance(target, tuple):
        return IndexError("tuple index out of range")
    return IndexError("list index out of range" if kind == "get" else "list assignment index out of range")


def _is_asked(target: Any, kind: str) -> bool:
    if type(target) is tuple and kind != "get":
        return False
    if type(target) not in (list, deque, tuple):
        return False
    return growing.is_growing(target) and python_method(target, _METHODS[kind]) is None


def _key(session: Session, target: Any, key: Any, kind: str) -> Any:
    """The index as a plain or staged int; None where it is none, or what Python says depends on more."""
    if kind in _ENDS:
        right = key is None or (type(key) is int and key in (0, -1) and not isinstance(target, deque))
        return (_ENDS[kind] if key is None else key) if right else None
    if isinstance(key, Staged):
        return key if key.kind == "int" else None
    return key if type(key) is int else None
