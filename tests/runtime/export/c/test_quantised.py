"""Quantised Programs in C: weights of 8 bits in the file, whole numbers in linear operators, the same results."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import dy2static
from dy2static import InputSpec, compress
from runtime.export.c import export_artefact
from tests.runtime.compress import models
from tests.runtime.export.c.harness import compiled, exported, hold, needs_cc

pytestmark = needs_cc

CASES = {
    "residual": (models.Residual, models.IMAGES, lambda n: torch.randn(n, 1, 8, 8)),
    "recurrent": (models.Recurrent, models.ROWS, lambda n: torch.randn(n, 6)),
    "written": (models.Written, models.ROWS, lambda n: torch.randn(n, 6)),
}  # fmt: skip


def library(layer, folder):
    made = export_artefact(layer.artefact(), folder, folder.name)
    return compiled(folder), made


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_it_gives_what_the_interpreter_gives(name, per_channel, tmp_path):
    torch.manual_seed(15)
    cls, specs, inputs = CASES[name]
    batches = [inputs(4), inputs(3)]
    file = dy2static.save(cls().eval(), tmp_path / "net", specs)
    layer, _ = compress.quantize(file, batches, per_channel=per_channel)
    made, _ = library(layer, tmp_path / "small")
    for x in batches:
        answer = made.run(x)
        assert answer.code == 0, answer.said
        (found,) = answer.results.values()
        torch.testing.assert_close(found, layer(x).detach(), rtol=0, atol=0.02)  # a number between two steps
        assert ((found - layer(x)).abs() < 1e-5).float().mean() > 0.8


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.out = nn.Linear(128, 256), nn.Linear(256, 64)

    def forward(self, x):
        h = torch.relu(self.enter(x))
        if h.sum() > 0:
            h = h / 2
        return self.out(h)


def test_weights_take_a_quarter(tmp_path):
    torch.manual_seed(16)
    file = dy2static.save(Wide().eval(), tmp_path / "net", [InputSpec([None, 128])])
    x = torch.randn(5, 128)
    layer, _ = compress.quantize(file, [x])
    whole, _ = library(dy2static.load(file), tmp_path / "whole")
    made, export = library(layer, tmp_path / "small")
    sizes = [(one.folder / f"{one.folder.name}.weights").stat().st_size for one in (whole, made)]
    assert sizes[1] < 0.29 * sizes[0]
    text = (made.folder / "small.c").read_text()
    assert text.count("d2s_eight(") == 3 and "gemm" not in text, "its definition, and two calls"
    answer = made.run(x)
    (found,) = answer.results.values()
    torch.testing.assert_close(found, layer(x).detach(), rtol=1e-4, atol=1e-5)


class Rounding(nn.Module):
    def forward(self, x, scale, zero):
        a = torch.fake_quantize_per_tensor_affine(x, 0.1, 3, 0, 255)
        b = torch.fake_quantize_per_tensor_affine(x * 2, 0.1, 1, -4, 3)
        c = torch.fake_quantize_per_channel_affine(x, scale, zero, 1, -8, 7)
        d = torch.fake_quantize_per_tensor_affine(x.t(), scale[0], zero[0], 0, 15)
        return a, b, c, d


def test_all_forms(tmp_path):
    torch.manual_seed(17)
    specs = [InputSpec([None, 3]), InputSpec([3]), InputSpec([3], "int32")]
    scale, zero = torch.tensor([0.1, 0.2, 0.05]), torch.tensor([0, 2, -1], dtype=torch.int32)
    made = exported(Rounding(), tmp_path / "rounding", specs)
    hold(made, Rounding(), [(torch.randn(n, 3), scale, zero) for n in (2, 5)])


def test_a_weight_that_is_read_twice(tmp_path):
    """Once by a linear operator that counts, and once as floats."""
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 4))

        def forward(self, x):
            w = torch.fake_quantize_per_tensor_affine(self.weight, 0.02, 0, -127, 127)
            y = nn.functional.linear(torch.fake_quantize_per_tensor_affine(x, 0.02, 100, 0, 255), w)
            return y, w.sum(0), nn.functional.linear(x, w)

    torch.manual_seed(18)
    model = Twice().eval()
    made = exported(model, tmp_path / "twice", [InputSpec([None, 4])])
    hold(made, model, [(torch.randn(3, 4),)])
    assert "d2s_eight(" in (made.folder / "twice.c").read_text()


def test_scales_that_the_run_computes(tmp_path):
    torch.manual_seed(19)
    x = torch.randn(4, 6)
    file = dy2static.save(models.Recurrent().eval(), tmp_path / "net", models.ROWS)
    layer, _ = compress.quantize(file, [x], training=True)
    made, _ = library(layer.eval(), tmp_path / "small")
    (found,) = made.run(x).results.values()
    torch.testing.assert_close(found, layer(x).detach(), rtol=0, atol=0.02)
