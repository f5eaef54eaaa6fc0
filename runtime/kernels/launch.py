"""From kernels to calls: compiled when they are first launched, kept by what they were made of, launched on PyTorch's
current stream.

A ``Machine`` compiles and launches; here it is the CUDA device. Tests put another in its place, which compiles the same
text for the CPU.
"""

from __future__ import annotations

import hashlib
import struct
import tempfile
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch

from runtime import torch_internals
from runtime.kernels import prelude
from runtime.kernels.row_kernel import SHARED
from runtime.kernels.rows_in_cuda import PARTS, WIDTH
from runtime.kernels.text import Kernel
from runtime.native import cache
from runtime.torch_internals import CompileError

THREADS = 256
"""Threads of a block that computes elements."""
MOST_THREADS = 512
"""Threads of a block that has a row to itself."""
MOST_BLOCKS = 1 << 16
"""Blocks of a launch; each then does more than one part."""
FEW_ROWS, LONG_ROW = 64, 1 << 16
"""Rows that are fewer and longer are PyTorch's."""
NARROW = 1 << 30
"""Elements up to which they are counted in 32 bits."""

SHARES = ((1000, 8), (256, 4), (0, 2))
"""From so many rows on so many elements of a row are a thread's: many rows fill a device with few threads each
[m, H200, 64,000 rows of 1,000: 1,221 us with 2 elements a thread, 840 with 4, 696 with 8, 750 with 16]."""
MOST_PARTS = 1024
"""Blocks that add up their rows: each leaves a row of sums."""

Launch = Callable[[int, int, bytes, int], None]
"""Launches a kernel: blocks, threads, its parameters as words of 8 bytes, and bytes of each block's own memory."""


Carried = tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]
"""Of a part of a loop: the flag, and what is written into which memory before anybody looks at it."""


