"""``squeeze`` where a size is not known while tracing: whether the result has a dimension less depends on it.

Torch's shape rule takes such a size for one that is not 1, and says so nowhere. Here it becomes a fact of the Program:
calls with a size of 1 have another Program where the size was left open because it varied, and are an error where
an InputSpec leaves it open. Where data decides it (``nonzero()``), converted code asks (``by_data``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.recording.session import Session

if TYPE_CHECKING:
    import sympy
else:
    from runtime.tracer.numbers.symbols import sympy

_NAMES = frozenset({"aten::squeeze", "aten::squeeze_", "aten::squeeze_copy"})


def settle(session: Session, func: Any, args: Any) -> None:
    """Let it be a fact that no size that the call may take away, and that is not known, is 1."""
    if func._schema.name not in _NAMES or session.replaying is not None:
        return
    fake = session.fake(args[0])
    for dim in _dims(fake, args[1:]):
        size = fake.shape[dim]
        if is_a(size, torch.SymInt) and not is_known(session, size):
            not_one(session, size)


def by_data(session: Session, tensor: torch.Tensor, given: Any) -> tuple[list[int], list[int]] | None:
    """Of the dimensions that ``squeeze(*given)`` may take away those that are known to have one element, and those of
    which data decides it; None where there are none of these, or so many that the ways multiply."""
    fake = session.fake(tensor)
    sizes = {dim: fake.shape[dim] for dim in sorted(set(_dims(fake, given)))}
    unknown: dict[int, Any] = {dim: size for dim, size in sizes.items()
                               if is_a(size, torch.SymInt) and not is_known(session, size)}  # fmt: skip
    found = [dim for dim, size in unknown.items() if not session.sizes.is_of_inputs(size)]
    if not 0 < len(found) <= _MOST:
        return None
    for dim, size in unknown.items():
        if dim not in found:
            not_one(session, size)
    return [dim for dim, size in sizes.items() if dim not in unknown and bool(size == 1)], found


_MOST = 2
"""Dimensions of one call of which data decides whether they stay."""


def in_place(session: Session, func: Any, args: Any, rule: Callable[[Any, Any, Any], Any]) -> bool:
    """``squeeze_`` of unknown sizes, done to the fake tensor: PyTorch reads sizes there that it has overwritten, and
    may crash. ``rule`` gives an operator's results. False for other operators and known sizes: nothing is done."""
    fake = session.fake(args[0])
    if func._schema.name != "aten::squeeze_" or not torch_internals.is_unknown([fake]):
        return False
    view = rule(getattr(torch.ops.aten.squeeze, func._overloadname), args, {})
    if view.dim() != fake.dim():
        with torch_internals.in_fake_mode(session.fake_mode):
            fake.as_strided_(tuple(view.shape), torch_internals.strides_of(view))
    return True


def _dims(fake: torch.Tensor, given: Any) -> Iterator[int]:
    rank = fake.dim()
    if not given:
        yield from range(rank)
        return
    for dim in given[0] if is_a(given[0], (list, tuple)) else given:
        if type(dim) is int and -rank <= dim < rank:
            yield dim % rank


def is_known(session: Session, size: torch.SymInt) -> bool:
    """Whether it is known if a size is 1."""
    bounds = session.shape_env.bound_sympy(size.node.expr)
    return bool(bounds.lower > 1 or bounds.upper < 1 or bounds.lower == bounds.upper)


def not_one(session: Session, size: torch.SymInt) -> None:
    """Let it be a fact that a size is not 1."""
    expr = size.node.expr
    if len(expr.free_symbols) == 1 and expr.is_symbol and session.sizes.kept_apart(expr):
        session.sizes.assume(sympy.Ge(expr, 2))
    elif session.sizes.is_of_inputs(size):
        session.sizes.assume(sympy.Ne(expr, 1))
    else:
        with torch_internals.in_fake_mode(session.fake_mode):
            torch_internals.assume(size != 1)


__all__ = ["by_data", "in_place", "is_known", "not_one", "settle"]
