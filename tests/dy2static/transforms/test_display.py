"""Displays of dicts and sets, alone."""

from __future__ import annotations

from typing import Any

import pytest

from dy2static.conversion import convert
from dy2static.transforms import display
from dy2static.transforms.base import rewritten


def names(a: Any, b: Any) -> Any:
    return {a, b, 1}, {a: 1, "x": b, b: 2}, {*[a, b], *()}, {**{a: b}}


def order(a: Any, b: Any) -> Any:
    seen: list[Any] = []

    def say(value: Any) -> Any:
        seen.append(value)
        return value

    return {say(a): say(1), say(b): say(2)}, {say(b), *(say(one) for one in (a, b))}, seen


def unhashable(a: Any, b: Any) -> Any:
    return {a: 1, (b, [a]): 2}


@pytest.mark.parametrize("function", [names, order, unhashable])
def test_as_the_original(function: Any) -> None:
    for args in ((1, 2), ("p", (3, 4)), (1, 1)):
        outcomes = []
        for one in (function, convert(function)):
            try:
                outcomes.append(one(*args))
            except TypeError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]


def test_displays_of_constants_stay() -> None:
    text = rewritten("def f(a):\n    return {'a': a, None: a}, {'a', 'b'}", display.transform)
    assert "_d2s" not in text


def test_displays_that_may_get_numbers_as_keys() -> None:
    text = rewritten("def f(a):\n    return {1: a}, {}, {1, 'b'}, {*()}", display.transform)
    assert "_d2s.dict_of((1, a)), _d2s.dict_of(), _d2s.set_of((1, 'b')), _d2s.set_of(())" in text


def test_values_are_evaluated_after_their_keys() -> None:
    text = rewritten("def f(k, v, m):\n    return {k(): v(), **m(), 'a': {k}}", display.transform)
    assert "_d2s.dict_of((k(), v()), (m(),), ('a', _d2s.set_of((k,))))" in text
