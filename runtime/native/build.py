"""From C to a library: ``$CC`` or ``cc``, else ``python -m ziglang cc``.

No text of a Program or file reaches the compiler: names, strings and numbers in C are ours.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from pathlib import Path

import torch

from runtime import torch_internals
from runtime.native.kernels import kernel_file
from runtime.native.prelude import PRELUDE, math_functions, slots

CACHE = "DY2STATIC_CACHE"
"""The environment variable that names a folder for compiled libraries; without it they live as long as the process."""

Callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

_FLAGS = ["-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv",
          "-fopenmp-simd", "-w", "-fno-strict-aliasing"]  # fmt: skip
_LEVEL = ["-O1", "-ftree-vectorize", "-fvect-cost-model=dynamic"]
"""Loops become vectors as at -O3; what else -O2 and -O3 do costs twice the time and gains nothing measurable."""
strict = False
"""Whether a compiler that refuses is an error; else there is a warning, and the interpreter runs."""
EXTRA: tuple[str, ...] = ()
"""More flags: sanitizers, in tests."""


class BuildError(RuntimeError):
    """The compiler refuses what was generated."""


@functools.cache
def compiler() -> tuple[str, ...] | None:
    """The command of a C compiler; None if there is none."""
    chosen = os.environ.get("CC")
    if chosen and shutil.which(shlex.split(chosen)[0]):
        return tuple(shlex.split(chosen))
    if shutil.which("cc"):
        return ("cc",)
    if importlib.util.find_spec("ziglang") is not None:
        return (sys.executable, "-m", "ziglang", "cc")
    return None


@functools.cache
def _announce() -> None:
    warnings.warn("there is no C compiler (cc, $CC or the package ziglang): backend='c' runs Programs as the "
                  "interpreter does", RuntimeWarning, stacklevel=2)  # fmt: skip


def available() -> bool:
    """Whether C can be compiled here; if not, one warning says so."""
    if compiler() is None:
        _announce()
        return False
    return True


@functools.cache
def _version() -> str:
    command = compiler()
    assert command is not None
    done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr


@functools.cache
def _table() -> tuple[ctypes.Array[ctypes.c_void_p], bool]:
    """The addresses that libraries are bound to, and whether PyTorch's vector functions are among them."""
    library = torch_internals.cpu_library()
    addresses: list[int] = []
    vectors = platform.machine() in ("x86_64", "AMD64") and torch.backends.cpu.get_cpu_capability() in (
        "AVX2", "AVX512")  # fmt: skip
    for name in slots():
        found = None if library is None else getattr(library, name, None)
        addresses.append(0 if found is None else ctypes.cast(found, ctypes.c_void_p).value or 0)
        if found is None and name.startswith("Sleef"):
            vectors = False
    return (ctypes.c_void_p * len(addresses))(*addresses), vectors


def has_products() -> bool:
    """Whether PyTorch's library gives matrix products."""
    return bool(_table()[0][0] and _table()[0][1])


_lock = threading.Lock()
_libraries: dict[str, ctypes.CDLL] = {}


@functools.cache
def _folder() -> Path:
    chosen = os.environ.get(CACHE)
    if chosen:
        path = Path(chosen)
        path.mkdir(parents=True, exist_ok=True)
        return path
    made = tempfile.TemporaryDirectory(prefix="dy2static-")
    globals()["_kept"] = made  # removed when the process ends
    return Path(made.name)


def build(functions: str, callback: ctypes._FuncPointer) -> ctypes.CDLL:
    """The library of some C functions.

    Errors raised: BuildError with what the compiler says, if it refuses.
    """
    command = compiler()
    assert command is not None
    table, vectors = _table()
    source = "\n".join([PRELUDE, math_functions(vectors), functions, _BIND])
    level = ["-O2"] if "clang" in _version() else _LEVEL
    flags = [*_FLAGS, *level, "-march=native", *EXTRA]
    key = hashlib.sha256("\0".join([source, *flags, *command, _version(), torch.__version__]).encode()).hexdigest()
    with _lock:
        found = _libraries.get(key)
        if found is None:
            path = _folder() / f"{key}.so"
            if not path.exists():
                _compile([*command, *flags, "-shared"], source, [_kernels(command, vectors)], path)
            found = _libraries[key] = _open(path, table, callback)
        return found


_BIND = """
void d2s_bind(callback call) { d2s_callback = call; }
"""


def _compile(command: list[str], source: str, objects: list[Path], path: Path) -> None:
    """Compile to a file, which appears whole or not at all."""
    with tempfile.TemporaryDirectory(prefix="dy2static-cc-") as folder:
        (Path(folder) / "program.c").write_text(source)
        made = Path(folder) / "made"
        last = [] if "-c" in command else ["-lm"]
        done = subprocess.run([*command, "program.c", *map(str, objects), "-o", str(made), *last], cwd=folder,
                              capture_output=True, text=True, check=False)  # fmt: skip
        if done.returncode:
            raise BuildError(f"the C compiler refuses what was generated:\n{done.stderr[:2000]}")
        descriptor, name = tempfile.mkstemp(dir=path.parent)
        os.close(descriptor)
        shutil.copyfile(made, name)
        os.replace(name, path)


def _kernels(command: tuple[str, ...], vectors: bool) -> Path:
    """The object file of products and vector functions, the same for all libraries."""
    source = kernel_file(vectors)
    key = hashlib.sha256("\0".join([source, *command, _version()]).encode()).hexdigest()
    path = _folder() / f"{key}.o"
    if not path.exists():
        _compile([*command, *_FLAGS, "-ffp-contract=fast", "-O2", "-march=native", "-c"], source, [], path)
    return path


def _open(path: Path, table: ctypes.Array[ctypes.c_void_p], callback: ctypes._FuncPointer) -> ctypes.CDLL:
    library = ctypes.CDLL(str(path))
    library.d2s_bind(callback)
    library.d2s_bind_kernels(table)
    return library


__all__ = ["Callback", "available", "build", "compiler", "has_products"]
