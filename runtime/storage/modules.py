"""A tree of modules as an artefact's entries, and the tensors in it."""

from __future__ import annotations

import torch

from runtime.storage.artefact import ModuleEntry


def describe_modules(root: torch.nn.Module) -> tuple[list[ModuleEntry], list[torch.Tensor]]:
    """Every module below ``root``, in order, and their parameters and buffers, each tensor once.

    >>> entries, tensors = describe_modules(torch.nn.Sequential(torch.nn.Linear(2, 3)))
    >>> [entry.path for entry in entries], entries[1].parameters, len(tensors)
    (['', '0'], [('weight', 0), ('bias', 1)], 2)
    """
    entries: list[ModuleEntry] = []
    tensors: list[torch.Tensor] = []
    numbers: dict[int, int] = {}
    paths: dict[int, str] = {}

    def number(tensor: torch.Tensor | None) -> int | None:
        if tensor is None:
            return None
        index = numbers.setdefault(id(tensor), len(tensors))
        if index == len(tensors):
            tensors.append(tensor)
        return index

    def visit(module: torch.nn.Module, path: str) -> None:
        type_name = getattr(module, "original_type_name", type(module).__name__)
        entry = ModuleEntry(path, type_name)
        entries.append(entry)
        if id(module) in paths:
            entry.same_as = paths[id(module)]
            return
        paths[id(module)] = path
        slots = vars(module)
        entry.parameters = [(name, number(tensor)) for name, tensor in slots["_parameters"].items()]
        hidden = slots["_non_persistent_buffers_set"]
        entry.buffers = [(name, number(tensor), name not in hidden) for name, tensor in slots["_buffers"].items()]
        for name, child in slots["_modules"].items():
            if child is not None:
                visit(child, f"{path}.{name}".lstrip("."))

    visit(root, "")
    return entries, tensors
