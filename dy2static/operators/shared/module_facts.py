"""What a trace of a module's call depends on besides what its own code reads, with a quick test that it is still so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from dy2static.operators.shared.staging import any_staged
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.python_state.guard_code import CheckWriter
from runtime.tracer.python_state.guards import is_like, is_plain

_SLOTS = ("_parameters", "_buffers")
_HIDDEN = "_non_persistent_buffers_set"
"""Which of the buffers ``state_dict`` leaves out."""
_HOOKS = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
)  # fmt: skip


class ModuleFacts:
    """Mode, hooks, submodules, kinds of tensors, and, where torch's own code runs, the plain attributes of a module."""

    def __init__(self, module: torch.nn.Module, with_mode: bool = True) -> None:
        """``with_mode``: whether its mode is from before the trace."""
        space = module.__dict__
        self._class = type(module)
        self._module = module
        self._with_mode, self._training = with_mode, space["training"]
        self._forward = (type(module).forward, space.get("forward"))
        self._hooks = _hooks_in([space[name] for name in _HOOKS])
        self._no_hooks = [name for name in _HOOKS if not space[name]]
        self._modules, self._order = dict(space["_modules"]), list(space["_modules"])
        self._tensors = [(slot, list(space[slot]), _pictures(space[slot])) for slot in _SLOTS]
        self._hidden = frozenset(space.get(_HIDDEN, ())) if space["_buffers"] else None
        self._settings = [(name, value, is_like(value)) for name, value in _settings(module)]

    def hold(self) -> bool:
        """Whether all of it is as it was."""
        space = self._module.__dict__
        if self._with_mode and space["training"] is not self._training:
            return False
        if type(self._module) is not self._class:
            return False
        if self._class.forward is not self._forward[0] or space.get("forward") is not self._forward[1]:
            return False
        for name in self._no_hooks:
            if space[name]:
                return False
        if len(self._no_hooks) < len(_HOOKS) and not self._hooks_hold():
            return False
        modules = space["_modules"]
        if (modules or self._modules) and (modules != self._modules or list(modules) != self._order):
            return False
        for name, names, pictures in self._tensors:
            slot = space[name]
            if (slot or names) and (list(slot) != names or _pictures(slot) != pictures):
                return False
        if self._hidden is not None and space.get(_HIDDEN, frozenset()) != self._hidden:
            return False
        for name, value, test in self._settings:
            now = space.get(name)
            if (now is not value or type(now) is list) and not test(now):
                return False
        return True

    def _hooks_hold(self) -> bool:
        space = self._module.__dict__
        return _hooks_in([space[name] for name in _HOOKS]) == self._hooks

    def write(self, check: CheckWriter) -> None:
        """The same as straight-line code."""
        check.of_class(self._module)
        check.require(f"{check.bind(self._class)}.forward is {check.bind(self._forward[0])}")
        space = check.local(f"{check.bind(self._module)}.__dict__")
        if self._with_mode:
            check.require(f"{space}['training'] is {check.bind(self._training)}")
        own = self._forward[1]
        if own is None:
            check.lacks(space, "forward")
        else:
            check.require(f"{space}['forward'] is {check.bind(own)}")
        if self._no_hooks:
            check.require(f"not ({' or '.join(f'{space}[{name!r}]' for name in self._no_hooks)})")
        if len(self._no_hooks) < len(_HOOKS):
            check.require(f"{check.bind(self._hooks_hold)}()")
        if self._modules:
            check.hold(check.local(f"{space}['_modules']"), self._modules)
        else:
            check.require(f"not {space}['_modules']")
        for name, names, _ in self._tensors:
            if not names:
                check.require(f"not {space}[{name!r}]")
                continue
            slot = check.local(f"{space}[{name!r}]")
            check.require(f"list({slot}) == {check.bind(names)}")
            for key, tensor in self._module.__dict__[name].items():
                if tensor is None:
                    check.require(f"{slot}[{key!r}] is None")
                else:
                    check.tensor(f"{slot}[{key!r}]", tensor)
        if self._hidden is not None and _HIDDEN in self._module.__dict__:
            hidden = f"{space}[{_HIDDEN!r}]"
            check.require(f"{hidden} == {check.bind(self._hidden)}" if self._hidden else f"not {hidden}")
        for name, value, test in self._settings:
            check.like(f"{space}[{name!r}]", value, test)


