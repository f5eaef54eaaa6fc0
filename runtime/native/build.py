"""From C to a library: ``$CC`` or ``cc``, else ``python -m ziglang cc``.

No text of a Program or file reaches the compiler: names, strings and numbers in C are ours.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import hashlib
import importlib.util
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import torch

from runtime import torch_internals
from runtime.native import cache
from runtime.native.kernels import kernel_file
from runtime.native.prelude import BLAS, OPENMP, PRELUDE, math_functions, slots

Callback = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)

_FLAGS = ["-std=gnu11", "-fPIC", "-fno-math-errno", "-fno-trapping-math", "-ffp-contract=off", "-fwrapv",
          "-fopenmp-simd", "-w", "-fno-strict-aliasing"]  # fmt: skip
_LEVEL = ["-O1", "-ftree-vectorize", "-fvect-cost-model=dynamic"]
"""Loops become vectors as at -O3; what else -O2 and -O3 do costs twice the time and gains nothing measurable."""
optimise: str | None = None
"""Another level, for tests that are about something else: ``-O1`` compiles in less time."""
strict = False
"""Whether a compiler that refuses is an error; else there is a warning, and the interpreter runs."""
EXTRA: tuple[str, ...] = ()
"""More flags: sanitizers, in tests."""


class BuildError(RuntimeError):
    """There is no compiler, it refuses what was generated, or what it made cannot be loaded."""


@dataclass(frozen=True)
class Built:
    """A library that is loaded, its file, and how long making it took: 0.0 if it was there."""

    library: ctypes.CDLL
    path: Path
    seconds: float


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


NO_COMPILER = "there is no C compiler (cc, $CC or the package ziglang)"


@functools.cache
def _announce() -> None:
    warnings.warn(f"{NO_COMPILER}: backend='c' runs Programs as the interpreter does", RuntimeWarning, stacklevel=2)


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
    left_out = () if _is_intel() else BLAS
    if not all(hasattr(library, name) for name in OPENMP):
        left_out = (*left_out, *OPENMP)
    for name in slots():
        if name in left_out:
            addresses.append(0)
            continue
        found = None if library is None else getattr(library, name, None)
        addresses.append(0 if found is None else ctypes.cast(found, ctypes.c_void_p).value or 0)
        if found is None and name.startswith("Sleef"):
            vectors = False
    return (ctypes.c_void_p * len(addresses))(*addresses), vectors


def _is_intel() -> bool:
    """Whether the processor is Intel's, where PyTorch's library for products is at its best."""
    return "GenuineIntel" in _processor()


@functools.cache
def _processor() -> str:
    """What ``-march=native`` depends on: the first processor, as the system describes it."""
    about = [platform.machine(), platform.processor(), torch.backends.cpu.get_cpu_capability()]
    try:
        described = Path("/proc/cpuinfo").read_text().split("\n\n")[0]
    except OSError:
        return "\n".join(about)
    about += [line for line in described.splitlines() if line.split(":")[0].strip() in _TOLD]
    return "\n".join(about)


_TOLD = ("vendor_id", "cpu family", "model", "model name", "stepping", "cache size", "flags", "Features",
         "CPU implementer", "CPU architecture", "CPU variant", "CPU part")  # fmt: skip


def _key(*parts: str) -> str:
    """What a file is found by: all that it is made of and by."""
    known = [*parts, _version(), _processor(), torch.__version__]
    return hashlib.sha256("\0".join(known).encode()).hexdigest()


class _Shelf:
    """The libraries of this process. Each is made by one thread, the others wait for it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.making: dict[str, threading.Lock] = {}
        self.built: dict[str, Built] = {}

    def own(self, key: str) -> threading.Lock:
        """The lock of one library."""
        with self.lock:
            return self.making.setdefault(key, threading.Lock())


_shelf = _Shelf()


