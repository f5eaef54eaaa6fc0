"""The index: which of C's rules make kernels. What is not here, PyTorch runs."""

from __future__ import annotations

from runtime.ir import Operator
from runtime.kernels.lowering import OF_HALVES, RULES
from runtime.native import activations, grad, pointwise, reductions, rows
from runtime.native import rules as native_rules
from runtime.native.lowering import Lowering, Rule
from runtime.native.values import Unsupported


def _folded(low: Lowering, op: Operator) -> None:
    """A fold over the last dimensions of what is being computed. Others are PyTorch's: it splits long ones."""
    x = low.tensor(op.args[0])
    if not x.pending:
        raise Unsupported("a fold that stands alone")
    reductions.emit(low, op)


_ELEMENTS: tuple[Rule, ...] = (pointwise.emit, pointwise.emit_where, pointwise.emit_masked_fill, pointwise.emit_clamp,
                               pointwise.emit_threshold_backward, pointwise.emit_to, pointwise.emit_clone,
                               activations.emit)  # fmt: skip
_ROWS: tuple[Rule, ...] = (rows.emit_softmax, rows.emit_softmax_backward, rows.emit_layer_norm,
                           rows.emit_layer_norm_backward, rows.emit_rms_norm)  # fmt: skip
_NAMES = {rule: [f"aten.{name}" for name in names] for rule, names in native_rules.OVERLOADS.items()}

RULES |= {name: rule for rule in (*_ELEMENTS, *_ROWS) for name in _NAMES[rule]}
RULES |= dict.fromkeys(_NAMES[reductions.emit], _folded)
RULES["grad.sum"] = grad.emit

OF_HALVES |= {name for rule in (*_ROWS, activations.emit) for name in _NAMES[rule]}
OF_HALVES |= {name for rule in _ELEMENTS for name in _NAMES[rule] if name in native_rules.OF_HALVES}

__all__ = ["OF_HALVES", "RULES"]
