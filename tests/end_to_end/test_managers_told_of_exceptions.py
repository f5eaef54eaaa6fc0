"""Context managers around what raises on some paths, in a ``try``: ``__exit__`` is told of the exception or of none."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import check, check_saved

HELPERS = """
from contextlib import contextmanager

@contextmanager
def noted(log):
    log.append("in n")
    yield log

@contextmanager
def finished(log):
    log.append("in c")
    try:
        try:
            yield log
        finally:
            log.append("first")
    finally:
        log.append("finished")

@contextmanager
def followed(log):
    yield log
    log.append("followed")

class Logged:
    def __init__(self, log, name="a"):
        self.log, self.name = log, name

    def __enter__(self):
        self.log.append("in " + self.name)
        return self

    def __exit__(self, kind, value, trace):
        self.log.append(self.name + (" fine" if kind is None else kind.__name__ + str(value)))

class Scaled:
    def __init__(self, box):
        self.box = box

    def __enter__(self):
        self.before = self.box["scale"]
        self.box["scale"] = self.before * 2
        return self.box

    def __exit__(self, kind, value, trace):
        self.box["scale"] = self.before
        if isinstance(value, ValueError):
            self.box["failed"] = self.box["failed"] + 1
        return False

class Traced(Logged):
    def __exit__(self, kind, value, trace):
        if trace is not None:
            self.log.append(trace.tb_lineno)

def checked(x, bound):
    total = x.sum()
    if total > bound:
        raise ValueError("over")
    if total < -bound:
        raise KeyError("under")
    return total

def with_part(x, log):
    try:
        return checked(x, 10.0)
    finally:
        log.append("part")

"""
BEGIN = """def f(x):
    log, box = [], {"scale": x * 1, "failed": 0}
"""
BODIES = {
    "call": "y = checked(x, 10.0)", "then more": "y = checked(x, 10.0)\nlog.append('ok')\ny = y * 2",
    "raised": "if x.sum() > 10:\n    raise ValueError('big')\ny = x * 2",
    "in a loop": "for k in range(2):\n    y = checked(x * (k + 1), 10.0)",
    "finally": "y = with_part(x, log)", "two": "y = checked(x, 20.0)\ny = y + checked(x * 2, 20.0)",
}  # fmt: skip
MANAGERS = ("Logged(log)", "Logged(log) as m", "Scaled(box) as b", "Logged(log, 'a'), Scaled(box)",
            "Scaled(box), Logged(log, 'b') as m", "torch.no_grad(), Logged(log)", "noted(log)",
            "Logged(log), finished(log) as l")
HANDLERS = {
    "one": "except ValueError as e:\n    y = x.mean()\n    log.append(str(e))",
    "two": "except KeyError:\n    y = None\nexcept ValueError:\n    y = x.mean()",
    "all": "except Exception as e:\n    log.append(type(e).__name__)\n    y = 0",
}  # fmt: skip
CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0], [9.0, 5.0], [-9.0, -5.0], [200.0, 9.0])]


def _indented(text: str, depth: int) -> str:
    return "".join(" " * depth + line + "\n" for line in text.splitlines())


def function(path: Path, body: str, manager: str, handler: str) -> Any:
    inner = f"    try:\n        with {manager}:\n{_indented(BODIES[body], 12)}{_indented(HANDLERS[handler], 4)}"
    return written(path, f"{BEGIN}{inner}    return y, log, box\n")


def written(path: Path, text: str) -> Any:
    path.write_text(HELPERS + text)
    names: dict[str, Any] = {"torch": torch}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(7)
@pytest.mark.parametrize(("body", "manager", "handler"), list(itertools.product(BODIES, MANAGERS, HANDLERS)))
def test_as_eager(body: str, manager: str, handler: str, tmp_path: Path) -> None:
    f = function(tmp_path / "told.py", body, manager, handler)
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


ABOVE = {
    "finally": ("with {manager}:\n    try:\n{body}\n    finally:\n        log.append('end')", "y = inner(x, log, box)"),
    "finally around": ("try:\n    with {manager}:\n{body}\n    log.append('more')\nfinally:\n    log.append('end')",
                       "y = inner(x, log, box)"),
    "handler": ("with {manager}:\n{body}\nlog.append('more')",
                "try:\n    y = inner(x, log, box)\nexcept ValueError as e:\n    y = str(e)"),
    "returns": ("for i in range(2):\n    with {manager}:\n        if x[0] > 8 + i:\n            return x\n"
                "        if x[0] < -8:\n            continue\n{body}\nlog.append('more')",
                "try:\n    y = inner(x, log, box)\nexcept ValueError as e:\n    y = x * 5"),
    "both": ("with {manager}:\n    try:\n{body}\n    finally:\n        log.append('end')\n    y = y * 2",
             "try:\n    y = inner(x, log, box)\nexcept (ValueError, KeyError):\n    y = x.mean()"),
}  # fmt: skip
"""What stands in ``inner``, with the manager, and the call of it: no handler, or one further out."""


@pytest.mark.sample(7)
@pytest.mark.parametrize(("above", "body", "manager"), list(itertools.product(ABOVE, BODIES, MANAGERS)))
def test_no_handler_inside(above: str, body: str, manager: str, tmp_path: Path) -> None:
    inner, call = ABOVE[above]
    text = inner.format(manager=manager, body=_indented(BODIES[body], 8))
    f = written(tmp_path / "told.py", f"def inner(x, log, box):\n    y = None\n{_indented(text, 4)}    return y\n"
                                      f"{BEGIN}{_indented(call, 4)}    return y, log, box\n")  # fmt: skip
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


def test_a_generator_that_goes_on(tmp_path: Path) -> None:
    """What it does after its ``yield`` is left out where there is an exception."""
    f = function(tmp_path / "told.py", "call", "followed(log)", "one")
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


ASKED = ("sys.exc_info()[0]", "traceback.format_exc()[:9]", "traceback.print_exc()",
         *(["type(sys.exception())"] if sys.version_info >= (3, 11) else []))
ASKING = """
import sys, traceback
from contextlib import contextmanager

