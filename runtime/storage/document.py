"""Reading JSON that may hold anything: every access checks what it finds and knows where it stands.

    Node({"name": 3}, "program").record("name")["name"].text()  ->  StorageError: program.name: expected a string ...
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, NoReturn

from runtime.errors import StorageError

DEEPEST = 600
"""How deep a document may nest: each loop in a loop takes four levels. Python's own limit differs by version."""


def write_json(value: Any) -> bytes:
    """A JSON document as ASCII bytes; the same value gives the same bytes."""
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":")).encode("ascii")


def read_json(data: bytes, what: str) -> Node:
    """The document in ``data``. Errors raised: StorageError if it is no JSON, or says something twice."""
    try:
        text = data.decode("ascii")
        return Node(json.loads(text, object_pairs_hook=_once, parse_constant=_refuse), what)
    except RecursionError:
        raise StorageError(f"{what} nests too deeply to be read", code="D2S510") from None
    except ValueError as error:  # a JSONDecodeError, a UnicodeDecodeError, an integer with too many digits
        raise StorageError(f"{what} is no valid document: {error}", code="D2S510") from None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"{next(key for key in keys if keys.count(key) > 1)!r} stands twice in one object")
    return found


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON number")


def text_of(text: str) -> Any:
    """A string as JSON: surrogates, which JSON would join to pairs, go as code points."""
    if any(0xD800 <= ord(char) < 0xE000 for char in text):
        return {"codes": [ord(char) for char in text]}
    return text


@dataclass(frozen=True)
class Node:
    """A part of a document, and its path in it."""

    value: Any
    path: str
    depth: int = 0

    def inner(self, value: Any, place: str) -> Node:
        """A part of this part. Errors raised: StorageError if it is nested too deeply."""
        if self.depth > DEEPEST:
            raise StorageError(f"{self.path[:200]}... nests too deeply to be read", code="D2S511")
        return Node(value, f"{self.path}{place}", self.depth + 1)

    def fail(self, problem: str) -> NoReturn:
        """Raise StorageError that names the place."""
        hint = "The file does not hold what this version writes."
        raise StorageError(f"{self.path}: {problem}", hint=hint, code="D2S511")

    def record(self, *required: str, optional: tuple[str, ...] = ()) -> dict[str, Node]:
        """An object with exactly these keys (and any of the optional ones)."""
        if type(self.value) is not dict:
            self.fail(f"expected an object, found {_describe(self.value)}")
        for key in required:
            if key not in self.value:
                self.fail(f"{key!r} is missing")
        for key in self.value:
            if key not in required and key not in optional:
                self.fail(f"unknown key {_short(key)}")
        return {key: self.inner(item, f".{key}") for key, item in self.value.items()}

    def mapping(self) -> dict[str, Node]:
        """An object with any keys."""
        if type(self.value) is not dict:
            self.fail(f"expected an object, found {_describe(self.value)}")
        return {key: self.inner(item, f"[{_short(key)}]") for key, item in self.value.items()}

    def tagged(self) -> tuple[str, Node]:
        """An object with one key, which says what it is."""
        if type(self.value) is not dict or len(self.value) != 1:
            self.fail(f"expected an object with one key, found {_describe(self.value)}")
        ((tag, item),) = self.value.items()
        return tag, self.inner(item, f".{tag}")

    def items(self, length: int | None = None) -> list[Node]:
        """The items of a list, which must have ``length`` of them if that is given."""
        if type(self.value) is not list:
            self.fail(f"expected a list, found {_describe(self.value)}")
        if length is not None and len(self.value) != length:
            self.fail(f"expected {length} items, found {len(self.value)}")
        return [self.inner(item, f"[{index}]") for index, item in enumerate(self.value)]

    def text(self) -> str:
        """A string."""
        if type(self.value) is str:
            return self.value
        if type(self.value) is dict and list(self.value) == ["codes"]:
            codes = [item.integer() for item in Node(self.value["codes"], f"{self.path}.codes").items()]
            if all(0 <= code < 0x110000 for code in codes):
                return "".join(map(chr, codes))
        self.fail(f"expected a string, found {_describe(self.value)}")

    def integer(self, low: int | None = None) -> int:
        """A whole number, at least ``low`` if that is given."""
        if type(self.value) is not int:
            self.fail(f"expected a whole number, found {_describe(self.value)}")
        if low is not None and self.value < low:
            self.fail(f"expected a number of at least {low}, found {_short(self.value)}")
        return self.value

    def flag(self) -> bool:
        """True or false."""
        if type(self.value) is not bool:
            self.fail(f"expected true or false, found {_describe(self.value)}")
        return self.value

    def choice(self, *options: str) -> str:
        """One of some words."""
        if type(self.value) is not str or self.value not in options:
            self.fail(f"expected {' or '.join(map(repr, options))}, found {_describe(self.value)}")
        return self.value


def _describe(value: Any) -> str:
    if type(value) in (dict, list):
        return f"{'an object' if type(value) is dict else 'a list'} of {len(value)}"
    return _short(value)


def _short(value: Any) -> str:
    if type(value) is int and value.bit_length() > 200:
        return "a huge number"
    spelled = repr(value)
    return spelled if len(spelled) <= 60 else spelled[:60] + "..."
