"""Indexing in a ``try`` that catches IndexError, where only the run knows how long a list, deque or tuple is, or which
row of a tensor or part of a ``ModuleList`` it is, or KeyError, where only it knows which keys a dict has. And a
division in one that catches ZeroDivisionError.

    if _d2s.lacks(d, i, "get"):
        raise _d2s.lookup_error(d, i, "get")     # a jump to the handler (see ``transforms.caught_raise``)
    _d2s.holds(d, i, "get")
    v = d[i]                                     # does not raise

Anything else is asked nothing: Python's own exception comes where it stands.
"""

from __future__ import annotations

import operator
from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.builtins import faulty_calls, sequences_in_python
from dy2static.operators.calls import growing
from dy2static.operators.calls.call import traced
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute, python_method
from dy2static.operators.shared.stored import MODULES
from dy2static.operators.values.sequence_operators import decides
from runtime.kinds import is_a
from runtime.ops.keyed import KeyedCounter, KeyedDefault, KeyedDict
from runtime.tracer.python_state.guards import is_plain
from runtime.tracer.python_state.held import held_in
from runtime.tracer.recording import reads
from runtime.tracer.values import array
from runtime.tracer.values.containers import several

_CALLS = ("call", "overflow")
_SEARCHES = ("index", "remove")
_ENDS = {"pop": -1, "popleft": 0}
_METHODS = {"get": "__getitem__", "set": "__setitem__", "del": "__delitem__", "pop": "pop", "popleft": "popleft"}
_DIVISIONS: dict[str, Callable[[Any, Any], Any]] = {
    "/": operator.truediv, "//": operator.floordiv, "%": operator.mod,
}  # fmt: skip


def position(target: Any, key: Any) -> Any:
    """An index of such a list, deque or tuple as an int; anything else as it is."""
    session = active()
    if session is not None and is_a(key, torch.Tensor) and (
            is_a(target, (list, tuple, deque, *MODULES)) or _is_row(target, key)):
        return reads.index(session, key)
    return key


def lacks(target: Any, key: Any, kind: str) -> Any:
    """Whether a list, deque or tuple whose length only the run knows has no item there.

    ``kind``: "get", "set", "del", or the method "pop" or "popleft", for which ``key`` is None where none is given; the
    method "index" or "remove", for which it is the item; an operator that divides ``target`` by ``key``; "call" of the
    function ``key``, which raises ValueError, or "overflow" of it.
    """
    session = active()
    if session is None:
        return False
    if kind in _DIVISIONS:
        return key == 0 if _divides(target, key) else False
    if kind in _CALLS:
        return faulty_calls.fails(session, target, key, kind)
    if kind in ("get", "del") and type(target) is dict and (is_plain(key) or is_a(key, Choice)):
        row = held_in(target)
        if row is None and (several(target) is not None or is_a(key, Choice)):
            there = traced(session, operator.contains, (target, key), {})
            return session.scalar("not_", there) if is_a(there, Staged) else not there
        if is_a(key, Choice):
            return False
        return key not in row.heap.columns if row is not None else key not in target
    if _is_asked_for_key(target, key, kind) or _is_searched(target, key, kind):
        there = traced(session, operator.contains, (target, key), {})
        return session.scalar("not_", there) if is_a(there, Staged) else not there
    if not _is_asked(target, key, kind):
        return False
    key = _key(session, target, key, kind)
    if key is None:
        return False
    length = _length(session, target)
    if type(length) is int and length == 0:
        return True
    return session.scalar("not_", session.scalar("and_", length > key, length >= -key))


def holds(target: Any, key: Any, kind: str) -> None:
    """The item is there, as ``lacks`` said: what follows does not raise."""
    session = active()
    if session is not None and kind in _DIVISIONS and _divides(target, key):
        session.values.divisors.append((session.scope, key.var))
        return
    if session is not None and kind in _CALLS:
        faulty_calls.note_fits(session, target, key, kind)
        return
    if session is not None and _is_searched(target, key, kind):
        memo(session).found = target, key
        return
    if session is not None and _is_asked_for_key(target, key, kind):
        growing.note_present(session, target, key)
        return
    if session is not None and type(target) is dict and (several(target) is not None or is_a(key, Choice)):
        growing.note_present(session, target, key)
    if session is None or not _is_asked(target, key, kind):
        return
    key = _key(session, target, key, kind)
    if key is not None:
        growing.note_present(session, target, key)


