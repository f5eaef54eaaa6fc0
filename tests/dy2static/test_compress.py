"""dy2static.compress: the public door; what it does is tested in tests/runtime/compress."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest
import torch

import dy2static
from dy2static import compress
from runtime.errors import StorageError
from tests.runtime.compress.models import ROWS, Recurrent

FUNCTIONS = [getattr(compress, name) for name in compress.__all__ if inspect.isfunction(getattr(compress, name))]


def test_it_is_imported_when_it_is_used() -> None:
    script = ("import sys, dy2static; assert 'dy2static.compress' not in sys.modules; dy2static.compress.prune; "
              "assert not {'gast', 'astor', 'dy2static.api'} & set(sys.modules)")  # fmt: skip
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_every_function_says_what_it_takes_and_raises(function: object) -> None:
    said = inspect.getdoc(function) or ""
    assert said and (function is compress.keep_zeros or "Errors raised:" in said)
    for name in inspect.signature(function).parameters:  # type: ignore[arg-type]
        assert name in said, name


def test_a_whole_life(tmp_path) -> None:
    """Pruned, fine-tuned, quantised for training, fine-tuned, frozen, saved: each from the file of the step before."""
    torch.manual_seed(30)
    file = dy2static.save(Recurrent(), tmp_path / "net", ROWS)
    x = torch.randn(16, 6)
    compress.prune(file, 0.5, structured=True, out=tmp_path / "half")
    layer = dy2static.load(tmp_path / "half").train()
    layer(x).square().sum().backward()
    torch.optim.SGD(layer.parameters(), lr=0.01).step()
    dy2static.save(layer, tmp_path / "tuned")
    compress.quantize(tmp_path / "tuned", [x], training=True, out=tmp_path / "eight")
    layer = dy2static.load(tmp_path / "eight").train()
    layer(x).square().sum().backward()
    torch.optim.SGD(layer.parameters(), lr=0.01).step()
    frozen = compress.freeze(layer, out=tmp_path / "frozen")
    last = dy2static.load(tmp_path / "frozen")
    assert torch.equal(last(x), frozen(x)) and torch.equal(last(x), layer.eval()(x))
    assert last.get_parameter("step.weight").shape == (6, 6)
    assert (tmp_path / "frozen.d2s").stat().st_size < (tmp_path / "eight.d2s").stat().st_size


def test_how_it_runs_is_kept(tmp_path) -> None:
    file = dy2static.save(Recurrent(), tmp_path / "net", ROWS)
    layer = dy2static.load(file, autograd="eager").train()
    other, _ = compress.prune(layer, 0.5)
    assert other.training and other._autograd == "eager"
    assert not compress.prune(file, 0.5).layer.training


def test_errors_stand_at_the_call(tmp_path) -> None:
    file = dy2static.save(torch.nn.ReLU(), tmp_path / "net", [dy2static.InputSpec([2])])
    with pytest.raises(StorageError) as error:
        compress.prune(file, 0.5)
    assert error.value.location is not None and error.value.location.file == __file__
