"""Methods of text that give several pieces, written in Python: what a trace runs where only the run knows the text.

These functions are converted as the user's are, so the search for a separator is a staged loop in them. Errors stand
where the user calls the method.

>>> split("a|b|c", "|", 1), split(" a  b "), rsplit("a|b|c", "|", 1), partition("a=b", "="), splitlines("a\\r\\nb")
(['a', 'b|c'], ['a', 'b'], ['a|b', 'c'], ('a', '=', 'b'), ['a', 'b'])
"""

from __future__ import annotations

from typing import Any


def split(text: Any, sep: Any = None, maxsplit: Any = -1) -> list[Any]:
    parts: list[Any] = []
    if sep is None:
        rest = text.lstrip()
        while len(rest) > 0 and maxsplit != 0:
            stop = 0
            while stop < len(rest) and not rest[stop].isspace():
                stop = stop + 1
            parts.append(rest[:stop])
            rest = rest[stop:].lstrip()
            maxsplit = maxsplit - 1
        if len(rest) > 0:
            parts.append(rest)
    else:
        if len(sep) == 0:
            raise ValueError("empty separator")
        start, place = 0, text.find(sep)
        while place >= 0 and maxsplit != 0:
            parts.append(text[start:place])
            start = place + len(sep)
            maxsplit = maxsplit - 1
            place = text.find(sep, start)
        parts.append(text[start:])
    return parts


def rsplit(text: Any, sep: Any = None, maxsplit: Any = -1) -> list[Any]:
    parts: list[Any] = []
    if sep is None:
        rest = text.rstrip()
        while len(rest) > 0 and maxsplit != 0:
            start = len(rest)
            while start > 0 and not rest[start - 1].isspace():
                start = start - 1
            parts.append(rest[start:])
            rest = rest[:start].rstrip()
            maxsplit = maxsplit - 1
        if len(rest) > 0:
            parts.append(rest)
    else:
        if len(sep) == 0:
            raise ValueError("empty separator")
        stop, place = len(text), text.rfind(sep)
        while place >= 0 and maxsplit != 0:
            parts.append(text[place + len(sep) : stop])
            stop = place + 0
            maxsplit = maxsplit - 1
            place = text.rfind(sep, 0, stop)
        parts.append(text[:stop])
    parts.reverse()
    return parts


def splitlines(text: Any, keepends: Any = False) -> list[Any]:
    parts: list[Any] = []
    start, place, count = 0, 0, len(text)
    while place < count:
        if text[place] in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029":
            after = place + 2 if text[place : place + 2] == "\r\n" else place + 1
            parts.append(text[start:after] if keepends else text[start:place])
            start = after
            place = after
        else:
            place = place + 1
    if start < count:
        parts.append(text[start:])
    return parts


def partition(text: Any, sep: Any) -> tuple[Any, Any, Any]:
    if len(sep) == 0:
        raise ValueError("empty separator")
    place = text.find(sep)
    if place < 0:
        return text, "", ""
    return text[:place], sep, text[place + len(sep) :]


def rpartition(text: Any, sep: Any) -> tuple[Any, Any, Any]:
    if len(sep) == 0:
        raise ValueError("empty separator")
    place = text.rfind(sep)
    if place < 0:
        return "", "", text
    return text[:place], sep, text[place + len(sep) :]
