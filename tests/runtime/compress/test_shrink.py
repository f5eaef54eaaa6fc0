"""Structured pruning: a smaller Program gives what the whole one gives whose channels are zero."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import dy2static
from dy2static import InputSpec, compress
from runtime.errors import StorageError
from tests.runtime.compress import models
from tests.runtime.compress.models import IMAGES, ROWS

CASES = {
    "residual": (models.Residual, IMAGES, lambda n: torch.randn(n, 1, 8, 8), [
        {"made": ["first.weight", "first.bias", "norm.weight", "norm.bias", "norm.running_mean", "second.weight",
                  "second.bias"],
         "seen": ["second.weight", "hidden.weight"]},
        {"made": ["hidden.weight", "hidden.bias"], "seen": ["out.weight"]}]),
    "recurrent": (models.Recurrent, ROWS, lambda n: torch.randn(n, 6), [
        {"made": ["begin.weight", "begin.bias", "step.weight", "step.bias"], "seen": ["step.weight", "out.weight"]}]),
    "rows": (models.Rows, ROWS, lambda n: torch.randn(n, 6), [
        {"made": ["enter.weight", "enter.bias", "again.weight"], "seen": ["again.weight", "out.weight"]}]),
    "separable": (models.Separable, IMAGES, lambda n: torch.randn(n, 1, 8, 8), [
        {"made": ["first.weight", "depth.weight", "depth.bias"], "seen": ["point.weight"]},
        {"made": ["point.weight", "point.bias"], "seen": ["out.weight"]}]),
    "written": (models.Written, ROWS, lambda n: torch.randn(n, 6), [
        {"made": ["enter", "inner.weight", "inner.bias"], "seen": ["inner.weight", "out^t"]}]),
}  # fmt: skip
"""Class, specs, inputs, and each group of channels: what makes them (axis 0), what sees them (axis 1)."""


def slices(state, group):
    """Each channel's weights, in a row."""
    made = [state[name] for name in group["made"] if state[name].dim() > 1]
    seen = [state[name.removesuffix("^t")].t() if name.endswith("^t") else state[name] for name in group["seen"]]
    return torch.cat([*[one.flatten(1) for one in made], *[one.transpose(0, 1).flatten(1) for one in seen]], 1)


def zeroed(model, groups, amount):
    """The same model with the weakest channels made zero; what stays of each group."""
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    kept = []
    for group in groups:
        strength = slices(model.state_dict(), group).double().square().sum(1)
        gone = strength.argsort()[: int(amount * len(strength))]
        kept.append([place for place in range(len(strength)) if place not in gone.tolist()])
        for name in group["made"]:
            state[name][gone] = 0
            if name == "inner.weight":
                state["same.weight"][gone] = 0
            if name == "inner.bias":
                state["same.bias"][gone] = 0
    other = type(model)()
    other.load_state_dict(state)
    return other.train(model.training), kept


@pytest.mark.parametrize("amount", [0.25, 0.6])
@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_zero_channels_give(name, amount, tmp_path):
    torch.manual_seed(3)
    cls, specs, inputs, groups = CASES[name]
    model = cls()
    for parameter in model.parameters():  # not what initialisation gives: some are zero there
        nn.init.normal_(parameter, std=0.4)
    file = dy2static.save(model, tmp_path / "net", specs)
    layer, report = compress.prune(file, amount, structured=True, out=tmp_path / "small")
    for train in (False, True):
        oracle, kept = zeroed(model.train(train), groups, amount)
        for loaded in (layer.train(train), dy2static.load(tmp_path / "small").train(train)):
            for n in (2, 5):
                x = inputs(n)
                torch.testing.assert_close(loaded(x), oracle(x), rtol=1e-4, atol=1e-5)
                oracle.load_state_dict(zeroed(model, groups, amount)[0].state_dict())
    for group, numbers in zip(groups, kept):
        assert 0 < len(numbers) < len(slices(model.state_dict(), group))
        for made in group["made"]:
            assert layer.state_dict()[made].shape[0] == len(numbers), made
    assert report.bytes_after < report.bytes_before


