"""Transformers over several lengths and batch sizes, with and without a mask: one converted model, eager's results."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from tests.oracle import hold_modules

pytest.importorskip("transformers", reason="needs the third-party extra: pip install dy2static[third-party]")

sys.path.insert(0, str(Path(__file__).parent))

from models import LENGTHS, MODELS  # only importable with transformers

SIZES = ((2, 7), (3, 9), (4, 12))
"""Batch size and length."""


def _inputs(name: str, batch: int, length: int, masked: bool) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(length)
    wanted = MODELS[name][1]()
    given: dict[str, Any] = {}
    if "input_ids" in wanted:
        given["input_ids"] = torch.randint(3, 99, (batch, length), generator=generator)
        if masked:
            given["attention_mask"] = torch.ones(batch, length, dtype=torch.long)
            given["attention_mask"][-1, length - 2 :] = 0
    if "decoder_input_ids" in wanted:
        given["decoder_input_ids"] = torch.randint(3, 99, (batch, length - 1), generator=generator)
        if masked and "input_ids" not in wanted:
            given["decoder_attention_mask"] = torch.ones(batch, length - 1, dtype=torch.long)
            given["decoder_attention_mask"][-1, length - 2 :] = 0
    if "input_features" in wanted:
        given["input_features"] = torch.randn(batch, 8, 40, generator=generator, dtype=torch.float64)
    return given


@pytest.mark.parametrize("name", LENGTHS)
def test_lengths_and_batches(name: str) -> None:
    torch.manual_seed(0)
    eager = MODELS[name][0]().double().eval()
    static = dy2static.to_static(copy.deepcopy(eager))
    calls = [_inputs(name, batch, length, masked) for batch, length in SIZES for masked in (False, True)]
    hold_modules(static, eager, calls, gradient_tolerance=1e-6, largest=True)
    print(name, len(static.forward.programs), "Programs")
