"""GRU, RNN and LSTM over sequences of any length: one Program serves all, live and from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import InputSpec, load, save, to_static
from tests.oracle import check_module, copied, run, same

KINDS: dict[str, Any] = {
    "gru": nn.GRU, "tanh": nn.RNN, "relu": lambda *args, **options: nn.RNN(*args, nonlinearity="relu", **options),
    "lstm": nn.LSTM,
}  # fmt: skip
OPTIONS: list[dict[str, Any]] = [
    {}, {"batch_first": True}, {"bidirectional": True}, {"num_layers": 2, "bias": False},
    {"num_layers": 2, "dropout": 0.5, "batch_first": True, "bidirectional": True},
]  # fmt: skip
LENGTHS = [(5, 2), (7, 2), (1, 3), (3, 1), (2, 5), (9, 4)]


class Tagger(nn.Module):
    """A layer, and what is decided by what it gives."""

    def __init__(self, kind: str, options: dict[str, Any]) -> None:
        super().__init__()
        self.layer = KINDS[kind](3, 4, **options)

    def forward(self, x: torch.Tensor, start: torch.Tensor | None = None) -> Any:
        out, state = self.layer(x) if start is None else self.layer(x, start)
        if out.sum() > 0:
            out = out * 2
        return out, state, out.shape[0], out[-1]


def calls(options: dict[str, Any]) -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    made = [torch.randn(steps, batch, 3, generator=generator) for steps, batch in LENGTHS]
    first = options.get("batch_first")
    return [[(one.transpose(0, 1) if first else one).contiguous().requires_grad_()] for one in made]


@pytest.mark.sample(6)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_any_length(kind: str, options: dict[str, Any]) -> None:
    layer = check_module(lambda: Tagger(kind, options), *calls(options), tolerance=1e-6)
    assert len(list(layer.forward._dispatch.cache.all())) <= 4


@pytest.mark.parametrize("kind", ["gru", "tanh", "relu"])
def test_memory_of_the_results(kind: str) -> None:
    """Strides as in eager: the batch comes first in a view."""
    module = KINDS[kind](3, 4, batch_first=True, bidirectional=True)
    static = to_static(lambda x: module(x)[0] + 0)
    plain = to_static(lambda x: module(x)[0].is_contiguous())
    for (x,) in calls({"batch_first": True}):
        with torch.no_grad():
            same(static(x), module(x)[0] + 0, strides=True, tolerance=1e-6)
            assert plain(x) == module(x)[0].is_contiguous()


@pytest.mark.parametrize("kind", ["gru", "tanh", "relu"])
def test_a_state_without_a_batch_and_wrong_sizes(kind: str) -> None:
    options: dict[str, Any] = {}
    given = [(torch.randn(steps, 3), torch.randn(1, 4)) for steps in (4, 6, 1, 5)]
    check_module(lambda: Tagger(kind, options), *map(list, given), tolerance=1e-6)
    layer, eager = to_static(Tagger(kind, options)), Tagger(kind, options)
    eager.load_state_dict(layer.state_dict())
    for sizes in ((3, 2, 3), (5, 2, 3), (0, 2, 3), (4, 2, 5), (6, 2, 3)):
        x = torch.randn(sizes)
        got, expected = run(layer, copied([x])), run(eager, copied([x]))
        same([str(got.error), got.result], [str(expected.error), expected.result], tolerance=1e-6)


@pytest.mark.sample(4)
@pytest.mark.parametrize("options", OPTIONS[:4], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_from_a_file(kind: str, options: dict[str, Any], tmp_path: Path) -> None:
    torch.manual_seed(0)
    module = Tagger(kind, options)
    save(module, tmp_path / "saved", [InputSpec([None, None, 3])])
    loaded = load(tmp_path / "saved").train()
    for call in calls(options):
        got, expected = (run(one, copied(call), parameters=list(one.parameters())) for one in (loaded, module))
        same([got.result, got.gradients], [expected.result, expected.gradients], tolerance=1e-5)


PROJECTED: list[dict[str, Any]] = [
    {}, {"batch_first": True}, {"batch_first": True, "bidirectional": True, "num_layers": 2},
    {"num_layers": 2, "dropout": 0.3, "batch_first": True},
]  # fmt: skip


class Projected(nn.Module):
    """An LSTM whose hidden states are smaller than its cells, and what is decided by their shapes; it goes on from what
    it gave."""

    def __init__(self, options: dict[str, Any]) -> None:
        super().__init__()
        self.layer = nn.LSTM(3, 4, proj_size=2, **options)

    def forward(self, x: torch.Tensor) -> Any:
        out, (h, c) = self.layer(x)
        again, (h, c) = self.layer(x, (h, c))
        shape = h.dim(), c.dim(), tuple(h.shape), tuple(c.shape), h.stride(), out.is_contiguous()
        return shape, out + again, h * 2 if h.dim() == 3 else h * 100, c


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("options", PROJECTED, ids=str)
def test_projections(options: dict[str, Any]) -> None:
    sizes = [(2, 4, 3), (1, 2, 3), (3, 1, 3), (2, 1, 3), (5, 3, 3)]
    made = [torch.linspace(-1, 1, torch.Size(size).numel()).sin().reshape(size) for size in sizes]
    check_module(lambda: Projected(options), *([one.requires_grad_()] for one in made), tolerance=1e-6)


@pytest.mark.filterwarnings("ignore:LSTM with projections")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("options", [*PROJECTED, *({**one, "proj_size": 2} for one in PROJECTED)], ids=str)
def test_long_memory_of_any_length_in_files(options: dict[str, Any], dtype: torch.dtype, tmp_path: Path) -> None:
    torch.manual_seed(0)
    layer = nn.LSTM(3, 4, **options).to(dtype).eval()
    save(layer, tmp_path / "f.d2s", input_spec=[InputSpec([None, None, 3], dtype)])
    loaded = load(tmp_path / "f.d2s")
    for sizes in ((2, 4, 3), (1, 2, 3), (3, 1, 3), (5, 3, 3)):
        x = torch.randn(sizes, dtype=dtype)
        with torch.no_grad():
            same(loaded(x), layer(x), tolerance=1e-6)
