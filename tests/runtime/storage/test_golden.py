"""Files of every version of the format that there has been: they load, and do what they did when they were written."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import runtime
from runtime.errors import SignatureError
from runtime.storage.upgrade import VERSION
from runtime.translated import TranslatedLayer
from tests.oracle import same
from tests.runtime.storage.goldens import FOLDER, Net, golden, made

VERSIONS = range(1, VERSION + 1)


def test_every_version_has_a_file() -> None:
    assert sorted(FOLDER.iterdir()) == [golden(version) for version in VERSIONS]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("training", [False, True])
def test_it_runs_and_trains_like_the_module(version: int, training: bool) -> None:
    layer, model = runtime.load(golden(version)).train(training), made().train(training)
    assert isinstance(layer, TranslatedLayer) and layer.methods == ("forward", "decode")
    gradients = []
    for module in (layer, model):
        torch.manual_seed(3)
        x = torch.randn(5, 4).mul_(4).requires_grad_()
        result = module(x)
        result["h"].square().sum().backward()
        gradients.append([x.grad, *(one.grad for one in module.parameters())])
        del result["x"]
        module.result = result  # type: ignore[assignment]
    same(layer.result, model.result, tolerance=1e-6)
    same(gradients[0], gradients[1], tolerance=1e-6)
    assert layer.calls == 1 and layer.hidden.eq(1).all() and layer.alias is layer.out
    assert layer.out.weight is layer.embed.weight


@pytest.mark.parametrize("version", VERSIONS)
def test_methods_defaults_and_errors(version: int) -> None:
    layer, model = runtime.load(golden(version)), made()
    x = torch.randn(3, 4)
    same(layer.decode(x), model.decode(x), tolerance=1e-6)
    with torch.no_grad():
        same(layer.decode(x), model.decode(x), tolerance=1e-6)
    assert str(layer.signature()) == "(x, limit=1.0, *, names=('a', None))"
    if version > 1:
        same(layer(x, 3.0)["steps"], model.eval()(x, 3.0)["steps"], tolerance=1e-6)
    with pytest.raises(SignatureError, match="D2S306"):
        layer(x, 2.0)
    with pytest.raises(ValueError, match="too much"):
        layer.decode(torch.full((3, 4), 100.0))


@pytest.mark.parametrize("version", VERSIONS)
def test_state_goes_into_the_class_and_it_is_saved_as_the_current_version(version: int, tmp_path: Path) -> None:
    state = runtime.load_state(golden(version))
    model = Net()
    model.load_state_dict(state)
    same(dict(model.state_dict()), dict(made().state_dict()), tolerance=1e-6)
    again = runtime.load(runtime.save(runtime.load(golden(version)), tmp_path / "again"))
    same(dict(again.state_dict()), dict(state), apart=True)  # the first gives each name a tensor of its own
    assert again.metadata == ({} if version == 1 else {"labels": ["a", "b"], "accuracy": 0.5})
