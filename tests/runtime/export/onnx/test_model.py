"""The file: its names, its checks, what is refused, and that nothing half-written is left."""

from __future__ import annotations

import sys
from unittest import mock

import pytest
import torch
from torch import nn

import dy2static.onnx
from dy2static import InputSpec
from dy2static.errors import StorageError
from runtime.export.onnx import files as writing
from tests.runtime.export.onnx.harness import check, export, onnx, onnxruntime, operators, refused

X = [InputSpec([None, 3], "float32", "x")]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Linear(3, 3)
        self.drop = nn.Dropout(0.5)

    def forward(self, x):
        steps = 0
        while x.abs().max() > 1:
            x = self.drop(self.step(x)).tanh() * 0.9
            steps += 1
        return {"y": x, "steps": steps}


def walk(graph):
    for node in graph.node:
        yield graph, node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from walk(attribute.g)


def test_names_are_unique_at_every_depth(tmp_path):
    model = check(Net().train(), tmp_path, X, (torch.full((2, 3), 4.0),), (torch.zeros(1, 3),))
    proto = onnx.load(str(model.exported.path))
    values = [name for _, node in walk(proto.graph) for name in node.output if name]
    nodes = [node.name for _, node in walk(proto.graph)]
    assert len(set(values)) == len(values) and len(set(nodes)) == len(nodes)
    assert {one.name for one in proto.graph.initializer} >= {"step.weight", "step.bias"}
    assert model.exported.inputs == ("x",) and model.exported.outputs == ("out_y", "out_steps")
    assert proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param
    assert any("test_model.py:" in name for name in nodes)


def test_a_module_in_training_is_exported_in_eval_and_stays_as_it_is(tmp_path):
    net = Net().train()
    dy2static.onnx.export(net, tmp_path / "net.onnx", X)
    assert net.training and net.drop.training


def test_a_failure_says_the_exception_and_the_line(tmp_path):
    def f(x):
        if x.sum() < 0:
            raise ValueError(f"the sum is {x.sum().item()}")
        return x

    model = check(f, tmp_path, X, (torch.ones(1, 3),), (-torch.ones(1, 3),))
    with pytest.raises(Exception, match=r"ValueError: the sum is \{\} \(test_model.py:\d+\)"):
        model.run(-torch.ones(1, 3))


def test_sizes_that_do_not_fit_end_the_run(tmp_path):
    def f(x, y):
        return x + y

    two = [InputSpec([None, 3], "float32", "x"), InputSpec([None, 3], "float32", "y")]
    check(f, tmp_path, two, (torch.ones(2, 3), torch.ones(2, 3)), (torch.ones(2, 3), torch.ones(4, 3)))


@pytest.mark.sample(3)
@pytest.mark.parametrize("version", [18, 20, 23])
def test_opsets(version, tmp_path):
    model = export(Net(), tmp_path, X, opset_version=version)
    assert onnx.load(str(model.exported.path)).opset_import[0].version == version
    assert set(model.run(torch.ones(1, 3))) == {"y", "steps"}


def test_an_unknown_opset_is_refused(tmp_path):
    with pytest.raises(ValueError, match="18 to 23"):
        dy2static.onnx.export(Net(), tmp_path / "net.onnx", X, opset_version=9)


def prints(x):
    print(x.sum())
    return x


def text(x):
    mode = "up" if x.sum() > 0 else "down"
    return x, f"{mode}{x.sum().item()}"


def nothing(x):
    return None


def stores(x):
    KEPT.append(x)
    return x


KEPT: list = []


@pytest.mark.parametrize("function, code", [(prints, "D2S540"), (text, "D2S540"), (nothing, "D2S541")])
def test_refusals(function, code, tmp_path):
    refused(function, tmp_path, X, code)


def test_a_file_that_is_there_stays_where_the_export_fails(tmp_path):
    path = tmp_path / "net.onnx"
    path.write_bytes(b"mine")
    with pytest.raises(StorageError):
        dy2static.onnx.export(prints, path, X)
    with mock.patch.object(writing.os, "replace", side_effect=OSError("no space")), pytest.raises(OSError):
        dy2static.onnx.export(Net(), path, X)
    assert path.read_bytes() == b"mine" and list(tmp_path.iterdir()) == [path]
    dy2static.onnx.export(Net(), path, X)
    assert path.read_bytes() != b"mine" and list(tmp_path.iterdir()) == [path]


