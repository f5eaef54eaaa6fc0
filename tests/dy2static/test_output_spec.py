"""Some of a function's results are saved: the others leave the Program, with what only they need."""

from __future__ import annotations

import collections
import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import InputSpec, SignatureError, load, save

X = InputSpec([None, 3])
Pair = collections.namedtuple("Pair", "a b")


@dataclasses.dataclass
class Output:
    a: torch.Tensor
    b: torch.Tensor


class Heads(nn.Module):
    """A trunk, two heads, a counter."""

    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Linear(3, 3)
        self.small = nn.Linear(3, 1)
        self.large = nn.Linear(3, 9)
        self.offset = torch.ones(3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        h = self.trunk(x)
        self.calls = self.calls + 1
        large = self.large(h)
        while large.sum() > 1:
            large = large / 2
        return {"small": self.small(h), "large": large, "h": h + self.offset, "x": x}


def names_of(layer: Any) -> set[str]:
    return {op.name for op in layer.program().block.walk()}


def test_what_nothing_needs_leaves_the_program(tmp_path: Path) -> None:
    model = Heads().eval()
    save(model, tmp_path / "m", [X], output_spec=["small"])
    layer, x = load(tmp_path / "m"), torch.randn(2, 3, requires_grad=True)
    found, expected = layer(x), model(x)
    assert list(found) == ["small"] and torch.equal(found["small"], expected["small"])
    assert layer.calls == 1 and "while_loop" not in names_of(layer)
    names = [one.name for one in layer.program().params]
    assert names == ["trunk.weight", "trunk.bias", "calls", "small.weight", "small.bias"]
    assert not vars(layer._constants) and list(layer.state_dict()) == list(model.state_dict())
    gradients = torch.autograd.grad(found["small"].sum(), [x, layer.trunk.weight])
    expected_gradients = torch.autograd.grad(expected["small"].sum(), [x, model.trunk.weight])
    assert all(map(torch.allclose, gradients, expected_gradients))


def test_order_one_alone_and_all(tmp_path: Path) -> None:
    model, x = Heads(), torch.randn(2, 3)
    expected = model(x)
    save(model, tmp_path / "two", [X], output_spec=("x", "large"))
    found = load(tmp_path / "two")(x)
    assert list(found) == ["x", "large"] and found["x"] is x and torch.equal(found["large"], expected["large"])
    save(model, tmp_path / "one", [X], output_spec={"forward": "h"})
    assert torch.equal(load(tmp_path / "one")(x), expected["h"])
    save(model, tmp_path / "all", [X], output_spec=list(expected))
    assert list(load(tmp_path / "all")(x)) == list(expected)


def results(kind: str) -> Any:
    def f(x):
        a, b = x + 1, x * 2
        if kind == "tuple":
            return a, b
        if kind == "list":
            return [a, b]
        if kind == "namedtuple":
            return Pair(a, b)
        if kind == "dataclass":
            return Output(a, b)
        if kind == "ordered":
            return collections.OrderedDict(a=a, b=b)
        return torch.max(x, 0) if kind == "max" else x * 2

    return f


@pytest.mark.parametrize(
    ("kind", "wanted", "shape"),
    [
        ("tuple", [1], "(b,)"), ("tuple", 1, "b"), ("list", [1], "[b]"), ("list", [1, 0], "[b, a]"),
        ("namedtuple", ["b"], "(b=b)"), ("namedtuple", [1], "(b=b)"), ("namedtuple", 1, "b"),
        ("dataclass", ["b"], "(b=b)"), ("ordered", ["b"], "{b: b}"), ("max", ["indices"], "(i,)"), ("tensor", 0, "b"),
    ],
)  # fmt: skip
def test_results_of_every_kind(tmp_path: Path, kind: str, wanted: Any, shape: str) -> None:
    x = torch.tensor([1.0, 5.0])
    save(results(kind), tmp_path / "f", [InputSpec([2])], output_spec=wanted)
    found = load(tmp_path / "f")(x)
    values = {"a": x + 1, "b": x * 2, "i": torch.tensor(1)}

    def spelled(value: Any) -> str:
        if isinstance(value, torch.Tensor):
            return next(name for name, one in values.items() if one.dtype == value.dtype and torch.equal(one, value))
        if isinstance(value, dict):
            return "{" + ", ".join(f"{key}: {spelled(one)}" for key, one in value.items()) + "}"
        if hasattr(value, "_fields"):
            return "(" + ", ".join(f"{key}={spelled(getattr(value, key))}" for key in value._fields) + ")"
        inside = [spelled(one) for one in value]
        return f"[{', '.join(inside)}]" if type(value) is list else f"({inside[0]},)"

    assert spelled(found) == shape


def test_views_shared_parts_and_writes_stay_what_they_were(tmp_path: Path) -> None:
    def f(x, log):
        rows = [x[0], x * 3]
        log["seen"] = rows
        x.add_(1)
        return x * 5, rows, {"again": rows, "x": x}, log

    save(f, tmp_path / "f", [InputSpec([2]), {"first": InputSpec([1])}], output_spec=[1, 2, 3])
    layer, x, log = load(tmp_path / "f"), torch.zeros(2), {"first": torch.zeros(1)}
    rows, both, back = layer(x, log)
    assert both["again"] is rows and both["x"] is x and back is log and log["seen"] is rows
    assert rows[0]._base is x and x.eq(1).all() and rows[1].eq(0).all()


def test_effects_and_random_numbers_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def f(x):
        assert x.sum() < 100, "too large"
        print("said")
        noise = torch.rand(3)
        return x * torch.rand(3), noise

    save(f, tmp_path / "f", [InputSpec([3])], output_spec=[0])
    layer, x = load(tmp_path / "f"), torch.ones(3)
    torch.manual_seed(0)
    found = layer(x)
    torch.manual_seed(0)
    assert torch.equal(found[0], f(x)[0]) and capsys.readouterr().out == "said\nsaid\n"
    with pytest.raises(AssertionError, match="too large"):
        layer(x * 100)


@pytest.mark.parametrize(
    ("kind", "wanted", "problem"),
    [
        ("tuple", [2], r"names the result 2 of f\(\), whose results are 0, 1"),
        ("tuple", ["a"], "whose results are 0, 1"),
        ("ordered", "c", "whose results are 'a', 'b'"),
        ("ordered", 0, "whose results are 'a', 'b'"),
        ("namedtuple", -1, "whose results are 'a', 'b'"),
        ("tensor", [1], "which gives one result, 0"),
    ],
)
def test_results_that_are_not_there(tmp_path: Path, kind: str, wanted: Any, problem: str) -> None:
    with pytest.raises(SignatureError, match=f"D2S317(.|\n)*{problem}"):
        save(results(kind), tmp_path / "f", [InputSpec([2])], output_spec=wanted)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("wanted", [[], [0, 0], [0.0], [True], True, [None], {"backward": [0]}, 1.5])
def test_what_is_no_output_spec(tmp_path: Path, wanted: Any) -> None:
    with pytest.raises(TypeError, match="output_spec"):
        save(results("tuple"), tmp_path / "f", [InputSpec([2])], output_spec=wanted)


def test_a_result_on_some_paths_only(tmp_path: Path) -> None:
    """What is a tensor on one path and a number on the other is one result all the same."""

    def f(x):
        other = x.sum() if x.sum() > 0 else 3
        return {"other": other, "x2": x * 2}

    save(f, tmp_path / "f", [InputSpec([2])], output_spec=["other"])
    layer = load(tmp_path / "f")
    assert layer(torch.ones(2))["other"] == 2 and layer(-torch.ones(2)) == {"other": 3}
