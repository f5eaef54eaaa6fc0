"""One file of a digits classifier, made smaller in six ways; each model's size, accuracy and time side by side.

    python examples/compress_digits.py [--epochs 15] [--help]

The classifier refines its answer until it is sure, so its forward has a loop that tensors decide. It is trained and
saved once. Everything after that takes the file: the model's class is not needed any more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import digits_data
import torch
from rich.console import Console
from rich.table import Table
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

import dy2static
from dy2static import compress


class Classifier(nn.Module):
    """Convolutions, and a hidden state that is refined until most of the batch is sure."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(1, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)
        self.second = nn.Conv2d(width, width, 3, padding=1)
        self.third = nn.Conv2d(width, 2 * width, 3, stride=2)
        self.refine = nn.Linear(2 * width, 2 * width)
        self.out = nn.Linear(2 * width, 10)

    def forward(self, images: Tensor) -> Tensor:
        """The scores of ten classes for rows of 64 pixels."""
        x = torch.relu(self.norm(self.first(images.view(-1, 1, 8, 8) / 16)))
        x = x + torch.relu(self.second(x))
        h = torch.relu(self.third(x)).amax((2, 3))
        steps = 0
        while steps < 3 and torch.softmax(self.out(h), 1).amax(1).mean() < 0.99:
            h = h + torch.relu(self.refine(h))
            steps += 1
        return self.out(h)


def batches_of(data: digits_data.Digits, epochs: int) -> Iterator[tuple[Tensor, Tensor]]:
    """The training images in random order, so many times."""
    for _ in range(epochs):
        for rows in torch.randperm(len(data.train_images)).split(64):
            yield data.train_images[rows], data.train_labels[rows]


def train(model: nn.Module, data: digits_data.Digits, epochs: int, learning_rate: float) -> None:
    """An ordinary training loop."""
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=learning_rate)
    for images, labels in batches_of(data, epochs):
        optimizer.zero_grad()
        cross_entropy(model(images), labels).backward()
        optimizer.step()
    model.eval()


@torch.no_grad()
def accuracy(model: nn.Module, data: digits_data.Digits) -> float:
    """The share of right answers on the test images."""
    return float((model.eval()(data.test_images).argmax(1) == data.test_labels).float().mean())


@torch.no_grad()
def milliseconds(model: nn.Module, images: Tensor) -> float:
    """The time of one batch, the least of some runs."""
    model(images)
    times = []
    for _ in range(10):
        start = time.perf_counter()
        model(images)
        times.append(time.perf_counter() - start)
    return 1000 * min(times)


def row(name: str, model: dy2static.TranslatedLayer, data: digits_data.Digits, folder: Path) -> list[str]:
    """What the table says of a model: it is saved, and its weights are exported for C."""
    model.eval()
    saved = dy2static.save(model, folder / "model")
    weights = dy2static.export_c(model, folder / "c") / "c.weights"
    return [name, f"{saved.stat().st_size:,}", f"{weights.stat().st_size:,}", f"{accuracy(model, data):.2%}",
            f"{milliseconds(model, data.test_images[:64]):.2f}"]  # fmt: skip


def compressed(file: Path, small: Path, data: digits_data.Digits, epochs: int, folder: Path) -> Iterator[list[str]]:
    """Each way to make the model in a file smaller."""
    whole = dy2static.load(file)
    yield row("float32", whole, data, folder)

    layer, _ = compress.prune(file, 0.8)
    compress.keep_zeros(layer)
    train(layer, data, epochs, 5e-4)
    yield row("80 % of the weights zero, fine-tuned", layer, data, folder)

    layer, _ = compress.prune(file, 0.5, structured=True)
    yield row("half of the channels", layer, data, folder)
    train(layer, data, epochs, 1e-3)
    yield row("half of the channels, fine-tuned", layer, data, folder)

    calibration = data.train_images[:256].split(64)
    layer, _ = compress.quantize(file, calibration)
    yield row("8 bits", layer, data, folder)

    layer, _ = compress.quantize(file, calibration, training=True)
    train(layer, data, max(1, epochs // 3), 2e-4)
    yield row("8 bits, fine-tuned", compress.freeze(layer), data, folder)

    student = dy2static.load(small).train()
    compress.distil(student, whole, batches_of(data, epochs), optimizer=torch.optim.Adam(student.parameters(), lr=3e-3))
    yield row("a small model, distilled", student, data, folder)


def main(command_line: list[str] | None = None) -> int:
    """Exit code 0 if the table could be made."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--epochs", type=int, default=15, help="of training; of each fine-tuning, two thirds of that")
    parser.add_argument("--width", type=int, default=32, help="channels of the first convolution")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=1, help="of PyTorch")
    options = parser.parse_args(command_line)
    console = Console(highlight=False)
    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    data = digits_data.load()
    spec = [dy2static.InputSpec([None, 64], "float32", "images")]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model = Classifier(options.width)
        train(model, data, options.epochs, 2e-3)
        file = dy2static.save(model, folder / "digits", spec)
        small = dy2static.save(Classifier(max(2, options.width // 4)), folder / "small", spec)
        table = Table(title="one file, made smaller", title_justify="left")
        for heading in ("model", "file, bytes", "weights in C, bytes", "accuracy", "ms for 64 images"):
            table.add_column(heading, justify="left" if heading == "model" else "right")
        for cells in compressed(file, small, data, max(1, options.epochs * 2 // 3), folder):
            table.add_row(*cells)
        console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
