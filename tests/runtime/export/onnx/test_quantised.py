"""Quantised Programs in ONNX: pairs of QuantizeLinear and DequantizeLinear, weights of 8 bits, the interpreter's
results."""

from __future__ import annotations

import pytest

pytest.importorskip("onnx")

import onnx
import onnxruntime
import torch
from torch import nn

import dy2static
from dy2static import compress
from tests.runtime.compress import models
from tests.runtime.export.onnx.harness import check

CASES = {
    "residual": (models.Residual, models.IMAGES, lambda n: torch.randn(n, 1, 8, 8)),
    "recurrent": (models.Recurrent, models.ROWS, lambda n: torch.randn(n, 6)),
    "separable": (models.Separable, models.IMAGES, lambda n: torch.randn(n, 1, 8, 8)),
}  # fmt: skip


def nodes_of(graph):
    for node in graph.node:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_of(attribute.g)


def answer(file, x):
    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    return torch.from_numpy(session.run(None, {session.get_inputs()[0].name: x.numpy()})[0])


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_onnx_runtime_gives_the_same(name, per_channel, tmp_path):
    torch.manual_seed(12)
    cls, specs, inputs = CASES[name]
    batches = [inputs(4), inputs(3)]
    file = dy2static.save(cls().eval(), tmp_path / "net", specs)
    layer, report = compress.quantize(file, batches, per_channel=per_channel)
    path = dy2static.onnx.export(layer, tmp_path / "net.onnx")
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    for x in batches:
        found = answer(path, x)
        # a number in the middle of two steps may be rounded the other way: a step of one activation
        torch.testing.assert_close(found, layer(x), rtol=0, atol=0.02)
        assert ((found - layer(x)).abs() < 1e-5).float().mean() > 0.8
    names = [node.op_type for node in nodes_of(model.graph)]
    products = len(report.weights)
    assert names.count("QuantizeLinear") == products and names.count("DequantizeLinear") == 2 * products
    held = [one for one in model.graph.initializer if one.data_type == onnx.TensorProto.INT8 and len(one.dims) > 1]
    assert sorted(tuple(one.dims) for one in held) == sorted(row.after for row in report.weights)
    large = [one for one in model.graph.initializer if one.data_type == onnx.TensorProto.FLOAT and len(one.dims) > 1]
    assert not large, "no weight is held as floats besides"


def test_scales_that_the_run_computes(tmp_path):
    torch.manual_seed(13)
    x = torch.randn(4, 6)
    file = dy2static.save(models.Recurrent().eval(), tmp_path / "net", models.ROWS)
    layer, _ = compress.quantize(file, [x], training=True)
    path = dy2static.onnx.export(layer.eval(), tmp_path / "net.onnx")
    torch.testing.assert_close(answer(path, x), layer(x), rtol=0, atol=0.02)
    frozen = dy2static.onnx.export(compress.freeze(layer), tmp_path / "frozen.onnx")
    assert "ReduceMax" not in [node.op_type for node in nodes_of(onnx.load(frozen).graph)]
    torch.testing.assert_close(answer(frozen, x), layer(x), rtol=0, atol=0.02)


class Rounding(nn.Module):
    def forward(self, x, scale, zero):
        a = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)
        b = torch.fake_quantize_per_tensor_affine(x, 0.1, -3, -128, 127)
        c = torch.fake_quantize_per_tensor_affine(x, 0.1, 1, -4, 3)
        d = torch.fake_quantize_per_channel_affine(x, scale, zero, 1, -8, 7)
        e = torch.fake_quantize_per_tensor_affine(x, scale[0], zero[0], 0, 15)
        return a, b, c, d, e


def test_all_forms(tmp_path):
    torch.manual_seed(14)
    specs = [dy2static.InputSpec([None, 3]), dy2static.InputSpec([3]), dy2static.InputSpec([3], "int32")]
    scale, zero = torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 2, -1], dtype=torch.int32)
    check(Rounding(), tmp_path, specs, *[(torch.randn(n, 3) * 2, scale, zero) for n in (2, 5)])


def test_a_smaller_range_of_a_weight_is_kept(tmp_path):
    class Clipped(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.tensor([[-3.0, 3.0], [0.26, -1.0]]))

        def forward(self, x):
            return x @ torch.fake_quantize_per_tensor_affine(self.weight, 0.01, 0, -127, 127)

    check(Clipped(), tmp_path, [dy2static.InputSpec([2, 2])], (torch.eye(2),))
