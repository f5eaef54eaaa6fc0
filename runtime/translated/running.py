"""Saved Programs made runnable: compiled when first needed, once for all copies of a layer, and for another device."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import torch

from runtime.calling import Callee, Options, prepare
from runtime.executor.limits import Limits
from runtime.ir import Block, Operand, Operator
from runtime.kinds import is_a
from runtime.storage.artefact import Variant
from runtime.storage.trees import at_path, records
from runtime.storage.types import OBJECTS, exception_class, record_class

_lock = threading.Lock()
_ready: weakref.WeakKeyDictionary[Variant, dict[tuple[str, Limits | None, str], Callee]] = weakref.WeakKeyDictionary()


def callee(
    variant: Variant, device: str, limits: Limits | None = None, backend: str = "interpreter"
) -> Callee:
    """The variant made ready; ``device``: where its tensors are now, if all are there.

    What was explicitly put on the device where all tensors were when it was saved is put on the device of the call.
    """
    device = device if variant.device and device else variant.device
    key = (device, limits, backend)
    found = _ready.get(variant, {}).get(key)
    if found is None:
        with _lock:
            found = _ready.setdefault(variant, {}).get(key)
            if found is None:
                found = _ready[variant][key] = _prepare(variant, device, limits, backend)
    return found


def prepared(variants: Sequence[Variant], limits: Limits | None, backend: str) -> list[Callee]:
    """Those of the variants that have been made ready for such calls, on any device."""
    found = [(key, ready) for variant in variants for key, ready in list(_ready.get(variant, {}).items())]
    return [ready for key, ready in found if key[1:] == (limits, backend)]


def _prepare(variant: Variant, device: str, limits: Limits | None, backend: str) -> Callee:
    program = variant.program
    if device != variant.device:
        program = replace(program, block=on_device(program.block, torch.device(variant.device), torch.device(device)))
    trees = [program.output, *(store.tree for store in variant.stores)]
    exceptions = {name: exception_class(name, base) for name, base in variant.exceptions.items()}
    return Callee(
        program,
        prepare(program, Options(backend, exceptions, list(variant.views), limits=limits)),
        classes_of(variant, trees),
        dict(variant.views),
        {id(at_path(trees, result)): argument for result, argument in variant.same},
    )


def classes_of(variant: Variant, trees: Sequence[Any]) -> dict[str, Any]:
    """What the Records of output trees stand for, by type name."""
    found: dict[str, Any] = {name: OBJECTS[kind][1](items) for name, (kind, items) in variant.objects.items()}
    for tree in trees:
        for record in records(tree):
            cls = record_class(record)
            if cls is not None:
                found[record.type_name] = cls
    return found


def on_device(block: Block, old: torch.device, new: torch.device) -> Block:
    """The Block with one device in place of another among its constants; Variables are shared."""

    def moved(value: Operand) -> Operand:
        if is_a(value, torch.device):
            return new if value == old or (value.type == old.type and None in (value.index, old.index)) else value
        if type(value) is list:
            return [moved(item) for item in value]
        return tuple(moved(item) for item in value) if type(value) is tuple else value

    def operator(op: Operator) -> Operator:
        args = tuple(map(moved, op.args))
        kwargs = {name: moved(value) for name, value in op.kwargs.items()}
        return replace(op, args=args, kwargs=kwargs, blocks=tuple(on_device(one, old, new) for one in op.blocks))

    return Block(block.args, [operator(op) for op in block.ops], block.yields)


def device_of(tensors: Sequence[Any]) -> str:
    """The device where all tensors are, "" if they are on several or there are none."""
    devices = {str(tensor.device) for tensor in tensors if is_a(tensor, torch.Tensor)}
    return devices.pop() if len(devices) == 1 else ""


