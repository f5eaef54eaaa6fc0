"""Reading a Python file without losing a byte of it, and writing one whole or not at all."""

from __future__ import annotations

import ast
import codecs
import contextlib
import io
import os
import re
import tempfile
import tokenize
from dataclasses import dataclass
from pathlib import Path


class UsageError(Exception):
    """The command line or a file it names is at fault; the message is one line."""


@dataclass(frozen=True)
class TextFile:
    """A Python file: ``lines`` hold their line ends; ``encoding`` and ``bom`` are what it was read with."""

    path: str
    lines: list[str]
    encoding: str
    bom: bytes
    tree: ast.Module

    @property
    def text(self) -> str:
        return "".join(self.lines)

    @property
    def line_end(self) -> str:
        """The first line's end: what new lines get."""
        first = self.lines[0] if self.lines else ""
        return first[len(first.rstrip("\r\n")) :] or "\n"

    def encode(self, text: str) -> bytes:
        # only string literals, which are printed as repr does, can hold what the encoding lacks: escape it there
        return self.bom + text.encode(self.encoding, "backslashreplace")


def read(path: str) -> TextFile:
    """Read and parse ``path``. Raises UsageError if it cannot be read, decoded or parsed."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    bom = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        encoding = "utf-8" if encoding == "utf-8-sig" else encoding
        text = data[len(bom) :].decode(encoding)
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise UsageError(f"cannot read {path}: {_one_line(error)}") from error
    try:
        tree = ast.parse(text, path)
        compile(tree, path, "exec", dont_inherit=True)  # finds what parsing does not: return outside a function, ...
    except (SyntaxError, ValueError, RecursionError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path}:{line}" if line else path
        raise UsageError(f"cannot parse {where}: {getattr(error, 'msg', None) or _one_line(error)}") from error
    return TextFile(path, split_lines(text), encoding, bom, tree)


def split_lines(text: str) -> list[str]:
    r"""The lines as Python counts them (a form feed or U+2028 ends none), with their ends.

    >>> split_lines("a\r\nb\x0cc\rd")
    ['a\r\n', 'b\x0cc\r', 'd']
    """
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())


def write(path: str, data: bytes, source: TextFile) -> None:
    """Write ``data`` to ``path`` atomically. Raises UsageError, also where that is the input itself."""
    target = Path(path)
    try:
        if target.exists() and target.samefile(source.path):
            raise UsageError(f"will not write over the input {source.path}")
        if target.is_dir():
            raise UsageError(f"cannot write {path}: it is a directory")
        target = target.resolve()
        descriptor, temporary = tempfile.mkstemp(prefix=target.name + ".", suffix=".tmp", dir=target.parent)
        try:
            with os.fdopen(descriptor, "wb") as stream:
                stream.write(data)
            os.chmod(temporary, target.stat().st_mode if target.exists() else 0o666 & ~_umask())
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror or error}") from error


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
