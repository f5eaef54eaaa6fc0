"""The handwritten digits that scikit-learn ships: 1,797 images of 8 x 8 pixels, split once and for all."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from sklearn.datasets import load_digits
from torch import Tensor


@dataclass(frozen=True)
class Digits:
    """Images as rows of 64 pixels (0 to 16) and their labels; 1,347 to train on, 450 to test."""

    train_images: Tensor
    train_labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def load(split_seed: int = 0, test_size: int = 450) -> Digits:
    """The same split in every process."""
    data = load_digits()
    images = torch.tensor(data.data, dtype=torch.float32)
    labels = torch.tensor(data.target, dtype=torch.int64)
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(split_seed))
    train, test = order[test_size:], order[:test_size]
    return Digits(images[train], labels[train], images[test], labels[test])


def shifted(images: Tensor) -> Tensor:
    """The images moved one pixel to the right, as from a scanner that is a little off."""
    moved = images.view(-1, 8, 8).roll(1, dims=2)
    moved[:, :, 0] = 0
    return moved.reshape(-1, 64)
