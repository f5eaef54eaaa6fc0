"""Objects that count, log or store what they are asked: nobody but the program asks them, and as often as in eager."""

from __future__ import annotations

import contextlib
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.end_to_end import asked_objects
from tests.end_to_end.asked_objects import ASKED, HEAD, TAKEN
from tests.from_files import module_of

ASKING = ["Lookup", "Missing", "Class", "All"]
GIVING = ["Listed", "Yields", "ByPlace", "Own", "Odd", "Both", "Negative", "Whole", "Keys", "Apart"]
WHERE = {
    "argument": ("x, w", ""),
    "inside": ("x", "    w = {cls}(2.0)\n"),
    "global": ("x", "    w = G['w']\n"),
    "listed": ("x, ws", "    w = ws[0]\n"),
}
"""How the program comes by the object."""
AROUND = {
    "plain": "{body}",
    "branch": "    if x.sum() > 0:\n    {body}\n    else:\n        y = y - 1\n",
    "loop": "    n = 0\n    while n < x.sum() and n < 2:\n    {body}\n        n += 1\n",
    "after": "    if x.sum() > 0:\n        y = y * 2\n{body}\n    for _ in range(2):\n        y = y + 1\n",
}
PLACES = [("argument", "branch"), ("argument", "after"), ("inside", "loop"), ("inside", "plain"), ("global", "plain"),
          ("global", "loop"), ("listed", "branch")]  # fmt: skip
INPUTS = [torch.ones(2), torch.full((2,), 2.0), -torch.ones(2)]
CODES = ("D2S227", "D2S253", "D2S264", "D2S266", "D2S277")
"""What is refused: a change by code that is not converted, C code that would ask, the age of an object."""


def written(cls: str, body: str, where: str, around: str) -> str:
    parameters, found = WHERE[where]
    indent = "    " if around in ("plain", "after") else "        "
    lines = "\n".join(indent + line for line in body.split("\n"))
    block = AROUND[around].replace("    {body}" if indent == "        " else "{body}", lines)
    return (
        f"{HEAD}\n\ndef f({parameters}):\n    y = x * 1\n{found.format(cls=cls)}{block}\n"
        "    return y, object.__getattribute__(w, 'log'), object.__getattribute__(w, 'k')\n"
    )


def outcomes(module: Any, function: Callable[..., Any], cls: str, where: str) -> list[Any]:
    """What each call gives, prints and leaves noted."""
    owner = getattr(asked_objects, cls)(2.0)
    object.__getattribute__(owner, "log").clear()
    module.G["w"] = owner
    args = {"argument": (owner,), "listed": ([owner],)}.get(where, ())
    found: list[Any] = []
    for x in INPUTS:
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                y, log, k = function(x, *args)
        except Dy2StaticError:
            raise
        except Exception as error:  # what such a call has stored is not written back
            return [*found, type(error)]
        found.append((y.tolist(), list(log), k, re.sub("0x\\w+", "", printed.getvalue())))
    return found


def hold(cls: str, body: str, where: str, around: str, folder: Path) -> None:
    (folder / "asked.py").write_text(written(cls, body, where, around))
    module = module_of(folder / "asked.py")
    expected = outcomes(module, module.f, cls, where)
    try:
        found = outcomes(module, to_static(module.f), cls, where)
    except Dy2StaticError as error:
        assert error.code in CODES
        return
    assert found == expected


@pytest.mark.filterwarnings("ignore::dy2static.program_cache.RetraceWarning")
@pytest.mark.sample(6)
@pytest.mark.parametrize("where,around", PLACES)
@pytest.mark.parametrize("body", ASKED)
@pytest.mark.parametrize("cls", ASKING)
def test_who_asks(cls: str, body: str, where: str, around: str, tmp_path: Path) -> None:
    hold(cls, ASKED[body], where, around, tmp_path)


@pytest.mark.filterwarnings("ignore::dy2static.program_cache.RetraceWarning")
@pytest.mark.sample(8)
@pytest.mark.parametrize("where,around", PLACES)
@pytest.mark.parametrize("body", TAKEN)
@pytest.mark.parametrize("cls", GIVING)
def test_who_takes_the_items(cls: str, body: str, where: str, around: str, tmp_path: Path) -> None:
    hold(cls, TAKEN[body], where, around, tmp_path)


@pytest.mark.parametrize("cls", ASKING)
def test_later_calls_ask_no_more_than_the_first(cls: str) -> None:
    owner = getattr(asked_objects, cls)(2.0)

    def function(x: Any, w: Any) -> Any:
        return x * object.__getattribute__(w, "k")

    converted, log = to_static(function), object.__getattribute__(owner, "log")
    for x in (*INPUTS, torch.ones(3), torch.ones(4), torch.ones(2, requires_grad=True)):
        converted(x, owner)
    assert not log
