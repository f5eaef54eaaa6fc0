"""Of tests with many cases, one case in how many runs by default, so that all default tests take less than ten minutes.

    python -m pytest -q -m "slow or not slow" -k "not third_party" --junitxml=times.xml     # all, on an idle machine
    python -m tests.shares times.xml

prints ``SHARES`` anew: what the cases of a test may take together is ``SECONDS``, or what ``MORE`` says. The others are
slow tests (see ``tests.sampling``). A test that is not in the table runs with all its cases.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[1]
SECONDS = 1.5
MORE = {
    "tests/conformance/test_conformance.py::test_case": 30.0,
    "tests/end_to_end/test_try.py::test_like_eager": 4.0,
    "tests/end_to_end/test_escaping_exceptions.py::test_caught": 4.0,
    "tests/end_to_end/test_kept_by_loops.py::test_kept": 4.0,
    "tests/runtime/native/test_conformance.py::test_case": 5.0,
    "tests/end_to_end/test_container_programs.py::test_as_eager": 6.0,
}
"""Those that are the whole in small, or about errors that were silent."""

SHARES: dict[str, int] = {}


def share(test: str) -> int:
    """One case of a test in how many runs by default; ``test``: its file and name."""
    return SHARES.get(test, 1)


def shares(report: Path) -> dict[str, int]:
    """The table for a report in JUnit's format, which names modules and classes."""
    seconds: Counter[str] = Counter()
    cases: Counter[str] = Counter()
    for case in ElementTree.parse(report).iter("testcase"):
        name, bracket, _ = case.get("name", "").partition("[")
        parts = case.get("classname", "").split(".")
        for length in range(len(parts), 0, -1):
            file = "/".join(parts[:length]) + ".py"
            if bracket and (ROOT / file).is_file():
                test = "::".join([file, *parts[length:], name])
                seconds[test] += float(case.get("time", 0))  # type: ignore[assignment]
                cases[test] += 1
    found = {}
    for test, count in sorted(cases.items()):
        most = max(MORE.get(test, SECONDS), seconds[test] / count)
        if seconds[test] > 1.25 * most:
            found[test] = min(math.ceil(seconds[test] / most), count)
    return found


if __name__ == "__main__":
    for test, number in shares(Path(sys.argv[1])).items():
        print(f'    "{test}": {number},')
