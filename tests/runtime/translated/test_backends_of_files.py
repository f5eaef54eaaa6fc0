"""Loaded layers on every backend: results, gradients, training and errors are those of the interpreter."""

from __future__ import annotations

import copy
import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from runtime import Limits
from runtime.calling.takeover import TAKE_OVER
from runtime.native import build

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


class Settling(torch.nn.Module):
    """A loop whose end the data decides, a branch, a buffer and an error."""

    def __init__(self) -> None:
        super().__init__()
        self.cell = torch.nn.Linear(4, 4, bias=False)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Any, limit: Any) -> Any:
        if limit < 0:
            raise ValueError("the limit is negative")
        while x.norm() > limit:
            x = torch.tanh(self.cell(x)) * 0.5
            if self.training:
                self.steps += 1
        return x if x.sum() > 0 else x * 2


X, LIMIT = torch.linspace(-3, 3, 12).reshape(3, 4), torch.tensor(0.05)


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    layer = dy2static.to_static(Settling())
    layer(X, LIMIT)
    return Path(dy2static.save(layer, tmp_path_factory.mktemp("backends") / "settling.d2s", modes=("train", "eval")))


def trained(layer: Any, steps: int = 20) -> list[torch.Tensor]:
    layer.train()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        (layer(X, LIMIT) - 1).square().mean().backward()
        optimizer.step()
    layer.eval()
    with torch.no_grad():
        return [layer(X, LIMIT), *layer.parameters(), *(p.grad for p in layer.parameters()), layer.steps]


@pytest.mark.parametrize("backend", ["c", "auto"])
def test_trains_as_on_the_interpreter(file: Path, backend: str) -> None:
    expected = trained(dy2static.load(file, backend="interpreter"))
    layer = dy2static.load(file, backend=backend)
    torch.testing.assert_close(trained(layer), expected, rtol=1e-5, atol=1e-6)
    assert any("compiled, " in str(one) and "operators in C" in str(one) for one in layer.compiled)


def test_without_a_backend_c_takes_over(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is compiled for a call or a few. With limits, or without a compiler, the interpreter runs them all."""
    monkeypatch.delenv("DY2STATIC_BACKEND", raising=False)
    layer = dy2static.load(file)
    assert layer.compiled == []
    layer(X, LIMIT)
    (one,) = layer.compiled
    assert one.backend == "auto" and [part.state for part in one.parts] == ["interpreter"]
    limited = dy2static.load(file, limits=dy2static.Limits())
    limited(X, LIMIT)
    assert [one.backend for one in limited.compiled] == ["interpreter"]
    monkeypatch.setattr(build, "compiler", lambda: None)
    layer = dy2static.load(file)
    layer(X, LIMIT)
    assert [one.backend for one in layer.compiled] == ["interpreter"]


def test_the_environment_chooses(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2STATIC_BACKEND", "c")
    layer = dy2static.load(file)
    layer(X, LIMIT)
    assert [part.state for part in layer.compiled[0].parts] == ["compiled"]
    with_limits = dy2static.load(file, limits=Limits(max_iterations=1000))
    with_limits(X, LIMIT)
    assert with_limits.compiled[0].backend == "interpreter"


def test_auto_takes_over_at_its_call(file: Path) -> None:
    layer = dy2static.load(file, backend="auto")
    with torch.no_grad():
        for _ in range(TAKE_OVER - 1):
            layer(X, LIMIT)
        assert layer.compiled[0].parts[0].state != "compiled"
        layer(X, LIMIT)
    assert layer.compiled[0].parts[0].state == "compiled"


def test_copies_keep_it(file: Path) -> None:
    layer = dy2static.load(file, backend="c")
    for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        assert torch.equal(twin(X, LIMIT), layer(X, LIMIT))
        assert twin.compiled[0].backend == "c"
    assert dy2static.load(file, backend="interpreter").compiled == []


def test_errors_are_the_same(file: Path) -> None:
    with pytest.raises(ValueError, match="the limit is negative"):
        dy2static.load(file, backend="c")(X, torch.tensor(-1.0))


def test_saved_again(file: Path, tmp_path: Path) -> None:
    layer = dy2static.load(file, backend="c")
    expected = layer(X, LIMIT)
    again = dy2static.load(dy2static.save(layer, tmp_path / "again.d2s"))
    torch.testing.assert_close(again(X, LIMIT), expected)


@pytest.mark.parametrize("backend, said", [
    ("cc", "did you mean 'c'"), ("inductor", "not available yet"), ("fast", "available: 'interpreter'"),
])  # fmt: skip
def test_backends_that_there_are_not(file: Path, backend: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        dy2static.load(file, backend=backend)


def test_limits_are_the_interpreters(file: Path) -> None:
    with pytest.raises(ValueError, match="limits are kept by the interpreter alone, not by backend 'c'"):
        dy2static.load(file, backend="c", limits=Limits(max_iterations=10))
