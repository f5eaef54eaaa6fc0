"""Batch normalisation in eval as part of the convolution before it.

    %y = conv2d(%x, %w, %b)                          %s = mul(rsqrt(add(%var, eps)), %gamma)
    %z = batch_norm(%y, %gamma, %beta,        ->     %w2 = mul(%w, view(%s, [-1, 1, 1, 1]))
                    %mean, %var, False)              %b2 = add(mul(sub(%b, %mean), %s), %beta)
                                                     %z = conv2d(%x, %w2, %b2)

The new weight is computed in each call, of parameters and buffers as they are then; gradients flow through it. It
happens only where weights and statistics are parameters and buffers that the Program does not write, all of one dtype,
and nothing but the normalisation reads the convolution. Results differ from eager's by rounding; where a convolution
gives inf or nan and ``gamma`` is 0, eager has nan.
"""

from __future__ import annotations

from typing import Any

from runtime.ir import Block, Operand, Operator, Program, TensorType, Variable
from runtime.ir.operator import leaves
from runtime.ir.walk import Names, uses
from runtime.passes.manager import Pass

_CONVOLUTIONS = {"aten.conv1d.default": 3, "aten.conv2d.default": 4, "aten.conv3d.default": 5}
"""By name: the rank of what they are given, a batch of it."""
_NORM = "aten.batch_norm.default"


def fold(program: Program) -> int:
    """Fold what can be folded; how many normalisations that were."""
    if not any(op.name == _NORM for op in program.block.walk()):
        return 0
    written = {write.target for write in program.writes}
    for op in program.block.walk():
        if op.name == "update":
            written.update(leaves(list(op.args)))
    fixed = {param.var for param in program.params} - written
    return _Folding(program, fixed).block(program.block)


class _Folding:
    def __init__(self, program: Program, fixed: set[Variable]) -> None:
        self.fixed = fixed
        self.uses = uses(program)
        self.names = Names(program)

    def block(self, block: Block) -> int:
        count = sum(self.block(inner) for op in block.ops for inner in op.blocks)
        makers = {out: op for op in block.ops for out in op.outputs}
        ops: list[Operator] = []
        gone: set[int] = set()
        for op in block.ops:
            conv = self.convolution(op, makers)
            if conv is None:
                ops.append(op)
                continue
            ops += self.folded(conv, op)
            gone.add(id(conv))
            count += 1
        block.ops[:] = [op for op in ops if id(op) not in gone]
        return count

    def convolution(self, norm: Operator, makers: dict[Variable, Operator]) -> Operator | None:
        """The convolution that a normalisation can become part of."""
        if norm.name != _NORM or norm.kwargs or len(norm.args) != 9 or norm.args[5] is not False:
            return None
        source, gamma, beta, mean, var = norm.args[:5]
        if not isinstance(source, Variable) or mean is None or var is None:
            return None
        conv = makers.get(source)
        if conv is None or conv.name not in _CONVOLUTIONS or conv.kwargs or self.uses[source] != 1:
            return None
        if conv.grad_mode != norm.grad_mode or any(op.autocast is not None or op.attrs for op in (conv, norm)):
            return None
        x, weight, bias = (*conv.args, None)[:3]
        if not isinstance(x, Variable) or not isinstance(x.type, TensorType) or x.type.shape is None:
            return None
        numbers = [one for one in (weight, bias, gamma, beta, mean, var) if one is not None]
        if len(x.type.shape) != _CONVOLUTIONS[conv.name] or any(one not in self.fixed for one in numbers):
            return None
        kinds = {(one.type.dtype, one.type.device) for one in (x, *numbers)
                 if isinstance(one, Variable) and isinstance(one.type, TensorType)}  # fmt: skip
        dtype = x.type.dtype
        return conv if len(kinds) == 1 and dtype is not None and dtype.is_floating_point else None

    def folded(self, conv: Operator, norm: Operator) -> list[Operator]:
        """The Operators that give what both gave."""
        _, gamma, beta, mean, var, _, _, eps, _ = norm.args
        x, weight, bias = (*conv.args, None)[:3]
        assert isinstance(var, Variable) and isinstance(weight, Variable)
        made: list[Operator] = []

        def put(name: str, type_: Any, *args: Operand) -> Variable:
            out = Variable(self.names.new(""), type_)
            made.append(Operator(f"aten.{name}", args, {}, (out,), (), {}, norm.grad_mode, None, norm.location))
            return out

        kind, rank = var.type, _CONVOLUTIONS[conv.name]
        assert isinstance(kind, TensorType) and kind.shape is not None
        scale = put("rsqrt.default", kind, put("add.Scalar", kind, var, eps))
        if gamma is not None:
            scale = put("mul.Tensor", kind, scale, gamma)
        turned = put("view.default", TensorType(kind.dtype, (kind.shape[0], *[1] * (rank - 1)), kind.device), scale,
                     [kind.shape[0], *[1] * (rank - 1)])  # fmt: skip
        heavier = put("mul.Tensor", weight.type, weight, turned)
        centre = put("neg.default", kind, mean) if bias is None else put("sub.Tensor", kind, bias, mean)
        shift: Operand = put("mul.Tensor", kind, centre, scale)
        if beta is not None:
            shift = put("add.Tensor", kind, shift, beta)
        rest = conv.args[3:]
        made.append(Operator(conv.name, (x, heavier, shift, *rest), {}, norm.outputs, (), {}, conv.grad_mode, None,
                             conv.location))  # fmt: skip
        return made


PASS = Pass("fold_conv_bn", "batch normalisation in eval as part of the convolution before it", fold)

__all__ = ["PASS", "fold"]
