"""``torch.nn.TransformerEncoder``: zeros in the place of padding where eager puts them, and causal masks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import dy2static
from dy2static import to_static
from tests.oracle import same

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

PADDING = {
    "none": [[0, 0, 0, 0, 0], [0, 0, 0, 0, 0]],
    "at the end": [[0, 0, 0, 0, 1], [0, 0, 1, 1, 1]],
    "in the middle": [[0, 1, 0, 0, 1], [0, 0, 1, 1, 1]],
    "all of a row": [[1, 1, 1, 1, 1], [0, 0, 0, 1, 1]],
}


def encoder(norm: bool = False, **options: Any) -> nn.TransformerEncoder:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    made = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8) if norm else None, **options)
    with torch.no_grad():
        for parameter in made.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return made.eval()


def batch(rows: list[list[int]], seed: int = 1) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(rows), len(rows[0]), 8, generator=generator), torch.tensor(rows, dtype=torch.bool)


@pytest.mark.sample(2)
@pytest.mark.parametrize("norm", [False, True])
@pytest.mark.parametrize("kind", [torch.bool, torch.float32])
@pytest.mark.parametrize("options", [{}, {"mask_check": False}, {"enable_nested_tensor": False}], ids=str)
def test_padding(norm: bool, kind: torch.dtype, options: dict[str, Any], tmp_path: Path) -> None:
    """One Program for all batches, live and loaded."""
    module = encoder(norm, **options)
    static = to_static(module.forward)
    example: Any = None
    with torch.no_grad():
        for rows in PADDING.values():
            if options == {"mask_check": False} and rows == PADDING["in the middle"]:
                continue  # eager's own answer is about other rows than those that are there
            if options == {"enable_nested_tensor": False} and rows == PADDING["all of a row"]:
                continue  # eager's fused kernel gives NaN for it
            x, padding = batch(rows)
            mask = padding if kind is torch.bool else padding.float().masked_fill(padding, float("-inf"))
            same(static(x, src_key_padding_mask=mask), module(x, src_key_padding_mask=mask), tolerance=1e-5)
            example = x, mask
        assert len(static.programs) == 1
        converted = to_static(encoder(norm, **options))
        converted(example[0], src_key_padding_mask=example[1])
        dy2static.save(converted, tmp_path / "e.d2s")
        loaded = dy2static.load(tmp_path / "e.d2s")
        for rows in (PADDING["at the end"], PADDING["none"]):
            x, padding = batch(rows, seed=2)
            mask = padding if kind is torch.bool else padding.float().masked_fill(padding, float("-inf"))
            same(loaded(x, src_key_padding_mask=mask), module(x, src_key_padding_mask=mask), tolerance=1e-5)


def test_a_mask_of_other_numbers() -> None:
    """What is not 0 is taken out, whatever it is, where that is the end of each row."""
    module = encoder()
    static = to_static(module.forward)
    with torch.no_grad():
        for name in ("at the end", "in the middle"):
            x, padding = batch(PADDING[name])
            mask = padding * -0.5
            same(static(x, src_key_padding_mask=mask), module(x, src_key_padding_mask=mask), tolerance=1e-5)


def with_gradients(module: Any) -> Any:
    return torch.enable_grad()


def in_training(module: Any) -> Any:
    module.train()
    for part in module.modules():
        if isinstance(part, nn.Dropout):
            part.p = 0.0
        if isinstance(part, nn.MultiheadAttention):
            part.dropout = 0.0
    return torch.no_grad()


def frozen(module: Any) -> Any:
    module.requires_grad_(False)
    return torch.enable_grad()


@pytest.mark.parametrize("setting", [with_gradients, in_training, frozen])
def test_where_eager_asks_for_gradients_or_trains(setting: Callable[[Any], Any]) -> None:
    module, other = encoder(), encoder()
    x, padding = batch(PADDING["at the end"])
    setting(other)
    with setting(module):
        static = to_static(module)
        same(static(x, src_key_padding_mask=padding), other(x, src_key_padding_mask=padding), tolerance=1e-5)


def test_a_setting_that_is_changed_is_asked_again() -> None:
    module = encoder()
    static = to_static(module.forward)
    x, padding = batch(PADDING["at the end"])
    try:
        for enabled in (True, False, True):
            torch.backends.mha.set_fastpath_enabled(enabled)
            with torch.no_grad():
                expected = module(x, src_key_padding_mask=padding)
                same(static(x, src_key_padding_mask=padding), expected, tolerance=1e-5)
            assert bool((expected[1, 2:] == 0).all()) is enabled
    finally:
        torch.backends.mha.set_fastpath_enabled(True)


def test_other_masks_and_no_mask() -> None:
    module = encoder()
    x, padding = batch(PADDING["at the end"])
    causal = nn.Transformer.generate_square_subsequent_mask(5)
    static = to_static(module.forward)
    with torch.no_grad():
        same(static(x), module(x), tolerance=1e-5)
        same(static(x, causal), module(x, causal), tolerance=1e-5)
        same(static(x, causal, padding.float()), module(x, causal, padding.float()), tolerance=1e-5)
        same(static(x, mask=causal, is_causal=True), module(x, mask=causal, is_causal=True), tolerance=1e-5)


def test_inside_of_another_module() -> None:
    torch.manual_seed(0)
    module = nn.Transformer(8, 2, 2, 1, 16, batch_first=True).eval()
    (x, padding), (target, _) = batch(PADDING["at the end"]), batch(PADDING["none"], seed=3)
    with torch.no_grad():
        expected = module(x, target, src_key_padding_mask=padding, memory_key_padding_mask=padding)
        static = to_static(module)
        same(static(x, target, src_key_padding_mask=padding, memory_key_padding_mask=padding), expected, tolerance=1e-5)


def causal(size: int) -> torch.Tensor:
    return nn.Transformer.generate_square_subsequent_mask(size)


class Both(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.encoder = encoder()
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, 0.0, batch_first=True), 2)

    def forward(self, x: Any, mask: Any = None) -> Any:
        if mask is None:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
        memory = self.encoder(x, mask)
        return memory, self.decoder(x, memory, tgt_mask=mask)


@pytest.mark.parametrize("made_inside", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("gradients", [False, True])
def test_a_mask_that_may_be_causal(gradients: bool, made_inside: bool, tmp_path: Path) -> None:
    """Eager asks whether the mask is the causal one, and tells its kernel; a Program always gives it the mask."""
    module = Both().eval()
    static = to_static(Both().eval())
    open_mask = torch.zeros(5, 5)
    with torch.set_grad_enabled(gradients):
        for length, mask in ((5, causal(5)), (5, open_mask), (4, causal(4)), (6, causal(6))):
            x, _ = batch([[0] * length] * 2)
            given = (x,) if made_inside else (x, mask)
            for found, expected in zip(static(*given), module(*given), strict=True):
                same(found, expected, tolerance=1e-5)
        x, _ = batch([[0] * 6] * 2, seed=3)
        given = (x,) if made_inside else (x, causal(6))
        other = to_static(Both().eval())  # of a file's sizes that are left open nothing says that they are equal
        other(*given)
        dy2static.save(other, tmp_path / "both.d2s")
        loaded = dy2static.load(tmp_path / "both.d2s")
        for found, expected in zip(loaded(*given), module(*given), strict=True):
            same(found, expected, tolerance=1e-5)


def test_gradients_with_a_causal_mask() -> None:
    module, static = Both().eval(), Both().eval()
    converted = to_static(static)
    x, _ = batch([[0] * 5] * 2)
    for made, where in ((converted, static), (module, module)):
        memory, out = made(x, causal(5))
        (memory.square().sum() + out.square().sum()).backward()
        assert all(one.grad is not None for one in where.parameters())
    for one, other in zip(static.parameters(), module.parameters(), strict=True):
        assert one.grad is not None and other.grad is not None
        same(one.grad, other.grad, tolerance=1e-5)
