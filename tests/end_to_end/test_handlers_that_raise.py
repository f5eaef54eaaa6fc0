"""Handlers that raise, in a ``try`` around theirs that catches it: whatever they handled, and however they raise."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of

BODIES = {
    "raise": ("ValueError", "if x.sum() > 0:\n    raise ValueError('a')\ny = x * 2"),
    "a function": ("ValueError", "y = helper(x)"),
    "two functions": ("ValueError", "y = outer(x)"),
    "an index": ("IndexError", "y = x * [1, 2][int((x > 0).sum())]"),
    "a key": ("KeyError", "y = x * {0: 1}[int((x > 0).sum())]"),
}
"""What is tried, and what it raises where all of ``x`` is positive."""
HANDLERS = {
    "raise": "raise TypeError('b')",
    "raise from": "raise TypeError('b') from e",
    "text": "raise TypeError(str(e))",
    "again": "raise",
    "the same": "raise e",
    "on a path": "if x[0] > 5:\n    raise TypeError('b')\ny = x * 4",
    "a function": "raiser(x)\ny = x * 5",
    "a loop": "for j in range(2):\n    if x[0] > 5 + j:\n        raise TypeError('b')\n    y = x * 4",
    "a class of the user's": "raise Own(x) from None",
    "assert": "assert x[0] > 5, 'c'\ny = x * 4",
}
AROUND = {
    "plain": "try:\n{tried}\nexcept CAUGHT:\n    y = x * 3",
    "named": "try:\n{tried}\nexcept CAUGHT as k:\n    y = x * 3 + len(k.args)",
    "a function": "try:\n    y = called(x)\nexcept CAUGHT:\n    y = x * 3",
    "finally": "try:\n{tried}\nexcept CAUGHT:\n    y = x * 3\nfinally:\n    x = x + 1",
}
HEAD = """import torch
class Own(Exception): pass
CAUGHT = (TypeError, ValueError, IndexError, KeyError, AssertionError, Own)
def helper(x):
    if x.sum() > 0:
        raise ValueError('a')
    return x * 2
def outer(x):
    return helper(x) + 1
def raiser(x):
    if x[0] > 5:
        raise TypeError('b')
"""


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.splitlines())


def program(body: str, handler: str, around: str) -> str:
    error, text = BODIES[body]
    tried = f"try:\n{indented(text)}\nexcept {error} as e:\n{indented(HANDLERS[handler])}"
    called = f"def called(x):\n{indented(tried)}\n    return y\n"
    whole = AROUND[around].replace("{tried}", indented(tried))
    return f"{HEAD}{called}def f(x):\n{indented(whole)}\n    return y + x\n"


@pytest.mark.sample(6)
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("handler", HANDLERS)
@pytest.mark.parametrize("body", BODIES)
def test_what_a_handler_raises_is_caught_around_it(body, handler, around, tmp_path):
    (tmp_path / "one.py").write_text(program(body, handler, around))
    f = module_of(tmp_path / "one.py").f
    static = to_static(f)
    for value in (1.0, -1.0, 9.0):
        x = torch.full((2,), value)
        assert torch.equal(static(x), f(x)), value
