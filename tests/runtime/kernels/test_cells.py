"""Cells of LSTM and GRU as kernels that run on the CPU: against their references, PyTorch's modules and autograd."""

from __future__ import annotations

import pytest
import torch

from runtime.kernels import cells, launch
from tests.oracle import same
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import randoms

KINDS = {torch.float32: 2e-6, torch.float64: 1e-12, torch.bfloat16: 1e-2, torch.float16: 2e-3}
ALL = pytest.mark.parametrize("dtype", list(KINDS))
SHAPES = [(3, 5), (1, 1), (0, 4), (2, 0), (70, 9)]


@ALL
@pytest.mark.parametrize("biased", [True, False])
def test_lstm(host: Host, dtype: torch.dtype, biased: bool) -> None:
    for rows, n in SHAPES:
        x, u, bx, bh, c, gh, gc = randoms(dtype, (rows, 4 * n), (rows, 4 * n), (4 * n,), (4 * n,), *[(rows, n)] * 3)
        given = (x, u, bx if biased else None, bh if biased else None, c)
        host.launches.clear()
        h, made, kept = cells.lstm_cell(*given)
        same((h, made, kept), cells.lstm_cell_reference(*given), tolerance=KINDS[dtype])
        for one, other in [(gh, gc), (gh, None), (None, gc)]:
            back = cells.lstm_cell_backward(one, other, c, made, kept)
            same(back, cells.lstm_cell_backward_reference(one, other, c, made, kept), tolerance=KINDS[dtype] * 4)
        assert len(host.launches) == (4 if rows and n else 0)


@ALL
@pytest.mark.parametrize("biased", [True, False])
def test_gru(host: Host, dtype: torch.dtype, biased: bool) -> None:
    for rows, n in SHAPES:
        x, u, bx, bh, h, g = randoms(dtype, (rows, 3 * n), (rows, 3 * n), (3 * n,), (3 * n,), (rows, n), (rows, n))
        given = (x, u, bx if biased else None, bh if biased else None, h)
        host.launches.clear()
        y, kept = cells.gru_cell(*given)
        same((y, kept), cells.gru_cell_reference(*given), tolerance=KINDS[dtype])
        back = cells.gru_cell_backward(g, h, kept)
        same(back, cells.gru_cell_backward_reference(g, h, kept), tolerance=KINDS[dtype] * 4)
        assert len(host.launches) == (2 if rows and n else 0)


def test_what_is_not_finite(host: Host) -> None:
    inf, nan = float("inf"), float("nan")
    x = torch.tensor([[nan, 1.0, inf, -inf, 100.0, -100.0, 0.0, -0.0]])
    u, c = torch.zeros(1, 8), torch.tensor([[1.0, inf]])
    got = cells.lstm_cell(x, u, None, None, c)
    same(got, cells.lstm_cell_reference(x, u, None, None, c), tolerance=1e-6)
    assert host.launches


def test_an_lstm_is_pytorchs(host: Host) -> None:
    """Value and gradients are those of ``torch.nn.LSTMCell`` under autograd."""
    cell = torch.nn.LSTMCell(4, 6, dtype=torch.float64)
    x, h, c = (one.requires_grad_() for one in randoms(torch.float64, (3, 4), (3, 6), (3, 6)))
    expected = cell(x, (h, c))
    gh, gc = randoms(torch.float64, (3, 6), (3, 6))
    grads = torch.autograd.grad(expected, [x, h, c, cell.bias_ih], [gh, gc])
    with torch.no_grad():
        got, made, kept = cells.lstm_cell(x @ cell.weight_ih.t(), h @ cell.weight_hh.t(), cell.bias_ih, cell.bias_hh,
                                          c.detach())  # fmt: skip
        gates, back = cells.lstm_cell_backward(gh, gc, c.detach(), made, kept)
        same((got, made), tuple(one.detach() for one in expected), tolerance=1e-12)
        same((gates @ cell.weight_ih, gates @ cell.weight_hh, back, gates.sum(0)), grads, tolerance=1e-12)
    assert len(host.launches) == 2


def test_a_gru_is_pytorchs(host: Host) -> None:
    cell = torch.nn.GRUCell(4, 6, dtype=torch.float64)
    x, h = (one.requires_grad_() for one in randoms(torch.float64, (3, 4), (3, 6)))
    expected = cell(x, h)
    (g,) = randoms(torch.float64, (3, 6))
    grads = torch.autograd.grad(expected, [x, h, cell.bias_ih, cell.bias_hh], g)
    with torch.no_grad():
        y, kept = cells.gru_cell(x @ cell.weight_ih.t(), h @ cell.weight_hh.t(), cell.bias_ih, cell.bias_hh, h.detach())
        dx, du, dh = cells.gru_cell_backward(g, h.detach(), kept)
        same(y, expected.detach(), tolerance=1e-12)
        same((dx @ cell.weight_ih, du @ cell.weight_hh + dh, dx.sum(0), du.sum(0)), grads, tolerance=1e-12)
    assert len(host.launches) == 2


def test_what_kernels_do_not_take_the_reference_does(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    x, u, c = randoms(torch.float32, (3, 20), (3, 20), (3, 5))
    strided = torch.stack([x, x], 2)[..., 0]
    for given in [(strided, u, None, None, c), (x.double(), u.double(), None, None, c)]:
        same(cells.lstm_cell(*given), cells.lstm_cell_reference(*given))
    assert not host.launches
    with pytest.raises(ValueError, match="gates of"):
        cells.lstm_cell(x[:, :19], u, None, None, c)
    monkeypatch.setattr(launch, "machine", launch.Device())
    if not launch.machine.is_there():
        same(cells.lstm_cell(x, u, None, None, c), cells.lstm_cell_reference(x, u, None, None, c))
