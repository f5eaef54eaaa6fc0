"""Ordinary programs with containers: live, saved and loaded, with and without gradients, as in eager."""

from __future__ import annotations

import inspect

import pytest
import torch

import dy2static
from tests.end_to_end import container_programs
from tests.oracle import check

INPUTS = [[1.0, 2.0, -1.0], [3.0, 1.0, 2.0], [-1.0, -2.0, -3.0]]
CALLS = [(torch.tensor(values, requires_grad=grad),) for values in INPUTS for grad in (True, False)]
HELPERS = {"halves", "positive", "parts"}
PROGRAMS = [
    function for name, function in inspect.getmembers(container_programs, inspect.isfunction)
    if function.__module__ == container_programs.__name__ and name not in HELPERS
]
REFUSED = {
    "counter_of_one": "D2S254", "deep_copied": "D2S228", "frozen_keys": "D2S210", "generator_pipeline": "D2S212",
    "grouped_by_default": "D2S265", "intervals": "D2S251", "inverted": "D2S265", "padded": "D2S210",
    "split_text": "D2S210",
}  # fmt: skip
"""By name: the code of the located error that stands in place of a difference."""
NAMED = {"named_tuples", "record_of_steps"}
"""Their results are of a class of the user's, for which another stands after loading."""


@pytest.mark.sample(3)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_as_eager(program, tmp_path):
    if program.__name__ in REFUSED:
        with pytest.raises(dy2static.Dy2StaticError) as caught:
            check(program, *CALLS, tolerance=1e-6, none_is_zero=True)
        assert caught.value.code == REFUSED[program.__name__] and caught.value.location is not None
        return
    converted = check(program, *CALLS, tolerance=1e-6, paths=("program",), none_is_zero=True)
    if program.__name__ in NAMED:
        return
    dy2static.save(converted, tmp_path / "program")
    check(program, *CALLS, tolerance=1e-6, paths=("program",), none_is_zero=True,
          static=dy2static.load(tmp_path / "program"))  # fmt: skip
