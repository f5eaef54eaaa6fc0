"""The conformance suite as exported programs: each is refused by name, or computes what eager computes."""

from __future__ import annotations

import pytest

from tests.runtime.export.torch_export import conformance

CASES = conformance.cases()


@pytest.mark.sample(60)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case):
    found = conformance.outcome(case)
    assert found.kind in ("exported", "refused", "no Program")
    assert found.kind == "exported" or found.why
