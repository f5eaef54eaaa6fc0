"""Dicts and sets whose keys are numbers of the run, in Python that is converted: a key is looked for among all.

Errors stand where the user writes the operator. What asks for the order of a set is refused: it is that of Python's
hash table.
"""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterator
from typing import Any

from dy2static.operators.provenance.keyed_keys import (
    added_one_by_one,
    hold_sets,
    is_counter,
    is_mapping,
    is_set,
    members,
    missing,
    own_class,
    places_in_order,
    refuse,
    require_added,
    require_key,
    require_of_one_kind,
)
from runtime.ops.keyed import (
    Keyed,
    KeyedCounter,
    KeyedDefault,
    KeyedDict,
    KeyedItems,
    KeyedKeys,
    KeyedOrdered,
    KeyedSet,
    KeyedValues,
    KeyedView,
)

_RESIZED = "dictionary changed size during iteration"
_CHANGED = "dictionary keys changed during iteration"


class _Dict(KeyedDict):
    """What all kinds of dicts do."""

    __slots__ = ()

    def __init__(self) -> None:
        self._keys = []
        self._held = []
        self._removed = 0  # how many keys were removed so far

    def _place(self, key: Any) -> int:
        require_key(self, key)
        place = -1
        for index, one in enumerate(self._keys):
            if one == key:
                place = index
                break
        return place

    def _add(self, key: Any, value: Any) -> None:
        self._keys.append(key)
        self._held.append(value)

    def _missing(self, key: Any) -> Any:
        raise missing(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Any) -> bool:
        return self._place(key) >= 0

    def __getitem__(self, key: Any) -> Any:
        place = self._place(key)
        if place < 0:
            return self._missing(key)
        return self._held[place]

    def __setitem__(self, key: Any, value: Any) -> None:
        place = self._place(key)
        if place < 0:
            self._add(key, value)
        else:
            self._held[place] = value

    def __delitem__(self, key: Any) -> None:
        place = self._place(key)
        if place < 0:
            raise missing(self, key)
        self._remove(place)

    def _remove(self, place: int) -> None:
        del self._keys[place]
        del self._held[place]
        self._removed += 1

    def __iter__(self) -> Iterator[Any]:
        count, removed = len(self._keys), self._removed
        for place in range(count):
            self._require_unchanged(count, removed, False)
            yield self._keys[place]
        self._require_unchanged(count, removed, True)

    def _require_unchanged(self, count: int, removed: int, is_over: bool) -> None:
        """While it is gone over: no key came or went, as far as Python notices."""
        if len(self._keys) != count:
            raise RuntimeError(_RESIZED)
        if self._removed != removed and not is_over:
            raise RuntimeError(_CHANGED)

    def __repr__(self) -> str:
        return _shown(zip(self._keys, self._held))

    def __reduce_ex__(self, protocol: Any) -> Any:
        refuse(self, "the text")

    def __sizeof__(self) -> int:
        refuse(self, "the text")

    def __reversed__(self) -> Any:
        return reversed(list(self._keys))

    def __eq__(self, other: Any) -> Any:
        if not is_mapping(other):
            return NotImplemented
        if len(other) != len(self._keys):
            return False
        for key, value in zip(self._keys, self._held):
            if key not in other or [other[key]] != [value]:  # in a list, what is the same object is equal
                return False
        return True

    __hash__ = None  # type: ignore[assignment]

    def __or__(self, other: Any) -> Any:
        if not is_mapping(other):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> Any:
        self.update(other)
        return self

    def get(self, key: Any, default: Any = None) -> Any:
        place = self._place(key)
        if place < 0:
            return default
        return self._held[place]

    def setdefault(self, key: Any, default: Any = None) -> Any:
        place = self._place(key)
        if place < 0:
            self._add(key, default)
            return default
        return self._held[place]

    def pop(self, key: Any, *default: Any) -> Any:
        if len(default) > 1:
            raise TypeError(f"pop expected at most 2 arguments, got {1 + len(default)}")
        place = self._place(key)
        if place < 0:
            if default:
                return default[0]
            raise missing(self, key)
        value = self._held[place]
        self._remove(place)
        return value

    def popitem(self) -> tuple[Any, Any]:
        if len(self._keys) == 0:
            raise KeyError("popitem(): dictionary is empty")
        self._removed += 1
        return self._keys.pop(), self._held.pop()

    def clear(self) -> None:
        self._keys.clear()
        self._held.clear()
        self._removed += 1

    def keys(self) -> Any:
        return KeysView(self)

    def values(self) -> Any:
        return ValuesView(self)

    def items(self) -> Any:
        return ItemsView(self)

    def _empty(self) -> Any:
        return own_class(self)()

    def __copy__(self) -> Any:
        return self.copy()

    def copy(self) -> Any:
        made = self._empty()
        for key, value in zip(self._keys, self._held):
            made._add(key, value)
        return made

    def fromkeys(self, keys: Any, value: Any = None) -> Any:
        made = self._empty()
        made._from_keys(keys, value)
        return made

    def _from_keys(self, keys: Any, value: Any = None) -> None:
        for key in keys:
            self[key] = value

    def update(self, *others: Any, **more: Any) -> None:
        if len(others) > 1:
            raise TypeError(f"update expected at most 1 argument, got {len(others)}")
        for other in others:
            if hasattr(other, "keys"):
                for key in other.keys():
                    self[key] = other[key]
            else:
                for key, value in other:
                    self[key] = value
        for name in more:
            self[name] = more[name]


