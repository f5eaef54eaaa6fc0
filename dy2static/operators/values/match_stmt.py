"""What the patterns of ``match`` ask: is it a sequence, a mapping, an instance; and the parts they look at.

    case [a, *b]:     ->   is_sequence(subject, 1, True)     subject[0]     starred(subject, 1, 0)
    case C(1, x=2):   ->   is_matched(subject, C, 1, "x")    positional(subject, C, 0)     subject.x
"""

from __future__ import annotations

import array
import collections
from collections.abc import Mapping, Sequence
from typing import Any

from dy2static.operators.calls.call import call
from dy2static.operators.shared.staging import Choice, active, distribute
from dy2static.operators.values.attribute import attr
from dy2static.operators.values.subscript import item
from runtime.tracer.values.containers import opened

_SEQUENCES = (list, tuple, range, collections.deque, array.array, memoryview, Sequence)
_TEXT = (str, bytes, bytearray)
_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose one positional pattern stands for the object itself."""


def is_sequence(value: Any, length: int, more: bool) -> Any:
    """Whether a sequence pattern of this length (or longer) fits; strings are no sequences here."""
    session = active()
    if session is not None and isinstance(value, Choice):
        return distribute(session, value, lambda option: is_sequence(option, length, more))
    if not isinstance(value, _SEQUENCES) or isinstance(value, _TEXT):
        return False
    found = call(len, value)
    return found >= length if more else found == length


def starred(value: Any, before: int, after: int) -> Any:
    """The list of the items that a starred pattern takes."""
    whole = call(list, value)
    return item(whole, slice(before, call(len, whole) - after))


def is_mapping(value: Any, *keys: Any) -> Any:
    """Whether a mapping has all the keys."""
    session = active()
    if session is not None:
        value = opened(value)
        if isinstance(value, Choice):
            return distribute(session, value, lambda option: is_mapping(option, *keys))
    return isinstance(value, Mapping) and all(key in value for key in keys)


def without_keys(value: Any, *keys: Any) -> dict[Any, Any]:
    """A dict of what the pattern's keys leave."""
    session = active()
    if session is not None:
        value = opened(value)
        if isinstance(value, Choice):
            left: dict[Any, Any] = distribute(session, value, lambda option: without_keys(option, *keys))
            return left
    return {key: item(value, key) for key in value if key not in keys}


def is_matched(value: Any, cls: Any, count: int, *names: str) -> Any:
    """Whether ``value`` is an instance with the attributes that ``count`` positional patterns and ``names`` ask for."""
    session = active()
    if session is not None and isinstance(value, Choice):
        return distribute(session, value, lambda option: is_matched(option, cls, count, *names))
    if not isinstance(cls, type):
        raise TypeError("called match pattern must be a class")
    if not call(isinstance, value, cls):
        return False
    wanted = names if _is_whole(cls) and count == 1 else (*_positional_names(cls, count), *names)
    return all(call(hasattr, value, name) for name in wanted)


def positional(value: Any, cls: type, index: int) -> Any:
    """The part of ``value`` that a positional pattern looks at."""
    return value if _is_whole(cls) else attr(value, _positional_names(cls, index + 1)[index])


def _is_whole(cls: type) -> bool:
    return not hasattr(cls, "__match_args__") and issubclass(cls, _WHOLE)


def _positional_names(cls: type, count: int) -> tuple[str, ...]:
    names: tuple[str, ...] = getattr(cls, "__match_args__", ())
    allowed = 1 if _is_whole(cls) else len(names)
    if count > allowed:
        plural = "" if allowed == 1 else "s"
        raise TypeError(f"{cls.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)")
    return names[:count]
