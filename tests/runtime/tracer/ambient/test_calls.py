"""What goes through a call's results is not kept alive by that."""

from __future__ import annotations

import gc
import weakref
from typing import NamedTuple

import torch

from runtime.tracer.ambient.calls import flatten_results, unflatten_results


class Pair(NamedTuple):
    first: torch.Tensor
    second: torch.Tensor


def test_results_have_the_shape_of_the_template() -> None:
    a, b, c = torch.ones(3).unbind()
    template = [a, (b, Pair(c, a))]
    made = unflatten_results(template, [c, b, a, b])
    assert made[0] is c and made[1][0] is b and made[1][1] == Pair(a, b) and type(made[1][1]) is Pair
    assert unflatten_results(None, []) is None
    assert [id(one) for one in flatten_results(made)] == [id(one) for one in (c, b, a, b)]


def test_results_are_gone_with_the_last_name() -> None:
    """Whether memory is still seen decides what a write leaves in the Program: no collector may have a say in it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        one = torch.ones(1)
        seen = weakref.ref(one)
        made = unflatten_results((one, [one]), [one, one])
        del one
        assert seen() is not None and made[0] is made[1][0]
        del made
        assert seen() is None
    finally:
        if collecting:
            gc.enable()
