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
    digest = hashlib.sha256(f"{source.file}\0{source.first_line}\0{flags}\0{text}".encode("utf-8", "surrogatepass"))
    stem = re.sub(r"[^A-Za-z0-9_.]+", "_", f"{source.module}.{source.qualname}")[-120:].strip("._")
    with _lock:
        path = cache_folder() / f"{stem}_{digest.hexdigest()[:10]}.py"
        path.write_text(text, encoding="utf-8", newline="\n")
    origins = build_map(plain, parsed, source.file, source.lines, source.name, set(source.lambdas), made_names)
    origins.root = root
    register(str(path), origins)
    linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    with without_warnings():
        code = compile(parsed, str(path), "exec", flags=flags, dont_inherit=True)
    return GeneratedFile(str(path), text, code, origins)


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
