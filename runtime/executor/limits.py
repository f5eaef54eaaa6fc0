"""Limits on what a Program may ask of the process, and the meter of one run: for files from somebody not trusted.

    Limits(max_bytes=1 << 30, max_iterations=100_000)

``limited`` writes code that counts every iteration and looks at numbers, texts and lists; ``watch`` looks at tensors
before there is memory for them.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import dataclass
from typing import NoReturn

import torch

from runtime.errors import StorageError


@dataclass(frozen=True)
class Limits:
    """What a loaded Program may ask of the process; None: anything.

    Attributes:
        max_bytes: Bytes of tensors that one run has at a time, beside its arguments, parameters and what was made
            before; also of the tensors in the file, and of a list that the Program makes. Numbers and texts are bounded
            to 64 KiB, or less. What an operator needs inside while it computes is not counted.
        max_iterations: Iterations in one run, of all of its loops together. A backward is a run of its own.

    Raises:
        ValueError: A limit below zero.
    """

    max_bytes: int | None = None
    max_iterations: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_bytes", "max_iterations"):
            value = getattr(self, name)
            if value is not None and (type(value) is not int or value < 0):
                raise ValueError(f"{name} is a whole number or None, not {value!r}")


class Meter:
    """What one run has asked for so far."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.iterations = 0
        self.bytes = 0
        self._lock = threading.Lock()
        self._known: set[int] = set()

    def tick(self) -> None:
        """One more iteration. Errors raised: StorageError (D2S524) if there were enough."""
        self.iterations += 1
        limit = self.limits.max_iterations
        if limit is not None and self.iterations > limit:
            raise StorageError(
                f"the loaded Program goes on after {limit} iterations of its loops",
                hint="If you trust the file, allow more: load(path, limits=Limits(max_iterations=...)).",
                code="D2S524",
            )

    def require(self, more: int, what: str) -> None:
        """Errors raised: StorageError (D2S523) if so many more bytes are too many."""
        limit = self.limits.max_bytes
        if limit is not None and self.bytes + more > limit:
            too_large(what, more, self.bytes, limit)

    def require_alone(self, size: int, what: str) -> None:
        """Errors raised: StorageError (D2S523) if something that takes time, though no memory, is too large."""
        limit = self.limits.max_bytes
        if limit is not None and size > limit:
            too_large(what, size, 0, limit)

    def made(self, tensor: torch.Tensor) -> None:
        """Count a tensor's memory, until nobody has it."""
        if tensor.layout is not torch.strided or tensor.is_meta:
            return
        storage = tensor.untyped_storage()
        key, size = id(storage), storage.nbytes()
        with self._lock:
            if key in self._known:
                return
            self._known.add(key)
            self.bytes += size
        weakref.finalize(storage, self._gone, key, size)

    def known(self, tensor: torch.Tensor) -> None:
        """Leave out memory that there was before the run."""
        if tensor.layout is torch.strided:
            storage = tensor.untyped_storage()
            self._known.add(id(storage))
            weakref.finalize(storage, self._known.discard, id(storage))

    def _gone(self, key: int, size: int) -> None:
        with self._lock:
            self._known.discard(key)
            self.bytes -= size


def too_large(what: str, size: int, there: int, limit: int) -> NoReturn:
    """Raise the error of a limit on memory."""
    beside = f" beside {there}" if there else ""
    raise StorageError(
        f"the loaded Program asks for {size} bytes{beside}, {what}, and the limit is {limit}",
        hint="If you trust the file, allow more: load(path, limits=Limits(max_bytes=...)).",
        code="D2S523",
    )


OBJECT = 64
"""Bytes that an item of a list takes, about; a tensor that is a view of another takes more."""

__all__ = ["OBJECT", "Limits", "Meter", "too_large"]
