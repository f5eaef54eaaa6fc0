"""Managers that may be done with an exception, around what raises on some paths: classes, ``@contextmanager``, and
``contextlib.suppress``. On each path eager's handlers, and what follows, see what eager's see."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import check, check_saved

HELPERS = """
import contextlib
from contextlib import contextmanager, suppress

class Swallows:
    def __init__(self, log):
        self.log = log

    def __enter__(self):
        self.log.append("in")
        return 2

    def __exit__(self, kind, value, trace):
        self.log.append(str(value))
        return kind is not None and issubclass(kind, ValueError)

class Decides(Swallows):
    def __init__(self, log, x):
        self.log, self.x = log, x

    def __exit__(self, kind, value, trace):
        return self.x[0] < 0

@contextmanager
def catches(log):
    log.append("in")
    try:
        yield 3
    except ValueError as e:
        log.append(str(e))
    else:
        log.append("fine")
    finally:
        log.append("out")

@contextmanager
def tells(log):
    old = len(log)
    try:
        yield old
    finally:
        log.append(old)

@contextmanager
def plain(log):
    log.append("in")
    v = yield
    log.append(v)

@contextmanager
def turns(log):
    try:
        yield 1
    except ValueError as e:
        raise KeyError(str(e)) from e

@contextmanager
def decides(log, x):
    with torch.no_grad():
        log.append("none")
        try:
            y = x * 2
            yield y
        except ValueError:
            if x[0] < 0:
                raise
            log.append("done")

@contextmanager
def within(log):
    with Swallows(log) as k, catches(log):
        yield k
    log.append("within")

@contextmanager
def by_flag(log, flag):
    if flag:
        with tells(log), torch.no_grad():
            yield 1
        return
    else:
        with Swallows(log) as k:
            yield k
    log.append("end")

def checked(x, bound):
    total = x.sum()
    if total > bound:
        raise ValueError("over")
    if total < -bound:
        raise KeyError("under")
    return total

def f(x):
    log, y = [], x * 1
