"""Fourier transforms of open sizes: sizes and strides are those of the kernels."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from dy2static import InputSpec, load, save, to_static

Tensor = torch.Tensor
OPEN = [InputSpec([None, 4, None])]
CALLS: list[tuple[Callable[[Tensor], Tensor], tuple[int, ...]]] = [
    (lambda x: torch.fft.rfft(x), (3, 4, 5)), (lambda x: torch.fft.rfft(x, dim=0), (2, 4, 3)),
    (lambda x: torch.fft.rfft2(x, dim=(1, 0)), (3, 4, 5)), (lambda x: torch.fft.fft(x + 0j, dim=1), (5, 4, 1)),
    (lambda x: torch.fft.fftn(x + 0j), (3, 4, 2)), (lambda x: torch.fft.fft2(x, dim=(0, 2)), (3, 4, 5)),
    (lambda x: torch.fft.irfft(x + 0j), (1, 4, 8)), (lambda x: torch.fft.irfft2(x + 0j, dim=(1, 0)), (4, 4, 3)),
    (lambda x: torch.fft.irfft(torch.fft.rfft(x), n=x.shape[2]), (2, 4, 7)),
    (lambda x: torch.stft(x[0], 4, window=torch.hann_window(4), return_complex=True), (1, 4, 24)),
]  # fmt: skip


@pytest.mark.parametrize("call, shape", CALLS)
def test_open_sizes(call: Callable[[Tensor], Tensor], shape: tuple[int, ...], tmp_path: Path) -> None:
    static = to_static(call, input_spec=OPEN)
    save(static, tmp_path / "saved")
    for one in (shape, (2, 4, 9)):
        x = torch.randn(one)
        expected = call(x)
        for run in (static, load(tmp_path / "saved")):
            found = run(x)
            assert (found.shape, found.stride(), found.dtype) == (expected.shape, expected.stride(), expected.dtype)
            torch.testing.assert_close(found, expected)
