"""The backward half: the tape walked in reverse, recording gradients into backward Blocks.

A backward Block reads forward Variables directly while it is recorded. Those that belong to a forward Block which is
closed by then become *residuals*: extra results of a branch, stacks of a loop, results of the whole forward Program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff.forward import Forward
from runtime.autodiff.residuals import ANY_REGION, Rebuilds, is_cheap, repeatable
from runtime.autodiff.tape import Grad, Grads, ListGrad, Tape
from runtime.ir import ArrayType, Operand, Operator, Type, Variable
from runtime.tracer.recording.session import Session

RULES: dict[type[Any], Callable[[Backward, Any, Grads], None]] = {}
"""How each entry of a tape is walked back: ``rules.py`` fills it."""


class Backward:
    """Records the gradients of what a ``Forward`` recorded."""

    def __init__(self, session: Session, forward: Forward) -> None:
        self.session = session
        self.forward = forward
        self.known: dict[Variable, Variable | bool] = {}
        """For a flag that only backward can tell: the Variable that holds it, or False."""

    def block(self, tape: Tape, grads: Grads) -> None:
        """Walk a tape in reverse: uses up gradients of what the Block computed, adds those of what it read."""
        for entry in reversed(tape.entries):
            RULES[type(entry)](self, entry, grads)

    def add(self, grads: Grads, var: Variable, grad: Grad | ListGrad) -> None:
        """Add a gradient to what ``var`` has so far."""
        before = grads.get(var)
        if before is None:
            grads[var] = grad
        elif isinstance(grad, ListGrad):
            (out,) = self.session.emit("grad.list_sum", [before.var, grad.var], types=[grad.var.type])
            grads[var] = ListGrad(out)
        elif before.maybe or grad.maybe:
            total = self.emit_grad(
                "grad.sum", [self.session.read(before.tensor), self.session.read(grad.tensor)], before.tensor
            )
            grads[var] = Grad(total, before.maybe and grad.maybe)
        else:
            grads[var] = Grad(before.tensor + grad.tensor)

    def emit_grad(self, name: str, args: list[Operand], like: torch.Tensor) -> torch.Tensor:
        """An Operator of ``runtime.ops.grad`` whose result has the metadata of ``like``."""
        (var,) = self.session.emit(name, args, None, [self.session.type_of(like)])
        return self.like(like, var)

    def like(self, like: torch.Tensor, var: Variable) -> torch.Tensor:
        """The stand-in for a gradient of such a value."""
        return self.session.fresh(self.session.clone_meta(like, shape=like.shape), var)

    def type_like(self, var: Variable) -> Type:
        """The type of the gradient of a Variable."""
        value = self.forward.env[var]
        if isinstance(value, torch.Tensor):
            return self.session.type_of(value)
        assert isinstance(var.type, ArrayType)
        return var.type

    def grad_of(self, var: Variable, carrier: Variable, maybe: bool) -> Grad | ListGrad:
        """The gradient of ``var`` that a Variable of the new Program carries."""
        value = self.forward.env[var]
        if isinstance(value, torch.Tensor):
            return Grad(self.like(value, carrier), maybe)
        return ListGrad(carrier)

    def read(self, grad: Grad | ListGrad) -> Variable:
        """The Variable that carries a gradient."""
        return grad.var if isinstance(grad, ListGrad) else self.session.read(grad.tensor)

    def contiguous(self, grad: Grad | ListGrad) -> Variable:
        """The Variable that carries a gradient out of a Block: contiguous, as what comes after relies on."""
        if isinstance(grad, Grad) and not torch_internals.contiguity(grad.tensor)[0]:
            return self.session.read(
                self.emit_grad("grad.contiguous", [self.session.read(grad.tensor)], grad.tensor)
                if grad.maybe
                else grad.tensor.contiguous()
            )
        return self.read(grad)

    def definite(self, grad: Grad) -> torch.Tensor:
        """The gradient, zeros where there is none."""
        if not grad.maybe:
            return grad.tensor
        shape = [self.session.operand(size) for size in grad.tensor.shape]
        return self.emit_grad(
            "grad.zeros_if_none",
            [self.session.read(grad.tensor), shape, grad.tensor.dtype, grad.tensor.device],
            grad.tensor,
        )

    def zeros(self, like: torch.Tensor) -> torch.Tensor:
        """Zeros of a value's shape."""
        return torch.zeros(tuple(like.shape), dtype=like.dtype, device=like.device)

    def none_test(self, grads: list[Grad]) -> Variable:
        """A flag that is true when all of some gradients are None."""
        session = self.session
        result: Variable | None = None
        for grad in grads:
            (flag,) = session.emit("scalar.is_none", [session.read(grad.tensor)])
            if result is None:
                result = flag
            else:
                (result,) = session.emit("scalar.and_", [result, flag])
        assert result is not None
        return result

    def rebuilds(self, whole: bool = False) -> Rebuilds:
        """Which results are computed again in backward, with their regions: views, and where that was asked for
        (``whole``: all)."""
        assert self.session.replaying is not None
        asked = self.session.replaying.checkpointed

        def again(op: Operator) -> int | None:
            if is_cheap(op):
                return ANY_REGION
            return asked.get(op, ANY_REGION) if (whole or op in asked) and repeatable(op) else None

        return again


__all__ = ["Backward"]
