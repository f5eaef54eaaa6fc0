"""The conformance suite where C takes over at the second call: each case equals eager, before and after."""

from __future__ import annotations

import pytest

from runtime.calling import takeover
from runtime.native import build, emitter
from tests.conformance.family import Case
from tests.conformance.runner import run
from tests.conformance.suite import all_cases

CASES = all_cases()
ROUNDING = 1e-5


@pytest.fixture(autouse=True)
def early(monkeypatch: pytest.MonkeyPatch) -> None:
    """C takes over early, of everything that it can do; a fault of the generator's is an error."""
    monkeypatch.setattr(takeover, "START", 1)
    monkeypatch.setattr(takeover, "TAKE_OVER", 2)
    monkeypatch.setattr(build, "optimise", "-O1")
    monkeypatch.setattr(build, "strict", True)
    monkeypatch.setattr(emitter, "LEAST", 0)


@pytest.mark.parametrize("case", CASES[5::40], ids=[case.id for case in CASES[5::40]])
def test_case(case: Case) -> None:
    """Some of what the slow test runs."""
    run(case, "auto", ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_every_case(case: Case) -> None:
    run(case, "auto", ROUNDING)
