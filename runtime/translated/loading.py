"""The two ends of a file: a layer is loaded from one, and saved to one."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch

from runtime.autodiff import choose_autograd
from runtime.calling.backends import choose_backend
from runtime.calling.executors import executor
from runtime.executor.limits import Limits
from runtime.kinds import is_a
from runtime.storage.files import read_artefact, read_state, write_artefact
from runtime.storage.metadata import checked_metadata
from runtime.translated.layer import TranslatedLayer
from runtime.translated.located import located


@located
def load(
    path: str | os.PathLike[str], *, allow: Collection[str] = (), device: str | torch.device | None = None,
    autograd: str = "program", limits: Limits | None = None, backend: str | None = None,
) -> TranslatedLayer:  # fmt: skip
    """A layer or function that was saved, in eval mode. Nothing is unpickled, and no module of the user's is imported.

    Args:
        path: What was given to ``save``.
        allow: Libraries of custom operators that the file may use (``["mylib"]``); their operators must be registered.
        device: Where its tensors go; without it, where they were.
        autograd: ``"eager"``: operators run one by one under PyTorch's autograd, as with ``to_static``.
        limits: What the file may ask of the process, when it is loaded and in each run, for files that are not trusted:
            ``Limits(max_bytes=1 << 30, max_iterations=100_000)``. With ``max_bytes`` each operator
            takes about a tenth of a millisecond more. Only the interpreter keeps to them.
        backend: Who runs its Programs, for inference and training: ``"interpreter"``, ``"c"``, ``"auto"`` or
            ``"cuda"``, as with ``to_static``. Without it the environment variable ``DY2STATIC_BACKEND``, else the
            interpreter.

    Errors raised: StorageError if there is no such file, it is damaged or foreign, uses operators not allowed, or asks
    for more than ``limits`` allow (also from calls of the layer); ValueError for another ``autograd`` or ``backend``,
    or for ``limits`` with a backend that does not keep to them.
    """
    if is_a(allow, str):
        raise TypeError(f"allow takes a list of names, not the string {allow!r}")
    autograd = choose_autograd(autograd)
    if limits is not None and not is_a(limits, Limits):
        raise TypeError(f"limits takes Limits(...), not {limits!r}")
    chosen = choose_backend(backend if limits is None or backend is not None else "interpreter")
    if limits is not None and executor(chosen).limited is None:
        raise ValueError(f"limits are kept by the interpreter alone, not by backend {chosen!r}; leave one of them out")
    most = None if limits is None else limits.max_bytes
    return TranslatedLayer(read_artefact(path, allow, device, most), autograd, limits, chosen)


@located
def load_state(path: str | os.PathLike[str], *, device: str | torch.device | None = None) -> dict[str, torch.Tensor]:
    """The parameters and persistent buffers in a file, for ``load_state_dict`` of the class they came from.

    Only tensors are read, no Program: the file may hold operators that ``load`` would refuse. Tied ones are one tensor.

    Args:
        path: What was given to ``save``.
        device: Where the tensors go; without it, where they were.

    Errors raised: StorageError if there is no such file, or it is damaged or foreign.
    """
    return read_state(path, device)


@located
def save(
    layer: TranslatedLayer, path: str | os.PathLike[str], *, metadata: dict[str, Any] | None = None,
    source_locations: bool = True,
) -> Path:  # fmt: skip
    """Save a loaded layer as it is now; returns the file's path. ``dy2static.save`` saves everything else.

    ``metadata``: JSON values by name, in place of those that were loaded.

    Errors raised: StorageError if it cannot be written; TypeError for anything but a loaded layer.
    """
    if not is_a(layer, TranslatedLayer):
        kind = type(layer).__name__
        raise TypeError(f"runtime.save() saves a loaded layer, not {kind}; dy2static.save() traces and saves")
    artefact = layer.artefact()
    if metadata is not None:
        artefact.metadata = checked_metadata(metadata)
    return write_artefact(artefact, path, source_locations)
