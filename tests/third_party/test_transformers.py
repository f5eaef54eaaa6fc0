"""Hugging Face transformers, unmodified: each model's forward is one Program, with eager's values and gradients."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import TraceError

pytest.importorskip("transformers", reason="needs the third-party extra: pip install dy2static[third-party]")

sys.path.insert(0, str(Path(__file__).parent))

from models import FLOAT32, MODELS, REFUSED  # only importable with transformers


def _leaves(output: Any) -> list[torch.Tensor]:
    leaves = torch.utils._pytree.tree_leaves(dict(output))
    return [leaf for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _loss(leaves: list[torch.Tensor]) -> torch.Tensor:
    """A sum with random weights: a plain one has no gradient behind a layer norm."""
    generator = torch.Generator().manual_seed(5)
    total = torch.zeros((), dtype=torch.float64)
    for leaf in leaves:
        weights = torch.rand(leaf.shape, generator=generator, dtype=torch.float64)
        if leaf.requires_grad:
            total = total + (leaf.double() * weights).sum()
    return total


def _run(model: torch.nn.Module, inputs: dict[str, Any]) -> tuple[Any, dict[str, torch.Tensor | None]]:
    model.zero_grad()
    torch.manual_seed(1)
    output = model(**inputs)
    _loss(_leaves(output)).backward()
    return output, {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("train", [False, True], ids=["eval", "train"])
@pytest.mark.parametrize("name", MODELS)
def test_captured_whole(name: str, train: bool) -> None:
    make, inputs = MODELS[name]
    dtype = torch.float32 if name in FLOAT32 else torch.float64
    torch.manual_seed(0)
    model = make().to(dtype).train(train)
    static = dy2static.to_static(copy.deepcopy(model))
    for seed in (0, 1):
        call = {k: v.to(dtype) if v.is_floating_point() else v for k, v in inputs(seed).items()}
        expected, grads = _run(model, call)
        got, static_grads = _run(static, call)
        assert type(got) is type(expected) and list(got) == list(expected)
        pairs = list(zip(_leaves(got), _leaves(expected), strict=True))
        assert pairs
        for mine, theirs in pairs:
            assert mine.requires_grad == theirs.requires_grad
            torch.testing.assert_close(mine, theirs, rtol=0, atol=0)
        scale = max(float(grad.abs().max()) for grad in grads.values() if grad is not None)
        for key, theirs in grads.items():
            mine = static_grads[key]
            assert (mine is None) == (theirs is None), key
            if mine is not None:
                error = float((mine - theirs).abs().max())
                assert error <= scale * (1e-5 if dtype is torch.float32 else 1e-10), f"{key}: {error} of {scale}"
    assert len(static.forward.programs) == 1


@pytest.mark.parametrize("name", REFUSED)
def test_refused_with_a_place(name: str) -> None:
    make, inputs, code, _ = REFUSED[name]
    with pytest.raises(TraceError, match=code) as failure:
        dy2static.to_static(make().eval())(**inputs())
    assert "modeling_" in str(failure.value)
