"""What is saved x how it is overwritten x where: the gradient, or the refusal of backward, is eager's."""

from __future__ import annotations

import pytest

from tests.end_to_end.overwritten_uses import judge, load_programs, program, sample

REFUSED = {"D2S210", "D2S222", "D2S251"}
"""Writes of items of grown lists and tuples that a trace refuses."""

FEW = [
    ("mul", False, "itself", "straight"), ("sin", False, "slice", "grown"), ("std", True, "fill", "fixed_list_chosen"),
    ("conv1d", False, "data", "attribute"), ("prod", False, "data", "branch"),
    ("logsumexp", False, "data_view", "grown_dicts"), ("add", False, "in_place", "rows"),
    ("einsum", False, "fill", "grown_then_name"), ("linear", True, "detached_view", "other_name"),
]  # fmt: skip


def held(combinations, folder):
    sources = [program(f"f{index}", *one) for index, one in enumerate(combinations)]
    found = [judge(function, folder) for function in load_programs(sources, folder)]
    failed = [(one, text) for one, text in zip(combinations, found) if text not in {"same", *REFUSED}]
    assert not failed
    assert found.count("same") > 0.75 * len(found)


def test_few(tmp_path):
    held(FEW, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(24))
def test_many(seed, tmp_path):
    held(sample(seed, 84), tmp_path)