class SharedTensors:
    """Which of the parameters and buffers of modules are one tensor. Each module has its `ModuleFacts` besides."""

    def __init__(self, modules: Sequence[torch.nn.Module]) -> None:
        self._modules = modules
        self._shared = self._now()

    def hold(self) -> bool:
        """Whether the same are one."""
        return self._now() == self._shared

    def write(self, check: CheckWriter) -> None:
        """The same as straight-line code, with one condition for all modules of the check."""
        for module in self._modules:
            space = check.local(f"{check.bind(module)}.__dict__")
            for name in _SLOTS:
                for key, tensor in module.__dict__[name].items():
                    if tensor is not None:
                        slot = check.local(f"{space}[{name!r}]")
                        check.apart(check.tensor(f"{slot}[{key!r}]", tensor), tensor)

    def _now(self) -> list[tuple[int, int]]:
        """The places of a first tensor and of a later one that is the same."""
        tensors = [id(one) for name in _SLOTS for module in self._modules
                   for one in module.__dict__[name].values() if one is not None]  # fmt: skip
        if len(set(tensors)) == len(tensors):
            return []
        places: dict[int, int] = {}
        found = ((places.setdefault(one, place), place) for place, one in enumerate(tensors))
        return [(first, place) for first, place in found if first != place]


class GlobalHooks:
    """The hooks that are registered for all modules."""

    def __init__(self) -> None:
        self._registered = list(vars(torch_internals.global_module_hooks()).values())
        self._before = _hooks_in(self._registered)

    def hold(self) -> bool:
        """Whether they are those that there were."""
        return _hooks_in(self._registered) == self._before

    def write(self, check: CheckWriter) -> None:
        """The same as straight-line code."""
        if self._before:
            check.require(f"{check.bind(self.hold)}()")
        else:
            check.require(f"not ({' or '.join(check.bind(hooks) for hooks in self._registered)})")


def _hooks_in(tables: Sequence[dict[int, Any]]) -> list[list[tuple[int, Any]]]:
    """The hooks and what is said of them, each with the number of its hook; a hook that comes again has another key."""
    if not any(tables):
        return []
    numbers: dict[int, int] = {}
    return [[(numbers.setdefault(key, len(numbers)), one) for key, one in table.items()] for table in tables]


def _pictures(slot: dict[str, Any]) -> list[tuple[Any, ...] | None]:
    with torch_internals.unwatched():
        return [_picture(tensor) for tensor in slot.values()]


def _picture(tensor: torch.Tensor | None) -> tuple[Any, ...] | None:
    if tensor is None:
        return None
    strides = tensor.stride() if tensor.layout is torch.strided else torch_internals.sparse_key(tensor)
    lazy = tensor.is_conj(), tensor.is_neg()
    return (type(tensor), tensor.dtype, tensor.requires_grad, tensor.shape, strides, tensor.device, lazy)


def _settings(module: torch.nn.Module) -> list[tuple[str, Any]]:
    """The plain attributes of a module with code of torch's, which reads them unseen (``momentum``, ``stride``)."""
    if not any(module_name(cls).startswith("torch.") for cls in type(module).__mro__ if cls is not torch.nn.Module):
        return []
    return [
        (name, value) for name, value in unasked(module, "__dict__").items()
        if name != "training" and (is_plain(value) or type(value) in (list, tuple))
    ]  # fmt: skip


def has_staged_mode(args: tuple[Any, ...]) -> bool:
    """Whether this is called on a module that trains on some paths only, or is made with numbers that a run knows."""
    return bool(args) and is_a(args[0], torch.nn.Module) and any_staged(list(vars(args[0]).values()))


__all__ = ["ModuleFacts"]
