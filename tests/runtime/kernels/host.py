"""A machine that runs kernels on the CPU: the very text that a GPU would get, compiled as C++ with words of CUDA's.

A launch is as on a device: blocks, threads, words. Tensors are those of the CPU.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from runtime import torch_internals
from runtime.kernels import launch
from runtime.kernels.launch import Carried, Launch
from runtime.kernels.prelude import PRELUDE
from runtime.torch_internals import CompileError

HEADER = Path(__file__).with_name("cuda_on_host.h")
COMPILER = shutil.which("g++")
_TURN = threading.Lock()
"""The words of CUDA's for a CPU are one block's at a time, whatever thread launches it."""
_FOLDER = tempfile.TemporaryDirectory(prefix="d2s-host-")
_HEAD = re.compile(r'extern "C" __global__ void (\w+)\((.*?)\) \{(.*?)^\}', re.S | re.M)


def entries(source: str) -> str:
    """C++ that calls each kernel with parameters given as words."""
    lines = []
    for name, parameters, body in _HEAD.findall(source):
        types = [one.rsplit(" ", 1)[0].replace("__restrict__", "").replace("const ", "") for one in
                 parameters.split(", ")] if parameters else []  # fmt: skip
        types = [one + "*" if one.count("*") < parameter.count("*") else one for one, parameter in
                 zip(types, parameters.split(", "))]  # fmt: skip
        given = ", ".join(f"*({one} *)p[{place}]" for place, one in enumerate(types))
        barriers = int("__syncthreads" in body or "block_join" in body)
        lines += [f"static void call_{name}(void **p) {{ {name}({given}); }}",
                  f'extern "C" int launch_{name}(unsigned blocks, unsigned threads, void **p, unsigned shared) '
                  f"{{ return run_kernel(call_{name}, blocks, threads, p, {barriers}, shared); }}"]  # fmt: skip
    return "\n".join(lines)


def build(source: str) -> ctypes.CDLL:
    """The kernels as a library. Errors raised: CompileError."""
    key = hashlib.sha256(source.encode()).hexdigest()
    path = Path(_FOLDER.name) / f"{key}.so"
    if not path.exists():
        text = path.with_suffix(".cpp")
        own = source.replace(PRELUDE, "")
        text.write_text(f'#include "{_header()}"\n{own}\n{entries(own)}\n')
        _compile("-shared", "-o", str(path), str(text))
    return ctypes.CDLL(str(path))


@functools.cache
def _header() -> Path:
    """What all files begin with, compiled once."""
    path = Path(_FOLDER.name) / "all.h"
    path.write_text(f'#include "{HEADER}"\n{PRELUDE}\n')
    _compile("-x", "c++-header", "-o", f"{path}.gch", str(path))
    return path


def _compile(*arguments: str) -> None:
    flags = ["-std=gnu++17", "-O1", "-ffp-contract=off", "-fwrapv", "-fno-strict-aliasing", "-w", "-fPIC"]
    done = subprocess.run([COMPILER or "g++", *flags, *arguments], capture_output=True, text=True)
    if done.returncode:
        raise CompileError(done.stderr)


class Card(launch.Device):
    """A CUDA device, where tests have one; see ``Host``."""

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.launches: list[tuple[str, int, int]] = []
        self.recordings = self.loops = 0

    def record(self, function: Callable[..., tuple[Any, ...]], arguments: Sequence[Any], device: torch.device
               ) -> tuple[Callable[[], None], tuple[Any, ...]]:  # fmt: skip
        """As ever; counted."""
        self.recordings += 1
        return super().record(function, arguments, device)

    def record_loop(self, first: Callable[[], Carried], step: Callable[[], Carried], last: Callable[[], None],
                    device: torch.device) -> Callable[[], None]:  # fmt: skip
        """As ever; counted."""
        self.loops += 1
        return super().record_loop(first, step, last, device)

    def load(self, source: str, names: tuple[str, ...], device: torch.device) -> dict[str, Launch]:
        """The kernels on the device, noted when they are launched."""
        self.sources.append(source)
        return {name: self._noting(name, one) for name, one in super().load(source, names, device).items()}

    def _noting(self, name: str, one: Launch) -> Launch:
        def launch(blocks: int, threads: int, words: bytes, shared: int) -> None:
            self.launches.append((name, blocks, threads))
            one(blocks, threads, words, shared)

        return launch


class Host:
    """The CPU as a machine for kernels. sources: what it compiled; launches: the kernels that ran, in their order."""

    kind = "cpu"

    def __init__(self) -> None:
        self.sources: list[str] = []
        self.launches: list[tuple[str, int, int]] = []
        self.recordings = self.loops = 0

    def is_there(self) -> bool:
        """Always."""
        return True

    def takes(self, tensor: torch.Tensor) -> bool:
        """Plain memory of the CPU."""
        return torch_internals.is_plain_memory(tensor)

    def load(self, source: str, names: tuple[str, ...], device: torch.device) -> dict[str, Launch]:
        """The kernels as functions of C++."""
        assert device.type == "cpu"
        self.sources.append(source)
        library = build(source)
        return {name: self._launcher(library, name) for name in names}

    def stream(self, device: torch.device) -> int | None:
        """There is one."""
        return 0

    def record(self, function: Callable[..., tuple[Any, ...]], arguments: Sequence[Any], device: torch.device
               ) -> tuple[Callable[[], None], tuple[Any, ...]]:  # fmt: skip
        """To replay it is to compute it again, into the same memory."""
        results = function(*arguments)
        self.recordings += 1

        def play() -> None:
            for one, other in zip(results, function(*arguments)):
                if isinstance(one, torch.Tensor):
                    one.copy_(other)

        return play, results

    def record_loop(self, first: Callable[[], Carried], step: Callable[[], Carried], last: Callable[[], None],
                    device: torch.device) -> Callable[[], None]:  # fmt: skip
        """The loop itself, each time."""
        self.loops += 1

        def carry(part: Callable[[], Carried]) -> bool:
            flag, to, given = part()
            torch_internals.copy_all(to, given)
            return bool(flag)

        def play() -> None:
            going = carry(first)
            while going:
                going = carry(step)
            last()

        return play

    def _launcher(self, library: ctypes.CDLL, name: str) -> Launch:
        function = getattr(library, f"launch_{name}")

        def launch(blocks: int, threads: int, words: bytes, shared: int) -> None:
            count = len(words) // 8
            values = ctypes.create_string_buffer(words, max(len(words), 1))
            base = ctypes.addressof(values)
            self.launches.append((name, blocks, threads))
            assert threads % 32 == 0, "blocks are whole warps"
            with _TURN:
                status = function(blocks, threads, (ctypes.c_void_p * max(count, 1))(*range(base, base + 8 * count, 8)),
                                  shared)  # fmt: skip
            if status == 1:
                raise RuntimeError("CUDA error: device-side assert triggered")
            assert status == 0, f"{name}: threads of a block wait at barriers that others do not reach ({status})"

        return launch
