"""How much the default passes shrink the Programs of the conformance suite: Operators before and after each.

    python scripts/passes_shrink.py
"""

from __future__ import annotations

import contextlib
import io
import sys
import warnings
from collections import Counter
from pathlib import Path
from typing import Any
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from runtime.ir import Program  # noqa: E402
from runtime.passes import DEFAULT, PassManager, Report  # noqa: E402
from tests.conformance import runner  # noqa: E402
from tests.conformance.family import Case  # noqa: E402
from tests.conformance.suite import all_cases  # noqa: E402


def reports_of(case: Case) -> list[Report]:
    """What the passes did to the Programs of one case, its calls as the suite makes them."""
    found: list[Report] = []
    run = PassManager.run

    def noting(manager: PassManager, program: Program) -> Report:
        report = run(manager, program)
        if manager.passes == DEFAULT:
            found.append(report)
        return report

    with mock.patch.object(PassManager, "run", noting), contextlib.redirect_stdout(io.StringIO()):
        runner.run(case)
    return found


def table(reports: list[Report]) -> list[str]:
    """Lines for people."""
    changed: Counter[str] = Counter()
    removed: Counter[str] = Counter()
    for report in reports:
        for one in report.applied:
            changed[one.name] += bool(one.changes)
            removed[one.name] += one.before - one.after
    before = sum(report.applied[0].before for report in reports)
    after = sum(report.applied[-1].after for report in reports)
    lines = [f"{'pass':24}{'programs changed':>18}{'operators fewer':>18}"]
    lines += [f"{one.name:24}{changed[one.name]:18}{removed[one.name]:18}" for one in DEFAULT]
    share = 100 * (before - after) / max(before, 1)
    return [*lines, f"{len(reports)} programs: {before} operators, {after} after the passes, {share:.1f} % fewer"]


def main() -> None:
    """Run the suite and print."""
    warnings.simplefilter("ignore")
    reports: list[Report] = []
    failed: list[Any] = []
    for case in all_cases():
        try:
            reports += reports_of(case)
        except Exception as error:  # what a case is held against is the tests' concern
            failed.append((case.name, error))
    print("\n".join(table(reports)))
    for name, error in failed:
        print(f"left out: {name}: {type(error).__name__}: {str(error).splitlines()[0]}")


if __name__ == "__main__":
    main()
