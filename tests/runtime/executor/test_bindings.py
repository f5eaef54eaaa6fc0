"""Every row of the table of faster doors leads to the overload it stands for, and to no other."""

import pytest
import torch

from runtime import torch_internals
from runtime.executor import bindings
from runtime.ir import Operator, ScalarType, TensorType, Variable

MATRIX = TensorType(torch.float32, (3, 3))


class Record(torch_internals.TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


def arguments(name, kinds):
    tensor = torch.rand(3, 3)
    if name == "aten.where.self":
        return [tensor > 0.5, tensor, tensor.clone()]
    ints = iter([0, 1])
    return [tensor.clone() if kind == "tensor" else next(ints) for kind in kinds]


@pytest.mark.parametrize("name", sorted(bindings._ROWS))
def test_a_row_calls_its_overload(name):
    function, kinds = bindings._ROWS[name]
    args = arguments(name, kinds)
    recorder = Record()
    with torch_internals.below_autograd(), recorder:
        function(*args)
    assert recorder.seen == [name]


def test_a_row_is_used_only_for_operands_it_fits():
    tensor, number = Variable("x", MATRIX), Variable("n", ScalarType("int"))
    assert bindings.binding(Operator("aten.add.Tensor", (tensor, tensor))) is torch.add
    assert bindings.binding(Operator("aten.select.int", (tensor, 0, number))) is torch.select
    for args, kwargs in [((tensor, 2), {}), ((tensor, number), {}), ((tensor, tensor), {"alpha": 2}), ((tensor,), {})]:
        assert bindings.binding(Operator("aten.add.Tensor", args, kwargs)) is None
    assert bindings.binding(Operator("aten.select.int", (tensor, True, 0))) is None
    assert bindings.binding(Operator("aten.cos.default", (tensor,))) is None
