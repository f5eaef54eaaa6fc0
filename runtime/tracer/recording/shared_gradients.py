"""Gradients that PyTorch may give as one memory: a write to one changes the other, and a Program has two.

    h = x + y                                         the gradient of h is that of x and that of y, as it is
    gx, gy = torch.autograd.grad(h.exp().sum(), (x, y))
    gx.mul_(2)                                        gy is twice as large, too

The Program is walked back from what is differentiated. Each value gets the *memories* that its gradient may have:
those of an Operator's result where the Operator may hand them on, else one of its own. Where two gradients meet they
are added up, which is new memory. Which writes follow is not asked: two gradients that may be one are noted as such.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Operator, TensorType, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.tracer.memory.storage_table import note_overlap, note_unknown_alias
from runtime.tracer.recording.gradient_paths import reached
from runtime.tracer.values.structure import Choice

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


@dataclass(frozen=True, eq=False)
class Memory:
    """Memory, or a part of other memory: that of an operand of ``cat``, by the Operator and the operand's place."""

    whole: Memory | None = None
    op: Operator | None = None
    place: int = 0

    def parts(self) -> list[Memory]:
        """The memory that this is a part of, the whole first, and itself."""
        return [*(self.whole.parts() if self.whole is not None else ()), self]


_EXPANDED = Memory()
"""Among a value's memories: its elements may be one in memory (``sum`` hands on one element for all)."""
_ANYTHING = Memory()
"""Among a value's memories: a ``backward`` of the user's made it, which may give a tensor that something else is."""
_REASON = "PyTorch's autograd may give both gradients as one tensor"
_ALONE = {
    _EXPANDED: "PyTorch's autograd may give a gradient whose elements are one in memory",
    _ANYTHING: "a custom autograd function may give a gradient that is another tensor as well",
}


def note(
    session: Session, roots: Sequence[tuple[torch.Tensor, Any]], wanted: Sequence[torch.Tensor], results: Sequence[Any],
    stops: Sequence[Variable],
) -> None:  # fmt: skip
    """Note of the gradients of ``roots`` by ``wanted`` which may be one memory, or that of a gradient that is given.

    ``stops``: the values beyond which no gradient goes.
    """
    begin = [(session.read(root), grad, frozenset({Memory()})) for root, grad in roots]
    found = _walked(session, [(root, memories) for root, _, memories in begin], stops)
    known = [(session.info(grad).storage, memories) for _, grad, memories in begin if grad is not None]
    for tensor, result in zip(wanted, results):
        made = result.options[0] if is_a(result, Choice) else result
        memories = found.get(session.read(tensor), frozenset())
        storage = session.info(made).storage
        for other, its in known:
            if any(_meet(one, another) for one in memories - _ALONE.keys() for another in its - _ALONE.keys()):
                note_unknown_alias(storage, other, _REASON, session.location())
        for one in memories & _ALONE.keys():
            note_overlap(storage, _ALONE[one])
        known.append((storage, memories))


def _meet(a: Memory, b: Memory) -> bool:
    """Whether two have elements in common."""
    for one, other in zip(a.parts(), b.parts()):
        if one is not other and (one.op is None or one.op is not other.op or one.place != other.place):
            return one.op is not None and one.op is not other.op
    return True


@dataclass(frozen=True)
class _Share:
    """What an Operator contributes to a value's gradient. ``certain``: in each run."""

    memories: frozenset[Memory]
    certain: bool


def _gradient(shares: list[_Share]) -> _Share:
    """A value's gradient: of two shares or more the sum, which is new memory."""
    if len(shares) == 1:
        return shares[0]
    certain = sum(one.certain for one in shares)
    own = frozenset({Memory()})
    return _Share(own if certain > 1 else own.union(*(one.memories for one in shares)), certain > 0)


def _walked(
    session: Session, begin: Sequence[tuple[Variable, frozenset[Memory]]], stops: Sequence[Variable]
) -> dict[Variable, frozenset[Memory]]:
    """The memories of each value's gradient: of a sum the same ones, whoever asks."""
    paths = reached(session, [var for var, _ in begin], stops)
    found: dict[Variable, list[_Share]] = {}
    whole: dict[Variable, _Share] = {}
    for var, memories in begin:
        found.setdefault(var, []).append(_Share(memories, True))
    for scope in session.scope.chain():
        for op in reversed(scope.block.ops):
            whole.update((out, _gradient(found[out])) for out in op.outputs if out in found)
            there = [whole[out] for out in op.outputs if out in found]
            if there and (op in paths.through or op.blocks or not op.name.startswith("aten.")):
                given = frozenset[Memory]().union(*(one.memories for one in there))
                for var, share in _handed_on(op, _Share(given, all(one.certain for one in there))):
                    if var in paths.found:
                        found.setdefault(var, []).append(share)
    return {var: (whole[var] if var in whole else _gradient(shares)).memories for var, shares in found.items()}