"""
MANAGERS = (
    "Swallows(log) as k", "Decides(log, x) as k", "catches(log) as k", "tells(log) as k", "plain(log)",
    "within(log) as k", "turns(log) as k", "decides(log, x) as k", "by_flag(log, True) as k",
    "by_flag(log, False) as k", "suppress(ValueError)", "suppress(ValueError) as k",
    "contextlib.suppress(KeyError, ValueError)", "catches(log), Swallows(log) as k",
    "suppress(KeyError), turns(log) as k", "torch.no_grad(), catches(log)",
)
BODIES = {
    "call": "y = checked(x, 10.0)", "then more": "y = checked(x, 10.0)\nlog.append('ok')\ny = y * 2",
    "raised": "if x.sum() > 10:\n    raise ValueError('big')\ny = x * 2",
    "two": "y = checked(x, 20.0)\ny = y + checked(x * 2, 20.0)", "returns": "return checked(x, 10.0), log",
    "loop inside": "for v in x:\n    y = y + checked(v, 8.0)\n    log.append('n')",
    "nested": "with tells(log):\n    y = checked(x, 10.0)\nlog.append('after')",
}  # fmt: skip
AROUND = {
    "alone": "{with_}return y, log",
    "handled": "try:\n    {with_}\n    log.append('left')\nexcept (KeyError, ValueError) as e:\n"
               "    log.append(str(e))\nreturn y, log",
    "in a loop": "for i in range(3):\n    x = x - 2\n    {with_}    if i == 1 and y.sum() > 3:\n        break\n"
                 "return y, log",
    "in a function": "def g(x):\n    y = x\n    {with_}    return y\nwith suppress(KeyError):\n    y = g(x)\n"
                     "return y, log",
}  # fmt: skip
CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0], [9.0, 5.0], [-9.0, -5.0], [200.0, 9.0], [-1.0, 14.0])]


def _indented(text: str, by: str) -> str:
    return text.replace("\n", "\n" + by)


def function(path: Path, manager: str, body: str, around: str) -> Any:
    text = AROUND[around]
    before = text[: text.index("{with_}")].rpartition("\n")[2]
    statement = _indented(f"with {manager}:\n    {_indented(BODIES[body], '    ')}", before) + "\n"
    path.write_text(HELPERS + "    " + _indented(text.replace("{with_}", statement), "    ") + "\n")
    names: dict[str, Any] = {"torch": torch}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(61)
@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize(("manager", "body", "around"), list(itertools.product(MANAGERS, BODIES, AROUND)))
def test_as_eager(manager: str, body: str, around: str, needs_gradient: bool, tmp_path: Path) -> None:
    f = function(tmp_path / "swallows.py", manager, body, around)
    calls = [(x.clone().requires_grad_(needs_gradient),) for (x,) in CALLS]
    check_saved(f, check(f, *calls), tmp_path / "f", *calls)


LOOKUPS = {
    "an index": "y = x[int(n)]", "a key": "y = {0: x, 3: x * 2}[int(n)]", "a division": "y = x * (6 // int(n))",
    "then more": "log.append(1)\ny = x[int(n)]\nlog.append(2)", "text": "y = x * int(str(int(n)) * 2)",
}  # fmt: skip


@pytest.mark.parametrize("caught", ["IndexError", "KeyError", "ZeroDivisionError", "LookupError, ArithmeticError"])
@pytest.mark.parametrize("lookup", LOOKUPS)
@pytest.mark.parametrize("entered", ["k", "log[0]", ""])
def test_what_operators_raise(entered: str, lookup: str, caught: str, tmp_path: Path) -> None:
    path = tmp_path / "looks.py"
    body = _indented(LOOKUPS[lookup], "        ")
    path.write_text("import contextlib\ndef f(x, n):\n    log, y, k = [5], x, 5\n"
                    f"    with contextlib.suppress({caught}){entered and f' as {entered}'}:\n        {body}\n"
                    "    return y, log, k\n")
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    calls = [(torch.tensor([1.0, 2.0]), torch.tensor(n)) for n in (0, 1, 3, -2, -5)]
    check_saved(names["f"], check(names["f"], *calls), tmp_path / "f", *calls)


OTHERS = {
    "another suppress": "class suppress(Swallows):\n    def __init__(self, *kinds):\n        self.log = list(kinds)\n",
    "made before": "def suppress(*kinds):\n    return contextlib.nullcontext(kinds)\n",
}


@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("entered", ["", " as k"])
def test_other_functions_of_that_name(entered: str, other: str, tmp_path: Path) -> None:
    path = tmp_path / "others.py"
    path.write_text(HELPERS.replace("def checked", OTHERS[other] + "\ndef checked") +
                    f"    k = None\n    with suppress(KeyError){entered}:\n        y = checked(x, 10.0)\n"
                    "    return y, log, type(k).__name__\n")
    names: dict[str, Any] = {"torch": torch}
    exec(compile(path.read_text(), str(path), "exec"), names)
    check_saved(names["f"], check(names["f"], *CALLS), tmp_path / "f", *CALLS)


STACKED = {
    "a class": "s.enter_context(Swallows(log))", "a generator": "s.enter_context(catches(log))",
    "a function": "s.push(lambda kind, value, trace: kind is ValueError)",
    "suppress": "s.enter_context(suppress(ValueError))",
}  # fmt: skip


def _stacked(tmp_path: Path, enters: str, body: str) -> Any:
    path = tmp_path / "stacked.py"
    path.write_text(f"{HELPERS}    with contextlib.ExitStack() as s:\n        {enters}\n        {body}\n"
                    "    return y, log\n")
    names: dict[str, Any] = {"torch": torch}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.parametrize("enters", STACKED)
def test_a_stack_is_told_of_no_values(enters: str, tmp_path: Path) -> None:
    """What a stack holds may swallow what is raised on a path: refused, as nobody tells it."""
    f = _stacked(tmp_path, STACKED[enters], "y = checked(x, 10.0)")
    for call in CALLS[:2]:
        with pytest.raises(Dy2StaticError) as caught:
            to_static(f)(*call)
        assert caught.value.code == "D2S229" and caught.value.location is not None


@pytest.mark.parametrize("enters", [
    *(one for name, one in STACKED.items() if name != "a generator"), "s.callback(log.append, 'end')",
    "s.enter_context(torch.no_grad())"])  # fmt: skip
def test_a_stack_where_nothing_is_raised(enters: str, tmp_path: Path) -> None:
    f = _stacked(tmp_path, enters, "y = x * 2 if x.sum() > 0 else x")
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)
