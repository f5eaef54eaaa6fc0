"""``requires_grad_()`` of a tensor from outside that is no argument: a buffer, a parameter that is frozen, a global.

    loss = self.zero                the trace sets the flag of the buffer itself and begins again; the Program is one
    loss.requires_grad_()           for a module whose buffer needs a gradient from the start, as it does from now on

That is what eager does where nothing has read the tensor before. A trace that ends in an error puts the flags back.
"""

from __future__ import annotations

import torch

from runtime import torch_internals
from runtime.ir.walk import uses
from runtime.tracer.ambient.calls import Findings
from runtime.tracer.recording.session import Session


def may_be_set(session: Session, tensor: torch.Tensor) -> bool:
    """Whether it is such a tensor, and the trace is where every call comes, before anything reads the tensor."""
    if torch_internals.is_fake(tensor) or not tensor.is_leaf or not session.call.may_be_for_one_call:
        return False
    if not (tensor.is_floating_point() or tensor.is_complex()) or id(tensor) in session.graph.asked_flags:
        return False
    if session.scope.parent is not None or len(session.journal.frames) > 1:
        return False
    info = session.info(tensor)
    views = [one for one in session.known_tensors() if one.storage is info.storage and one is not info]
    return not views and not uses(session.program).get(info.storage.value)


def set_flag(session: Session, tensor: torch.Tensor, requires_grad: bool) -> BaseException:
    """Set it; what to raise to begin the trace again."""
    restart = session.restart(Findings(flagged=frozenset({(id(tensor), requires_grad)})))
    tensor.requires_grad_(requires_grad)
    session.call.flagged.append((tensor, not requires_grad))
    return restart


__all__ = ["may_be_set", "set_flag"]
