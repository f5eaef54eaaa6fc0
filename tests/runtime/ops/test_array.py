"""Array operators: Python lists, never changed in place, with Python's exceptions."""

from __future__ import annotations

import pytest

from runtime.ops.array import FUNCTIONS


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("new", (("a", "b"),), ["a", "b"]), ("append", (["a"], "b"), ["a", "b"]), ("get", (["a", "b"], -1), "b"),
        ("set", (["a", "b"], -1, "c"), ["a", "c"]), ("len", (["a", "b"],), 2), ("pop", (["a", "b"],), (["a"], "b")),
        ("pop", (["a", "b"], 0), (["b"], "a")), ("extend", (["a"], ["b", "c"]), ["a", "b", "c"]),
        ("slice", (["a", "b", "c"], slice(None, None, -2)), ["c", "a"]), ("concat", (["a"], ["b"]), ["a", "b"]),
        ("fill", (["a", "b"], None), [None, None]), ("lookup", ([1, 0, 1], [5, 6]), [6, 5, 6]),
        ("lookup", ([1, None, 0], [5, 6]), [6, None, 5]), ("fill_each", ([["a"], None, []], 0), [[0], None, []]),
    ],
)  # fmt: skip
def test_values(name, args, expected):
    before = [list(arg) if isinstance(arg, list) else arg for arg in args]
    assert FUNCTIONS[f"array.{name}"](*args) == expected
    assert list(args) == before


@pytest.mark.parametrize(
    ("name", "args", "error", "message"),
    [
        ("get", ([1], 1), IndexError, "list index out of range"),
        ("set", ([1], 1, 0), IndexError, "list assignment index out of range"),
        ("pop", ([1], 1), IndexError, "pop index out of range"),
        ("pop", ([],), IndexError, "pop from empty list"),
        ("concat", ([1], (2,)), TypeError, "can only concatenate list"),
    ],
)
def test_exceptions(name, args, error, message):
    with pytest.raises(error, match=message):
        FUNCTIONS[f"array.{name}"](*args)
