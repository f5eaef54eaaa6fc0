"""Every row of the table of faster doors leads to the overload it stands for, and to no other."""

import pytest
import torch

from runtime import torch_internals
from runtime.executor import bindings
from runtime.ir import Operator, ScalarType, TensorType, Variable
from runtime.ops import aten

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
    if name in ("aten.dot.default", "aten.mv.default"):
        return [tensor if "mv" in name else tensor[0], tensor[1]]
    if name == "aten.bmm.default":
        return [tensor[None], tensor[None]]
    if "bitwise" in name or "index_select" in name:
        tensor = torch.tensor([0, 1, 2])
    ints, lists = iter([0, 1]), {"view": [9], "reshape": [9], "expand": [3, 3], "permute": [1, 0]}
    given = {"int": lambda: next(ints), "number": lambda: 2, "ints": lambda: lists.get(name.split(".")[1], [0])}
    return [given.get(kind, tensor.clone)() for kind in kinds]


@pytest.mark.parametrize("name", sorted(bindings._ROWS))
def test_a_row_calls_its_overload(name):
    function, kinds = bindings._ROWS[name]
    args = arguments(name, kinds)
    recorder = Record()
    with torch_internals.below_autograd(), recorder:
        found = function(*args)
    assert recorder.seen == [name]
    expected = aten.resolve(name)(*args)
    assert torch.equal(found, expected) and found.stride() == expected.stride()


@pytest.mark.parametrize("number", [2, -1, 0.1, 2.5, 1e300, float("inf"), 2**40])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.int32, torch.bool, torch.float16])
@pytest.mark.parametrize("name", sorted(bindings._NUMBERS))
def test_a_number_in_a_tensors_place_gives_what_the_overload_gives(name, dtype, number):
    if dtype == torch.bool and name == "aten.sub.Tensor" or dtype == torch.int32 and number == 2**40:
        return
    tensor = torch.tensor([[0, 1, 1], [1, 0, 1]]).to(dtype)
    recorder = Record()
    with torch_internals.below_autograd(), recorder:
        found = bindings._NUMBERS[name](tensor, number)
    assert recorder.seen == [name]
    expected = aten.resolve(name)(tensor, number)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_a_row_is_used_only_for_operands_it_fits():
    tensor, number = Variable("x", MATRIX), Variable("n", ScalarType("int"))
    assert bindings.binding(Operator("aten.add.Tensor", (tensor, tensor))) is torch.add
    assert bindings.binding(Operator("aten.select.int", (tensor, 0, number))) is torch.select
    for args in [(tensor, 2), (tensor, 0.5), (tensor, number)]:
        assert bindings.binding(Operator("aten.add.Tensor", args)) is torch.add
    for args, kwargs in [((tensor, True), {}), ((2, tensor), {}), ((tensor, tensor), {"alpha": 2}), ((tensor,), {})]:
        assert bindings.binding(Operator("aten.add.Tensor", args, kwargs)) is None
    assert bindings.binding(Operator("aten.view.default", (tensor, [number, -1]))) is torch.Tensor.view
    assert bindings.binding(Operator("aten.view.default", (tensor, [tensor]))) is None
    assert bindings.binding(Operator("aten.select.int", (tensor, True, 0))) is None
    assert bindings.binding(Operator("aten.polygamma.default", (1, tensor))) is None
