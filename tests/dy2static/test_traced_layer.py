"""TracedLayer: what it gives is what the layer gives; what it saves loads; control flow on data is refused."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import runtime
from dy2static import SignatureError, StorageError, TracedLayer, TraceError, load, to_static


class Net(nn.Module):
    """Python's control flow, a Python loop of the Program, dropout, a buffer."""

    def __init__(self, depth: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(depth))
        self.drop = nn.Dropout(0.5)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x, y):
        self.calls += 1
        for layer in self.layers:
            x = torch.relu(layer(x))
        if x.dim() == 2:
            x = self.drop(x)
        return {"both": x + y, "x": x, "second": y * 2}


INPUTS = (torch.linspace(-1, 2, 6).view(2, 3), torch.ones(2, 3))


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("convert", [False, True])
def test_it_is_what_the_layer_is(training: bool, convert: bool, tmp_path: Path) -> None:
    model = Net().train(training)
    if convert:
        model = to_static(model)
    torch.manual_seed(0)
    outputs, traced = TracedLayer.trace(model, list(INPUTS))
    assert model.calls == 1 and model.training is training
    path = traced.save_inference_model(tmp_path / "new" / "net", metadata={"a": 1})
    loaded = load(tmp_path / "new" / "net")
    assert path.name == "net.d2s" and loaded.metadata == {"a": 1} and not loaded.training
    assert runtime.load(path).methods == ("forward",)
    for function in (lambda: traced(*INPUTS), lambda: traced(list(INPUTS)), lambda: loaded(*INPUTS)):
        torch.manual_seed(0)
        found = function()
        assert list(found) == ["both", "x", "second"]
        assert all(torch.equal(found[name], outputs[name]) for name in found)
    assert model.calls == 3 and loaded.calls == 2
    assert any(op.name == "aten.linear.default" for op in traced.program.block.walk())


def test_it_shares_the_memory_of_the_layer() -> None:
    model = Net().eval()
    _, traced = TracedLayer.trace(model, INPUTS)
    with torch.no_grad():
        model.layers[0].weight.mul_(3)
        assert torch.equal(traced(*INPUTS)["x"], model(*INPUTS)["x"])


def test_inputs_and_results_can_be_chosen(tmp_path: Path) -> None:
    model = Net().eval()
    outputs, traced = TracedLayer.trace(model, INPUTS)
    model.train()
    traced.save_inference_model(tmp_path / "x", feed=[0], fetch=["x"])
    assert model.training and all(module.training for module in model.modules())
    layer = load(tmp_path / "x")
    assert str(layer.signature()) == "(x)" and torch.equal(layer(INPUTS[0])["x"], outputs["x"])
    traced.save_inference_model(tmp_path / "second", feed=[1], fetch="second")
    layer = load(tmp_path / "second")
    assert str(layer.signature()) == "(y)" and layer(INPUTS[1]).eq(2).all()
    assert [one.name for one in layer.program().params] == ["calls"]
    for feed, fetch, problem in (
        ([0], None, r"the input 1 of the layer, 'y', is not in feed, but the results need it"),
        ([2], None, "has the inputs 0 to 1: x, y"), ([], None, "has the inputs"), ([-1], None, "has the inputs"),
        (None, ["z"], r"names the result 'z' of forward\(\)"),
    ):  # fmt: skip
        with pytest.raises(SignatureError, match=f"D2S317(.|\n)*{problem}"):
            traced.save_inference_model(tmp_path / "wrong", feed=feed, fetch=fetch)
    assert not (tmp_path / "wrong.d2s").exists()


def test_other_inputs_are_refused() -> None:
    _, traced = TracedLayer.trace(Net(), INPUTS)
    with pytest.raises(SignatureError, match="has size 3 in dimension 0, but it was saved for 2"):
        traced(torch.ones(3, 3), torch.ones(2, 3))
    with pytest.raises(TypeError, match="missing a required argument: 'y'"):
        traced(torch.ones(2, 3))
    with pytest.raises(TypeError, match="takes an nn.Module, not function"):
        TracedLayer.trace(lambda x: x, [torch.ones(1)])


def test_nested_inputs_and_constants() -> None:
    class Nested(nn.Module):
        def forward(self, pair, factor=2):
            return pair[0] * factor + pair[1]

    one = torch.ones(2)
    outputs, traced = TracedLayer.trace(Nested(), [[one, one * 3]])
    assert outputs.eq(5).all() and traced([one, one]).eq(3).all()
    outputs, traced = TracedLayer.trace(nn.ReLU(), one)
    assert traced(one) is not one and traced([one]).eq(1).all()


class If(nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return x * 0


class While(nn.Module):
    def forward(self, x):
        while x.norm() > 1:
            x = x / 2
        return x


class ForItem(nn.Module):
    def forward(self, x):
        for _ in range(x.sum().int()):
            x = x + 1
        return x


class Ternary(nn.Module):
    def forward(self, x):
        y = x if bool(x[0] > 0) else -x
        return y


class Item(nn.Module):
    def forward(self, x):
        n = x.sum().item()
        return x * 2 if n > 1 else x


class Inside(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(3, 3), While())

    def forward(self, x):
        return self.inner(x)


class Counted(nn.Module):
    """A loop of the Program that decides on numbers, with a decision on what it carries after many iterations."""

    def forward(self, x):
        total = x.sum() * 0
        for i in range(300):
            total = total + i
            if total > 1000:
                break
        return x + total


@pytest.mark.parametrize(
    ("kind", "name", "text"),
    [(If, r"a branch \(if\)", "if x.sum() > 0:"), (While, r"a loop \(while\)", "while x.norm() > 1:"),
     (ForItem, r"a loop \(for\)", "for _ in range("), (Ternary, "a branch", "y = x if"), (Item, "a branch", "if n > 1"),
     (Inside, r"a loop \(while\)", "while x.norm() > 1:"), (Counted, "a (loop|branch)", "")],
)  # fmt: skip
def test_control_flow_on_data_is_refused_at_its_line(kind: Any, name: str, text: str) -> None:
    model = kind()
    with pytest.raises(TraceError, match=f"D2S294(.|\n)*decides on data, {name}") as caught:
        TracedLayer.trace(model, [torch.ones(3)])
    place = caught.value.location
    assert place is not None and place.file == __file__ and text in place.text
    assert f"in line {place.line} of test_traced_layer.py" in str(caught.value)
    start = inspect.getsourcelines(While if kind is Inside else kind)[1]
    assert start < place.line < start + 12


def test_what_does_not_decide_on_data_is_taken(tmp_path: Path) -> None:
    class Long(nn.Module):
        def forward(self, x):
            rows = []
            for i in range(500):
                x = x * 0.99 + i
                rows.append(x.sum().item())
            assert x.sum() > 0
            return torch.where(x > 1, x, -x), len(rows), rows[-1]

    outputs, traced = TracedLayer.trace(Long(), [torch.ones(3)])
    traced.save_inference_model(tmp_path / "long")
    found = load(tmp_path / "long")(torch.ones(3))
    assert torch.equal(found[0], outputs[0]) and found[1:] == outputs[1:]
    with pytest.raises(AssertionError):
        traced(torch.full((3,), -1e30))


def test_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "net.d2s").mkdir()
    _, traced = TracedLayer.trace(nn.ReLU(), torch.ones(2))
    with pytest.raises(StorageError, match=r"D2S505(.|\n)*test_traced_layer"):
        traced.save_inference_model(tmp_path / "net")