def lookup_error(target: Any, key: Any, kind: str) -> Exception:
    """What Python raises where the item is not there, or the divisor is 0."""
    if kind in _DIVISIONS:
        return ZeroDivisionError(_words_of_division(target, key, kind))
    if kind in _CALLS:
        return faulty_calls.error(target, key, kind)
    if is_a(target, torch.Tensor):
        return IndexError(_text("index ", key, " is out of bounds for dimension 0 with size ", _length_here(target)))
    if is_a(target, MODULES):
        return IndexError(_text("index ", key, " is out of range"))
    if is_a(target, (dict, KeyedDict)):
        return KeyError(key)
    if kind in _SEARCHES:
        return sequences_in_python.missing(key, type(target), kind)
    if kind in _ENDS:
        return IndexError("pop from an empty deque" if is_a(target, deque) else "pop from empty list")
    if is_a(target, deque):
        return IndexError("deque index out of range")
    if is_a(target, tuple):
        return IndexError("tuple index out of range")
    return IndexError("list index out of range" if kind == "get" else "list assignment index out of range")


def _is_row(target: Any, key: torch.Tensor) -> bool:
    """Whether a tensor as an index of another one counts as an int."""
    whole = not (key.dtype.is_floating_point or key.dtype.is_complex or key.dtype == torch.bool)
    return is_a(target, torch.Tensor) and target.dim() > 0 and key.dim() == 0 and whole


def _divides(target: Any, key: Any) -> bool:
    """Whether Python divides a number by one that only the run knows; a tensor is divided by 0 without an exception."""
    return _is_number(target) and is_a(key, Staged) and key.kind in ("int", "float", "bool")


def _is_number(value: Any) -> bool:
    if is_a(value, Choice):
        return all(map(_is_number, value.options))
    return is_a(value, (int, float)) or is_a(value, Staged) and value.kind in ("int", "float", "bool")


def _words_of_division(target: Any, key: Any, kind: str) -> Any:
    """What this version of Python says for such numbers."""
    if is_a(target, Choice):
        session = active()
        assert session is not None
        return distribute(session, target, lambda option: _words_of_division(option, key, kind))
    one, zero = (value.python_type() if is_a(value, Staged) else type(value)() for value in (target, key))
    try:
        _DIVISIONS[kind](one, zero)
    except ZeroDivisionError as error:
        return str(error)
    raise AssertionError("division by zero")


def _text(*parts: Any) -> Any:
    """The text of texts and numbers, some of which only the run knows."""
    session = active()
    assert session is not None
    text: Any = ""
    for part in parts:
        part = session.scalar("str", part) if is_a(part, Staged) and part.kind != "str" else part
        text = session.scalar("add", text, part if is_a(part, Staged) else str(part))
    return text


def _length_here(target: Any) -> Any:
    session = active()
    assert session is not None
    return _length(session, target)


def _length(session: Session, target: Any) -> Any:
    if is_a(target, torch.Tensor):
        size = session.fake(target).shape[0]
        return size if type(size) is int else session.sizes.staged(size)
    return array.length(session, target) if growing.is_growing(target) else len(target)


def _is_searched(target: Any, key: Any, kind: str) -> bool:
    """Whether only the run knows whether a list, tuple or deque has an item that is like a value."""
    return kind in _SEARCHES and type(target) in (list, tuple, deque) and (
        growing.is_growing(target) or any(map(decides, (*target, key))))


def _is_asked_for_key(target: Any, key: Any, kind: str) -> bool:
    """Whether only the run knows whether a dict has a key: a number, or any where the keys that it has are such."""
    if kind not in ("get", "del"):
        return False
    if is_a(target, KeyedDict):
        makes = is_a(target, KeyedDefault) and target.default_factory is not None and kind == "get"
        return not makes and not is_a(target, KeyedCounter)
    return is_a(key, Staged) and kind == "get" and type(target) in (dict, OrderedDict)


def _is_asked(target: Any, key: Any, kind: str) -> bool:
    if is_a(target, torch.Tensor):
        session = active()
        assert session is not None
        return kind in ("get", "set") and session.knows(target) and session.fake(target).dim() > 0
    if is_a(target, MODULES):
        own = any(type(target).__getitem__ is cls.__getitem__ for cls in MODULES)
        return kind == "get" and is_a(key, Staged) and own
    if type(target) is tuple and kind != "get":
        return False
    if type(target) not in (list, deque, tuple):
        return False
    asked = growing.is_growing(target) or (is_a(key, Staged) and kind in ("get", "set"))
    return asked and python_method(target, _METHODS[kind]) is None


def _key(session: Session, target: Any, key: Any, kind: str) -> Any:
    """The index as a plain or staged int; None where it is none, or what Python says depends on more."""
    if kind in _ENDS:
        right = key is None or (type(key) is int and key in (0, -1) and not is_a(target, deque))
        return (_ENDS[kind] if key is None else key) if right else None
    if is_a(key, Staged):
        return key if key.kind == "int" else None
    if is_a(target, torch.Tensor):
        return None  # torch compares it with the size
    return key if type(key) is int else None
