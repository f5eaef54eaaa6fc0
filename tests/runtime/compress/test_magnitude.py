"""Magnitude pruning: the smallest weights of all layers are zero, and nothing else is changed."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import dy2static
from dy2static import compress
from runtime.errors import StorageError
from tests.runtime.compress.models import IMAGES, ROWS, Residual, Written

WEIGHTS = ("first.weight", "second.weight", "hidden.weight", "out.weight")


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return Residual().eval()


@pytest.fixture(scope="module")
def file(model, tmp_path_factory):
    return dy2static.save(model, tmp_path_factory.mktemp("magnitude") / "net", IMAGES)


def pruned_by_hand(model, amount):
    """A state dict whose smallest weights, over all layers, are zero."""
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    every = torch.cat([state[name].abs().flatten() for name in WEIGHTS]).sort().values
    bound = every[round(amount * len(every)) - 1]
    for name in WEIGHTS:
        state[name][state[name].abs() <= bound] = 0
    return state


@pytest.mark.parametrize("amount", [0.3, 0.8])
def test_the_smallest_of_all_weights_are_zero(model, file, amount):
    layer, report = compress.prune(file, amount)
    expected = pruned_by_hand(model, amount)
    assert layer.state_dict().keys() == expected.keys()
    for name, tensor in layer.state_dict().items():
        assert torch.equal(tensor, expected[name]), name
    zeros = {row.name: row.zeros for row in report.weights}
    assert zeros == {name: int((expected[name] == 0).sum()) for name in WEIGHTS}
    assert report.sparsity == pytest.approx(amount, abs=0.001)
    eager = Residual().eval()
    eager.load_state_dict(expected)
    x = torch.randn(4, 1, 8, 8)
    assert torch.equal(layer(x), eager(x))


def test_what_is_given_stays_as_it_is(model, file):
    layer = dy2static.load(file)
    other, _ = compress.prune(layer, 0.5)
    for name, tensor in model.state_dict().items():
        assert torch.equal(layer.state_dict()[name], tensor)
    assert not torch.equal(other.state_dict()["hidden.weight"], model.hidden.weight)


def test_zeros_stay_while_it_is_trained(file):
    layer, report = compress.prune(file, 0.7)
    layer.train()
    compress.keep_zeros(layer)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.01, weight_decay=0.1)
    before = layer.state_dict()["hidden.weight"].clone()
    for _ in range(3):
        optimizer.zero_grad()
        layer(torch.randn(4, 1, 8, 8)).square().mean().backward()
        optimizer.step()
    after = layer.state_dict()["hidden.weight"]
    assert torch.equal(after == 0, before == 0) and not torch.equal(after, before)
    (row,) = [row for row in report.weights if row.name == "hidden.weight"]
    assert int((after == 0).sum()) == row.zeros


def test_hooks_are_taken_away(file):
    layer, _ = compress.prune(file, 0.7)
    layer.train()
    for handle in compress.keep_zeros(layer):
        handle.remove()
    layer(torch.randn(4, 1, 8, 8)).square().mean().backward()
    gradient = layer.get_parameter("out.weight").grad
    assert (gradient[layer.get_parameter("out.weight") == 0] != 0).any()


def test_it_is_saved_and_keeps_what_is_shared(tmp_path):
    torch.manual_seed(1)
    file = dy2static.save(Written(), tmp_path / "net", ROWS)
    layer, _ = compress.prune(file, 0.5, out=tmp_path / "small")
    again = dy2static.load(tmp_path / "small")
    x = torch.randn(3, 6)
    assert torch.equal(again(x), layer(x))
    assert again.get_parameter("inner.weight") is again.get_parameter("same.weight")
    assert int((again.get_parameter("enter") == 0).sum()) > 0


def test_the_report_is_a_table(file):
    _, report = compress.prune(file, 0.5)
    lines = str(report).splitlines()
    assert lines[0].split() == ["weight", "before", "after", "zeros", "bytes", "before", "bytes", "after"]
    assert lines[-1].split()[0] == "total" and len(lines) == 2 + len(WEIGHTS)


def test_nothing_to_prune(tmp_path):
    file = dy2static.save(nn.ReLU(), tmp_path / "net", [dy2static.InputSpec([3])])
    with pytest.raises(StorageError, match="there is nothing to prune") as error:
        compress.prune(file, 0.5)
    assert error.value.code == "D2S570"


@pytest.mark.parametrize("amount", [0, 1, -0.5, 1.5, True, "half"])
def test_amounts(file, amount):
    with pytest.raises(ValueError, match="a share between 0 and 1"):
        compress.prune(file, amount)


def test_a_model_has_to_be_saved_first():
    with pytest.raises(TypeError, match="save it first"):
        compress.prune(nn.Linear(2, 2), 0.5)