def _handed_on(op: Operator, given: _Share) -> Iterator[tuple[Variable, _Share]]:
    """What an Operator contributes to the gradients of what it reads."""
    if op.blocks or not op.name.startswith("aten."):
        own = _ANYTHING if _is_users(op) else Memory()  # what is inside may give one tensor for several
        for var in {*op.inputs, *(var for block in op.blocks for var in block.captures())}:
            yield var, _Share(given.memories | {own}, False)
        return
    packet = op.name.split(".")[1].rstrip("_")
    bound = aten.arguments(aten.resolve(op.name), op.args, op.kwargs)
    certain = given.certain and (packet in _COMPUTES or packet in _HANDS_ON)
    for name, value in bound.items():
        for place, var in enumerate(_tensors(value)):
            memories = given.memories
            if packet in ("cat", "concat", "stack", "hstack", "vstack"):
                memories = frozenset(one if one in _ALONE else Memory(one, op, place) for one in memories)
            elif packet in _COMPUTES or not _hands_on(op, packet, name, var, bound):
                memories = frozenset({Memory()})
            elif packet in ("sum", "expand", "expand_as"):
                memories |= {_EXPANDED}
            yield var, _Share(memories, certain)


def _is_users(op: Operator) -> bool:
    """Whether a backward of the user's is in an Operator, or may be."""
    inside = (inner for block in op.blocks for inner in block.walk())
    return any(flow_of(one).kind is Kind.FUNCTION for one in (op, *inside))


def _hands_on(op: Operator, packet: str, name: str, var: Variable, bound: dict[str, Any]) -> bool:
    """Whether the gradient of an operand may be that of the result, as it is or a view of it."""
    if packet in ("add", "sub", "rsub"):
        negative = (packet == "sub" and name == "other") or (packet == "rsub" and name == "self")
        scaled = bound.get("alpha", 1) != 1 and (name == "other" if packet != "rsub" else name == "self")
        return not negative and not scaled and _same_sizes(op, var)
    if packet in ("addmm", "addmv", "addbmm", "baddbmm", "addr", "addcmul", "addcdiv"):
        return name == "self" and bound.get("beta", 1) == 1 and _same_sizes(op, var)
    if packet == "linear":
        return name == "bias" and _same_sizes(op, var)
    return True


def _same_sizes(op: Operator, var: Variable) -> bool:
    """Whether an operand may be as large as the result; a smaller one's gradient is a sum."""
    types = op.outputs[0].type, var.type
    shapes = [one.shape if is_a(one, TensorType) else None for one in types]
    return None in shapes or len(shapes[0] or ()) == len(shapes[1] or ())


def _tensors(value: Any) -> Iterator[Variable]:
    if is_a(value, Variable):
        yield value
    elif is_a(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)


_COMPUTES = frozenset(
    "mul div true_divide floor_divide mm bmm mv dot vdot matmul inner outer tensordot conv1d conv2d conv3d "
    "conv_transpose1d conv_transpose2d conv_transpose3d convolution exp exp2 expm1 log log2 log10 log1p pow square "
    "sqrt rsqrt sin cos tan asin acos atan atan2 sinh cosh tanh sigmoid logsigmoid softplus softmax _softmax "
    "log_softmax _log_softmax logsumexp relu gelu silu mish elu selu celu leaky_relu hardtanh relu6 neg abs "
    "reciprocal erf erfc where maximum minimum max min amax amin norm linalg_vector_norm linalg_norm mean var std "
    "layer_norm native_layer_norm group_norm batch_norm native_batch_norm rms_norm clamp clip "
    "select slice index index_select gather take embedding scaled_dot_product_attention mse_loss l1_loss "
    "smooth_l1_loss huber_loss nll_loss nll_loss_nd cross_entropy_loss binary_cross_entropy "
    "binary_cross_entropy_with_logits hypot sign flip roll tril triu unbind split chunk "
    "split_with_sizes lerp logaddexp cosine_similarity dist cdist".split()
)
"""Operators whose gradients are computed, each by itself; of any other one it is not known."""
_HANDS_ON = frozenset(
    "add sub rsub view reshape _unsafe_view unsqueeze squeeze transpose t permute expand sum clone contiguous cat "
    "stack flatten linear addmm addmv addbmm baddbmm alias to _to_copy positive".split()
)
"""Operators that give each operand that needs one a gradient, and may give that of the result, or a view of it."""

__all__ = ["note"]