def _shown(pairs: Any) -> str:
    return "{" + ", ".join([repr(key) + ": " + repr(value) for key, value in pairs]) + "}"


class NumberDict(_Dict):
    """A dict."""

    __slots__ = ()


class NumberOrdered(_Dict, KeyedOrdered):
    """An ``OrderedDict``."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self._keys:
            return "OrderedDict()"
        pairs = list(zip(self._keys, self._held))
        return "OrderedDict(" + (_shown(pairs) if sys.version_info >= (3, 12) else repr(pairs)) + ")"

    def _require_unchanged(self, count: int, removed: int, is_over: bool) -> None:
        if not is_over and (len(self._keys) != count or self._removed != removed):
            raise RuntimeError("OrderedDict mutated during iteration")

    def move_to_end(self, key: Any, last: bool = True) -> None:
        place = self._place(key)
        if place < 0:
            raise missing(self, key)
        found, value = self._keys[place], self._held[place]
        self._remove(place)
        if last:
            self._add(found, value)
        else:
            self._keys.insert(0, found)
            self._held.insert(0, value)

    def popitem(self, last: bool = True) -> tuple[Any, Any]:
        if len(self._keys) == 0:
            raise KeyError("dictionary is empty")
        place = len(self._keys) - 1 if last else 0
        found = self._keys[place], self._held[place]
        self._remove(place)
        return found


class NumberDefault(_Dict, KeyedDefault):
    """A ``defaultdict``."""

    __slots__ = ()

    def __init__(self, default_factory: Callable[[], Any] | None = None) -> None:
        super().__init__()
        self.default_factory = default_factory

    def __repr__(self) -> str:
        return "defaultdict(" + repr(self.default_factory) + ", " + super().__repr__() + ")"

    def _empty(self) -> Any:
        return NumberDefault(self.default_factory)

    def _missing(self, key: Any) -> Any:
        if self.default_factory is None:
            raise missing(self, key)
        value = NumberSet() if hold_sets(self.default_factory, self._held) else self.default_factory()
        self._add(key, value)
        return value


class NumberCounter(_Dict, KeyedCounter):
    """A ``Counter``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "Counter(" + _shown(self.most_common()) + ")" if self._keys else "Counter()"

    def _missing(self, key: Any) -> Any:
        return 0

    def __delitem__(self, key: Any) -> None:
        place = self._place(key)
        if place >= 0:
            self._remove(place)

    def _count(self, key: Any, by: Any) -> None:
        place = self._place(key)
        if place < 0:
            self._add(key, by)
        else:
            self._held[place] = self._held[place] + by

    def update(self, other: Any = None, /, **more: Any) -> None:
        if other is not None:
            if hasattr(other, "keys"):
                for key in other.keys():
                    self._count(key, other[key])
            else:
                for key in other:
                    self._count(key, 1)
        for name in more:
            self._count(name, more[name])

    def subtract(self, other: Any = None, /, **more: Any) -> None:
        if other is not None:
            if hasattr(other, "keys"):
                for key in other.keys():
                    self._count(key, -other[key])
            else:
                for key in other:
                    self._count(key, -1)
        for name in more:
            self._count(name, -more[name])

    def most_common(self, n: int | None = None) -> Any:
        pairs = list(zip(self._keys, self._held))
        pairs.sort(key=_count_of, reverse=True)
        return pairs if n is None else pairs[: max(n, 0)]

    def total(self) -> Any:
        return sum(self._held)

    def elements(self) -> Any:
        for place in range(len(self._keys)):
            for _ in range(self._held[place]):
                yield self._keys[place]

    def _positive(self) -> Any:
        made = NumberCounter()
        for key, count in zip(self._keys, self._held):
            if count > 0:
                made._add(key, count)
        return made

    def _keep_positive(self) -> Any:
        made = self._positive()
        self._keys[:] = made._keys
        self._held[:] = made._held
        self._removed += 1
        return self

    def __add__(self, other: Any) -> Any:
        if not is_counter(other):
            return NotImplemented
        made = self.copy()
        made.update(other)
        return made._positive()

    def __sub__(self, other: Any) -> Any:
        if not is_counter(other):
            return NotImplemented
        made = self.copy()
        made.subtract(other)
        return made._positive()

    def __or__(self, other: Any) -> Any:
        if not is_counter(other):
            if is_mapping(other):
                refuse(self, "'|' with a dict")
            return NotImplemented
        made = self.copy()
        for key in other.keys():
            made[key] = max(made[key], other[key])
        return made._positive()

    def __and__(self, other: Any) -> Any:
        if not is_counter(other):
            return NotImplemented
        made = NumberCounter()
        for key, count in zip(self._keys, self._held):
            made._add(key, min(count, other[key]))
        return made._positive()

    def __iadd__(self, other: Any) -> Any:
        for key, count in other.items():
            self[key] += count
        return self._keep_positive()

    def __isub__(self, other: Any) -> Any:
        for key, count in other.items():
            self[key] -= count
        return self._keep_positive()

    def __ior__(self, other: Any) -> Any:
        for key, count in other.items():
            if count > self[key]:
                self[key] = count
        return self._keep_positive()

    def __iand__(self, other: Any) -> Any:
        for place in range(len(self._keys)):
            self._held[place] = min(self._held[place], other[self._keys[place]])
        return self._keep_positive()

    def __pos__(self) -> Any:
        return self._positive()

    def __neg__(self) -> Any:
        made = NumberCounter()
        made.subtract(self)
        return made._positive()

    def _is_most(self, other: Any) -> bool:
        """Whether no count is more than the other's; what is in neither counts as 0."""
        found = True
        for key, count in zip(self._keys, self._held):
            if count > other[key]:
                found = False
        for key in other.keys():
            if self[key] > other[key]:
                found = False
        return found

    def __le__(self, other: Any) -> Any:
        return self._is_most(other) if is_counter(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return _counter(other)._is_most(self) if is_counter(other) else NotImplemented

    def __eq__(self, other: Any) -> Any:
        if not is_counter(other):
            return super().__eq__(other)
        return self._is_most(other) and _counter(other)._is_most(self)

    __hash__ = None  # type: ignore[assignment]

    def __lt__(self, other: Any) -> Any:
        return self <= other and not self == other if is_counter(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return self >= other and not self == other if is_counter(other) else NotImplemented


def _counter(other: Any) -> Any:
    made = NumberCounter()
    made.update(other)
    return made


def first_of_two(pair: Any) -> Any:
    """The key of an item."""
    return pair[0]


def _count_of(pair: Any) -> Any:
    return pair[1]


class NumberSet(KeyedSet):
    """A set."""

    __slots__ = ("_added",)

    def __init__(self, items: Any = ()) -> None:
        self._keys = []
        self._added = added_one_by_one(items)  # whether nothing but this has happened to it
        for key in members(items):
            self.add(key)

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, key: Any) -> bool:
        require_key(self, key)
        found = False
        for one in self._keys:
            if one == key:
                found = True
                break
        return found

    def __iter__(self) -> Any:
        count = len(self._keys)
        for place in places_in_order(self):
            self._require_length(count)
            yield self._keys[place]
        self._require_length(count)

    def _require_length(self, count: int) -> None:
        """While it is gone over."""
        if len(self._keys) != count:
            raise RuntimeError("Set changed size during iteration")
        require_added(self)

    def _listed(self) -> list[Any]:
        return [self._keys[place] for place in places_in_order(self)]

    def __repr__(self) -> str:
        return "{" + ", ".join([repr(key) for key in self._listed()]) + "}" if self._keys else "set()"

    def __reduce_ex__(self, protocol: Any) -> Any:
        refuse(self, "the text")

    def __sizeof__(self) -> int:
        refuse(self, "the text")

    def add(self, key: Any) -> None:
        if key not in self:
            self._keys.append(key)

    def discard(self, key: Any) -> None:
        self._added = False
        if key in self:
            self._keys.remove(key)

    def remove(self, key: Any) -> None:
        self._added = False
        if key not in self:
            raise missing(self, key)
        self._keys.remove(key)

    def pop(self) -> Any:
        refuse(self, "the order")

    def clear(self) -> None:
        self._keys.clear()
        self._added = True

    def __copy__(self) -> Any:
        return self.copy()

    def copy(self) -> Any:
        made = NumberSet()
        made._keys.extend(self._keys)
        made._added = False
        return made

    def update(self, *others: Any) -> None:
        for other in others:
            if not added_one_by_one(other):
                self._added = False
            for key in members(other):
                self.add(key)

    def difference_update(self, *others: Any) -> None:
        for other in others:
            for key in list(members(other)):
                self.discard(key)

    def intersection_update(self, *others: Any) -> None:
        self._keys[:] = self.intersection(*others)._keys
        self._added = False

    def union(self, *others: Any) -> Any:
        made = self.copy()
        made.update(*others)
        return made

    def difference(self, *others: Any) -> Any:
        made = self.copy()
        made.difference_update(*others)
        return made

    def intersection(self, *others: Any) -> Any:
        made = self
        for other in others:
            known, kept = _looked_at(other), NumberSet()
            kept._added = False
            require_of_one_kind(self, made._keys, known)
            for key in made._keys:
                if key in known:
                    kept._keys.append(key)
            made = kept
        return self.copy() if made is self else made

    def symmetric_difference(self, other: Any) -> Any:
        theirs = NumberSet(members(other))
        made = self.difference(theirs)
        made.update(theirs.difference(self))
        return made

    def issubset(self, other: Any) -> bool:
        inside, known = True, _looked_at(other)
        for key in self._keys:
            if key not in known:
                inside = False
        return inside

    def issuperset(self, other: Any) -> bool:
        inside = True
        for key in members(other):
            if key not in self:
                inside = False
        return inside

    def isdisjoint(self, other: Any) -> bool:
        apart = True
        for key in members(other):
            if key in self:
                apart = False
        return apart

    def __or__(self, other: Any) -> Any:
        return self.union(other) if is_set(other) else NotImplemented

    def __ror__(self, other: Any) -> Any:
        return NumberSet(members(other)).union(self) if is_set(other) else NotImplemented

    def __and__(self, other: Any) -> Any:
        return self.intersection(other) if is_set(other) else NotImplemented

    __rand__ = __and__

    def __sub__(self, other: Any) -> Any:
        return self.difference(other) if is_set(other) else NotImplemented

    def __rsub__(self, other: Any) -> Any:
        return NumberSet(members(other)).difference(self) if is_set(other) else NotImplemented

    def __xor__(self, other: Any) -> Any:
        return self.symmetric_difference(other) if is_set(other) else NotImplemented

    __rxor__ = __xor__

    def __ior__(self, other: Any) -> Any:
        if not is_set(other):
            return NotImplemented
        self.update(other)
        return self

    def __iand__(self, other: Any) -> Any:
        if not is_set(other):
            return NotImplemented
        self.intersection_update(other)
        return self

    def __isub__(self, other: Any) -> Any:
        if not is_set(other):
            return NotImplemented
        self.difference_update(other)
        return self

    def __ixor__(self, other: Any) -> Any:
        if not is_set(other):
            return NotImplemented
        self.symmetric_difference_update(other)
        return self

    def symmetric_difference_update(self, other: Any) -> None:
        self._keys[:] = self.symmetric_difference(other)._keys
        self._added = False

    def __le__(self, other: Any) -> Any:
        return self.issubset(other) if is_set(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return self.issuperset(other) if is_set(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self.issubset(other) and len(self) < len(other) if is_set(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return self.issuperset(other) and len(self) > len(other) if is_set(other) else NotImplemented

    def __eq__(self, other: Any) -> Any:
        if not is_set(other):
            return NotImplemented
        return len(self._keys) == len(other) and self.issubset(other)

    __hash__ = None  # type: ignore[assignment]


def _looked_at(other: Any) -> Any:
    """What a key is looked for in: an iterator is gone over once."""
    return members(other) if is_set(other) else list(other)


class _View(KeyedView):
    """What is seen of a dict."""

    __slots__ = ()

    def __init__(self, owner: Any) -> None:
        self._owner = owner

    def __len__(self) -> int:
        return len(self._owner)

    def _item(self, place: int) -> Any:
        raise NotImplementedError

    def __iter__(self) -> Iterator[Any]:
        owner = self._owner
        count, removed = len(owner._keys), owner._removed
        for place in range(count):
            owner._require_unchanged(count, removed, False)
            yield self._item(place)
        owner._require_unchanged(count, removed, True)

    def __reversed__(self) -> Any:
        return reversed(self._listed())

    def _listed(self) -> list[Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        kind = "o" if isinstance(self._owner, OrderedDict) else ""  # odict_keys
        return kind + own_class(self).__name__ + "([" + ", ".join([repr(one) for one in self._listed()]) + "])"

    def __reduce_ex__(self, protocol: Any) -> Any:
        refuse(self, "the text")

    def __sizeof__(self) -> int:
        refuse(self, "the text")


class KeysView(_View, KeyedKeys):
    """``keys()``."""

    __slots__ = ()

    def _item(self, place: int) -> Any:
        return self._owner._keys[place]

    def _listed(self) -> list[Any]:
        return list(self._owner._keys)

    def __contains__(self, key: Any) -> bool:
        return key in self._owner

    def _set(self) -> Any:
        return NumberSet(self._owner._keys)

    def __or__(self, other: Any) -> Any:
        return self._set() | NumberSet(members(other))

    def __and__(self, other: Any) -> Any:
        return self._set() & NumberSet(members(other))

    def __sub__(self, other: Any) -> Any:
        return self._set() - NumberSet(members(other))

    def __xor__(self, other: Any) -> Any:
        return self._set() ^ NumberSet(members(other))

    def isdisjoint(self, other: Any) -> bool:
        return self._set().isdisjoint(other)

    def __le__(self, other: Any) -> Any:
        return self._set() <= NumberSet(members(other)) if is_set(other) else NotImplemented

    def __lt__(self, other: Any) -> Any:
        return self._set() < NumberSet(members(other)) if is_set(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return self._set() >= NumberSet(members(other)) if is_set(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return self._set() > NumberSet(members(other)) if is_set(other) else NotImplemented

    def __eq__(self, other: Any) -> Any:
        return self._set() == NumberSet(members(other)) if is_set(other) else NotImplemented

    __hash__ = None  # type: ignore[assignment]


class ValuesView(_View, KeyedValues):
    """``values()``."""

    __slots__ = ()

    def _item(self, place: int) -> Any:
        return self._owner._held[place]

    def _listed(self) -> list[Any]:
        return list(self._owner._held)

    def __contains__(self, value: Any) -> bool:
        return value in self._owner._held


class ItemsView(_View, KeyedItems):
    """``items()``."""

    __slots__ = ()

    def _item(self, place: int) -> Any:
        return self._owner._keys[place], self._owner._held[place]

    def _listed(self) -> list[Any]:
        return [self._item(place) for place in range(len(self._owner._keys))]

    def __contains__(self, pair: Any) -> bool:
        if not isinstance(pair, tuple) or len(pair) != 2:
            return False
        key, value = pair
        return key in self._owner and [self._owner[key]] == [value]

    def __eq__(self, other: Any) -> Any:
        refuse(self, "a comparison or an operator of sets")

    __hash__ = None  # type: ignore[assignment]
    __le__ = __lt__ = __ge__ = __gt__ = __and__ = __or__ = __sub__ = __xor__ = isdisjoint = __eq__


def _named(*classes: type[Keyed]) -> None:
    """Errors that Python raises say what the user has."""
    for cls in classes:
        name, written_in_c = cls.stands_for.__name__, not cls.stands_for.__flags__ & 1 << 9
        module = cls.stands_for.__module__
        cls.__name__ = cls.__qualname__ = name if module == "builtins" or not written_in_c else f"{module}.{name}"


_named(NumberCounter, NumberDefault, NumberDict, NumberOrdered, NumberSet, KeysView, ValuesView, ItemsView)

__all__ = ["NumberCounter", "NumberDefault", "NumberDict", "NumberOrdered", "NumberSet", "first_of_two"]
