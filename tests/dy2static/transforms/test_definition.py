"""Functions and classes are announced as they are made, alone."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from dy2static.conversion import convert
from dy2static.transforms import definition
from dy2static.transforms.base import rewritten


def decorated(a: Any) -> Any:
    def twice(function: Any) -> Any:
        return lambda value: function(function(value))

    @twice
    def inner(value: Any, step: Any = lambda: 1) -> Any:
        return value + step()

    class Pair:
        first = lambda self: a  # in the body of a class

        def second(self) -> Any:
            return inner(a)

    return inner(a), Pair().first(), Pair().second(), Pair.__qualname__, inspect.signature(inner)


@pytest.mark.parametrize("value", [1, 2.5])
def test_as_the_original(value: Any) -> None:
    assert convert(decorated, form="routed")(value) == decorated(value)


def test_the_innermost_decorator() -> None:
    text = rewritten("def f(deco):\n    @deco\n    def g():\n        return 1\n    return g", definition.transform)
    assert "@deco\n    @_d2s.defined\n    def g():" in text


def test_only_what_a_trace_runs() -> None:
    shown = convert(decorated).__dict__["__dy2static_source__"]
    traced = convert(decorated, form="routed").__dict__["__dy2static_source__"]
    assert "defined" not in shown and traced.count("_d2s.defined") == 5
