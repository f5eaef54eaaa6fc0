"""A saved file's card: what it says of itself, line by line.

    file       net.d2s, 2317 bytes, sha256 0f3c...
    forward    forward(x, limit=1.0) for train and eval
               x is float32[s0, 3]; limit is 1.0
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import torch

from runtime.ir import Program, TensorType
from runtime.ir.template import TensorSlot
from runtime.storage.answers import question
from runtime.storage.artefact import Artefact, Method, Variant
from runtime.storage.files import PROGRAM, TENSORS, checksums, found_path
from runtime.storage.reading import signature_of
from runtime.storage.trees import parts
from runtime.storage.upgrade import VERSION

_WIDTH = 12


def card(artefact: Artefact, path: str) -> Iterator[str]:
    """What is known of a file without running it."""
    file = found_path(path)
    sums = checksums(file)
    yield from _entry("file", f"{file.name}, {file.stat().st_size} bytes")
    yield from _entry("checksums", f"whole {sums['']}", f"{PROGRAM} {sums[PROGRAM]}", f"{TENSORS} {sums[TENSORS]}")
    made = ", ".join(f"{name} {version}" for name, version in artefact.made_by.items())
    yield from _entry("made by", f"{made}; read as version {VERSION} of the format")
    yield from _entry("holds", artefact.name)
    if artefact.metadata:
        yield from _entry("metadata", *json.dumps(artefact.metadata, indent=1, ensure_ascii=False).splitlines())
    yield from _entry("tensors", *_tensors(artefact))
    for method in artefact.methods.values():
        yield from _entry("method", *_method(method, artefact.constants))


def _entry(name: str, *lines: str) -> Iterator[str]:
    for index, line in enumerate(lines):
        shown = "".join(char if char.isprintable() else "?" for char in line)  # a file may hold what upsets a terminal
        yield f"{'' if index else name:{_WIDTH}}{shown}"


def _tensors(artefact: Artefact) -> Iterator[str]:
    tensors = [*artefact.tensors, *artefact.constants]
    size = sum(one.numel() * one.element_size() for one in tensors)
    numbers = sum(one.numel() for one in tensors)
    yield f"{len(tensors)} with {numbers} numbers in {size} bytes"
    for name, tensor in zip(artefact.tensor_names(), tensors):
        yield f"{name} {_type(tensor.dtype, tensor.shape)}{', trained' if tensor.requires_grad else ''}"


def _method(method: Method, constants: list[torch.Tensor]) -> Iterator[str]:
    yield f"{method.name}{signature_of(method, constants)}"
    for variant in method.all():
        modes = [mode for mode in method.variants if any(one is variant for one in method.of(mode))]
        yield f"for {' and '.join(modes)}: {'; '.join(_arguments(variant)) or 'no arguments'}"
        asked = [*_answers(variant), *_settings(variant)]
        if asked:
            yield f"  where {', '.join(asked)}"
        yield f"  {_operators(variant.program)}"


def _answers(variant: Variant) -> Iterator[str]:
    names = [one.name for one in variant.program.inputs] + [one.name for one in variant.program.params]
    for position, name, value in variant.answers:
        asked = question(name)
        if asked is not None:
            yield f"'{names[position]}' {asked.said(value)}"


def _settings(variant: Variant) -> Iterator[str]:
    for name, value in variant.settings:
        yield f"{name} is {value}"


def _arguments(variant: Variant) -> Iterator[str]:
    for name, tree in variant.template:
        yield f"{name} is {_spelled(tree, variant.program)}"


def _spelled(tree: Any, program: Program) -> str:
    if isinstance(tree, TensorSlot):
        type_ = program.inputs[tree.index].var.type
        return _type(type_.dtype, type_.shape) if isinstance(type_, TensorType) else str(type_)
    inside = parts(tree)
    if inside is None:
        return repr(tree) if not hasattr(tree, "number") else "one of those before"
    if type(tree) in (list, tuple):
        return f"{type(tree).__name__} of {', '.join(_spelled(item, program) for _, item in inside) or 'nothing'}"
    return "{" + ", ".join(f"{key!r}: {_spelled(item, program)}" for key, item in inside) + "}"


def _type(dtype: torch.dtype | None, shape: Any) -> str:
    known = "any dtype" if dtype is None else str(dtype).removeprefix("torch.")
    return f"{known}[...]" if shape is None else f"{known}[{', '.join(map(str, shape))}]"


def _operators(program: Program) -> str:
    counts = Counter(op.name for op in program.block.walk())
    listed = ", ".join(f"{name}{f' x{count}' if count > 1 else ''}" for name, count in sorted(counts.items()))
    return f"{sum(counts.values())} operators: {listed}" if counts else "no operators"


__all__ = ["card"]
