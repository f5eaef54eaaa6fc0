"""Dicts and sets with keys that are numbers of the run: from where they are made they are lists of keys and values.

    Counter(x.tolist())  {int(n): x}     ->   a NumberCounter, a NumberDict: at once
    seen = set(); seen.add(int(n))       ->   a NumberSet, in the second attempt (``provenance.keyed_keys``)
"""

from __future__ import annotations

import types
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Sequence
from typing import Any

from dy2static.operators.calls import growing, keyed_in_python
from dy2static.operators.calls.call import traced
from dy2static.operators.provenance.keyed_keys import (
    KINDS,
    are_many,
    become,
    begin_again,
    holds_floats,
    is_key,
    is_of_run,
)
from dy2static.operators.shared.staging import Choice, Session, distribute
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed, KeyedItems, KeyedSet, KeyedView
from runtime.tracer.values import structure, tables

_KINDS: dict[int, type] = {
    id(dict): keyed_in_python.NumberDict, id(set): keyed_in_python.NumberSet,
    id(Counter): keyed_in_python.NumberCounter, id(defaultdict): keyed_in_python.NumberDefault,
    id(OrderedDict): keyed_in_python.NumberOrdered,
}  # fmt: skip
"""Classes, by identity, as nobody's ``__hash__`` is asked, and what stands for their objects."""
_IN_ANY_ORDER = frozenset(map(id, (sorted, max, min, sum, any, all)))
_BY_ORDER = frozenset(map(id, (sorted, max, min)))
_TAKING = frozenset(map(id, (list, tuple, iter, enumerate, zip, map, filter, reversed))) | _IN_ANY_ORDER
"""Builtins that take the items of what they are given."""


def is_kind(cls: Any) -> bool:
    """Whether objects of a class may get keys that are numbers of the run."""
    return id(cls) in _KINDS


def made(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args)`` for a class of dicts or sets that is to hold numbers of the run; NotImplemented for others."""
    if not is_a(f, type):
        return _of_a_class(session, f, args, kwargs)
    cls = _KINDS.get(id(f))
    if cls is None or kwargs or (f is defaultdict and not all(one is None or callable(one) for one in args[:1])):
        return NotImplemented
    first = 1 if f is defaultdict else 0
    given = args[first:]
    if len(given) > 1:
        return NotImplemented
    if given and is_a(given[0], Choice) and _is_keyed(given[0]):
        return distribute(session, given[0], lambda option: traced(session, f, (*args[:first], option), {}))
    here = session.location()
    if here not in session.call.known.keyed and not (given and _brings(session, f, given[0])):
        return NotImplemented
    found = traced(session, cls, args[:first], {})
    if given:
        traced(session, found.update, (given[0],), {})
    return found


def of_parts(session: Session, parts: list[tuple[Any, ...]]) -> Any:
    """A dict display (see ``display``) of such keys; NotImplemented for others."""
    pairs = [part for part in parts if len(part) == 2]
    mappings = [part[0] for part in parts if len(part) == 1]
    here = session.location()
    if here not in session.call.known.keyed and not any(is_a(one, Keyed) for one in mappings):
        if not _are_of_run([key for key, _ in pairs]):
            return NotImplemented
    found = traced(session, keyed_in_python.NumberDict, (), {})
    for part in parts:
        if len(part) == 2:
            traced(session, found.__setitem__, part, {})
        else:
            traced(session, found.update, part, {})
    return found


def of_items(session: Session, items: tuple[Any, ...]) -> Any:
    """A set display."""
    if session.location() not in session.call.known.keyed:
        if not (_brings(session, set, items) if growing.is_growing(items) else _are_of_run(items)):
            return NotImplemented
    found = traced(session, keyed_in_python.NumberSet, (items,), {})
    if not growing.is_growing(items) and len(items) > 2 and not any(map(_is_staged, items)):
        found._added = False  # Python copies a set that it has made of constants
    return found


def _is_staged(item: Any) -> bool:
    return is_of_run(item) or is_a(item, Choice)


def _brings(session: Session, f: Any, given: Any) -> bool:
    """Whether what a dict or set is made of has numbers of the run as keys."""
    if is_a(given, Keyed):
        return True
    grown = structure.growing(given) if growing.is_growing(given) else None
    if grown is not None:
        return _is_number(grown.item if f in (set, Counter) else _first_of_two(grown.item))
    if type(given) not in (list, tuple):
        return False
    if f in (set, Counter):
        keys = list(given)
    elif all(type(one) in (list, tuple) and len(one) == 2 for one in given):
        keys = [one[0] for one in given]
    else:
        return False
    return _are_of_run(keys)


def _are_of_run(keys: Sequence[Any]) -> bool:
    """Whether some of the keys of a dict or set are only known while the Program runs, or which of many they are."""
    return (any(map(is_of_run, keys)) or are_many(keys)) and all(map(is_key, keys))


def note_method(session: Session, owner: Any, name: str, given: tuple[Any, ...]) -> None:
    """A method of a dict or set is called, which may get keys that are numbers of the run.

    Raises:
        Restart: It is made of lists, then.
    """
    if not given or not is_kind(type(owner)):
        return
    if name in _OF_ONE[is_a(owner, set)] or name == "get" and type(given[0]) is tuple:
        become(session, owner, given[0])
    elif name in _OF_MANY and any(_brings(session, type(owner), one) for one in given):
        begin_again(session, owner)


_OF_ONE = (frozenset({"pop", "setdefault", "__setitem__", "__delitem__"}), frozenset({"add", "discard", "remove"}))
"""Methods of a key, of dicts and of sets."""
_OF_MANY = frozenset({
    "update", "union", "intersection", "difference", "symmetric_difference", "issubset", "issuperset", "isdisjoint",
    "difference_update", "intersection_update", "symmetric_difference_update", "subtract", "__ior__", "__init__",
})  # fmt: skip


def _first_of_two(item: structure.Structure) -> structure.Structure | None:
    return item.items[0] if is_a(item, structure.Sequence) and len(item.items) == 2 else None


def _is_number(item: structure.Structure | None) -> bool:
    """Whether the items of a list that grew are numbers or texts, or tuples of such; some of them may be None. Some, or
    all, may be known: how many of each there are is not."""
    if is_a(item, structure.Options):
        others = [one for one in item.options if not (is_a(one, structure.Known) and one.value is None)]
        return bool(others) and all(map(_is_number, others))
    if is_a(item, structure.Sequence):
        return item.kind is tuple and all(map(_is_number, item.items))
    if is_a(item, structure.Array):
        return item.kind is tuple and is_a(item.item, structure.Number) and item.item.kind != "float"
    if is_a(item, structure.Known):
        return type(item.value) in _KNOWN
    return is_a(item, structure.Number) and item.kind in KINDS


_KNOWN = (str, int, bool)


def taken(
    session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a builtin that goes over them: the keys in place of such dicts and sets."""
    if id(f) not in _TAKING:
        return args, kwargs
    if id(f) in _BY_ORDER and len(args) == 1 and is_a(args[0], KeyedItems) and "key" not in kwargs:
        kwargs = {**kwargs, "key": keyed_in_python.first_of_two}  # as no two keys are equal
    return tuple(_listed(session, f, one, kwargs) if _is_keyed(one) else one for one in args), kwargs


