"""Methods that are bound to fake tensors, as those of the tensors that they stand for.

Everything here looks a name up in the class that eager has: a fake tensor's own class has some names for itself.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

import torch

from runtime.kinds import is_a
from runtime.torch_internals.fakes import is_fake


def eager_class(tensor: torch.Tensor) -> type[torch.Tensor]:
    """The class that eager's tensor has."""
    if not is_fake(tensor):
        return type(tensor)
    return torch.nn.Parameter if isinstance(tensor, torch.nn.Parameter) else torch.Tensor


def method_of(tensor: torch.Tensor, name: str) -> Any:
    """``tensor.name`` of a name that ``torch.Tensor`` has: a method, or what stands in the class."""
    cls = eager_class(tensor)
    found = inspect.getattr_static(cls, name)
    get = getattr(type(found), "__get__", None)
    return found if get is None else get(found, tensor, cls)


def name_of_method(method: Any) -> str | None:
    """The name under which ``torch.Tensor`` has a method that is bound to a fake tensor; None for anything else."""
    if not is_fake(method.__self__):
        return None
    function = getattr(method, "__func__", None)
    cls = eager_class(method.__self__)
    name = method.__name__ if function is None else _names_of_functions(cls).get(id(function))
    if name is None or inspect.getattr_static(cls, name, None) is None:
        return None
    return name if method_of(method.__self__, name) == method else None


@functools.cache
def _names_of_functions(cls: type[torch.Tensor]) -> dict[int, str]:
    """The names of the methods of a class of tensors that are written in Python; of two names the function's own."""
    found = {}
    for name in dir(cls):
        function = inspect.getattr_static(cls, name)
        if is_a(function, types.FunctionType) and (id(function) not in found or function.__name__ == name):
            found[id(function)] = name
    return found


__all__ = ["eager_class", "method_of", "name_of_method"]
