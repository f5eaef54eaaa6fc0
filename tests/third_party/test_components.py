"""Layers, losses, solvers and others from PyPI, unmodified, with three sizes each: equal to eager, or refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import dy2static

sys.path.insert(0, str(Path(__file__).parent))

from components import COMPONENTS, Component
from loops import LOOPS

from runtime.errors import TraceError
from tests import oracle

HINT = "needs the third-party extra: pip install dy2static[third-party]"
PIECES = {**COMPONENTS, **LOOPS}
CASES = [(name, mode) for name, one in PIECES.items() if not one.refused for mode in one.modes or (False,)]


def _in_mode(component: Component, train: bool) -> Any:
    return component.make().train(train)


@pytest.mark.parametrize(("name", "train"), CASES)
def test_equals_eager(name: str, train: bool) -> None:
    component = PIECES[name]
    pytest.importorskip(component.package, reason=HINT)
    terms = {"tolerance": component.tolerance, "gradient_tolerance": 1e-4, "largest": True, "paths": ("program",)}
    if component.modes:
        oracle.check_module(lambda: _in_mode(component, train), *component.calls, **terms)
    else:
        oracle.check(component.make(), *component.calls, **terms)


@pytest.mark.parametrize("name", [name for name, one in PIECES.items() if one.refused])
def test_refused_with_a_place(name: str) -> None:
    component = PIECES[name]
    pytest.importorskip(component.package, reason=HINT)
    with pytest.raises(TraceError, match=component.refused) as caught:
        if component.modes:
            dy2static.to_static(_in_mode(component, component.modes[0]))(*component.calls[0])
        else:
            function = component.make()
            function(*component.calls[0])  # what a library makes when it is first used is not the question
            static = dy2static.to_static(function)
            for call in component.calls:
                static(*call)
    assert " at " in str(caught.value)


@pytest.mark.parametrize("name", [name for name, one in PIECES.items() if one.refused])
def test_what_is_refused_whole_runs_in_pieces(name: str) -> None:
    component = PIECES[name]
    pytest.importorskip(component.package, reason=HINT)
    terms = {"tolerance": component.tolerance, "gradient_tolerance": 1e-4, "largest": True}
    if component.modes:
        oracle.seeded(1234)
        static = dy2static.to_static(_in_mode(component, component.modes[0]), full_graph=False)
        oracle.seeded(1234)
        oracle.hold_modules(static, _in_mode(component, component.modes[0]), component.calls, "program", **terms)
    else:
        function = component.make()
        static = dy2static.to_static(function, full_graph=False)
        oracle.check(function, *component.calls, static=static, paths=("program",), **terms)
