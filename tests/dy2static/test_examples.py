"""Example arguments made of InputSpecs: packed sequences whose parts fit together, and what is saved with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_sequence, pad_packed_sequence, unpack_sequence

import dy2static
from dy2static import InputSpec, to_static
from dy2static.errors import Dy2StaticError, SignatureError
from dy2static.examples import packed_of
from tests.oracle import same


def packed(*lengths: int, enforce_sorted: bool = False) -> PackedSequence:
    generator = torch.Generator().manual_seed(sum(lengths))
    return pack_sequence([torch.randn(one, 3, generator=generator) for one in lengths], enforce_sorted=enforce_sorted)


class Reader(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.GRU(3, 4)

    def forward(self, sequences: PackedSequence) -> Any:
        out, last = self.cell(sequences)
        padded, lengths = pad_packed_sequence(out, batch_first=True)
        if padded.sum() > 0:
            padded = padded * 2
        return padded, lengths, last, out


SPECS = [
    InputSpec.packed([3]), InputSpec.packed([3], enforce_sorted=True), InputSpec.packed([2, None], "float64"),
    PackedSequence(torch.zeros(6, 3), torch.tensor([3, 2, 1])), packed(4, 1, 1), packed(1),
]  # fmt: skip


@pytest.mark.parametrize("sizes", [(5, 7, 11), (6, 9, 14), (5,), (1,)])
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_an_example_can_be_unpacked(spec: Any, sizes: tuple[int, ...]) -> None:
    if isinstance(spec.data, torch.Tensor):
        spec = tuple.__new__(PackedSequence, (None if one is None else InputSpec.from_tensor(one) for one in spec))
    example = packed_of(spec, sizes, None)
    lengths = [len(one) for one in unpack_sequence(example)]
    assert sum(lengths) == len(example.data) and max(lengths) == len(example.batch_sizes)
    for part, one in zip(example, spec):
        assert (part is None) is (one is None)
        if one is not None:
            assert part.dtype is one.dtype
            assert all(want in (None, size) for want, size in zip(one.shape, part.shape, strict=True))


CALLS = [packed(3, 1, 2), packed(2, 5, 1, 1), packed(1), packed(2, 2)]


@pytest.mark.parametrize("mode", ["train", "eval"])
def test_any_lengths_are_saved(mode: str, tmp_path: Path) -> None:
    layer = Reader()
    dy2static.save(layer, tmp_path / "reader", [InputSpec.packed([3])])
    loaded = dy2static.load(tmp_path / "reader").train(mode == "train")
    for call in CALLS:
        expected, found = layer(call), loaded(call)
        same(found, expected, tolerance=1e-6)
        for result, weights in ((expected, layer), (found, loaded)):
            weights.zero_grad()
            result[0].square().sum().backward()
        for one, other in zip(loaded.parameters(), layer.parameters()):
            torch.testing.assert_close(one.grad, other.grad)
    with pytest.raises(SignatureError, match="D2S30"):
        loaded(packed(2, 1)._replace(data=torch.zeros(3, 4)))
    with pytest.raises(Dy2StaticError):
        loaded(torch.zeros(3, 3))


def test_sorted_sequences_have_no_indices(tmp_path: Path) -> None:
    layer = Reader()
    dy2static.save(layer, tmp_path / "reader", [InputSpec.packed([3], enforce_sorted=True)])
    loaded = dy2static.load(tmp_path / "reader")
    for call in (packed(3, 2, 1, enforce_sorted=True), packed(4, enforce_sorted=True)):
        same(loaded(call), layer(call), tolerance=1e-6)
    with pytest.raises(SignatureError):
        loaded(CALLS[0])


def test_the_lengths_of_an_example_and_of_calls(tmp_path: Path) -> None:
    layer = Reader()
    dy2static.save(layer, tmp_path / "one", [CALLS[0]])
    loaded = dy2static.load(tmp_path / "one")
    same(loaded(CALLS[0]), layer(CALLS[0]), tolerance=1e-6)
    with pytest.raises(SignatureError, match="D2S304"):
        loaded(CALLS[1])
    static: Any = to_static(layer)
    for call in CALLS[:2]:
        static(call)
    dy2static.save(static, tmp_path / "two")
    loaded = dy2static.load(tmp_path / "two")
    for call in CALLS[:2]:
        same(loaded(call), layer(call), tolerance=1e-6)


def test_calls_of_other_lengths_are_the_same_program() -> None:
    layer = Reader()
    static: Any = to_static(layer.forward, input_spec=[InputSpec.packed([3])])
    for call in CALLS:
        same(static(call), layer(call), tolerance=1e-6)
    assert len(static.programs) == 1
    with pytest.raises(SignatureError, match=r"D2S305.*'sequences'"):
        static(torch.zeros(3, 3))
    with pytest.raises(SignatureError, match=r"D2S303.*'sequences.data'"):
        static(CALLS[0].double())
