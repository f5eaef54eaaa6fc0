"""Reading a Python file (or a notebook, or standard input) without losing a byte of it, and writing one whole or not
at all."""

from __future__ import annotations

import ast
import codecs
import contextlib
import io
import os
import re
import sys
import tempfile
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dy2static.cli.notebook import NotANotebook, source_of

STDIN = "-"
"""The file name that stands for standard input."""
_SKIPPED = ("__pycache__", "build", "dist", "node_modules", "site-packages", ".ipynb_checkpoints")


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
    cells: tuple[int, ...] = ()
    """Of a notebook: the line before each code cell's first."""

    def where(self, line: int) -> str:
        """A line, as it is named to the user."""
        number = sum(start < line for start in self.cells)
        if not number:
            return f"{self.path}:{line}"
        return f"{self.path}, cell {number}:{line - self.cells[number - 1]}"

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


def expand(paths: list[str]) -> list[str]:
    """The files that paths name: of a folder all Python files and notebooks in it, hidden folders left out.

    Raises UsageError for a folder without any.
    """
    result: dict[str, None] = {}
    for path in paths:
        if path != STDIN and os.path.isdir(path):
            found = sorted(_inside(path))
            if not found:
                raise UsageError(f"{path} holds no Python file and no notebook")
            result.update(dict.fromkeys(found))
        else:
            result[path] = None
    return list(result)


def _inside(folder: str) -> Iterator[str]:
    for here, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
        yield from (os.path.join(here, name) for name in files if name.endswith((".py", ".ipynb")))


def read(path: str) -> TextFile:
    """Read and parse ``path``. Raises UsageError if it cannot be read, decoded or parsed."""
    try:
        data = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}") from error
    path = "<stdin>" if path == STDIN else path
    cells: tuple[int, ...] = ()
    if path.endswith(".ipynb"):
        try:
            text, cells = source_of(data)
        except NotANotebook as error:
            raise UsageError(f"cannot read {path}: {error}") from error
        data = text.encode()
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
        where = TextFile(path, [], "", b"", ast.Module([], []), cells).where(line) if line else path
        raise UsageError(f"cannot parse {where}: {getattr(error, 'msg', None) or _one_line(error)}") from error
    return TextFile(path, split_lines(text), encoding, bom, tree, cells)


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
        if target.exists() and os.path.exists(source.path) and target.samefile(source.path):
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
