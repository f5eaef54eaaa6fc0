"""Functions of torch that a trace calls in Python where what they give, or raise, hangs on what only the run knows.

    x.tolist()               of an open length: a list with as many items as the run finds
    x.unbind(0)              of an open length: a tuple with as many rows
    nonzero(x).squeeze()     of a length that may be 1: a dimension goes, or does not
    x.index_select(0, i)     under ``except IndexError``: the numbers are looked at first
    F.embedding(i, x)        in the same way
    torch.linalg.inv(x)      under ``except LinAlgError``: what the kernel tells is looked at
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import torch

from dy2static.operators.calls import tensors_in_python
from dy2static.operators.shared.staging import Session, active, any_staged
from runtime.tracer.ambient import catching
from runtime.tracer.ambient.unasked import unasked
from runtime.tracer.recording import reads, squeezes

InPython = tuple[Any, tuple[Any, ...]]
"""A function to call, converted, in place of torch's, and its arguments."""


def in_python(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> InPython | None:
    """What to call in place of torch's ``f``; None where it is called as it is."""
    rule = _RULES.get(unasked(f, "__name__", ""))
    if rule is None or isinstance(f, types.FunctionType):  # ``F.embedding`` has other arguments
        return None
    owner = unasked(f, "__self__")
    given = args if owner is None or isinstance(owner, types.ModuleType) else (owner, *args)
    first = _FIRST.get(unasked(f, "__name__", ""))
    if not given and first in kwargs:
        given, kwargs = (kwargs[first],), {name: value for name, value in kwargs.items() if name != first}
    if not given or not isinstance(given[0], torch.Tensor):
        return None
    return rule(session, given, kwargs)


def _listed(session: Session, given: tuple[Any, ...], kwargs: dict[str, Any]) -> InPython | None:
    """``tensor.tolist()``."""
    is_open = not kwargs and reads.has_open_length(session, given[0])
    return (tensors_in_python.listed, given[:1]) if is_open else None


def _unbound(session: Session, given: tuple[Any, ...], kwargs: dict[str, Any]) -> InPython | None:
    """``tensor.unbind(dim)``."""
    dims = (*given[1:], *kwargs.values()) or (0,)
    if len(dims) > 1 or kwargs.keys() - {"dim"} or not reads.is_open_along(session, given[0], dims[0]):
        return None
    return tensors_in_python.unbound, (given[0], dims[0])


def _squeezed(session: Session, given: tuple[Any, ...], kwargs: dict[str, Any]) -> InPython | None:
    """``tensor.squeeze(dims)``."""
    dims = given[1:] or tuple(kwargs.values())
    plain = session.knows(given[0]) and not any_staged([dims])
    found = squeezes.by_data(session, given[0], dims) if plain else None
    return None if found is None else (tensors_in_python.squeezed, (given[0], *found))


def _selected(session: Session, given: tuple[Any, ...], kwargs: dict[str, Any]) -> InPython | None:
    """``tensor.index_select(dim, index)``."""
    if kwargs or len(given) != 3 or not catching.is_handled(session, IndexError):
        return None
    within = functools.partial(_within, torch.index_select)
    return (tensors_in_python.selected, (within, *given)) if _raises_index_errors(*given[:2]) else None


def _embedded(session: Session, given: tuple[Any, ...], kwargs: dict[str, Any]) -> InPython | None:
    """``torch.embedding(weight, indices, ...)``."""
    if kwargs.keys() - _OF_EMBEDDINGS or len(given) < 2 or not isinstance(given[1], torch.Tensor) or (
            not given[0].dim() or not catching.is_handled(session, IndexError)):  # fmt: skip
        return None
    within = functools.partial(_within, functools.partial(torch.embedding, **kwargs))
    return tensors_in_python.embedded, (within, *given)


_OF_EMBEDDINGS = frozenset({"padding_idx", "scale_grad_by_freq", "sparse"})


def _raises_index_errors(tensor: torch.Tensor, dim: Any) -> bool:
    """Whether ``index_select`` raises IndexError for a number that is out of range: along the second dimension another
    kernel raises RuntimeError."""
    return type(dim) is int and dim % max(tensor.dim(), 1) != 1


def _within(function: Callable[..., torch.Tensor], *args: Any) -> torch.Tensor:
    """What a function gives for numbers that lie in the tensor: no handler has anything to catch."""
    session = active()
    if session is None:
        return function(*args)
    handlers, session.exceptions.catching = session.exceptions.catching, []
    try:
        return function(*args)
    finally:
        session.exceptions.catching = handlers


def _checked(function: Any, *first: str, names: tuple[str, ...] = (), keywords: frozenset[str] = frozenset()) -> Any:
    """A rule for a function of linear algebra. ``names``: of its arguments by position; ``keywords``: of the others."""
    def rule(session: Session, given: tuple[Any, ...], kwargs: dict[str, Any]) -> InPython | None:
        if not catching.is_handled(session, torch.linalg.LinAlgError) or kwargs.keys() - {*names, *keywords}:
            return None
        by_name = [kwargs[name] for name in names[len(given) :] if name in kwargs]
        rest = [kwargs[name] for name in keywords if name in kwargs]
        whole = len(given) + len(by_name) == len(names)
        return (function, (*first, *given, *by_name, *rest)) if whole else None

    return rule


_RULES: dict[str, Callable[[Session, tuple[Any, ...], dict[str, Any]], InPython | None]] = {
    "tolist": _listed, "unbind": _unbound, "squeeze": _squeezed, "index_select": _selected, "embedding": _embedded,
    "linalg_cholesky": _checked(tensors_in_python.cholesky, "linalg.cholesky", names=("input",),
                                keywords=frozenset({"upper"})),
    "cholesky": _checked(tensors_in_python.cholesky, "cholesky", names=("input",), keywords=frozenset({"upper"})),
    "linalg_inv": _checked(tensors_in_python.inverse, names=("A",)),
    "inverse": _checked(tensors_in_python.inverse, names=("input",)),
    "linalg_solve": _checked(tensors_in_python.solved, names=("A", "B"), keywords=frozenset({"left"})),
}  # fmt: skip

_FIRST = {"linalg_cholesky": "input", "cholesky": "input", "linalg_inv": "A", "inverse": "input", "linalg_solve": "A"}
"""What functions of linear algebra call their first argument."""

__all__ = ["in_python"]