def _is_keyed(value: Any) -> bool:
    """Whether it is such a dict or set, or one of several values among which is one."""
    return is_a(value, Keyed) or is_a(value, Choice) and any(map(_is_keyed, value.options))


def _listed(session: Session, f: Any, value: Any, kwargs: dict[str, Any]) -> Any:
    if not is_a(value, Keyed):
        return distribute(session, value, lambda option: _listed(session, f, option, kwargs)) if (
            is_a(value, Choice)) else value
    if is_a(value, KeyedSet):
        value = tables.unbound(session, value)
    rounds = f is sum and is_a(value, KeyedSet) and value._added is True and holds_floats(value._keys)  # type: ignore[attr-defined]
    if is_a(value, KeyedSet) and id(f) in _IN_ANY_ORDER and "key" not in kwargs and not rounds:
        return traced(session, list, (value._keys,), {})
    if is_a(value, KeyedSet):
        return traced(session, value._listed, (), {})  # type: ignore[attr-defined]
    view: Any = value if is_a(value, KeyedView) else traced(session, value.keys, (), {})
    return traced(session, view._listed, (), {})


def of_real(session: Session, value: Any) -> Any:
    """A set or dict beside one that stands for numbers of the run, in the same form."""
    cls = keyed_in_python.NumberSet if type(value) is frozenset else _KINDS.get(id(type(value)))
    if cls is None:
        return value
    found = traced(session, cls, (), {})
    traced(session, found.update, (value,), {})
    return found


def _of_a_class(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``dict.get(d, key)``, ``dict.fromkeys(keys)``, ``vars(d)``; NotImplemented for others."""
    if is_a(f, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        own = bool(args) and is_a(args[0], Keyed) and issubclass(args[0].stands_for, f.__objclass__)
        return traced(session, getattr(args[0], f.__name__), args[1:], kwargs) if own else NotImplemented
    if (f is vars or f is dir) and args and is_a(args[0], Keyed):
        return f(args[0].stands_for())
    if type(f) is not types.BuiltinFunctionType or f.__name__ != "fromkeys":
        return NotImplemented
    if not (f.__self__ is dict or f.__self__ is OrderedDict) or not args or kwargs or (
            not _brings(session, set, args[0])):
        return NotImplemented
    found = traced(session, _KINDS[id(f.__self__)], (), {})
    traced(session, found._from_keys, args, {})
    return found


__all__ = ["is_kind", "made", "note_method", "of_items", "of_parts", "of_real", "taken"]
