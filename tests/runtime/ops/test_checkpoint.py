"""The schedule of checkpoints alone: every step is found again, few are kept, few are computed more than once."""

from __future__ import annotations

import functools

import pytest
import torch

from runtime.ops.checkpoint import FUNCTIONS, KEPT, back, distance, keep, keep_again, own, put, top

LONGEST, MOST = 200, 8


def steps_computed(length: int, most: int) -> int:
    """How many forward steps a loop and its backward take; the step that backward itself goes back over left out.

    The state of a step is its number: so it is seen that each is the right one.
    """
    steps: list[int] = []
    levels: list[int] = []
    states: list[int] = []
    for step in range(length):
        steps, levels, place = keep(steps, levels, step, most)
        states = put(states, place, step)
        assert states == steps == sorted(set(steps)) and len(levels) == len(steps) <= most and steps[0] == 0
    computed = length
    for last in reversed(range(length)):
        steps, step = back(steps, last)
        states, state = top(states, steps)
        while step < last:
            steps, place = keep_again(steps, step, last, most)
            states = put(states, place, state)
            assert states == steps and len(steps) <= most
            step, state, computed = step + 1, state + 1, computed + 1
        assert state == step == last
    return computed


@functools.cache
def fewest(length: int, most: int) -> int:
    """The fewest forward steps with which a loop whose length is known is gone back over, by trying all there is."""
    if length <= 1:
        return 0
    if most == 1:
        return length * (length - 1) // 2
    return min(first + fewest(length - first, most - 1) + fewest(first, most) for first in range(1, length))


@pytest.mark.parametrize("most", range(1, MOST + 1))
def test_few_steps_are_computed_again(most):
    for length in range(1, LONGEST + 1):
        # One more than the fewest: the loop computes its last step, too, as it does not know that it is the last.
        assert fewest(length, most) < steps_computed(length, most) <= 1.5 * (fewest(length, most) + 1), length


@pytest.mark.parametrize("most", range(2, MOST + 1))
def test_the_way_back_takes_the_fewest_steps(most):
    for length in range(2, LONGEST + 1):
        first = distance(length, most)
        assert 0 < first < length
        assert first + fewest(length - first, most - 1) + fewest(first, most) == fewest(length, most)


def test_a_long_loop():
    assert steps_computed(100_000, 50) <= 4 * 100_000


def test_one_state():
    assert steps_computed(20, 1) == 20 + sum(range(20)) and distance(20, 1) == 0


def test_enough_states():
    assert steps_computed(8, 8) == 8


def test_a_step_that_is_kept_has_no_place():
    assert keep([0, 3], [0, 1], 3, 3) == ([0, 3], [0, 1], KEPT)
    assert keep_again([0, 3], 3, 9, 3) == ([0, 3], KEPT)
    states = ["a", "b"]
    assert put(states, KEPT, "c") is states


@pytest.mark.parametrize(("name", "args"), [
    ("keep", ([0, 1, 2], [0, 0, 0], 3, 3)), ("put", (["a", "b"], 1, "c")), ("back", ([0, 1, 2], 1)),
    ("keep_again", ([0], 2, 3, 3)), ("top", (["a", "b", "c"], [0, 1])),
])  # fmt: skip
def test_arguments_are_left_as_they_are(name, args):
    before = [list(arg) if isinstance(arg, list) else arg for arg in args]
    FUNCTIONS[f"checkpoint.{name}"](*args)
    assert list(args) == before


def test_the_first_state_is_a_copy():
    x = torch.ones(3)
    assert own(x, 1) is x
    assert own(x, 0) is not x and torch.equal(own(x, 0), x)


def test_generators_go_on_from_where_they_were():
    own = [torch.Generator().manual_seed(5), torch.Generator().manual_seed(6)]
    states = FUNCTIONS["checkpoint.generators"](own)
    first = [torch.rand(3), *(torch.rand(3, generator=one) for one in own)]
    FUNCTIONS["checkpoint.restore"](states, own)
    for got, expected in zip([torch.rand(3), *(torch.rand(3, generator=one) for one in own)], first):
        assert torch.equal(got, expected)