class Machine(Protocol):
    """What runs kernels."""

    kind: str
    """The kind of device whose tensors it takes, as PyTorch names it."""

    def is_there(self) -> bool:
        """Whether there is one."""

    def takes(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is plain memory of this kind of device."""

    def load(self, source: str, names: tuple[str, ...], device: torch.device) -> dict[str, Launch]:
        """The kernels of a source for a device. Errors raised: CompileError."""

    def stream(self, device: torch.device) -> int | None:
        """What is launched now goes to this stream; None where nothing may be recorded."""

    def record(self, function: Callable[..., tuple[Any, ...]], arguments: Sequence[Any], device: torch.device
               ) -> tuple[Callable[[], None], tuple[Any, ...]]:  # fmt: skip
        """Record what a function launches: what launches it again, and the results, whose memory that writes."""

    def record_loop(self, first: Callable[[], Carried], step: Callable[[], Carried], last: Callable[[], None],
                    device: torch.device) -> Callable[[], None]:  # fmt: skip
        """Record ``flag = first(); while flag: flag = step(); last()``, whose flags are bools of the device's. Errors
        raised: RuntimeError where that is not possible."""


class Device:
    """CUDA devices."""

    kind = "cuda"

    def is_there(self) -> bool:
        """Whether kernels can be compiled and launched."""
        return torch_internals.has_cuda()

    def takes(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is plain CUDA memory."""
        return torch_internals.is_plain_cuda_memory(tensor)

    def load(self, source: str, names: tuple[str, ...], device: torch.device) -> dict[str, Launch]:
        """Compiled by NVRTC, or found on disk. Errors raised: CompileError."""
        index = device.index or 0
        code = machine_code(source, torch_internals.capability(index))
        return torch_internals.load_cuda(code, names, index)

    def stream(self, device: torch.device) -> int | None:
        """PyTorch's current stream of the current device, unless somebody records it."""
        return torch_internals.stream_to_record(device.index or 0)

    def record(self, function: Callable[..., tuple[Any, ...]], arguments: Sequence[Any], device: torch.device
               ) -> tuple[Callable[[], None], tuple[Any, ...]]:  # fmt: skip
        """As a CUDA graph."""
        return torch_internals.record_cuda(function, arguments, device.index or 0)

    def record_loop(self, first: Callable[[], Carried], step: Callable[[], Carried], last: Callable[[], None],
                    device: torch.device) -> Callable[[], None]:  # fmt: skip
        """As a CUDA graph with a WHILE node."""
        return torch_internals.record_cuda_loop(first, step, last, device.index or 0)


def machine_code(source: str, architecture: str) -> bytes:
    """What a source is compiled to, kept on disk. Errors raised: CompileError."""
    made_of = f"{architecture}\0{torch.__version__}\0{torch.version.cuda}\0{source}"
    key = hashlib.sha256(made_of.encode()).hexdigest()
    known = cache.find(key, ".cubin")
    if known is not None:
        return known.read_bytes()
    code = torch_internals.compile_cuda(source, architecture)
    with tempfile.TemporaryDirectory(prefix="d2s-") as folder:
        made = Path(folder) / "made.cubin"
        made.write_bytes(code)
        try:
            cache.put(key, ".cubin", made)
        except OSError:
            pass  # it is compiled again next time
    return code


machine: Machine = Device()
"""Where kernels run."""


_Ready = tuple[Launch, int, int, int, Callable[..., bytes]]
"""What launches a kernel, blocks, threads, bytes of a block's own memory, and what makes words of its parameters."""
MOST_READY = 256


@dataclass(eq=False)
class Kernels:
    """The kernels of one region. They are compiled once for each device and each type that elements are counted in."""

    kernels: Sequence[Kernel]
    loaded: dict[tuple[Machine, torch.device, bool], dict[str, Launch]] = field(default_factory=dict)
    error: str = ""
    """Why they cannot be compiled."""
    _ready: dict[tuple[Machine, int, torch.device, int, int], _Ready] = field(default_factory=dict)
    """By number, device and sizes."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def text(self) -> str:
        """Their CUDA, without what all files begin with."""
        return "\n".join(kernel.text for kernel in self.kernels)

    def launch(self, number: int, device: torch.device, count: int, width: int, *parameters: Any) -> None:
        """Launch one on a device's current stream: so many elements or rows, the rows so long."""
        key = (machine, number, device, count, width)
        ready = self._ready.get(key)
        if ready is None:
            if len(self._ready) >= MOST_READY:
                self._ready.clear()
            ready = self._ready[key] = self._made_ready(self.kernels[number], device, count, width)
        run, blocks, threads, own, pack = ready
        if blocks:
            run(blocks, threads, pack(*[
                one.data_ptr() if isinstance(one, torch.Tensor) else 0 if one is None else one for one in parameters
            ]), own)  # fmt: skip

    def _made_ready(self, kernel: Kernel, device: torch.device, count: int, width: int) -> _Ready:
        """What a launch of so many elements or rows needs; no blocks where there is nothing to do."""
        nothing = (width if kernel.kind == "columns" else count) == 0  # the sums of no rows are zero
        blocks, threads = (0, 0) if nothing else shape(kernel, count, width)
        run = self._loaded(device, max(count, width) <= NARROW)[kernel.name]
        return run, blocks, threads, own_memory(kernel, width), struct.Struct("<" + kernel.signature).pack

    def prepare(self, device: torch.device) -> bool:
        """Whether they can be launched on a device; if not, a warning has said why."""
        if self.error:
            return False
        try:
            self._loaded(device, True)
        except CompileError as error:
            self.error = str(error)
            warnings.warn(f"{error}; the interpreter runs what was to be a kernel", RuntimeWarning, stacklevel=2)
            return False
        return True

    def _loaded(self, device: torch.device, narrow: bool) -> dict[str, Launch]:
        key = (machine, device, narrow)
        found = self.loaded.get(key)
        if found is None:
            with self._lock:
                source = prelude.source(self.text(), narrow=narrow)
                found = self.loaded[key] = machine.load(source, tuple(one.name for one in self.kernels), device)
        return found


def parts(rows: int) -> int:
    """How many blocks add up so many rows."""
    return min(rows, MOST_PARTS)


def own_memory(kernel: Kernel, width: int) -> int:
    """Bytes of a block's own memory for rows of so many elements.

    >>> row = Kernel("k", "", "rows", (), "", (4, 12))
    >>> own_memory(row, 100), own_memory(row, 5000), own_memory(row, 50000)
    (1200, 20000, 0)
    """
    return max((width * one for one in kernel.shared if width * one <= SHARED), default=0)


def is_long(rows: int, width: int) -> bool:
    """Whether rows are so few and so long that PyTorch's kernels, which share a row among blocks, are far quicker."""
    return rows < FEW_ROWS and width > LONG_ROW


def shape(kernel: Kernel, count: int, width: int) -> tuple[int, int]:
    """How many blocks, and how many threads each has.

    >>> row = Kernel("k", "", "rows", (), "")
    >>> shape(row, 1000, 70), shape(row, 3, 1), shape(row, 10**9, 10**6)
    ((1000, 32), (3, 32), (65536, 512))
    """
    if kernel.kind == "columns":
        return min(-(-width // WIDTH), MOST_BLOCKS), PARTS * WIDTH
    if kernel.kind == "elements":
        return min(-(-count // THREADS), MOST_BLOCKS), THREADS
    share = next(share for rows, share in SHARES if count >= rows)
    if kernel.kind == "sums":
        share = min(share, 4)  # of which a device has no more than it has sums
    threads = min(max(-(-width // (32 * share)), 1) * 32, MOST_THREADS)
    return parts(count) if kernel.kind == "sums" else min(count, MOST_BLOCKS), threads


__all__ = [
    "Carried", "Device", "Kernels", "Launch", "Machine", "is_long", "machine", "machine_code", "own_memory", "parts",
    "shape",
]  # fmt: skip
