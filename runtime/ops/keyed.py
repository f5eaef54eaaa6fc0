"""Dicts and sets whose keys are numbers that only the run knows: lists of keys and values stand for each in a trace.

Their methods are ordinary Python that is converted (``dy2static/operators/calls/keyed_in_python.py``), so branches,
loops, gradients and files know nothing of them. What leaves the function is a real dict or set (``whole``).
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import ItemsView, KeysView, MutableMapping, MutableSet, ValuesView
from typing import Any


class Keyed:
    """Keys in the order in which they came, each once."""

    __slots__ = ()
    stands_for: Any = object
    """The class that the user sees."""

    def whole(self) -> Any:
        """The container that it stands for; asked for where keys are numbers."""
        raise NotImplementedError

    def fill(self, made: Any) -> None:
        """Let an empty one hold the same."""
        for key, value in self.whole().items():
            made[key] = value


class KeyedView(Keyed):
    """What ``keys()``, ``values()`` or ``items()`` of such a dict gives."""

    __slots__ = ("_owner",)
    _owner: Any


class KeyedKeys(KeyedView):
    """The keys."""

    __slots__ = ()
    stands_for: Any = type({}.keys())

    def whole(self) -> Any:
        return self._owner.keys()


class KeyedValues(KeyedView):
    """The values."""

    __slots__ = ()
    stands_for: Any = type({}.values())

    def whole(self) -> Any:
        return self._owner.values()


class KeyedItems(KeyedView):
    """Pairs of both."""

    __slots__ = ()
    stands_for: Any = type({}.items())

    def whole(self) -> Any:
        return self._owner.items()


class KeyedSet(Keyed):
    """A set."""

    __slots__ = ("_keys",)
    _keys: list[Any]
    stands_for: Any = set

    def whole(self) -> Any:
        return set(self._keys)

    def fill(self, made: Any) -> None:
        set.update(made, self._keys)


class KeyedDict(Keyed):
    """A dict, with the value of each key, and how many were removed so far."""

    __slots__ = ("_held", "_keys", "_removed")
    _keys: list[Any]
    _held: list[Any]
    _removed: int
    stands_for: Any = dict

    def whole(self) -> Any:
        return dict(zip(self._keys, self._held))


class KeyedOrdered(KeyedDict):
    """An ``OrderedDict``."""

    __slots__ = ()
    stands_for: Any = OrderedDict

    def whole(self) -> Any:
        return OrderedDict(zip(self._keys, self._held))


class KeyedCounter(KeyedDict):
    """A ``Counter``."""

    __slots__ = ()
    stands_for: Any = Counter

    def whole(self) -> Any:
        return Counter(dict(zip(self._keys, self._held)))


class KeyedDefault(KeyedDict):
    """A ``defaultdict``."""

    __slots__ = ("default_factory",)
    default_factory: Any
    stands_for: Any = defaultdict

    def whole(self) -> Any:
        return defaultdict(self.default_factory, zip(self._keys, self._held))

    def fill(self, made: Any) -> None:
        made.default_factory = self.default_factory
        super().fill(made)


def fields_of(own: type[Keyed]) -> tuple[type[Keyed], tuple[str, ...]]:
    """The class here of which a trace's own class is derived, and its attributes: what files name."""
    return next((cls, fields) for base in own.__mro__ for cls, fields in CLASSES if cls is base)


MutableSet.register(KeyedSet)
MutableMapping.register(KeyedDict)
for _abstract, _view in ((KeysView, KeyedKeys), (ValuesView, KeyedValues), (ItemsView, KeyedItems)):
    _abstract.register(_view)

_OF_DICT = ("_held", "_keys", "_removed")
CLASSES: tuple[tuple[type[Keyed], tuple[str, ...]], ...] = (
    (KeyedSet, ("_keys",)), (KeyedDict, _OF_DICT), (KeyedOrdered, _OF_DICT), (KeyedCounter, _OF_DICT),
    (KeyedDefault, ("default_factory", *_OF_DICT)),
    (KeyedKeys, ("_owner",)), (KeyedValues, ("_owner",)), (KeyedItems, ("_owner",)),
)  # fmt: skip
"""All of them, with their attributes."""

__all__ = [
    "CLASSES", "Keyed", "KeyedCounter", "KeyedDefault", "KeyedDict", "KeyedItems", "KeyedKeys", "KeyedOrdered",
    "KeyedSet", "KeyedValues", "KeyedView", "fields_of",
]  # fmt: skip
