"""What a saved layer or function consists of, in memory: no files, no JSON.

    Artefact > modules and their tensors
             > Method > Variants for "train" and for "eval", one or several each > Program
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

import torch

from runtime.ir import Program
from runtime.ir.template import KeyPath
from runtime.ir.views import View
from runtime.storage.answers import Answer, Plain

MODES = ("train", "eval")
WITHOUT_GRADIENTS = {mode: f"{mode} without gradients" for mode in MODES}
"""Variants of functions that ask ``torch.is_grad_enabled()``, for calls where it says no."""


@dataclass(frozen=True)
class TensorRef:
    """In an argument's default: the artefact's constant ``index``."""

    index: int


@dataclass(frozen=True)
class State:
    """A parameter or buffer, by its state-dict name (``encoder.0.weight``)."""

    name: str


@dataclass(frozen=True)
class Constant:
    """A tensor that is no module's parameter or buffer: the artefact's constant ``index``."""

    index: int


@dataclass(frozen=True)
class Attribute:
    """A plain attribute of the module at ``path``."""

    path: str
    name: str


@dataclass(frozen=True)
class Passed:
    """A container among the arguments, by its path (``("batch", "ids")``); with a name, an attribute of it."""

    path: KeyPath
    name: str = ""


Target = State | Constant | Attribute | Passed
"""A place that a run stores to."""


@dataclass(frozen=True)
class Store:
    """Something every run stores: the value of ``tree`` goes to a buffer, constant, attribute or container."""

    target: Target
    tree: Any


@dataclass(eq=False)
class Variant:
    """One Program of a method, and how a call is fitted to it. Never changed once made."""

    program: Program
    params: tuple[State | Constant, ...]
    template: tuple[tuple[str, Any], ...]
    """For every argument, what it was when the Program was traced: constants, and a ``TensorSlot`` for every tensor."""
    views: dict[int, View] = field(default_factory=dict)
    """By yield position: results that share memory with an input or parameter."""
    stores: tuple[Store, ...] = ()
    same: tuple[tuple[KeyPath, KeyPath], ...] = ()
    """Containers in the results that are the caller's own: path in the results, path among the arguments.

    The first step of a path in the results is 0 for the output, or a store's position plus 1. A container that stands
    in the results twice is one object in their trees."""
    objects: dict[str, tuple[str, tuple[Any, ...]]] = field(default_factory=dict)
    """Results that are constant objects: the name in the tree -> the kind of object and its items."""
    exceptions: dict[str, str] = field(default_factory=dict)
    """Exception classes of the user's that the Program raises -> the builtin they derive from."""
    stopped: frozenset[int] = frozenset()
    """Inputs that no gradient flows to."""
    device: str = ""
    """Where all tensors were when the Program was traced; empty if they were on several devices."""
    answers: tuple[Answer, ...] = ()
    """What the inputs and parameters have to answer to what the function asks of them."""
    settings: tuple[tuple[str, Plain], ...] = ()
    """How the process has to be set, where the function asks for that."""

    def __deepcopy__(self, memo: dict[int, Any]) -> Variant:
        return self


@dataclass(frozen=True)
class Argument:
    """A parameter of a method's signature. ``default``: ``inspect.Parameter.empty``, or a tree with ``TensorRef``s."""

    name: str
    kind: str
    default: Any = inspect.Parameter.empty


@dataclass(eq=False)
class Method:
    """A function that can be called: its signature, and a Variant by mode (one for both where nothing differs)."""

    name: str
    signature: tuple[Argument, ...]
    variants: dict[str, Variant]
    others: dict[str, tuple[Variant, ...]] = field(default_factory=dict)
    """By mode: further Variants, for calls with other constants among the arguments than the first one's."""

    def of(self, mode: str) -> tuple[Variant, ...]:
        """Every Variant of a mode, in the order in which a call tries them. KeyError if it was not saved."""
        return (self.variants[mode], *self.others.get(mode, ()))

    def all(self) -> list[Variant]:
        """Every Variant once."""
        return list({id(one): one for mode in self.variants for one in self.of(mode)}.values())

    def __deepcopy__(self, memo: dict[int, Any]) -> Method:
        return self


@dataclass
class ModuleEntry:
    """A module: its place (``encoder.0``), its type's name, and its tensors by name, None where there is none."""

    path: str
    type_name: str
    parameters: list[tuple[str, int | None]] = field(default_factory=list)
    buffers: list[tuple[str, int | None, bool]] = field(default_factory=list)
    """Name, tensor, and whether the state dict has it."""
    same_as: str | None = None
    """The place of the very same module, listed before; it has the tensors and the modules inside."""


@dataclass
class Artefact:
    """A layer or function that can be saved, or was loaded. ``tensors`` are those of modules, each once."""

    name: str
    modules: list[ModuleEntry]
    tensors: list[torch.Tensor]
    constants: list[torch.Tensor]
    methods: dict[str, Method]
    metadata: dict[str, Any] = field(default_factory=dict)
    """What the user wrote beside: JSON values."""
    made_by: dict[str, str] = field(default_factory=dict)
    """The versions that wrote the file it was read from, by package; nothing for one that was made in memory."""

    def tensor_names(self) -> list[str]:
        """A name for every tensor (the first state-dict name it has), then for every constant."""
        names = [""] * len(self.tensors)
        for name, index in reversed(list(self.state().items())):
            names[index] = name
        return names + [f"constant {index}" for index in range(len(self.constants))]

    def state(self) -> dict[str, int]:
        """Every parameter and buffer by its state-dict name."""
        found: dict[str, int] = {}
        for module in self.modules:
            prefix = f"{module.path}." if module.path else ""
            slots = [*module.parameters, *((name, index) for name, index, _ in module.buffers)]
            found.update({prefix + name: index for name, index in slots if index is not None})
        return found
