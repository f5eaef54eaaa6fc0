"""The parts of a loaded layer, and whether they are still those that its Programs run.

A Program finds tensors by the places they had when it was saved:

    layer.act = torch.nn.GELU()          another module than the one that was saved: an error
    layer.head.weight = Parameter(...)   was one tensor with layer.embed.weight, and is another one: an error
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import torch

from runtime.errors import SignatureError
from runtime.kinds import is_a
from runtime.storage.artefact import Artefact
from runtime.translated.located import located


class Part(torch.nn.Module):
    """A module inside a loaded layer: it holds parameters and buffers, and cannot be called alone."""

    def __init__(self, type_name: str, place: str) -> None:
        super().__init__()
        self.original_type_name = type_name
        self.place = place

    @located
    def forward(self, *args: Any, **kwargs: Any) -> NoReturn:
        """Errors raised: SignatureError, always."""
        raise SignatureError(
            f"this {self.original_type_name} is part of a loaded layer and cannot be called alone",
            hint="Call the loaded layer, or save this part as a layer of its own.",
            code="D2S311",
        )

    def _get_name(self) -> str:
        return self.original_type_name


class Places:
    """What stood where when a layer was saved."""

    def __init__(self, artefact: Artefact) -> None:
        self._parts = {entry.path for entry in artefact.modules if entry.path and entry.same_as is None}
        self._aliases = {entry.path: entry.same_as for entry in artefact.modules if entry.same_as is not None}
        full = [entry.path for entry in artefact.modules if entry.parameters or entry.buffers]
        self._bare = tuple(
            path for path in self._parts if not any(one == path or one.startswith(f"{path}.") for one in full)
        )
        """Parts without tensors: no Program names them, so each may depend on them."""
        self._empty: list[tuple[str, str]] = []
        """Where None was: no Program names that either."""
        names: dict[int, list[str]] = {}
        for entry in artefact.modules:
            prefix = f"{entry.path}." if entry.path else ""
            indices = [*entry.parameters, *((name, index) for name, index, _ in entry.buffers)]
            for name, index in indices:
                if index is None:
                    self._empty.append((entry.path, name))
                else:
                    names.setdefault(index, []).append(f"{prefix}{name}")
        self._ties = [tuple(tied) for tied in names.values() if len(tied) > 1]
        self._tied = {name: tied for tied in self._ties for name in tied}

    def check_parts(self, modules: Mapping[str, torch.nn.Module]) -> None:
        """Errors raised: SignatureError if a part without tensors, or one of two places of a part, is another now, or
        a tensor is where None was."""
        for path in self._bare:
            above = path.rpartition(".")[0]
            if above == "" or _is_at(modules.get(above), above):
                self.check_part(path, modules.get(path))
        for path, same_as in self._aliases.items():
            if modules.get(path) is not modules.get(same_as):
                refuse(path, f"is another module than '{same_as}'", "They were one when it was saved.")
        for path, name in self._empty:
            module = modules.get(path)
            if module is not None and any(slots.get(name) is not None for slots in _slots(module)):
                raise SignatureError(
                    f"'{path}{'.' if path else ''}{name}' was None when the layer was saved, and is a tensor now",
                    hint="The Program was made without it. Put the tensor in the original layer and save that.",
                    code="D2S309",
                )

    def check_part(self, path: str, module: torch.nn.Module | None) -> None:
        """Errors raised: SignatureError if another module, or none, is where a part was saved."""
        if module is None:
            raise SignatureError(
                f"the part '{path}' was removed from the loaded layer",
                hint="Load it anew; the Program runs all its parts.",
                code="D2S309",
            )
        if path in self._parts and not _is_at(module, path):
            shown = f"the part '{module.place}'" if is_a(module, Part) else f"a {type(module).__name__}"
            refuse(path, f"was replaced by {shown}",
                   "Replace it in the original and save that; other values can be given by load_state_dict().")

    def check_ties(self, name: str, modules: Mapping[str, torch.nn.Module]) -> None:
        """Errors raised: SignatureError if a tensor had several names when it was saved, and these are two now."""
        tied = self._tied.get(name, ())
        found = [_at(one, modules) for one in tied]
        for other, tensor in zip(tied[1:], found[1:]):
            if tensor is not found[0] and not _alike(tensor, found[0]):
                raise SignatureError(
                    f"'{tied[0]}' and '{other}' were one tensor when the layer was saved, and are two now",
                    hint="The Program has one for both: put the same tensor in both places.",
                    code="D2S309",
                )

    def tie(self, modules: Mapping[str, torch.nn.Module], before: Sequence[bool]) -> None:
        """Tensors that were one before they were moved are one again."""
        for tied, whole in zip(self._ties, before):
            path, _, first = tied[0].rpartition(".")
            for other in tied[1:] if whole else ():
                place, _, name = other.rpartition(".")
                if path not in modules or place not in modules:
                    continue
                for mine, theirs in zip(_slots(modules[path]), _slots(modules[place])):
                    if mine.get(first) is not None and theirs.get(name) is not None:
                        theirs[name] = mine[first]

    def tied(self, modules: Mapping[str, torch.nn.Module]) -> list[bool]:
        """Of each tensor with several names, whether they are of one tensor now."""
        return [len({id(_at(name, modules)) for name in names}) == 1 for names in self._ties]


def refuse(path: str, what: str, hint: str) -> NoReturn:
    """Errors raised: SignatureError, always: a part is not as the Programs have it."""
    problem = f"the part '{path}' of a loaded layer {what}, but one Program runs all its parts"
    raise SignatureError(problem, hint=hint, code="D2S314")


def tensor_at(module: torch.nn.Module, name: str) -> Any:
    """A parameter or buffer, or what stands for one: that of a parametrization."""
    found: Any = module._parameters.get(name)
    if found is None:
        found = module._buffers.get(name)
    return getattr(module, name, None) if found is None else found


def _at(name: str, modules: Mapping[str, torch.nn.Module]) -> Any:
    path, _, last = name.rpartition(".")
    return tensor_at(modules[path], last) if path in modules else None


def _slots(module: torch.nn.Module) -> tuple[dict[str, Any], dict[str, Any]]:
    return module._parameters, module._buffers


def _is_at(module: torch.nn.Module | None, path: str) -> bool:
    return is_a(module, Part) and module.place == path


def _alike(one: Any, other: Any) -> bool:
    """Whether no Program that runs without gradients can tell two tensors apart: they are the same memory."""
    if not is_a(one, torch.Tensor) or not is_a(other, torch.Tensor) or one.is_meta:
        return False
    if torch.is_grad_enabled() and (one.requires_grad or other.requires_grad):
        return False
    facts = [(t.device, t.dtype, t.shape, t.stride(), t.data_ptr()) for t in (one, other)]
    return facts[0] == facts[1]


__all__ = ["Part", "Places", "refuse", "tensor_at"]