def _after_fork() -> None:
    """A lock that a thread held is never given up in a child that has no such thread."""
    _shelf.lock = threading.Lock()
    _shelf.making = {}
    _compilers.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def build(functions: str, callback: ctypes._FuncPointer) -> Built:
    """The library of some C functions.

    Errors raised: BuildError with what the compiler says, if it refuses.
    """
    command = compiler()
    if command is None:
        raise BuildError(NO_COMPILER)
    table, vectors = _table()
    source = "\n".join([PRELUDE, math_functions(vectors), functions, _BIND])
    level = [optimise] if optimise else ["-O2"] if "clang" in _version() else _LEVEL
    openmp = [] if "clang" in _version() else ["-fopenmp"]  # whose calls the kernels' file hands on
    flags = [*_FLAGS, *level, "-march=native", *EXTRA]
    key = _key(source, *flags, *openmp, *command)
    found = _shelf.built.get(key)
    if found is not None:
        return found
    with _shelf.own(key):
        if key not in _shelf.built:
            began = time.perf_counter()
            path, seconds = cache.find(key, ".so"), 0.0
            if path is None:
                path = _compile([*command, *flags], source, openmp, _kernels(command, vectors), key)
                seconds = time.perf_counter() - began
            _shelf.built[key] = Built(_open(path, table, callback), path, seconds)
        return _shelf.built[key]


_BIND = """
void d2s_bind(callback call) { d2s_callback = call; }
int d2s_count(void) { return d2s_threads(); }
"""


def _compile(command: list[str], source: str, more: list[str], kernels: Path | None, key: str) -> Path:
    """Compile, and keep what was made: a library with the kernels, or the kernels' own object file. ``more``: flags for
    the compiler that the linker must not see, as it would look for a second OpenMP."""
    with tempfile.TemporaryDirectory(prefix="dy2static-cc-") as folder:
        (Path(folder) / "program.c").write_text(source)
        steps = [[*command, *more, "-c", "program.c", "-o", "program.o"]]
        made = "program.o"
        if kernels is not None:
            made = "made.so"
            steps.append([*command, "-shared", "program.o", str(kernels), "-o", made, "-lm"])
        for step in steps:
            code, said = _run(step, folder)
            if code:
                raise BuildError(f"the C compiler refuses what was generated:\n{said[:2000]}")
        try:
            return cache.put(key, ".so" if kernels is not None else ".o", Path(folder) / made)
        except OSError as error:
            raise BuildError(f"a compiled library cannot be kept: {error}") from error


_compilers: set[subprocess.Popen[str]] = set()
_stopped = False


def _run(command: list[str], folder: str) -> tuple[int, str]:
    """Run a compiler; its exit status, and what it says. Ctrl-C in the terminal is not for it."""
    if _stopped:
        raise BuildError("the process ends")
    try:
        running = subprocess.Popen(
            command, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            text=True, errors="replace", start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise BuildError(f"the C compiler cannot be run: {error}") from error
    _compilers.add(running)
    try:
        with running:
            _, said = running.communicate()
    except BaseException:
        _kill(running)
        raise
    finally:
        _compilers.discard(running)
    return running.returncode, said


def stop() -> None:
    """The process ends: compilers that run in other threads are stopped, and no more are started."""
    global _stopped
    _stopped = True
    for running in tuple(_compilers):
        _kill(running)


def _kill(running: subprocess.Popen[str]) -> None:
    """End a compiler, with the processes that it started."""
    with contextlib.suppress(ProcessLookupError):
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)


def _kernels(command: tuple[str, ...], vectors: bool) -> Path:
    """The object file of products and vector functions, the same for all libraries."""
    source = kernel_file(vectors)
    flags = [*_FLAGS, "-ffp-contract=fast", "-O2", "-march=native"]
    key = _key(source, *flags, *command)
    with _shelf.own(key):
        found = cache.find(key, ".o")
        return _compile([*command, *flags], source, [], None, key) if found is None else found


def _open(path: Path, table: ctypes.Array[ctypes.c_void_p], callback: ctypes._FuncPointer) -> ctypes.CDLL:
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise BuildError(f"a compiled library cannot be loaded: {error}") from error
    library.d2s_bind(callback)
    library.d2s_bind_kernels(table)
    return library


__all__ = ["NO_COMPILER", "BuildError", "Built", "Callback", "available", "build", "compiler"]
