"""Answers of a user's ``__getattribute__`` that are the same whenever it is asked: it is run once for each.

    def __getattribute__(self, key):            transformers' configurations: twenty calls for each read
        if key != "attribute_map" and key in super().__getattribute__("attribute_map"): ...

An answer is kept that is a plain value, of an object from before the trace, where finding it stored nothing, recorded
no Operator, and called nothing but converted functions without variables of outer ones, and C code that only looks.
What it read is a guard since then. It is given again as long as the trace has stored to nothing from before it: what
such code can read is all from before the trace, too.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

from dy2static.operators.provenance.provenance import Answer, is_class_from_outside, is_external, memo
from dy2static.operators.shared.staging import Session
from runtime.tracer.python_state.guards import is_plain


def answered(session: Session, obj: Any, name: str, look: Callable[[], Any]) -> Any:
    """``look()``, which looks a name up in an object, or what it gave before."""
    known = memo(session)
    key = id(obj), name
    found = known.answers.get(key)
    if found is not None and found.owner is obj and not session.journal.outside and not session.guards.is_apart:
        return found.value
    before = _state(session)
    value = look()
    if is_plain(value) and _state(session) == before and _is_from_outside(session, obj):
        known.answers[key] = Answer(obj, value)
    return value


def _state(session: Session) -> tuple[Any, ...]:
    """What is another one once more than looking was done."""
    return (session.journal.stores, session.journal.outside, memo(session).impure, session.guards.is_apart,
            id(session.scope), len(session.scope.block.ops))  # fmt: skip


def _is_from_outside(session: Session, obj: Any) -> bool:
    cls = type(obj)
    return is_external(session, obj) and is_class_from_outside(session, cls) and not session.journal.outside


def note_called(session: Session, f: Any) -> None:
    """Call for each call that is traced."""
    if not _only_looks(f):
        memo(session).impure += 1


def _only_looks(f: Any) -> bool:
    kind = type(f)
    if kind is types.FunctionType:
        return f.__code__.co_freevars in ((), ("__class__",)) and not str(f.__module__).startswith(_OURS)
    if kind is types.MethodType:
        return _only_looks(f.__func__)
    if kind in (types.WrapperDescriptorType, types.MethodDescriptorType):
        return f.__name__ == "__getattribute__" or f.__name__ in _LOOKING and f.__objclass__ in _HOLDING
    if kind in (types.BuiltinFunctionType, types.MethodWrapperType):
        if f.__name__ == "__getattribute__" or any(f is one for one in _BUILTINS):
            return True
        return f.__name__ in _LOOKING and type(f.__self__) in _HOLDING
    return f is super or f is type


_OURS = ("dy2static", "runtime")
_HOLDING = (dict, list, tuple, str, set, frozenset)
_LOOKING = frozenset({
    "__contains__", "__getitem__", "__len__", "__eq__", "__ne__", "get", "startswith", "endswith",
})  # fmt: skip
"""Methods of these that only look."""
_BUILTINS = (isinstance, issubclass, len, getattr, hasattr, callable)


__all__ = ["answered", "note_called"]
