"""What a trace of a module's call depends on besides what its own code reads, with a quick test that it is still so."""

from __future__ import annotations

from typing import Any

import torch

from runtime.tracer.guards import is_like, is_plain

_HOOKS = (
    "_forward_pre_hooks", "_forward_hooks", "_backward_hooks", "_backward_pre_hooks", "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called", "_forward_pre_hooks_with_kwargs",
)  # fmt: skip


class ModuleFacts:
    """Mode, hooks, submodules, kinds of tensors, and, where torch's own code runs, the plain attributes of a module."""

    def __init__(self, module: torch.nn.Module) -> None:
        space = module.__dict__
        self._space = space
        self._class = type(module)
        self._module = module
        self._training = space["training"]
        self._forward = (type(module).forward, space.get("forward"))
        hooks = [(space[name], tuple(space[name].items())) for name in _HOOKS]
        self._no_hooks = [slot for slot, content in hooks if not content]
        self._hooks = [(slot, content) for slot, content in hooks if content]
        self._modules = (space["_modules"], dict(space["_modules"]), list(space["_modules"]))
        self._tensors = [
            (slot, list(slot), [(name, _picture(tensor)) for name, tensor in slot.items()])
            for slot in (space["_parameters"], space["_buffers"])
        ]
        self._settings = [(name, value, is_like(value)) for name, value in _settings(module)]

    def hold(self) -> bool:
        """Whether all of it is as it was."""
        space = self._space
        if space["training"] is not self._training or type(self._module) is not self._class:
            return False
        if self._class.forward is not self._forward[0] or space.get("forward") is not self._forward[1]:
            return False
        for hooks in self._no_hooks:
            if hooks:
                return False
        for hooks, before in self._hooks:
            if tuple(hooks.items()) != before:
                return False
        modules, known, order = self._modules
        if (modules or known) and (modules != known or list(modules) != order):
            return False
        for slot, names, pictures in self._tensors:
            if slot or names:
                if list(slot) != names:
                    return False
                for name, picture in pictures:
                    if _picture(slot[name]) != picture:
                        return False
        for name, value, test in self._settings:
            now = space.get(name)
            if (now is not value or type(now) is list) and not test(now):
                return False
        return True


def _picture(tensor: torch.Tensor | None) -> tuple[Any, ...] | None:
    if tensor is None:
        return None
    strides = tensor.stride() if tensor.layout is torch.strided else None
    return (type(tensor), tensor.dtype, tensor.requires_grad, tensor.shape, strides, tensor.device)


def _settings(module: torch.nn.Module) -> list[tuple[str, Any]]:
    """The plain attributes of a module with code of torch's, which reads them unseen (``momentum``, ``stride``)."""
    if not any(cls.__module__.startswith("torch.") for cls in type(module).__mro__ if cls is not torch.nn.Module):
        return []
    return [
        (name, value) for name, value in vars(module).items()
        if name != "training" and (is_plain(value) or type(value) in (list, tuple))
    ]  # fmt: skip


__all__ = ["ModuleFacts"]
