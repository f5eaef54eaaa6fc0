"""The data of the examples: the same split everywhere, and a shift that loses only the last column."""

from __future__ import annotations

import digits_data
import torch


def test_split_is_stable_and_disjoint() -> None:
    data, again = digits_data.load(), digits_data.load()
    assert (len(data.train_images), len(data.test_images)) == (1347, 450)
    assert torch.equal(data.test_images, again.test_images)
    rows = torch.cat([data.train_images, data.test_images]).tolist()
    assert len({tuple(row) for row in rows}) == 1797
    assert data.train_images.dtype == torch.float32
    assert data.train_labels.dtype == torch.int64


def test_shift_moves_every_row_by_one_pixel() -> None:
    image = torch.arange(1.0, 65.0).view(1, 64)
    moved = digits_data.shifted(image).view(8, 8)
    assert torch.equal(moved[:, 1:], image.view(8, 8)[:, :-1])
    assert not moved[:, 0].any()
    assert torch.equal(image, torch.arange(1.0, 65.0).view(1, 64))
