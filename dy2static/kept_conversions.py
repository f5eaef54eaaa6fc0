"""Conversions kept on disk, so that the next process need not convert the same functions again.

    <folder>/conversions/<what it was made of>.conversions            one file for each file of the user's

What a function is converted to depends on the text of its file, its code, the steps, and what converts: this package,
gast and Python. The digest of all but the function is in the file's name; a function is found in it by its name, place
and code. So what changed is never found, and nothing has to be thrown away. Where the folder is, and why it can be
trusted, is that of compiled libraries (see ``runtime.native.cache``).
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import importlib.metadata
import marshal
import os
import sys
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

from runtime.native import cache

FILES = cache.Records("conversions", ".conversions", 64 * 2**20)
"""Where they are: at most 64 MiB."""
KEPT_AFTER = 0.5
"""Seconds of converting after which what is new is written. The rest is when the process ends."""

Record = tuple[Any, ...]
"""What marshal can write: text, numbers, tuples, sets, dicts and code."""


class _Book:
    """The conversions of one file's functions: those that were found on disk, and new ones."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.records = self._read()
        self.new: dict[str, bytes] = {}

    def _read(self) -> dict[str, bytes]:
        with contextlib.suppress(ValueError, EOFError, TypeError):
            found = marshal.loads(FILES.read(self.key) or b"")
            if isinstance(found, dict):
                return found
        return {}

    def write(self) -> None:
        """Keep what is new, with what others have kept in the meantime."""
        self.records.update(self._read())
        self.records.update(self.new)
        self.new = {}
        FILES.write(self.key, marshal.dumps(self.records))


_lock = threading.RLock()
_books: dict[str, _Book] = {}
_unkept = 0.0


def kept(
    function: FunctionType, lines: list[str], steps: Sequence[str], convert: Callable[[], Record]
) -> Record:
    """What ``convert()`` gives for a function, from disk where an earlier process has kept it.

    Args:
        lines: Those of the function's file.
        steps: The names of the steps.
        convert: What it raises is not kept.
    """
    path = function.__code__.co_filename
    if not cache.is_kept() or not _converter() or not os.path.isfile(path):
        return convert()
    key, name = _key_of_file(path, lines), _name_of(function, steps)
    with _lock:
        book = _books.get(key)
        if book is None:
            book = _books[key] = _Book(key)
        data = book.new.get(name) or book.records.get(name)
    if isinstance(data, bytes):
        with contextlib.suppress(ValueError, EOFError, TypeError):
            found: Record = marshal.loads(data)
            return found
    start = time.process_time()
    made = convert()
    with _lock, contextlib.suppress(ValueError):  # a constant that marshal does not know
        book.new[name] = marshal.dumps(made)
        _spent(time.process_time() - start)
    return made


def _spent(seconds: float) -> None:
    global _unkept
    _unkept += seconds
    if _unkept > KEPT_AFTER:
        write()


def write() -> None:
    """Keep what is new; where that cannot be, the next process converts again."""
    global _unkept
    with _lock:
        _unkept = 0.0
        for book in _books.values():
            if book.new:
                with contextlib.suppress(OSError):
                    book.write()


atexit.register(write)


_texts: dict[str, tuple[list[str], str]] = {}


def _key_of_file(path: str, lines: list[str]) -> str:
    known = _texts.get(path)
    if known is None or known[0] is not lines:
        text = "".join(lines).encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(b"\0".join((_converter(), path.encode("utf-8", "surrogateescape"), text)))
        known = _texts[path] = lines, digest.hexdigest()
    return known[1]


@functools.cache
def _converter() -> bytes:
    """A digest of what converts: this package's modules, gast and Python; empty where that cannot be told."""
    try:
        versions = sys.version, sys.flags.optimize, importlib.metadata.version("gast")
    except importlib.metadata.PackageNotFoundError:  # in an application that was put into one file
        return b""
    digest = hashlib.sha256(repr(versions).encode())
    package = Path(__file__).parent
    paths = [path for folder in ("", "analysis", "transforms") for path in sorted((package / folder).glob("*.py"))]
    for path in paths:
        digest.update(path.read_bytes())
    return digest.digest() if paths else b""


def _name_of(function: FunctionType, steps: Sequence[str]) -> str:
    """What tells a function, and how it is converted, from the others of its file."""
    parts = (function.__module__, function.__name__, function.__qualname__, *steps)
    digest = hashlib.sha256("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"))
    _add_code(digest, function.__code__)
    return digest.hexdigest()


def _add_code(digest: Any, code: CodeType) -> None:
    """Add all that code is, but for the name of its file."""
    parts = (
        code.co_name, getattr(code, "co_qualname", ""), code.co_firstlineno, code.co_argcount, code.co_posonlyargcount,
        code.co_kwonlyargcount, code.co_flags, code.co_code, code.co_names, code.co_varnames, code.co_freevars,
        code.co_cellvars, getattr(code, "co_linetable", b""), getattr(code, "co_exceptiontable", b""),
    )  # fmt: skip
    digest.update(repr(parts).encode("utf-8", "surrogatepass"))
    for constant in code.co_consts:
        _add_constant(digest, constant)


def _add_constant(digest: Any, constant: Any) -> None:
    if isinstance(constant, CodeType):
        digest.update(b"code")
        _add_code(digest, constant)
    elif isinstance(constant, (tuple, frozenset)):
        parts = sorted(constant, key=repr) if isinstance(constant, frozenset) else constant
        digest.update(f"{type(constant).__name__}{len(parts)}".encode())
        for part in parts:
            _add_constant(digest, part)
    else:
        text = f"{type(constant).__name__}{constant!r}\0"
        digest.update(text.encode("utf-8", "surrogatepass"))


__all__ = ["FILES", "KEPT_AFTER", "kept", "write"]
