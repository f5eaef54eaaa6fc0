"""Context managers around what raises on some paths, in a ``try``: ``__exit__`` is told of the exception or of none."""

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

def f(x):
    log, box = [], {"scale": x * 1, "failed": 0}
"""
BODIES = {
    "call": "y = checked(x, 10.0)", "then more": "y = checked(x, 10.0)\nlog.append('ok')\ny = y * 2",
    "raised": "if x.sum() > 10:\n    raise ValueError('big')\ny = x * 2",
    "in a loop": "for k in range(2):\n    y = checked(x * (k + 1), 10.0)",
    "finally": "y = with_part(x, log)", "two": "y = checked(x, 20.0)\ny = y + checked(x * 2, 20.0)",
}  # fmt: skip
MANAGERS = ("Logged(log)", "Logged(log) as m", "Scaled(box) as b", "Logged(log, 'a'), Scaled(box)",
            "Scaled(box), Logged(log, 'b') as m", "torch.no_grad(), Logged(log)")
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
    path.write_text(f"{HELPERS}{inner}    return y, log, box\n")
    names: dict[str, Any] = {"torch": torch}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(7)
@pytest.mark.parametrize(("body", "manager", "handler"), list(itertools.product(BODIES, MANAGERS, HANDLERS)))
def test_as_eager(body: str, manager: str, handler: str, tmp_path: Path) -> None:
    f = function(tmp_path / "told.py", body, manager, handler)
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


def test_the_traceback_is_refused(tmp_path: Path) -> None:
    f = function(tmp_path / "told.py", "call", "Traced(log)", "one")
    with pytest.raises(Dy2StaticError) as caught:
        to_static(f)(*CALLS[0])
    assert caught.value.code == "D2S229" and caught.value.location is not None
