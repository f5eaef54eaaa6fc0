"""``generate`` of transformers, unmodified and whole: eager's tokens, to the bit, and its random stream."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from tests.oracle import difference

pytest.importorskip("transformers", reason="needs the third-party extra: pip install dy2static[third-party]")

sys.path.insert(0, str(Path(__file__).parent))

from generation import CAPTURED, NEW, REFUSED, WAYS, mask, tokens
from models import MODELS  # only importable with transformers


def _options(way: str, end: int | None) -> dict[str, Any]:
    ends = {} if end is None else {"eos_token_id": end}
    return {"max_new_tokens": NEW, "pad_token_id": 0, **WAYS[way], **ends}


def _model(name: str) -> Any:
    torch.manual_seed(0)
    return MODELS[name][0]().eval()


@pytest.mark.parametrize(("name", "way", "masked", "end"), CAPTURED)
def test_captured_whole(name: str, way: str, masked: bool, end: int | None) -> None:
    model, options = _model(name), _options(way, end)

    def generate(ids: torch.Tensor, **given: Any) -> Any:
        return model.generate(ids, **given, **options)

    static = dy2static.to_static(generate)
    sizes = ((2, 5), (3, 7)) if name == "gpt2" and way == "greedy" else ((2, 5),)
    for batch, length in sizes:
        for seed in (0, 1):
            ids = tokens(batch, length, seed)
            given = {"attention_mask": mask(batch, length)} if masked else {}
            results = []
            for function in (generate, static):
                torch.manual_seed(5)
                results.append((function(ids, **given), torch.get_rng_state()))
            assert not difference(results[1], results[0])


@pytest.mark.parametrize(("name", "way", "code", "why"), REFUSED)
def test_refused_with_a_place(name: str, way: str, code: str, why: str) -> None:
    model, options = _model(name), _options(way, None)

    def generate(ids: torch.Tensor) -> Any:
        return model.generate(ids, **options)

    with pytest.raises(TraceError, match=code):
        dy2static.to_static(generate)(tokens(2, 5, 0))
