"""The index: which of C's rules make kernels. What is not here, PyTorch runs."""

from __future__ import annotations

from runtime.ir import Operator, Variable
from runtime.kernels import losses
from runtime.kernels.lowering import OF_HALVES, RULES, KernelLowering
from runtime.native import activations, grad, pointwise, reductions, rows
from runtime.native import rules as native_rules
from runtime.native.lowering import Lowering, Rule
from runtime.native.nest import Nest
from runtime.native.values import Unsupported, identity


def _folded(low: Lowering, op: Operator) -> None:
    """A fold over the last dimensions of what is being computed. Others are PyTorch's: it splits long ones."""
    assert isinstance(low, KernelLowering)
    var = op.args[0]
    x = low.tensor(var)
    if x.pending:
        reductions.emit(low, op)
        return
    if low.rows is None or x.n not in low.rows.written or low.rows.dims != x.dims or not isinstance(var, Variable):
        raise Unsupported("a fold that stands alone")
    low.flush()  # a row has it: the fold is one more stage
    nest = low.nest = Nest(x.dims, identity(x.rank))
    again = low.blank(x.dtype, x.dims)
    nest.add(again, nest.load(low, x))
    low.values[var] = again
    reductions.emit(low, op)
    low.values[var] = x
    nest.forget(again)


_ELEMENTS: tuple[Rule, ...] = (pointwise.emit, pointwise.emit_where, pointwise.emit_masked_fill, pointwise.emit_clamp,
                               pointwise.emit_threshold_backward, pointwise.emit_to, pointwise.emit_clone,
                               activations.emit)  # fmt: skip
_ROWS: tuple[Rule, ...] = (rows.emit_softmax, rows.emit_softmax_backward, rows.emit_layer_norm,
                           rows.emit_layer_norm_backward, rows.emit_rms_norm)  # fmt: skip
_NAMES = {rule: [f"aten.{name}" for name in names] for rule, names in native_rules.OVERLOADS.items()}

RULES |= {name: rule for rule in (*_ELEMENTS, *_ROWS) for name in _NAMES[rule]}
RULES |= dict.fromkeys(_NAMES[reductions.emit], _folded)
RULES["grad.sum"] = grad.emit
RULES["aten.nll_loss_backward.default"] = losses.emit_nll_backward

OF_HALVES.add("aten.nll_loss_backward.default")
OF_HALVES |= {name for rule in (*_ROWS, activations.emit) for name in _NAMES[rule]}
OF_HALVES |= {name for rule in _ELEMENTS for name in _NAMES[rule] if name in native_rules.OF_HALVES}

__all__ = ["OF_HALVES", "RULES"]
