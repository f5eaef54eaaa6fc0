"""A short run of random programs from fixed seeds; ``python -m tests.fuzz.run`` runs as many as you like."""

from __future__ import annotations

import pytest

from tests.fuzz.run import run_one


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_random_program(seed):
    _, outcome, detail, _, _ = run_one(seed, depth=2)
    assert outcome in ("same", "refused"), detail
