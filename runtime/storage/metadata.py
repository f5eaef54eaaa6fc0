"""What a user writes beside a model: JSON values, which are checked before anything is written."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from runtime.errors import StorageError
from runtime.storage.document import Node

_MOST_BITS = 1024
_DEEPEST = 64


def checked_metadata(value: Any) -> dict[str, Any]:
    """A copy of a dict of JSON values: None, bools, numbers, strings, lists and dicts with strings as keys.

    Errors raised: StorageError (D2S522) for anything else, with its place.

    >>> checked_metadata({"accuracy": 0.97, "labels": ["cat", "dog"]})
    {'accuracy': 0.97, 'labels': ['cat', 'dog']}
    """
    if type(value) is not dict:
        _refuse("metadata", f"is of type {type(value).__name__}, and has to be a dict")
    copied: dict[str, Any] = _copy(value, "metadata", 0)
    return copied


def read_metadata(node: Node) -> dict[str, Any]:
    """Metadata from a document. Errors raised: StorageError if it is none that ``checked_metadata`` lets through."""
    try:
        return checked_metadata(node.value)
    except StorageError as error:
        node.fail(error.summary)


def _copy(value: Any, place: str, depth: int) -> Any:
    if depth > _DEEPEST:
        _refuse(place, f"stands in more than {_DEEPEST} lists and dicts")
    kind = type(value)
    if value is None or kind is bool:
        return value
    if kind is str:
        return _text(value, place)
    if kind is int:
        return value if value.bit_length() <= _MOST_BITS else _refuse(place, f"has more than {_MOST_BITS} bits")
    if kind is float:
        return value if math.isfinite(value) else _refuse(place, f"is {value}, which JSON does not have")
    if kind is list:
        return [_copy(item, f"{place}[{index}]", depth + 1) for index, item in enumerate(value)]
    if kind is dict:
        found = {}
        for key, item in value.items():
            if type(key) is not str:
                _refuse(place, f"has a key of type {type(key).__name__}, and keys have to be strings")
            found[_text(key, place)] = _copy(item, f"{place}[{key!r}]", depth + 1)
        return found
    _refuse(place, f"is of type {kind.__module__}.{kind.__qualname__}")


def _text(value: str, place: str) -> str:
    if any(0xD800 <= ord(char) < 0xE000 for char in value):
        _refuse(place, "has a string with half a character (a surrogate)")
    return value


def _refuse(place: str, problem: str) -> NoReturn:
    raise StorageError(
        f"{place} {problem}",
        hint="Metadata are JSON values: None, bools, numbers, strings, lists, and dicts with strings as keys.",
        code="D2S522",
    )


__all__ = ["checked_metadata", "read_metadata"]
