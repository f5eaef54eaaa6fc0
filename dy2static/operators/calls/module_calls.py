"""PyTorch's functions that are called on modules of which only the run knows what parts they have.

    if x.sum() > 0:
        layers.append(nn.Tanh())
    len(layers), layers[-1], layers.parameters(), layers.eval()

They run once for each of the contents that the modules may have. What gives its results one by one gives a list of them
there, over which a generator goes.
"""

from __future__ import annotations

import functools
import inspect
import types
from typing import Any

import torch

from dy2static.operators.calls import tensors_in_python
from dy2static.operators.calls.call import traced
from dy2static.operators.shared import module_parts
from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a

_EACH: Any = tensors_in_python.each
_VIEWS = frozenset({"__iter__", "__reversed__", "keys", "values", "items"})
"""Methods in files that are converted, which give iterators over a dict or views of it."""


def called(session: Session, f: types.FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)``, or NotImplemented where no such module is among the arguments."""
    if not module_parts.may_be_open(session) or f.__name__ in _VIEWS:
        return NotImplemented
    given = [arg for arg in (*args, *kwargs.values()) if is_a(arg, torch.nn.Module)]
    if not module_parts.among(given):
        return NotImplemented
    run = functools.partial(traced, session, f, args, kwargs)
    if not f.__code__.co_flags & inspect.CO_GENERATOR:
        return module_parts.per_content(session, given, run)
    listed = module_parts.per_content(session, given, lambda: traced(session, list, (run(),), {}))
    return traced(session, _EACH, (listed,), {})


__all__ = ["called"]
