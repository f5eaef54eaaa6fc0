"""RetraceWarning: a Program for one call alone, and the third trace for one place."""

from __future__ import annotations

import types

import numpy as np
import pytest
import torch

from dy2static import RetraceWarning, not_to_static, to_static
from tests.oracle import same

X = torch.ones(2)


def test_a_program_for_one_call_says_so():
    items = iter([1.0, 2.0, 3.0])
    f = to_static(lambda x: x * next(items))
    f(X)
    with pytest.warns(RetraceWarning, match=r"traced at each call of this kind, because an iterator .*test_retraces"):
        f(X)


def test_the_third_trace_for_one_place_names_it():
    space = types.SimpleNamespace(mode="a")
    f = to_static(lambda x: x * len(space.mode))
    for mode in ("a", "bb", "ccc"):
        space.mode = mode
        f(X)
    space.mode = "dddd"
    with pytest.warns(RetraceWarning, match=r"attribute 'mode' of SimpleNamespace has changed \(it was 'ccc', and is"):
        f(X)


def test_a_distribution_is_one_program():
    def f(x):
        d = torch.distributions.Categorical(logits=x)
        return d.log_prob(d.sample())

    converted = to_static(f)
    for _ in range(4):
        converted(torch.randn(4, 3))
    assert len(converted.programs) == 1


TABLE = np.zeros(2)


def test_the_line_that_reads_a_global_is_named():
    """Not the line that calls the function."""

    def reads(x):
        y = x * 2
        return y * float(TABLE[0])

    static = to_static(reads)
    with pytest.warns(RetraceWarning, match=r"global 'TABLE'.*\(return y \* float\(TABLE\[0\]\)\)"):
        for _ in range(6):
            TABLE[0] += 1
            static(torch.ones(2))


@not_to_static
def twice_each(n):
    return [2.0 * i for i in range(n)]


@pytest.mark.parametrize(("sizes", "programs"), [
    (((2, 5), (3, 5), (4, 5), (4, 6), (5, 6), (6, 6), (7, 8), (8, 8), (9, 5)), 4),
    (((2, 5), (2, 6), (3, 6), (4, 6), (3, 5)), 5),
])  # fmt: skip
def test_a_size_that_must_be_known_leaves_others_open(sizes, programs):
    """Sizes that Programs have left open are open when another one turns out to be needed as a constant."""
    def f(x):
        return x * torch.tensor(twice_each(x.shape[1]))

    converted = to_static(f)
    for one in sizes:
        x = torch.rand(one)
        same(converted(x), f(x))
    assert len(converted.programs) <= programs
