"""The example of compression, made small: its table says what compression promises."""

from __future__ import annotations

import re

import pytest

from tests.examples.test_digits_adaptive import EXAMPLES, python

ROW = re.compile(r"│ (.+?) +│ +([\d,]+) │ +([\d,]+) │ +([\d.]+)% │ +([\d.]+) │")


@pytest.fixture(scope="module")
def table() -> dict[str, tuple[int, int, float]]:
    """By the model's name: bytes of its file, bytes of its weights in C, its accuracy."""
    done = python(EXAMPLES / "compress_digits.py", "--epochs=6", "--width=16")
    assert done.returncode == 0, done.stdout + done.stderr
    return {name: (int(file.replace(",", "")), int(weights.replace(",", "")), float(right))
            for name, file, weights, right, _ in ROW.findall(done.stdout)}  # fmt: skip


def test_every_way_is_there(table: dict[str, tuple[int, int, float]]) -> None:
    assert list(table) == [
        "float32", "80 % of the weights zero, fine-tuned", "half of the channels", "half of the channels, fine-tuned",
        "8 bits", "8 bits, fine-tuned", "a small model, distilled"]  # fmt: skip


def test_sizes_and_accuracies(table: dict[str, tuple[int, int, float]]) -> None:
    file, weights, right = table["float32"]
    assert right > 85
    assert table["half of the channels"][0] < 0.65 * file and table["half of the channels"][1] < 0.35 * weights
    assert table["half of the channels, fine-tuned"][2] > table["half of the channels"][2] + 10
    assert table["8 bits"][1] < 0.3 * weights and abs(table["8 bits"][2] - right) < 4
    assert table["8 bits, fine-tuned"][2] > right - 4
    assert table["80 % of the weights zero, fine-tuned"][2] > 60