def test_weights_beyond_what_a_file_holds_stand_beside_it(tmp_path):
    path = tmp_path / "deep" / "net.onnx"
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 200), nn.Tanh(), nn.Linear(200, 2)).eval()
    x = torch.randn(4, 3)
    for _ in range(2):  # the second time what the first one wrote goes
        with mock.patch.object(writing, "MOST_BYTES", 1000):
            dy2static.onnx.export(net, path, X)
        model, data = sorted(path.parent.iterdir())
        assert model == path and data.name.startswith("net.onnx.") and data.stat().st_size > 1000 > 0
        assert path.stat().st_size < data.stat().st_size
        (got,) = onnxruntime.InferenceSession(str(path)).run(None, {"input": x.numpy()})
        torch.testing.assert_close(torch.from_numpy(got), net(x).detach())
    before = sorted(path.parent.iterdir())
    with mock.patch.object(writing, "MOST_BYTES", 1000), mock.patch.object(
            writing.os, "replace", side_effect=OSError("no space")), pytest.raises(OSError):
        dy2static.onnx.export(net, path, X)
    assert sorted(path.parent.iterdir()) == before
    dy2static.onnx.export(net, path, X)
    assert list(path.parent.iterdir()) == [path]


def test_a_method_that_is_not_there(tmp_path):
    dy2static.save(Net(), tmp_path / "net", X)
    with pytest.raises(ValueError, match="no method 'other'"):
        dy2static.onnx.export(dy2static.load(tmp_path / "net"), tmp_path / "net.onnx", method="other")


def raises(x):
    if x.sum() < 0:
        raise ValueError("below")
    return x


def limited(x):
    with dy2static.loop_options(max_iterations=3):
        while x.sum() > 1:
            x = x / 2
    return x


def grows(x):
    kept = [x]
    if x.sum() > 0:
        kept.append(x * 2)
    return torch.cat(kept)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total += x.sum(0)
        return x + self.total


@pytest.mark.parametrize(("function", "code"), [
    (raises, "D2S540"), (limited, "D2S540"), (grows, "D2S540"), (Counts(), "D2S541"),
])  # fmt: skip
def test_what_openvino_would_not_do_is_refused(function, code, tmp_path):
    with pytest.raises(StorageError, match=code) as raised:
        dy2static.onnx.export(function, tmp_path / "net.onnx", X, runtime="openvino")
    assert "OpenVINO" in raised.value.summary and raised.value.hint and not list(tmp_path.iterdir())
    assert dy2static.onnx.export(function, tmp_path / "net.onnx", X).exists()


def test_another_runtime_is_refused(tmp_path):
    with pytest.raises(ValueError, match="'onnxruntime', 'openvino'"):
        dy2static.onnx.export(Net(), tmp_path / "net.onnx", X, runtime="tensorrt")


def test_openvino_has_to_load_the_file(tmp_path):
    """A stand-in for the package, which need not be there."""
    core = mock.Mock()
    core.compile_model.side_effect = RuntimeError("Exception from src/core.cpp:1:\nit knows no Erf")
    with mock.patch.dict(sys.modules, {"openvino": mock.Mock(Core=lambda: core)}):
        with pytest.raises(StorageError, match="D2S540.*it knows no Erf"):
            dy2static.onnx.export(Net(), tmp_path / "net.onnx", X, runtime="openvino")
        assert not list(tmp_path.iterdir())
        core.compile_model.side_effect = None
        assert dy2static.onnx.export(Net(), tmp_path / "net.onnx", X, runtime="openvino").exists()


def test_a_number_without_dimensions_is_not_expanded(tmp_path):
    """OpenVINO gives it one."""
    def f(x):
        best = torch.full((), -1.0)
        return torch.zeros_like(x.sum()) + (x.sum() if x.mean() > 0 else best)

    assert "Expand" not in operators(check(f, tmp_path, X, (torch.ones(2, 3),), (-torch.ones(2, 3),)))
