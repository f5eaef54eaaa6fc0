"""Dicts and sets whose keys are numbers that only the run knows: lists of keys and values stand for each in a trace.

Their methods are ordinary Python that is converted (``dy2static/operators/calls/keyed_in_python.py``), so branches,
loops, gradients and files know nothing of them. What leaves the function is a real dict or set (``whole``).
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any


class Keyed:
    """Keys in the order in which they came, each once."""

    stands_for: Any = object
    """The class that the user sees."""

    _keys: list[Any]

    def whole(self) -> Any:
        """The container that it stands for; asked for where keys are numbers."""
        raise NotImplementedError


class KeyedView(Keyed):
    """What ``keys()``, ``values()`` or ``items()`` of such a dict gives."""

    _owner: Any


class KeyedKeys(KeyedView):
    """The keys."""

    stands_for: Any = type({}.keys())

    def whole(self) -> Any:
        return self._owner.keys()


class KeyedValues(KeyedView):
    """The values."""

    stands_for: Any = type({}.values())

    def whole(self) -> Any:
        return self._owner.values()


class KeyedItems(KeyedView):
    """Pairs of both."""

    stands_for: Any = type({}.items())

    def whole(self) -> Any:
        return self._owner.items()


class KeyedSet(Keyed):
    """A set."""

    stands_for: Any = set

    def whole(self) -> Any:
        return set(self._keys)


class KeyedDict(Keyed):
    """A dict, with the value of each key."""

    stands_for: Any = dict

    _held: list[Any]

    def whole(self) -> Any:
        return dict(zip(self._keys, self._held))


class KeyedOrdered(KeyedDict):
    """An ``OrderedDict``."""

    stands_for: Any = OrderedDict

    def whole(self) -> Any:
        return OrderedDict(zip(self._keys, self._held))


class KeyedCounter(KeyedDict):
    """A ``Counter``."""

    stands_for: Any = Counter

    def whole(self) -> Any:
        return Counter(dict(zip(self._keys, self._held)))


class KeyedDefault(KeyedDict):
    """A ``defaultdict``."""

    stands_for: Any = defaultdict

    default_factory: Callable[[], Any] | None

    def whole(self) -> Any:
        return defaultdict(self.default_factory, zip(self._keys, self._held))


def class_of(value: Keyed) -> type[Keyed]:
    """The class here of which a trace's own class is derived: what files name."""
    return next(cls for cls in type(value).__mro__ if cls.__module__ == __name__)


_OF_DICT = ("_keys", "_held", "_removed")
CLASSES: tuple[tuple[type[Keyed], tuple[str, ...]], ...] = (
    (KeyedSet, ("_keys",)), (KeyedDict, _OF_DICT), (KeyedOrdered, _OF_DICT), (KeyedCounter, _OF_DICT),
    (KeyedDefault, (*_OF_DICT, "default_factory")),
    (KeyedKeys, ("_owner",)), (KeyedValues, ("_owner",)), (KeyedItems, ("_owner",)),
)  # fmt: skip
"""All of them, with their attributes."""

__all__ = [
    "CLASSES", "Keyed", "KeyedCounter", "KeyedDefault", "KeyedDict", "KeyedItems", "KeyedKeys", "KeyedOrdered",
    "KeyedSet", "KeyedValues", "KeyedView", "class_of",
]  # fmt: skip
