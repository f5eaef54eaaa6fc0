"""The generator of a ``@contextmanager`` in halves: run as functions, the halves do what the generator does."""

from __future__ import annotations

import contextlib
import itertools
import textwrap
from typing import Any

import pytest

from dy2static import operators
from dy2static.transforms import manager_halves
from dy2static.transforms.base import rewritten

FORMS = {
    "plain": "log.append(1)\ny = yield x\nlog.append(y)",
    "finally": "try:\n    yield x\nfinally:\n    log.append(2)",
    "finally, and more": "try:\n    log.append(x[0])\n    yield x\nfinally:\n    log.append(2)\nlog.append(3)",
    "handled": "try:\n    yield 1\nexcept ValueError as e:\n    log.append(str(e))\nelse:\n    log.append('else')\n"
               "log.append(4)",
    "returns": "n = 1\ntry:\n    yield\nexcept KeyError:\n    n = 2\n    return\nfinally:\n    log.append(n)\n"
               "log.append(5)",
    "turned": "try:\n    yield\nexcept ValueError:\n    raise KeyError('k')",
    "with": "with contextlib.suppress(KeyError):\n    log.append(0)\n    yield 2\nlog.append('after')",
    "by a flag": "if x:\n    with contextlib.suppress(KeyError):\n        yield 2\nelse:\n    yield 3\n"
                 "log.append('after')",
    "two around": "with contextlib.suppress(KeyError), contextlib.nullcontext(7) as k:\n    try:\n        yield k\n"
                  "    finally:\n        log.append(k)",
}  # fmt: skip
WHOLE = {
    "in a loop": "for v in x:\n    yield v", "twice": "yield 1\nyield 2", "on a path": "if x:\n    yield 1",
    "after a return": "if not x:\n    return\nyield 1",
    "in a handler": "try:\n    x()\nexcept ValueError:\n    yield 1",
    "from": "yield from x", "in an expression": "log.append((yield 1))",
}  # fmt: skip
ERRORS = (None, ValueError("v"), KeyError("k"), TypeError("t"))


def function(body: str, split: bool) -> Any:
    text = f"def f(x, log):\n{textwrap.indent(body, '    ')}\n"
    names: dict[str, Any] = {"_d2s": operators, "contextlib": contextlib}
    exec(rewritten(text, manager_halves.transform) if split else text, names)
    return names["f"]


def outcome(make: Any, x: Any, error: Exception | None) -> tuple[Any, ...]:
    """What a ``with`` statement does whose block ends in ``error``."""
    log: list[Any] = []
    given: Any = None
    try:
        with make(x, log) as given:
            if error is not None:
                raise error
    except Exception as raised:
        return given, log, type(raised), str(raised)
    return given, log, None, ""


class Halves:
    def __init__(self, half: Any, *args: Any) -> None:
        self.half, self.args = half, args

    def __enter__(self) -> Any:
        given, self.leave = self.half(*self.args)
        return given

    def __exit__(self, kind: Any, error: Any, trace: Any) -> bool:
        try:
            self.leave(error)
        except Exception as raised:
            if raised is not error:
                raise
            return False
        return error is not None


@pytest.mark.parametrize(("form", "error", "x"), list(itertools.product(FORMS, ERRORS, ([1], []))))
def test_does_the_same(form: str, error: Exception | None, x: list[int]) -> None:
    half, whole = function(FORMS[form], True), contextlib.contextmanager(function(FORMS[form], False))
    assert outcome(lambda *args: Halves(half, *args), x, error) == outcome(whole, x, error)


@pytest.mark.parametrize("form", WHOLE)
def test_stays_a_generator(form: str) -> None:
    source = f"def f(x, log):\n{textwrap.indent(WHOLE[form], '    ')}"
    assert rewritten(source, manager_halves.transform) == rewritten(source)
