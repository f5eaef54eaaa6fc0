"""The conformance suite with ``backend="c"``: each case equals eager, as it does on the interpreter."""

from __future__ import annotations

import collections
from collections.abc import Iterator
from unittest import mock

import pytest

from runtime.native import executable
from runtime.native.executable import NativeExecutable
from tests.conformance.family import Case
from tests.conformance.runner import run
from tests.conformance.suite import all_cases

CASES = all_cases()
ROUNDING = 1e-5
_made: list[NativeExecutable] = []


@pytest.fixture(scope="module", autouse=True)
def shares() -> Iterator[None]:
    """Print what ran in C."""
    with mock.patch.object(executable, "made", _made):
        yield
    counts = collections.Counter[str]()
    python = collections.Counter[str]()
    for one in _made:
        share = one.share()
        counts.update(c=share.in_c, called=share.called, all=share.all)
        python.update(one.in_python())
    if counts["all"]:
        print(f"\n{counts['all']} Operators of {len(_made)} Programs: {counts['c'] / counts['all']:.1%} in C, "
              f"{counts['called'] / counts['all']:.1%} called from C, the rest in Python")  # fmt: skip
        print(", ".join(f"{name} {count}" for name, count in python.most_common(60)))


@pytest.mark.parametrize("case", CASES[::24], ids=[case.id for case in CASES[::24]])
def test_case(case: Case) -> None:
    """Some of what the slow test runs."""
    run(case, "c", ROUNDING)


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_every_case(case: Case) -> None:
    run(case, "c", ROUNDING)
