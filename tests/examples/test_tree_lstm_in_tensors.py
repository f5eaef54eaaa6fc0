"""The example of trees in tensors learns, has eager's gradients, and comes back from its file."""

from __future__ import annotations

import re

import pytest

from tests.examples.test_digits_adaptive import EXAMPLES, python


@pytest.mark.slow
def test_it_learns_and_comes_back() -> None:
    done = python(EXAMPLES / "tree_lstm_in_tensors.py", "--steps=250", "--batch=8")
    assert done.returncode == 0, done.stderr
    *losses, gradients, accuracy, loaded = done.stdout.splitlines()
    first, last = (float(re.fullmatch(r"step \d+: loss ([\d.]+)", line)[1]) for line in losses)
    assert last < first
    assert gradients == "gradients as in eager: True"
    assert accuracy.removeprefix("accuracy: ") == loaded.removeprefix("loaded: ")
