"""The example of many small problems at once says what its rows say one by one."""

from __future__ import annotations

import pytest

from tests.examples.test_digits_adaptive import EXAMPLES, python


@pytest.mark.slow
def test_it_is_the_same_as_row_by_row() -> None:
    done = python(EXAMPLES / "vmap_control_flow.py")
    assert done.returncode == 0, done.stderr
    steps, same, gradient = done.stdout.splitlines()
    assert len(set(steps.removeprefix("steps: "))) > 4
    assert (same, gradient) == ("as row by row: True True", "gradient: True")