@contextmanager
def manager(log):
    try:
        yield
    finally:
        log.append({question})

class Manager:
    def __init__(self, log):
        self.log = log
    def __enter__(self):
        pass
    def __exit__(self, *given):
        self.log.append({question})

def in_finally(x, log):
    try:
        assert x.sum() < 1
    finally:
        log.append({question})

def in_generator(x, log):
    with manager(log):
        assert x.sum() < 1

def in_exit(x, log):
    with Manager(log):
        assert x.sum() < 1

def in_handler(x, log):
    try:
        assert x.sum() < 1
    except AssertionError:
        log.append({question})
        raise

def f(x):
    log = []
    try:
        {place}(x, log)
    except AssertionError:
        log.append({question})
    return x * 2, log
"""


@pytest.mark.parametrize("question", ASKED)
@pytest.mark.parametrize("place", ["in_finally", "in_generator", "in_exit", "in_handler"])
def test_python_is_asked_for_the_exception(place: str, question: str, tmp_path: Path) -> None:
    """Of one that passes as a value it knows nothing; a handler that gets it raised once more sees it."""
    (tmp_path / "asking.py").write_text(ASKING.format(place=place, question=question))
    f = module_of(tmp_path / "asking.py").f
    if place == "in_handler":
        check(f, *CALLS)
        return
    with pytest.raises(Dy2StaticError, match="D2S229") as caught:
        to_static(f)(*CALLS[0])
    assert "asks for an exception" in str(caught.value)


def test_the_traceback_is_refused(tmp_path: Path) -> None:
    f = function(tmp_path / "told.py", "call", "Traced(log)", "one")
    with pytest.raises(Dy2StaticError) as caught:
        to_static(f)(*CALLS[0])
    assert caught.value.code == "D2S229" and caught.value.location is not None
