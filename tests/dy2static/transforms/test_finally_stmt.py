"""A rewritten function does what the original did; a finally that does not leave stays as it is."""

from __future__ import annotations

import pytest

from dy2static.transforms import finally_stmt
from dy2static.transforms.base import rewritten

SOURCE = """
def f(error, leave):
    seen = []
    for i in range(3):
        try:
            seen.append(i)
            if error == i:
                raise ValueError
        except KeyError:
            seen.append("key")
        finally:
            seen.append("finally")
            if leave == i:
                break
    return seen
"""


def _made(text):
    names = {}
    exec(text, names)
    return names["f"]


@pytest.mark.parametrize(("error", "leave"), [(None, None), (None, 1), (1, 1), (0, 1), (2, 2), (2, None)])
def test_it_does_what_python_does(error, leave):
    def outcome(function):
        try:
            return function(error, leave)
        except ValueError:
            return "raised"

    text = rewritten(SOURCE, finally_stmt.transform)
    assert "finally:" not in text
    assert outcome(_made(text)) == outcome(_made(SOURCE))


def test_a_finally_that_stays_inside_is_kept():
    assert "finally:" in rewritten(SOURCE.replace("break", "pass"), finally_stmt.transform)
