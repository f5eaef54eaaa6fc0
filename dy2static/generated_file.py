"""Writes generated code to a real file that debuggers, ``inspect`` and tracebacks can open, and compiles it there."""

from __future__ import annotations

import ast
import atexit
import hashlib
import linecache
import os
import re
import shutil
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from types import CodeType

import gast

from dy2static.generate import generate
from dy2static.origin import OriginMap, build_map, register
from dy2static.source import FunctionSource, without_warnings

_lock = threading.Lock()
_folders: dict[int, Path] = {}


@dataclass(frozen=True)
class GeneratedFile:
    """A generated module: where it lies, its text, its compiled code, and the map back to the user's file."""

    path: str
    text: str
    code: CodeType
    """Of the module, or of one function in it where that is all that was kept."""
    origins: OriginMap


def write_generated(
    tree: gast.Module, source: FunctionSource, flags: int = 0, made_names: frozenset[str] = frozenset(), root: str = ""
) -> GeneratedFile:
    """Generate, write and compile ``tree``, whose nodes carry their places in ``source``.

    ``flags`` are the compiler flags of the user's ``from __future__`` imports; ``made_names`` are not the user's;
    ``root`` tells which code it is made from. The file is registered with ``linecache`` and with
    `dy2static.origin.location_of_frame`, and removed when the process ends.
    """
    text, plain, parsed = generate(tree)
    assert isinstance(parsed, ast.Module)
    origins = build_map(plain, parsed, source.file, source.lines, source.name, set(source.lambdas), made_names)
    origins.root = root
    path = put_file(text, origins, f"{source.module}.{source.qualname}", f"{source.first_line}\0{flags}")
    with without_warnings():
        code = compile(parsed, path, "exec", flags=flags, dont_inherit=True)
    return GeneratedFile(path, text, code, origins)


def put_file(text: str, origins: OriginMap, name: str, what: str) -> str:
    """Write a generated text, and register it; gives its path, which begins with ``name``. ``what``: what tells it from
    others, beside its text and the user's file."""
    digest = hashlib.sha256(f"{origins.file}\0{what}\0{text}".encode("utf-8", "surrogatepass"))
    stem = re.sub(r"[^A-Za-z0-9_.]+", "_", name)[-120:].strip("._")
    with _lock:
        path = cache_folder() / f"{stem}_{digest.hexdigest()[:10]}.py"
        path.write_text(text, encoding="utf-8", newline="\n")
    register(str(path), origins)
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    return str(path)


def cache_folder() -> Path:
    """This process's own folder of generated files (a forked child gets one of its own)."""
    process = os.getpid()
    if process not in _folders:
        folder = Path(tempfile.mkdtemp(prefix="dy2static_"))
        _folders[process] = folder
        atexit.register(_remove, process, folder)
    return _folders[process]


def _remove(process: int, folder: Path) -> None:
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
