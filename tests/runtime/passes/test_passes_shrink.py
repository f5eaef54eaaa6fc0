"""What the passes do to the Programs of the conformance suite, counted."""

from __future__ import annotations

import torch

from runtime.passes import DEFAULT, Applied, Report
from scripts.passes_shrink import reports_of, table
from tests.conformance.family import Family


def test_what_counts() -> None:
    family = Family("Some")

    @family.case("a value that nothing reads", (torch.ones(2),))
    def unread(x: torch.Tensor) -> torch.Tensor:
        torch.cos(x)
        return torch.sin(x)

    (report,) = reports_of(family.cases[0])
    assert [one.name for one in report.applied] == [one.name for one in DEFAULT]
    assert report.applied[0].before == 2 and report.applied[-1].after == 1


def test_the_table() -> None:
    names = [one.name for one in DEFAULT]
    first = Report([Applied(names[0], 2, 5, 4), *(Applied(name, 0, 4, 4) for name in names[1:])])
    second = Report([Applied(name, 0, 6, 6) for name in names[:-1]] + [Applied(names[-1], 1, 6, 3)])
    lines = [line.split() for line in table([first, second])]
    assert lines[1] == [names[0], "1", "1"] and lines[2] == [names[1], "0", "0"] and lines[-2] == [names[-1], "1", "3"]
    assert " ".join(lines[-1]) == "2 programs: 11 operators, 7 after the passes, 36.4 % fewer"
