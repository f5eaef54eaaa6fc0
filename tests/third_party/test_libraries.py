"""Packages from PyPI, unmodified: their data-dependent loops and branches as one Program, equal to eager."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from libraries import LIBRARIES

import dy2static
from runtime.errors import TraceError
from tests import oracle


@pytest.mark.parametrize("name", [name for name, library in LIBRARIES.items() if not library.refused])
def test_equals_eager(name: str) -> None:
    library = LIBRARIES[name]
    pytest.importorskip(library.package, reason="needs the third-party extra: pip install dy2static[third-party]")
    if library.module:
        static = oracle.check_module(library.make, *library.calls(), tolerance=library.tolerance).forward
    else:
        static = oracle.check(library.bound(), *library.calls(), tolerance=library.tolerance)
    assert len(static.programs) == library.programs
    operators = [op.name for op in static.program.block.walk()]
    staged = {"cond", "while_loop", "switch", "custom_grad", "assert"}.intersection(operators)
    assert library.stages <= staged, f"staged: {staged}"


@pytest.mark.parametrize("name", [name for name, library in LIBRARIES.items() if library.refused])
def test_refused_with_a_place(name: str) -> None:
    library = LIBRARIES[name]
    pytest.importorskip(library.package, reason="needs the third-party extra: pip install dy2static[third-party]")
    with pytest.raises(TraceError, match=library.refused) as failure:
        oracle.check(library.bound(), library.calls()[0])
    assert " at " in str(failure.value)


@pytest.mark.parametrize("name", [name for name, library in LIBRARIES.items() if library.refused])
def test_what_is_refused_whole_runs_in_pieces(name: str) -> None:
    library = LIBRARIES[name]
    pytest.importorskip(library.package, reason="needs the third-party extra: pip install dy2static[third-party]")
    function = library.bound()
    static = dy2static.to_static(function, full_graph=False)
    terms = {"tolerance": library.tolerance, "gradient_tolerance": 1e-4, "largest": True}
    oracle.check(function, *library.calls(), static=static, paths=("program",), **terms)
