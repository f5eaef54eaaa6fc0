"""The example of in-graph training: the Program trains as plain Python does."""

from __future__ import annotations

import re

import pytest

from tests.examples.test_digits_adaptive import EXAMPLES, python


@pytest.mark.slow
def test_both_train_alike() -> None:
    done = python(EXAMPLES / "training_inside.py")
    assert done.returncode == 0, done.stderr
    eager, program, last = done.stdout.splitlines()
    assert eager.split(":")[1].strip() == program.split(":")[1].strip() and last == "the same weights"
    found = re.search(r"loss ([\d.]+), 0 steps left out", program)
    assert found is not None and float(found[1]) < 0.1