def test_gradients_are_those_of_the_channels_that_stay(tmp_path):
    torch.manual_seed(4)
    cls, specs, inputs, groups = CASES["recurrent"]
    model = cls()
    layer, _ = compress.prune(dy2static.save(model, tmp_path / "net", specs), 0.5, structured=True)
    oracle, (kept,) = zeroed(model.train(), groups, 0.5)
    x = inputs(4)
    layer.train()(x).square().sum().backward()
    oracle(x).square().sum().backward()
    gradient = layer.get_parameter("step.weight").grad
    torch.testing.assert_close(gradient, oracle.step.weight.grad[kept][:, kept], rtol=1e-4, atol=1e-5)


def test_what_is_not_zero_at_zero_is_the_small_module(tmp_path):
    torch.manual_seed(5)
    model = models.Gates()
    layer, _ = compress.prune(dy2static.save(model, tmp_path / "net", ROWS), 0.5, structured=True)
    strength = model.enter.weight.square().sum(1) + model.out.weight.square().sum(0)
    kept = strength.argsort(descending=True)[:5].sort().values
    small = models.Gates(5)
    small.load_state_dict({"enter.weight": model.enter.weight[kept], "enter.bias": model.enter.bias[kept],
                           "out.weight": model.out.weight[:, kept], "out.bias": model.out.bias})
    x = torch.randn(3, 6)
    torch.testing.assert_close(layer(x), small(x))


def test_hidden_channels_of_a_transformer(tmp_path):
    torch.manual_seed(32)
    model = models.Encoder().eval()
    specs = [InputSpec([None, 5, 8], "float32", "x")]
    layer, _ = compress.prune(dy2static.save(model, tmp_path / "net", specs), 0.5, structured=True)
    first, second = model.layer.linear1, model.layer.linear2
    gone = (first.weight.square().sum(1) + second.weight.square().sum(0)).argsort()[:8]
    with torch.no_grad():
        first.weight[gone] = 0
        first.bias[gone] = 0
    x = torch.randn(3, 5, 8)
    assert layer.get_parameter("layer.linear1.weight").shape == (8, 8)
    for grad in (True, False):  # with one operator for each step, and with one for all
        with torch.set_grad_enabled(grad):
            torch.testing.assert_close(layer(x), model(x), rtol=1e-4, atol=1e-5)


def test_all_methods_count(tmp_path):
    file = dy2static.save(models.TwoMethods(), tmp_path / "net", ROWS, methods={"features": ROWS})
    layer, report = compress.prune(file, 0.5, structured=True)
    shapes = {name: tuple(tensor.shape) for name, tensor in layer.state_dict().items()}
    assert shapes["enter.weight"] == (8, 6) and shapes["inner.weight"] == (4, 8) and shapes["out.weight"] == (2, 4)
    assert layer.features(torch.ones(2, 6)).shape == (2, 8)
    assert any("'enter.weight'" in str(one) and "a result of" in str(one) for one in report.left)


@pytest.mark.parametrize("name", ["rows", "written"])
def test_a_layer_that_has_run(name, tmp_path):
    """Its Programs went through the passes, which make a scan of a loop."""
    torch.manual_seed(34)
    cls, specs, inputs, _ = CASES[name]
    file = dy2static.save(cls().eval(), tmp_path / "net", specs)
    layer, x = dy2static.load(file), inputs(4)
    for grad in (True, False):
        with torch.set_grad_enabled(grad):
            layer(x)
    assert name != "rows" or any(op.name == "scan" for op in layer.program().block.walk())
    fresh, _ = compress.prune(file, 0.5, structured=True)
    found, _ = compress.prune(layer, 0.5, structured=True)
    torch.testing.assert_close(found(x), fresh(x))
    eight, _ = compress.quantize(layer, [x])
    torch.testing.assert_close(eight(x), compress.quantize(file, [x]).layer(x))


def test_it_can_be_pruned_again_and_exported(tmp_path):
    torch.manual_seed(6)
    layer, _ = compress.prune(dy2static.save(models.Recurrent(), tmp_path / "net", ROWS), 0.5, structured=True)
    layer, _ = compress.prune(layer, 0.5, structured=True)
    assert layer.get_parameter("step.weight").shape == (3, 3)
    x = torch.randn(3, 6)
    program = dy2static.to_exported_program(layer)
    torch.testing.assert_close(program.module()(x), layer(x))


