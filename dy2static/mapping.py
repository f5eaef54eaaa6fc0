"""vmap: a function of one row, run on all rows of its arguments at once."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from dy2static.api import to_static
from dy2static.errors import Dy2StaticError
from dy2static.origin import user_location
from dy2static.static_function import StaticFunction
from runtime.executor.traceback import trimmed
from runtime.torch_internals import batches
from runtime.tracer.ambient import state
from runtime.tracer.ambient.unasked import has_unasked, unasked
from runtime.translated import TranslatedLayer

_AS_IT_IS = "__dy2static_for_rows__"
"""The attribute of a function that is made for rows already."""


def vmap(
    f: Callable[..., Any], in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """The function for many rows of one for a single row, in which each row may go its own way.

    Options and arguments are those of ``torch.vmap``: ``in_dims`` says in which dimension of each positional argument
    the rows lie (None: all have the same), and all rows get the same keywords. ``f`` is converted as by ``to_static``;
    numbers among its results become tensors: int64, float64 or bool, with one for each row.

    >>> def halvings(x):
    ...     steps = 0
    ...     while x > 1:
    ...         x, steps = x / 2, steps + 1
    ...     return steps
    >>> vmap(halvings)(torch.tensor([0.5, 3.0, 40.0]))
    tensor([0, 2, 6])

    Errors raised: TypeError for what cannot be converted; ValueError for options and arguments that ``torch.vmap``
    refuses; at a call, TraceError for what has no meaning for many rows at once (docs/vmap.md).
    """
    called = _converted(f)

    @functools.wraps(f)
    def one(*args: Any, **kwargs: Any) -> Any:
        return batches.map_leaves(_tensor, called(*args, **kwargs))

    mapped = torch.vmap(one, in_dims, out_dims, randomness, chunk_size=chunk_size)

    @functools.wraps(f)
    def for_rows(*args: Any, **kwargs: Any) -> Any:
        session = state.active()
        if session is not None:
            raise session.error("dy2static.vmap inside a converted function", code="D2S271",
                                hint="Apply it outside, around the converted function.")
        try:
            return mapped(*args, **kwargs)
        except Exception as error:
            failure = error.locate(user_location()) if isinstance(error, Dy2StaticError) else error
        try:
            raise trimmed(failure, _OURS, batches.TRANSFORMS)
        finally:
            del failure

    setattr(for_rows, _AS_IT_IS, called)
    return for_rows


def _converted(f: Any) -> Callable[..., Any]:
    """What is called for a row: the function converted, if it is not made by a transform, which is called as it is."""
    owner = unasked(f, "__self__", f)
    file = getattr(unasked(f, "__code__"), "co_filename", "")
    if isinstance(f, StaticFunction) or isinstance(owner, TranslatedLayer) or has_unasked(f, _AS_IT_IS):
        return f
    if file.startswith(batches.TRANSFORMS):
        return f
    if isinstance(f, torch.nn.Module) and isinstance(f.__dict__.get("forward"), StaticFunction):
        return f
    converted: Callable[..., Any] = to_static(f)
    return converted


_OURS = str(Path(__file__).parent) + os.sep


def _tensor(value: Any) -> Any:
    """A number as a tensor that holds it exactly."""
    dtype = {bool: torch.bool, int: torch.int64, float: torch.float64, complex: torch.complex128}.get(type(value))
    if dtype is None:
        return value
    with batches.without_transforms():
        return torch.tensor(value, dtype=dtype)


__all__ = ["vmap"]
