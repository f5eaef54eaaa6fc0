"""Hugging Face transformers, unmodified: each model's forward is one Program, with eager's values and gradients."""

from __future__ import annotations

import copy
import sys
from pathlib import Path

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from tests.oracle import hold_modules

pytest.importorskip("transformers", reason="needs the third-party extra: pip install dy2static[third-party]")

sys.path.insert(0, str(Path(__file__).parent))

from models import FLOAT32, MODELS, REFUSED  # only importable with transformers


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_captured_whole(name: str, train: bool) -> None:
    make, inputs = MODELS[name]
    dtype = torch.float32 if name in FLOAT32 else torch.float64
    torch.manual_seed(0)
    model = make().to(dtype).train(train)
    static = dy2static.to_static(copy.deepcopy(model))
    calls = [
        {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs(seed).items()} for seed in (0, 1)
    ]  # fmt: skip
    tolerance = 1e-5 if dtype is torch.float32 else 1e-10
    hold_modules(static, model, calls, gradient_tolerance=tolerance, largest=True)
    assert len(static.forward.programs) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_place(name: str) -> None:
    make, inputs, code, _ = REFUSED[name]
    with pytest.raises(TraceError, match=code) as failure:
        dy2static.to_static(make().eval())(**inputs())
    assert "modeling_" in str(failure.value)
