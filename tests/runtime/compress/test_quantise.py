"""Quantisation: a quantised Program is the eager model whose products round what comes in, and their weights."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import dy2static
from dy2static import InputSpec, compress
from runtime.errors import SignatureError, StorageError
from tests.runtime.compress import models
from tests.runtime.compress.models import IMAGES, ROWS

MODELS = {
    "residual": (models.Residual, IMAGES, lambda n: torch.randn(n, 1, 8, 8)),
    "recurrent": (models.Recurrent, ROWS, lambda n: torch.randn(n, 6)),
    "separable": (models.Separable, IMAGES, lambda n: torch.randn(n, 1, 8, 8)),
    "rows": (models.Rows, ROWS, lambda n: torch.randn(n, 6)),
}  # fmt: skip
PRODUCTS = (nn.Linear, nn.Conv2d)


def scale_of(weight, per_channel):
    largest = weight.detach().abs().flatten(1).amax(1) if per_channel else weight.detach().abs().max()
    return largest / 127


def rounded(weight, per_channel):
    scale = scale_of(weight, per_channel)
    if not per_channel:
        return torch.fake_quantize_per_tensor_affine(weight, scale, torch.zeros((), dtype=torch.int32), -127, 127)
    zeros = torch.zeros(len(scale), dtype=torch.int32)
    return torch.fake_quantize_per_channel_affine(weight, scale, zeros, 0, -127, 127)


def quantised_eagerly(model, batches, per_channel=True, train=False):
    """The eager model with rounding around its products; the ranges are those of the batches."""
    seen = {module: [] for module in model.modules() if isinstance(module, PRODUCTS)}
    hooks = [one.register_forward_pre_hook(lambda module, args: seen[module].append(args[0].detach())) for one in seen]
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.no_grad():
        for batch in batches:
            model(batch)
    model.load_state_dict(state)
    for hook in hooks:
        hook.remove()
    for module, tensors in seen.items():
        low, high = min(0.0, *(t.min().item() for t in tensors)), max(0.0, *(t.max().item() for t in tensors))
        scale = (high - low) / 255
        zero = round(-low / scale)

        def before(module, args, scale=scale, zero=zero):
            return (torch.fake_quantize_per_tensor_affine(args[0], scale, zero, 0, 255),)

        module.register_forward_pre_hook(before)
        if train:
            nn.utils.parametrize.register_parametrization(module, "weight", Rounded(per_channel))
        else:
            with torch.no_grad():
                module.weight.copy_(rounded(module.weight, per_channel))
    return model


class Rounded(nn.Module):
    def __init__(self, per_channel):
        super().__init__()
        self.per_channel = per_channel

    def forward(self, weight):
        return rounded(weight, self.per_channel)


def made(name, folder, train=False):
    torch.manual_seed(7)
    cls, specs, inputs = MODELS[name]
    model = cls().train(train)
    batches = [inputs(n) for n in (3, 5)]
    return model, dy2static.save(model, folder / "net", specs), batches


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("name", MODELS)
def test_it_is_the_eager_model_with_rounding(name, per_channel, tmp_path):
    model, file, batches = made(name, tmp_path)
    layer, report = compress.quantize(file, batches, per_channel=per_channel, out=tmp_path / "small")
    eager = quantised_eagerly(copy.deepcopy(model).eval(), batches, per_channel)
    again = dy2static.load(tmp_path / "small")
    for x in [*batches, batches[0] * 3]:
        expected = eager(x)
        torch.testing.assert_close(layer(x), expected, rtol=1e-5, atol=1e-6)
        assert torch.equal(again(x), layer(x))
        assert not torch.equal(expected, model.eval()(x))
    assert report.left == () and report.bytes_after < report.bytes_before / 2.2
    assert len(report.weights) == sum(isinstance(module, PRODUCTS) for module in model.modules())


def test_products_written_out(tmp_path):
    torch.manual_seed(8)
    model = models.Written().eval()
    file = dy2static.save(model, tmp_path / "net", ROWS)
    x = torch.randn(4, 6)
    layer, report = compress.quantize(file, [x])
    assert [row.name for row in report.weights] == ["enter", "out", "inner.weight"]

    plain = [x, torch.relu(x @ model.enter.t())]  # what comes into each product in float32
    plain.append(torch.relu(model.inner(plain[1])))
    plain.append(torch.relu(model.inner(plain[2])))

    def on_grid(h):
        seen = plain.pop(0)
        low, high = min(seen.min().item(), 0), max(seen.max().item(), 0)
        scale = (high - low) / 255
        return torch.fake_quantize_per_tensor_affine(h, scale, round(-low / scale), 0, 255)

    h = torch.relu(on_grid(x) @ rounded(model.enter, True).t())
    h = torch.relu(nn.functional.linear(on_grid(h), rounded(model.inner.weight, True), model.inner.bias))
    h = torch.relu(nn.functional.linear(on_grid(h), rounded(model.inner.weight, True), model.inner.bias))
    torch.testing.assert_close(layer(x), on_grid(h) @ rounded(model.out.t(), True).t(), rtol=1e-5, atol=1e-6)


class Paths(nn.Module):
    def __init__(self):
        super().__init__()
        self.usual, self.rare = nn.Linear(6, 4), nn.Linear(6, 4)

    def forward(self, x):
        if x.sum() > 0:
            return self.usual(x)
        return self.rare(x)  # the rare path


def test_a_path_that_no_batch_takes_stays_in_float(tmp_path):
    torch.manual_seed(9)
    model = Paths()
    file = dy2static.save(model, tmp_path / "net", ROWS)
    x = torch.rand(3, 6)
    layer, report = compress.quantize(file, [x])
    torch.testing.assert_close(layer(-x), model(-x), rtol=0, atol=0)
    assert not torch.equal(layer(x), model(x))
    (left,) = report.left
    assert left.what == "aten.linear.default" and "test_quantise.py:" in left.where
    assert left.why == "no calibration batch came here" and "no calibration batch came here" in str(report)
    assert [row.name for row in report.weights] == ["usual.weight"]


def test_other_operators_with_weights_are_named(tmp_path):
    torch.manual_seed(33)
    file = dy2static.save(models.Encoder().eval(), tmp_path / "net", [InputSpec([None, 5, 8], "float32", "x")])
    layer, report = compress.quantize(file, [torch.randn(3, 5, 8)])
    found = {left.what: left.why for left in report.left}
    assert "none of the products" in found["aten._transformer_encoder_layer_fwd.default"]
    assert "layer.linear1.weight" in [row.name for row in report.weights]


def test_training_follows_the_weights(tmp_path):
    model, file, batches = made("recurrent", tmp_path, train=True)
    layer, _ = compress.quantize(file, batches, training=True)
    eager = quantised_eagerly(copy.deepcopy(model), batches, train=True)
    ours, theirs = layer.train(), eager.train()
    for parameters in (ours, theirs):
        optimizer = torch.optim.SGD(parameters.parameters(), lr=0.1)
        for batch in batches * 2:
            optimizer.zero_grad()
            parameters(batch).square().sum().backward()
            optimizer.step()
    assert not torch.allclose(ours.get_parameter("step.weight"), model.step.weight, atol=1e-3)
    found = {name: tensor for name, tensor in theirs.named_parameters()}
    for name, tensor in ours.named_parameters():
        other = found.get(name, found.get(f"{name.removesuffix('.weight')}.parametrizations.weight.original"))
        torch.testing.assert_close(tensor, other, rtol=1e-4, atol=1e-5)


def test_gradients_are_straight_through(tmp_path):
    torch.manual_seed(10)
    file = dy2static.save(nn.Linear(3, 2, bias=False), tmp_path / "net", [InputSpec([None, 3])])
    layer, _ = compress.quantize(file, [torch.tensor([[0.0, 1.0, 2.0]])], training=True)
    x = torch.tensor([[0.5, 1.0, 5.0]], requires_grad=True)
    layer.train()(x).sum().backward()
    weight = layer.get_parameter("weight")
    assert x.grad[0, 2] == 0 and (x.grad[0, :2] != 0).all(), "beyond the range there is none"
    torch.testing.assert_close(weight.grad, torch.tensor([[0.5, 1.0, 2.0]]).expand(2, 3), rtol=0.01, atol=0.01)


def test_frozen_it_gives_the_same(tmp_path):
    _, file, batches = made("residual", tmp_path)
    layer, _ = compress.quantize(file, batches, training=True, out=tmp_path / "trained")
    layer.train()
    layer(batches[0]).sum().backward()
    torch.optim.SGD(layer.parameters(), lr=0.05).step()
    layer.eval()
    frozen = compress.freeze(layer, out=tmp_path / "frozen")
    for one in (frozen, dy2static.load(tmp_path / "frozen")):
        assert torch.equal(one(batches[1]), layer(batches[1]))
    names = [op.name for op in frozen.program().block.walk()]
    assert "aten.amax.default" not in names and "aten.amax.default" in [
        op.name for op in layer.program().block.walk()]
    assert not torch.equal(dy2static.load(tmp_path / "trained")(batches[1]), layer(batches[1]))
    with pytest.raises(StorageError, match="nothing to freeze"):
        compress.freeze(frozen)


def test_it_is_for_inference(tmp_path):
    _, file, batches = made("recurrent", tmp_path)
    layer, _ = compress.quantize(file, batches)
    with pytest.raises(SignatureError, match="saved for eval mode only"):
        layer.train()(batches[0])


def test_calibration_stores_nothing(tmp_path):
    _, file, batches = made("residual", tmp_path)
    before = torch.get_rng_state()
    layer, _ = compress.quantize(file, batches, training=True)
    assert torch.equal(torch.get_rng_state(), before)
    for name, tensor in dy2static.load(file).state_dict().items():
        assert torch.equal(layer.state_dict()[name], tensor), name


def test_pruned_models_are_quantised(tmp_path):
    _, file, batches = made("residual", tmp_path)
    layer, _ = compress.prune(file, 0.5, structured=True)
    layer, report = compress.quantize(layer, batches)
    assert {row.name: row.before for row in report.weights}["second.weight"] == (4, 4, 3, 3)
    layer, report = compress.prune(layer, 0.5, structured=True)
    assert layer.get_parameter("second.weight").shape == (2, 2, 3, 3)
    assert layer(batches[0]).shape == (3, 5)


def test_batches_are_calls(tmp_path):
    class Two(nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = nn.Linear(2, 2)

        def forward(self, x, y):
            return self.linear(x + y)

    torch.manual_seed(11)
    file = dy2static.save(Two(), tmp_path / "net", [InputSpec([None, 2]), InputSpec([None, 2])])
    x, y = torch.randn(3, 2), torch.randn(3, 2)
    one, _ = compress.quantize(file, [(x, y)])
    other, _ = compress.quantize(file, [{"y": y, "x": x}])
    assert torch.equal(one(x, y), other(x, y))


def test_what_cannot_be_quantised(tmp_path):
    file = dy2static.save(nn.ReLU(), tmp_path / "relu", [InputSpec([3])])
    with pytest.raises(StorageError, match="there is nothing to quantise") as error:
        compress.quantize(file, [torch.ones(3)])
    assert error.value.code == "D2S571"
    file = dy2static.save(nn.Linear(3, 2).double(), tmp_path / "double", [InputSpec([3], "float64")])
    with pytest.raises(StorageError, match="it is not computed in float32"):
        compress.quantize(file, [torch.ones(3, dtype=torch.float64)])
    file = dy2static.save(nn.Linear(3, 2), tmp_path / "linear", [InputSpec([3])])
    with pytest.raises(StorageError, match="what came in was not finite"):
        compress.quantize(file, [torch.tensor([1.0, float("inf"), 0.0])])
    with pytest.raises(ValueError, match="at least one batch"):
        compress.quantize(file, [])
    with pytest.raises(ValueError, match="there is no method 'encode'"):
        compress.quantize(file, [torch.ones(3)], method="encode")
    file = dy2static.save(nn.Linear(3, 2), tmp_path / "train", [InputSpec([3])], modes=["train"])
    with pytest.raises(StorageError, match="saved for training only"):
        compress.quantize(file, [torch.ones(3)])
