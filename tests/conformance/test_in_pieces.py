"""Every case that is refused, with ``full_graph=False``: it gives what eager gives, call by call."""

from __future__ import annotations

import warnings

import pytest
from torch import nn

from dy2static import EagerWarning, to_static
from tests.conformance.family import Case
from tests.conformance.suite import all_cases
from tests.oracle import copied, hold, run, same, seeded, state_of

REFUSED = [case for case in all_cases() if case.refused and case.family != "Under vmap"]
"""Eager has no answer to decisions under ``vmap``."""


@pytest.mark.parametrize("case", REFUSED, ids=[case.id for case in REFUSED])
def test_case(case: Case) -> None:
    seeded(1234)
    ours = case.target() if case.kind == "module" else case.target
    seeded(1234)
    theirs = case.target() if case.kind == "module" else case.target
    static = to_static(ours, full_graph=False)
    for number, call in enumerate(case.calls * 2):
        mine, eagers = copied(call), copied(call)
        parameters = list(theirs.parameters()) if isinstance(theirs, nn.Module) else []
        expected = run(theirs, eagers, number, parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", EagerWarning)
            got = run(static, mine, number, list(static.parameters()) if isinstance(static, nn.Module) else [])
        hold(got, expected, f"call {number}")
        same(mine, eagers, f"call {number} arguments")
        if isinstance(theirs, nn.Module):
            same(state_of(static), state_of(theirs), f"call {number} state")


def test_there_are_enough() -> None:
    assert len(REFUSED) >= 30, len(REFUSED)
