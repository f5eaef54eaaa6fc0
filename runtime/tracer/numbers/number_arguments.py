"""Tensors given where an operator takes a number: ``torch.full((2,), t)``, ``torch.add(x, y, alpha=t)``.

PyTorch takes the item of a tensor without dimensions, but not of one that needs a gradient: then there is another
overload for tensors, or a TypeError. Tensors of a trace do not show that they need one. So where the item of one that
does was about to be taken, the call is made again while they show it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import acts_for_user, theirs

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


class NeedsGradient(BaseException):
    """A tensor that needs a gradient was about to be read as a number. Not an Exception: no user's handler sees it."""


def require_no_gradient(session: Session, tensor: torch.Tensor) -> None:
    """Raise NeedsGradient for a tensor that eager would not take as a number.

    Errors raised: TraceError (D2S239) where only some paths would take it.
    """
    info = session.info(tensor)
    if session.replaying is not None:
        return
    session.inputs.decide(tensor)
    if not info.requires_grad:
        return
    if info.grad_in_some_runs:
        raise refusal(session)
    raise NeedsGradient


def refusal(session: Session) -> Exception:
    """The located error where it cannot be told whether PyTorch takes a tensor as a number."""
    return session.error(
        "a tensor that needs a gradient, perhaps on some paths only, is given where torch takes a number",
        hint="Give t.item(), or t.detach() if no gradient is to flow.", code="D2S239")


def called(session: Session, func: Any, args: Any, kwargs: Any) -> Any:
    """``func(*args, **kwargs)``; where it matters, tensors without dimensions show whether they need a gradient.

    A TypeError about a symbolic number is what torch says of the number, if it does.
    """
    try:
        return theirs(func, *args, **kwargs)
    except NeedsGradient:
        pass
    except TypeError as error:
        said = torch_internals.type_error(func, args, kwargs) if "Sym" in str(error) else None
        if said is None:
            raise
        _raise(TypeError(said))
    fakes = []
    for value in _flat((*args, *kwargs.values())):
        if is_a(value, torch.Tensor) and value.dim() == 0 and session.info(value).requires_grad:
            fakes.append(value)
    with torch_internals.shown_to_need_gradients(fakes):
        return theirs(func, *args, **kwargs)


@acts_for_user
def _raise(error: Exception) -> NoReturn:
    raise error from None


def _flat(values: Any) -> Iterator[Any]:
    for value in values:
        if is_a(value, (list, tuple)):
            yield from _flat(value)
        else:
            yield value
