"""A tree of modules as an artefact's entries, and the tensors in it."""

from __future__ import annotations

import torch

from runtime.errors import StorageError
from runtime.storage.artefact import ModuleEntry

_MOST_NAMES = 1_000_000


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


def state_names(entries: list[ModuleEntry]) -> dict[str, int]:
    """Every parameter and persistent buffer by its name and in its place in the module's ``state_dict()``.

    Errors raised: StorageError if there are more than a million: modules that stand in others several times can stand
    for more names than a process can hold.

    >>> linear = torch.nn.Linear(2, 3)
    >>> state_names(describe_modules(torch.nn.Sequential(linear, linear))[0])
    {'0.weight': 0, '0.bias': 1, '1.weight': 0, '1.bias': 1}
    """
    by_path = {entry.path: entry for entry in entries}
    inside: dict[str, list[str]] = {}
    for entry in entries[1:]:
        inside.setdefault(entry.path.rpartition(".")[0], []).append(entry.path)
    found: dict[str, int] = {}
    todo = [("", "")]
    while todo:
        path, prefix = todo.pop()
        entry = by_path[path]
        if entry.same_as is not None:
            path = entry.same_as
            entry = by_path[path]
        kept = [(name, index) for name, index, persistent in entry.buffers if persistent]
        found.update({prefix + name: index for name, index in (*entry.parameters, *kept) if index is not None})
        if len(found) + len(todo) > _MOST_NAMES:
            raise StorageError("the modules of the file have more than a million names", code="D2S511")
        todo += [(one, f"{prefix}{one.rpartition('.')[2]}.") for one in reversed(inside.get(path, ()))]
    return found


__all__ = ["describe_modules", "state_names"]
