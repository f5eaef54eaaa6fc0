"""The example of static-graph mode, made small: its log has the lines that it promises, and it learns."""

from __future__ import annotations

import re

import pytest

from tests.examples.test_digits_adaptive import EXAMPLES, python


@pytest.mark.slow
def test_it_learns_and_says_so() -> None:
    done = python(EXAMPLES / "static_py_func.py", "--epochs=2", "--times=20")
    assert done.returncode == 0, done.stderr
    losses = re.findall(r"iteration (\d+): loss ([\d.]+), accuracy [\d.]+", done.stdout)
    assert [int(number) for number, _ in losses] == [0, 100, 200] and float(losses[-1][1]) < float(losses[0][1]) - 0.3
    found = [float(text) for text in re.findall(r"epoch \d: test accuracy ([\d.]+)", done.stdout)]
    assert len(found) == 2 and found[-1] > 0.6
