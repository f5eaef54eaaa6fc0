"""What Python says of a star, or two, in front of what has no items: it names the function that is called."""

from __future__ import annotations

import re
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import difference

VALUES = ("None", "3", "torch.device('cpu')", "'ab'", "[1]", "int(x.sum())", "float(x.sum())", "object()", "x",
          "{'k': 1}", "iter([1])", "bool(x.sum() > 0)")  # fmt: skip
CALLS = ("taking(*{0})", "taking(**{0})", "taking(1, *{0}, z=2)", "(lambda *a, **k: len(a))(*{0})", "Owner(**{0})",
         "Owner().method(*{0})", "Owner()(**{0})", "len(*{0})", "len(**{0})", "torch.add(*{0})", "max(1, *{0})",
         "(*{0}, 1)", "[*{0}]")  # fmt: skip
HEAD = """
import torch
def taking(*args, **kwargs):
    return len(args), sorted(kwargs)
class Owner:
    def __eq__(self, other):
        return type(other).__name__ == "Owner"
    def __init__(self, *args, **kwargs):
        pass
    def method(self, *args, **kwargs):
        return len(args)
    def __call__(self, *args):
        return 1
"""


def _outcome(function: Any) -> Any:
    try:
        return function(torch.ones(2))
    except Exception as error:
        return type(error).__name__, re.sub("0x[0-9a-f]+", "", str(error).split("\n")[0])


@pytest.mark.parametrize("value", VALUES)
def test_it_names_the_callee(tmp_path: Path, value: str) -> None:
    lines = [f"def function{number}(x):\n    return x * 1, {call.format(value)}\n" for number, call in enumerate(CALLS)]
    (tmp_path / "words_of_stars.py").write_text(HEAD + "".join(lines))
    module = module_of(tmp_path / "words_of_stars.py")
    for number, call in enumerate(CALLS):
        function = getattr(module, f"function{number}")
        assert not difference(_outcome(to_static(function)), _outcome(function)), call


def test_outside_of_a_trace() -> None:
    def function(x: Any, given: Any) -> Any:
        return dict(**given)

    with pytest.raises(TypeError, match=r"^dict\(\) argument after \*\* must be a mapping, not int$"):
        to_static(function).code  # converts it
        to_static(function)(torch.ones(2), 3)


Pair = namedtuple("Pair", "a b")


def test_the_text_of_a_namedtuple() -> None:
    def function(x: torch.Tensor) -> Any:
        pair = Pair(int(x.sum()), [float(x[0])])
        return str(pair), f"{pair}", repr((pair, 1)), f"{pair!r:>40}"

    for x in (torch.ones(2), torch.zeros(2)):
        assert to_static(function)(x) == function(x)
