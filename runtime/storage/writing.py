"""An Artefact as a JSON-able document, and the table of its tensors: writing. ``reading`` is the inverse."""

from __future__ import annotations

import inspect
from typing import Any

import torch

from runtime.ir.template import Again, KeyPath, TensorSlot
from runtime.ir.views import Hole, ViewStep
from runtime.storage.allowed import check_operators, namespaces
from runtime.storage.artefact import (
    Artefact,
    Attribute,
    Constant,
    Method,
    ModuleEntry,
    State,
    Target,
    TensorRef,
    Variant,
)
from runtime.storage.document import text_of
from runtime.storage.metadata import checked_metadata
from runtime.storage.operands import encode
from runtime.storage.serde import program_to_document
from runtime.storage.tensors import pack
from runtime.storage.trees import shared_paths
from runtime.storage.upgrade import VERSION
from runtime.version import __version__

FORMAT = "dy2static artefact"


def to_document(artefact: Artefact, source_locations: bool = True) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    """The artefact as a document, and the table of its tensors.

    Errors raised: StorageError for anything that cannot be saved.
    """
    variants = [variant for method in artefact.methods.values() for variant in method.all()]
    libraries = {name for variant in variants for name in namespaces(variant.program)}
    for variant in variants:
        check_operators(variant.program, libraries)
    metadata = checked_metadata(artefact.metadata)
    entries, table = pack(artefact.tensor_names(), [*artefact.tensors, *artefact.constants])
    document = {
        "format": FORMAT,
        "version": VERSION,
        "made_by": {"dy2static": __version__, "torch": str(torch.__version__)},
        "name": text_of(artefact.name),
        "metadata": metadata,
        "libraries": sorted(libraries),
        "modules": [_module(module) for module in artefact.modules],
        "tensors": entries[: len(artefact.tensors)],
        "constants": entries[len(artefact.tensors) :],
        "methods": {name: _method(method, source_locations) for name, method in artefact.methods.items()},
    }
    return document, table


def _module(module: ModuleEntry) -> dict[str, Any]:
    if module.same_as is not None:
        return {"path": text_of(module.path), "same_as": text_of(module.same_as)}
    return {
        "path": text_of(module.path),
        "type": text_of(module.type_name),
        "parameters": [[text_of(name), index] for name, index in module.parameters],
        "buffers": [[text_of(name), index, persistent] for name, index, persistent in module.buffers],
    }


def _method(method: Method, source_locations: bool) -> dict[str, Any]:
    variants = method.all()
    signature = []
    for argument in method.signature:
        entry: dict[str, Any] = {"name": text_of(argument.name), "kind": argument.kind}
        if argument.default is not inspect.Parameter.empty:
            entry["default"] = encode(argument.default, _special)
        signature.append(entry)
    return {
        "signature": signature,
        "modes": {mode: [variants.index(one) for one in method.of(mode)] for mode in method.variants},
        "variants": [_variant(one, source_locations) for one in variants],
    }


def _variant(variant: Variant, source_locations: bool) -> dict[str, Any]:
    trees = [variant.program.output, *(store.tree for store in variant.stores)]
    return {
        "program": program_to_document(variant.program, source_locations),
        "params": [_target(source) for source in variant.params],
        "template": [[text_of(name), encode(tree, _special)] for name, tree in variant.template],
        "views": [
            [position, text_of(view.source.name), [_step(step) for step in view.steps]]
            for position, view in variant.views.items()
        ],
        "stores": [[_target(store.target), encode(store.tree)] for store in variant.stores],
        "shared": [[_path(first), _path(again)] for first, again in shared_paths(trees)],
        "same": [[_path(result), _path(argument)] for result, argument in variant.same],
        "objects": [[text_of(name), kind, encode(items)] for name, (kind, items) in variant.objects.items()],
        "exceptions": [[text_of(name), base] for name, base in variant.exceptions.items()],
        "stopped": sorted(variant.stopped),
        "device": variant.device,
        **({"answers": [list(one) for one in variant.answers]} if variant.answers else {}),
        **({"settings": [list(one) for one in variant.settings]} if variant.settings else {}),
    }


def _step(step: ViewStep) -> list[Any]:
    kwargs = [[text_of(name), encode(value, _special)] for name, value in step.kwargs]
    return [step.name, [encode(arg, _special) for arg in step.args], kwargs, step.index]


def _target(target: Target) -> dict[str, Any]:
    if isinstance(target, State):
        return {"state": text_of(target.name)}
    if isinstance(target, Constant):
        return {"constant": target.index}
    if isinstance(target, Attribute):
        return {"attribute": [text_of(target.path), text_of(target.name)]}
    return {"passed": [_path(target.path), text_of(target.name)]}


def _path(path: KeyPath) -> list[Any]:
    return [encode(step) for step in path]


def _special(value: Any) -> Any:
    if isinstance(value, TensorSlot):
        return {"slot": value.index}
    if isinstance(value, Again):
        return {"again": value.number}
    if isinstance(value, TensorRef):
        return {"tensor": value.index}
    return {"hole": True} if isinstance(value, Hole) else None
