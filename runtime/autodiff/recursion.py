"""``recursion``: differentiated by torch's autograd, while the Program runs."""

from __future__ import annotations

from runtime.autodiff.forward import Forward, NotDifferentiable
from runtime.autodiff.tape import Tape
from runtime.ir import Operator


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """Errors raised: NotDifferentiable."""
    raise NotDifferentiable("recursion")