def linears(*between):
    """A function of two linear operators with something between them."""
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.enter, self.out, self.between = nn.Linear(6, 8), nn.Linear(8, 3), nn.ModuleList(between)

        def forward(self, x):
            x = self.enter(x)
            for one in self.between:
                x = one(x)
            return self.out(x)

    return Net()


class Heads(nn.Module):
    def forward(self, x):
        return x.view(-1, 2, 4).transpose(1, 2).reshape(-1, 8)


class Mean(nn.Module):
    def forward(self, x):
        return x - x.mean(1, keepdim=True)


class Turned(nn.Module):
    def forward(self, x):
        return x + x.flip(1)


class Largest(nn.Module):
    def forward(self, x):
        return x / (x - 1).amax()


class Summed(nn.Module):
    def forward(self, x):
        return x / torch.sigmoid(x).sum()


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.v = nn.Parameter(torch.randn(8, 8))

    def forward(self, x):
        return x @ (self.v / self.v.norm()).t()


class Moved(nn.Module):
    def forward(self, x):
        n = 0
        while n < 3 and x.norm() < 100:
            x = x + 1
            n += 1
        return x


class InPlace(nn.Module):
    def forward(self, x):
        y = x.clone()
        y += 1
        return x * y.sum()


class Joined(nn.Module):
    def forward(self, x):
        return torch.cat([x[:, :4], x[:, 4:]], 1)


class Counted(nn.Module):
    def forward(self, x):
        return x + torch.arange(8.0)


class SomePaths(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            x = x.sort(1).values
        return x


FIXED = {
    "layer_norm": (nn.LayerNorm(8), "aten.layer_norm"), "softmax": (nn.Softmax(1), "softmax"),
    "heads": (Heads(), "aten.view"), "mean": (Mean(), "aten.mean"), "flip": (Turned(), "aten.flip"),
    "largest": (Largest(), "aten.amax"), "joined": (Joined(), "slice"), "counted": (Counted(), "arange"),
    "summed": (Summed(), "aten.sum"), "normed": (Normed(), "aten.linalg_vector_norm"), "moved": (Moved(), "norm"),
    "in place": (InPlace(), "aten.sum"),
    "some paths": (SomePaths(), "aten.sort"), "group_norm": (nn.GroupNorm(2, 8), "aten.group_norm"),
}  # fmt: skip


@pytest.mark.parametrize("name", FIXED)
def test_what_fixes_channels_is_named(name, tmp_path):
    between, reason = FIXED[name]
    file = dy2static.save(linears(between), tmp_path / "net", ROWS)
    with pytest.raises(StorageError, match="no channels can be taken out") as error:
        compress.prune(file, 0.5, structured=True)
    assert error.value.code == "D2S570"
    assert "'enter.weight'" in str(error.value) and reason in str(error.value)
    assert "'out.weight' by a result of forward()" in str(error.value)
    if name not in ("layer_norm", "softmax", "group_norm"):
        assert "test_shrink.py:" in str(error.value)


def test_a_share_of_no_whole_channel(tmp_path):
    file = dy2static.save(linears(nn.ReLU()), tmp_path / "net", ROWS)
    with pytest.raises(StorageError, match="0.1 of 8 channels is no whole channel"):
        compress.prune(file, 0.1, structured=True)


def test_shared_memory_is_left_alone(tmp_path):
    class Overlapping(nn.Module):
        def __init__(self):
            super().__init__()
            whole = torch.randn(16, 6)
            self.enter, self.other = nn.Parameter(whole[:8]), nn.Parameter(whole[4:12])
            self.out = nn.Linear(8, 2)

        def forward(self, x):
            return self.out(torch.relu(x @ self.enter.t()) + torch.relu(x @ self.other.t()))

    file = dy2static.save(Overlapping(), tmp_path / "net", [InputSpec([None, 6])])
    with pytest.raises(StorageError, match="shares its memory with another tensor"):
        compress.prune(file, 0.5, structured=True)
