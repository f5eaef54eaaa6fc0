"""Hooks on the results of a node with several: PyTorch calls them with None where no gradient arrives.

    y, z = apply(x); y.register_hook(h); z.sum().backward()      h(None), where y and z of two nodes have h not called

``register_hook`` asks the node of a tensor to call what stands in a dict. A node whose class is written in Python is
asked by a method, which may put a dict of ours there. So a call costs nothing more, and the results stay what they
are: an alias of each, with a node of its own, would be a view.
"""

from __future__ import annotations

import functools
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.autograd.graph import register_multi_grad_hook

from runtime.kinds import is_a

_F = TypeVar("_F", bound=type[torch.autograd.Function])


def hooks_hear_gradients_only(function: _F) -> _F:
    """A class decorator: hooks on the results of such nodes are not called with None.

    A node may have ``hears(number, hook)``: it is told of a hook on its result of that number that would be, and, with
    None for the hook, that one is about to be called with a gradient.
    """
    node: Any = function._backward_cls
    register = node._register_hook_dict

    def register_hook_dict(self: Any, tensor: torch.Tensor) -> None:
        """``tensor`` has got its first hook, or will: its dict is empty."""
        hooks = _Hooks(getattr(self, "hears", None), tensor.output_nr)
        tensor._backward_hooks = hooks.called  # the node keeps this one
        register(self, tensor)
        tensor._backward_hooks = hooks

    node._register_hook_dict = register_hook_dict
    return function


class _Hooks(OrderedDict[int, Any]):
    """The hooks of a tensor; ``called``: each as PyTorch calls it."""

    def __init__(self, hears: Callable[..., None] | None, number: int) -> None:
        super().__init__()
        self.called: OrderedDict[int, Any] = OrderedDict()
        self._hears = None if hears is None else functools.partial(hears, number)

    def __setitem__(self, number: int, hook: Callable[..., Any]) -> None:
        super().__setitem__(number, hook)
        counts = getattr(hook, "__code__", None) in _COUNTING
        self.called[number] = hook if counts else _not_with_none(hook, self._hears)

    def __delitem__(self, number: int) -> None:
        super().__delitem__(number)
        del self.called[number]


def _codes(code: types.CodeType, name: str) -> list[types.CodeType]:
    """The functions of a name that a function makes, at any depth."""
    inner = [one for one in code.co_consts if is_a(one, types.CodeType)]
    return [*(one for one in inner if one.co_name == name), *(found for one in inner for found in _codes(one, name))]


_COUNTING = _codes(register_multi_grad_hook.__code__, "inner_hook")
"""The code of hooks of PyTorch's that count how many of several tensors have been seen, those without gradient too."""


def _not_with_none(hook: Callable[..., Any], hears: Callable[..., None] | None) -> Callable[..., Any]:
    @functools.wraps(hook)
    def called(grad: torch.Tensor | None) -> Any:
        if hears is not None:
            hears(hook if grad is None else None)
        return None if grad is None else hook(grad)

    return called


__all__ = ["hooks_hear_gradients_only"]
