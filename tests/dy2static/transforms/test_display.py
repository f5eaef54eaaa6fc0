"""Only displays that may hold another key at each run are replaced."""

from __future__ import annotations

from dy2static.transforms import display
from dy2static.transforms.base import rewritten


def test_displays_of_constants_stay():
    text = rewritten("def f(a):\n    return {'a': a, 1: a}, {}, {1, 'b'}, {*()}", display.transform)
    assert "_d2s" not in text


def test_values_are_evaluated_after_their_keys():
    text = rewritten("def f(k, v, m):\n    return {k(): v(), **m(), 'a': {k}}", display.transform)
    assert "_d2s.dict_of((k(), v()), (m(),), ('a', _d2s.set_of((k,))))" in text
