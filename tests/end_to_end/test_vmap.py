"""vmap over control flow, held against a loop over the rows: the conformance suite, and what torch.vmap can do."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from tests.conformance import suite
from tests.conformance.family import Case
from tests.conformance.runner import varied
from tests.over_rows import fit, judge

ROWS = 4

EXPECTED: dict[str, dict[str, int]] = {
    "Joins": {"same": 36, "raises": 4, "no rows": 3, "D2S283": 21},
    "Returns": {"same": 18, "no rows": 1, "D2S283": 11},
    "Loops": {"same": 55, "raises": 5, "no rows": 1, "D2S283": 57},
    "Casts and shape": {"same": 35, "raises": 4, "no rows": 6, "D2S283": 13, "D2S284": 1},
    "Mutation": {"same": 30, "no rows": 3, "D2S283": 12, "D2S284": 8, "D2S285": 1},
    "Calls": {"same": 66, "raises": 8, "no rows": 5, "D2S283": 21, "D2S285": 3},
    "Booleans": {"same": 28, "raises": 4, "no rows": 2, "D2S283": 9},
    "Errors": {"same": 5, "raises": 3},
    "Guards": {"no rows": 17},
}
"""By family: what becomes of its batches; whatever is not named there is none."""


def batches(case: Case) -> list[list[Any]]:
    """The case's calls that can be rows of one batch, repeated or varied until there are enough."""
    found: list[list[Any]] = []
    generator = torch.Generator().manual_seed(0)
    for call in case.calls:
        if any(isinstance(one, torch.Tensor) for one in torch.utils._pytree.tree_leaves(list(call))):
            group = next((group for group in found if fit(group[0], call)), None)
            if group is None:
                found.append([call])
            else:
                group.append(call)
    for group in found:
        calls = len(group)
        while len(group) < ROWS:
            call = group[len(group) % calls]
            group.append(varied(call, case.search, generator) if case.search else call)
    return found


def outcome(case: Case, rows: list[Any]) -> str:
    def make() -> Any:
        torch.manual_seed(1234)
        return case.target() if case.kind == "module" else case.target

    try:
        return judge(make, rows, max(case.tolerance, 2e-6))
    except AssertionError as error:
        raise AssertionError(f"{case.id}: {error}") from error


@pytest.mark.parametrize("family", suite.ORDER)
def test_conformance_programs_are_what_they_are_row_by_row(family: str) -> None:
    counts: Counter[str] = Counter()
    for one in suite.families():
        for case in one.cases if one.name == family else ():
            if case.kind != "scenario" and not case.refused:
                counts.update(outcome(case, rows) for rows in batches(case))
    print(family, dict(sorted(counts.items())))
    assert dict(counts) == EXPECTED[family]
