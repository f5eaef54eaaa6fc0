"""The conformance suite as ONNX models: each is refused by name, or computes what eager computes."""

from __future__ import annotations

import pytest

from tests.runtime.export import judging
from tests.runtime.export.onnx.conformance import attempt

CASES = judging.cases()


@pytest.mark.sample(60)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_case(case):
    found = judging.of_case(case, attempt)
    assert found.kind in ("exported", "refused", "no Program")
    assert found.kind == "exported" or found.why
