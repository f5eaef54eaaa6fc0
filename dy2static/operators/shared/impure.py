"""What a trace would freeze without a word: host randomness, time, files, input."""

from __future__ import annotations

import contextlib
import io
import os
import random
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

import torch

from dy2static.operators.shared.staging import Session, active
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import module_name, unasked

_MODULES = {
    "random": "Python's random numbers", "time": "the time", "secrets": "random numbers", "uuid": "random identifiers",
    "_random": "Python's random numbers", "numpy.random": "NumPy's random numbers",
}  # fmt: skip
_FILE_METHODS = frozenset({
    "read", "readline", "readlines", "write", "writelines", "seek", "tell", "truncate", "flush", "close", "read1",
    "readinto", "getvalue", "getbuffer",
})  # fmt: skip
_CLOCKS = ("now", "today", "utcnow")
_BUILTINS = {id(open): "a file", id(input): "the terminal", id(os.urandom): "random bytes"}
_SEEDS = ("manual_seed", "manual_seed_all", "seed", "seed_all", "initial_seed", "fork_rng", "get_rng_state",
          "get_rng_state_all", "set_rng_state", "set_rng_state_all")  # fmt: skip
"""Functions of torch about the state of its random generators."""
_REDIRECTS = (contextlib.redirect_stdout, contextlib.redirect_stderr)
_SYSTEM = {
    "posix": ("listdir", "scandir", "stat", "lstat", "getpid", "getppid", "getcwd", "access", "getloadavg", "urandom"),
    "genericpath": ("exists", "isfile", "isdir", "getsize", "getmtime", "getatime", "getctime"),
    "os": ("walk",),
}
"""Functions that ask the system, by module."""
_STARTING = ("start", "submit", "map", "apply", "apply_async")
_THREADS = ("threading.", "concurrent.futures.", "multiprocessing.")
"""Methods that let something run beside the caller, and where the classes are that have them."""
_QUIET = ("sleep", "struct_time", "strftime", "strptime", "gmtime_r", "UUID", "SystemRandom")
"""Functions of those modules that read nothing."""


def check(session: Session, f: Any) -> None:
    """Refuse a call whose result would be the same in every run of the Program.

    Raises:
        TraceError: ``f`` reads something that changes from run to run.
    """
    what = _BUILTINS.get(id(f))
    owner = unasked(f, "__self__")
    _check_seed(session, f, owner)
    _check_settings(session, f, unasked(f, "__name__", ""))
    name = unasked(f, "__name__", type(f).__name__)
    if what is None and name not in _QUIET and not str(unasked(f, "__qualname__", "")).startswith("UUID."):
        module = unasked(f, "__module__")
        if is_a(module, str):
            what = _MODULES.get(module) or ("NumPy's random numbers" if module.startswith("numpy.random") else None)
        if what is None and owner is not None and not is_a(owner, type):
            kind = module_name(type(owner))
            if is_a(owner, random.Random):
                what = "Python's random numbers"
            elif kind.startswith("numpy.random"):
                what = "NumPy's random numbers"
        if what is None and name in _CLOCKS and unasked(owner, "__module__", "") == "datetime":
            what = "the time"
    if what is not None:
        refuse(session, f"{name}()", what)
    _check_effects(session, f, owner, name)


def _check_effects(session: Session, f: Any, owner: Any, name: str) -> None:
    """Refuse what a run of the Program would not do again: files, redirected output, the system."""
    module = str(unasked(f, "__module__", "") or "")
    if any(f is one for one in _REDIRECTS):
        raise session.error(
            f"{name}() inside a converted function: what the Program prints later is not redirected",
            hint="Redirect around the call of the converted function.", code="D2S214")
    if is_a(owner, io.IOBase) and name in _FILE_METHODS and id(owner) not in session.objects.created:
        if owner in (sys.stdout, sys.stderr) and name == "flush":
            return
        raise session.error(
            f"{name}() of a file inside a converted function: a run of the Program would not repeat it",
            hint="Do it outside, or use print.", code="D2S214")
    if type(owner).__module__ == "_csv" and name in ("writerow", "writerows"):
        raise session.error(
            f"{name}() of a csv writer inside a converted function: a run of the Program would not repeat it",
            hint="Do it outside, or use print.", code="D2S214")
    if name in _STARTING and any(f"{cls.__module__}.".startswith(_THREADS) for cls in type(owner).__mro__):
        raise session.error(
            f"{name}() of a {type(owner).__name__} inside a converted function: no other thread can be traced",
            hint="Start it outside, or do the work in a loop.", code="D2S214")
    if name in _SYSTEM.get(module, ()):
        refuse(session, f"{name}()", "the state of the system")


_SETTINGS = frozenset({
    "set_default_dtype", "set_default_device", "set_default_tensor_type", "set_num_threads", "set_num_interop_threads",
    "set_printoptions", "set_float32_matmul_precision", "use_deterministic_algorithms", "set_warn_always",
    "set_deterministic_debug_mode", "set_flush_denormal", "set_rng_state", "printoptions",
})  # fmt: skip
"""Functions of torch that change how the process works from then on."""
_SAVING = ("save", "export")


def _check_settings(session: Session, f: Any, name: str) -> None:
    """Refuse a change of PyTorch's settings, or a file written by it: no run of the Program would repeat it."""
    module = str(unasked(f, "__module__", "") or "")
    settings = name in _SETTINGS and module.startswith("torch")
    if settings or (name in _SAVING and module in ("torch.serialization", "torch.onnx", "torch.jit")):
        raise session.error(
            f"torch.{name}() is called inside a converted function: it would happen while tracing only",
            hint="Do it outside, before or after the call.", code="D2S214")


@contextlib.contextmanager
def watched_seeds(session: Session) -> Iterator[None]:
    """For the length of one trace: refuse what code that is not converted does to the state of PyTorch's generator."""

    def meet(name: str) -> None:
        if active() is session:
            raise session.error(
                f"PyTorch's random generator is asked for {name}(): it would happen while tracing only, not in each "
                "run of the Program",
                hint="Seed outside, before the call, or leave the function that does it out of the converted one.",
                code="D2S214",
            )

    with torch_internals.watched_generator(meet):
        yield


def _check_seed(session: Session, f: Any, owner: Any) -> None:
    """Refuse what makes, sets or reads a random generator: the Program would not do it again."""
    name = unasked(f, "__name__", "")
    ours = str(unasked(f, "__module__", "") or "").startswith("torch.") and name in _SEEDS
    if f is torch.Generator or is_a(owner, torch.Generator) or ours:
        what = "a torch.Generator is made" if f is torch.Generator else f"{name}() is called"
        raise session.error(
            f"{what} inside a converted function: it would happen while tracing only, not in each run of the Program",
            hint="Do it outside, before the call; random functions take the Generator from the caller.", code="D2S214",
        )


def refuse(session: Session, name: str, what: str) -> NoReturn:
    """The located error for reading ``what`` while tracing."""
    raise session.error(
        f"{name} reads {what} inside a converted function: the Program would repeat what it gave while tracing",
        hint="Do it outside and pass the result in as an argument; for random numbers use torch's (torch.rand, "
        "torch.randint), which are drawn anew at each run.",
        code="D2S214",
    )
