"""Quantised Programs as PyTorch's ExportedProgram: what ``fake_quantize`` computes, step by step."""

from __future__ import annotations

import pytest
import torch

import dy2static
from dy2static import compress
from tests.runtime.compress import models


@pytest.mark.parametrize("per_channel", [True, False])
@pytest.mark.parametrize("training", [True, False])
def test_it_gives_what_the_interpreter_gives(training, per_channel, tmp_path):
    torch.manual_seed(31)
    x = torch.randn(4, 6)
    file = dy2static.save(models.Recurrent().eval(), tmp_path / "net", models.ROWS)
    layer, _ = compress.quantize(file, [x], training=training, per_channel=per_channel)
    program = dy2static.to_exported_program(layer.eval())
    torch.testing.assert_close(program.module()(x), layer(x), rtol=1e-5, atol=1e-6)
    assert not torch.equal(layer(x), dy2static.load(file)(x))
