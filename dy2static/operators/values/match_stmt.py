"""What the patterns of ``match`` ask: is it a sequence, a mapping, an instance; and the parts they look at.

    case [a, *b]:     ->   is_sequence(subject, 1, True)     a, b = parts(subject, 1, 0)
    case [1, b]:      ->   fits(items, subject)              part(items, subject, 0)     items = Items(2, None)
    case C(1, x=2):   ->   is_matched(subject, C, 1, "x")    positional(subject, C, 0)     subject.x
"""

from __future__ import annotations

from collections import deque
from typing import Any

from dy2static.operators.calls.call import call
from dy2static.operators.constructs.user_methods import is_users
from dy2static.operators.iteration.unpack import taken_apart
from dy2static.operators.shared.staging import Choice, active, distribute, python_method
from dy2static.operators.values.attribute import attr
from dy2static.operators.values.subscript import item
from runtime.kinds import is_a
from runtime.tracer.values.containers import opened

_SEQUENCE, _MAPPING = 1 << 5, 1 << 6
"""The flags of classes by which the interpreter tells them: those derived from ``Sequence`` first, or registered with
it, have the one, those from ``Mapping`` the other."""
_WHOLE = (bool, bytearray, bytes, dict, float, frozenset, int, list, set, str, tuple)
"""Classes whose one positional pattern stands for the object itself."""


def is_sequence(value: Any, length: int, more: bool) -> Any:
    """Whether a sequence pattern of this length (or longer) fits; strings are no sequences here."""
    session = active()
    if session is not None and is_a(value, Choice):
        return distribute(session, value, lambda option: is_sequence(option, length, more))
    if not type(value).__flags__ & _SEQUENCE:
        return False
    if more and not length:
        return True
    found = call(len, value)
    return found >= length if more else found == length


class Items:
    """What one sequence pattern unpacks, of ``before`` items, or of those and ``after`` behind a starred one.

    A user's ``__iter__``, which says what the items are, is asked for them once.
    """

    def __init__(self, before: int, after: int | None) -> None:
        self.before, self.after = before, after
        self.found: tuple[Any, ...] | None = None
        """What it was asked for."""


def fits(items: Items, value: Any) -> Any:
    """Whether a sequence pattern fits, of which ``items`` keeps what it unpacks then."""
    found = is_sequence(value, items.before + (items.after or 0), items.after is not None)
    if found is True and _has_others(value):
        items.found = taken_apart(value, items.before, items.after)
    return found


def parts(value: Any, before: int, after: int | None) -> tuple[Any, ...]:
    """All that unpacking gives to a pattern: one for each item, a list for the starred one."""
    if _has_others(value):
        return taken_apart(value, before, after)
    return tuple(_stored(value, index, before, after) for index in range(before + (after is not None) + (after or 0)))


def part(items: Items, value: Any, index: int) -> Any:
    """One of them, where they are looked at one by one."""
    if items.found is None and _has_others(value):
        items.found = taken_apart(value, items.before, items.after)
    if items.found is not None:
        return items.found[index]
    return _stored(value, index, items.before, items.after)


def _stored(value: Any, index: int, before: int, after: int | None) -> Any:
    """One of the items, by a subscript."""
    if after is None or index < before:
        return item(value, index)
    if index > before:
        return item(value, index - before - 1 - after)
    whole = call(list, value)
    return item(whole, slice(before, call(len, whole) - after))


def _has_others(value: Any) -> bool:
    """Whether unpacking may give others than subscripts."""
    return any(map(_gives_others, value.options if is_a(value, Choice) else (value,)))


def _gives_others(value: Any) -> bool:
    if type(value) in (list, tuple):
        return False
    if is_a(value, (list, tuple, deque)) and any(python_method(value, name) for name in _PLACES):
        return True
    return is_users(python_method(value, "__iter__"))


_PLACES = ("__getitem__", "__len__")
"""What says where a subscript finds an item."""


def from_end(value: Any, count: int) -> Any:
    """An item that a pattern behind a starred one looks at; a class of the user's is asked for it as Python does."""
    own = python_method(value, "__getitem__") is not None
    return item(value, call(len, value) - count if own else -count)


def is_mapping(value: Any, *keys: Any) -> Any:
    """Whether a mapping has all the keys."""
    session = active()
    if session is not None:
        value = opened(value)
        if is_a(value, Choice):
            return distribute(session, value, lambda option: is_mapping(option, *keys))
    if not type(value).__flags__ & _MAPPING:
        return False
    for place, key in enumerate(keys):
        if key in keys[:place]:
            raise ValueError(f"mapping pattern checks duplicate key ({key!r})")
        if key not in value:
            return False
    return True


def without_keys(value: Any, *keys: Any) -> dict[Any, Any]:
    """A dict of what the pattern's keys leave."""
    session = active()
    if session is not None:
        value = opened(value)
        if is_a(value, Choice):
            left: dict[Any, Any] = distribute(session, value, lambda option: without_keys(option, *keys))
            return left
    return {key: item(value, key) for key in value if key not in keys}


def is_matched(value: Any, cls: Any, count: int, *names: str) -> Any:
    """Whether ``value`` is an instance with the attributes that ``count`` positional patterns and ``names`` ask for."""
    session = active()
    if session is not None and is_a(value, Choice):
        return distribute(session, value, lambda option: is_matched(option, cls, count, *names))
    if not is_a(cls, type):
        raise TypeError("called match pattern must be a class")
    if not call(isinstance, value, cls):
        return False
    wanted = names if _is_whole(cls) and count == 1 else (*_positional_names(cls, count), *names)
    for place, name in enumerate(wanted):
        if name in wanted[:place]:
            raise TypeError(f"{cls.__name__}() got multiple sub-patterns for attribute {name!r}")
        if not call(hasattr, value, name):
            return False
    return True


def positional(value: Any, cls: type, index: int) -> Any:
    """The part of ``value`` that a positional pattern looks at."""
    return value if _is_whole(cls) else attr(value, _positional_names(cls, index + 1)[index])


def _is_whole(cls: type) -> bool:
    return not hasattr(cls, "__match_args__") and issubclass(cls, _WHOLE)


def _positional_names(cls: type, count: int) -> tuple[str, ...]:
    names: Any = call(getattr, cls, "__match_args__", ())
    if type(names) is not tuple:
        raise TypeError(f"{cls.__name__}.__match_args__ must be a tuple (got {type(names).__name__})")
    allowed = 1 if _is_whole(cls) else len(names)
    if count > allowed:
        plural = "" if allowed == 1 else "s"
        raise TypeError(f"{cls.__name__}() accepts {allowed} positional sub-pattern{plural} ({count} given)")
    for name in names[:count]:
        if not is_a(name, str):
            raise TypeError(f"__match_args__ elements must be strings (got {type(name).__name__})")
    return names[:count]
