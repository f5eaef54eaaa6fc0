"""Lists from outside that calls add to: nothing is traced again once they were seen changing, and whoever looks at one
sees what eager sees."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import difference

HEAD = """
import torch

LOG = []
NESTED = [[], {"log": []}]


class Owner:
    def __init__(self):
        self.log = []
        self.other = self.log


class Logs(list):
    pass


OWNER = Owner()
SUBCLASS = Logs()


def put(items, value):
    items.append(value)


def f(x):
"""
ADDS = {
    "append": "LOG.append(x.sum())\nreturn x * 2",
    "numbers": "LOG.append(x.sum().item())\nLOG.append(1)\nreturn x",
    "a path": "if x.sum() > 0:\n    LOG.append(x.sum())\nreturn x * 2",
    "two paths": "if x.sum() > 0:\n    LOG.append(x)\nelse:\n    LOG.append(-x)\n    LOG.append(x)\nreturn x * 2",
    "loop": "while x.sum().abs() < 20:\n    x = x * 2\n    LOG.append(x.sum())\nreturn x",
    "for": "for i in range(3):\n    LOG.append(i)\nreturn x",
    "extend": "LOG.extend([1, x])\nLOG.extend(v for v in (2, 3))\nreturn x",
    "plus": "global LOG\nLOG += [x.sum()]\nLOG += (1,)\nreturn x",
    "attribute": "OWNER.log.append(x.sum())\nreturn x",
    "by two names": "OWNER.log.append(1)\nOWNER.other.append(2)\nreturn x",
    "nested": "NESTED[0].append(x.sum())\nNESTED[1]['log'].append(2)\nreturn x",
    "local name": "log = LOG\nlog.append(x)\nadd = log.append\nadd(3)\nreturn x",
    "function": "put(LOG, x)\nput(OWNER.log, 2)\nreturn x",
    "unbound": "list.append(LOG, x)\nreturn x",
    "lists": "LOG.append([x, {'a': 1}])\nreturn x",
    "own list": "mine = [x]\nLOG.append(mine)\nmine.append(1)\nreturn x",
    "raises": "LOG.append(1)\nif x.sum() > 100:\n    raise ValueError('no')\nreturn x",
    "identity": "LOG.append(1)\nreturn x, OWNER.log is OWNER.other, LOG is OWNER.log",
}
LOOKS = {
    "len": "LOG.append(x)\nreturn len(LOG)", "last": "LOG.append(x)\nreturn LOG[-1] * 2",
    "first": "LOG.append(x.sum())\nreturn LOG[0]", "iterate": "LOG.append(x.sum())\nreturn sum(v for v in LOG)",
    "truth": "r = 1 if LOG else 2\nLOG.append(x)\nreturn r", "in": "LOG.append(1)\nreturn 1 in LOG",
    "returned": "LOG.append(1)\nreturn LOG", "equal": "LOG.append(1)\nreturn LOG == [1]",
    "slice": "LOG.append(x)\nreturn LOG[-2:]", "copy": "LOG.append(1)\nreturn LOG.copy()",
    "pop": "LOG.append(1)\nLOG.append(2)\nreturn LOG.pop()", "insert": "LOG.insert(0, x)\nreturn x",
    "clear": "LOG.append(x)\nif x.sum() > 0:\n    LOG.clear()\nreturn x",
    "stack": "OWNER.log.append(x)\nreturn torch.stack(OWNER.log[-1:])",
    "set item": "LOG.append(1)\nLOG[0] = 3\nreturn x", "delete": "LOG.append(1)\ndel LOG[0]\nreturn x",
    "starred": "LOG.append(1)\nreturn max(*LOG, 2)", "unpacked": "LOG.append(1)\na, *b = LOG\nreturn a, b",
    "text": "LOG.append(1)\nreturn str(LOG)", "sorted": "LOG.append(1)\nreturn sorted(LOG)",
    "itself": "LOG.append(1)\nLOG.extend(LOG[:1])\nreturn x", "stored": "LOG.append(1)\nOWNER.kept = LOG\nreturn x",
    "on a path": "LOG.append(1)\nif x.sum() > 0:\n    return len(LOG)\nreturn 0",
    "zip": "LOG.append(1)\nreturn list(zip(LOG, LOG))",
    "times": "LOG.append(1)\nreturn LOG * 2", "sum": "LOG.append(x.sum())\nreturn torch.tensor(1) + sum(LOG)",
    "print": "LOG.append(1)\nprint(LOG)\nreturn x", "reversed": "LOG.append(1)\nreturn list(reversed(LOG))",
    "subclass": "SUBCLASS.append(x)\nreturn len(SUBCLASS)",
}  # fmt: skip
ALL = {**ADDS, **LOOKS}


def _module(name: str, folder: Path) -> ModuleType:
    text = HEAD + "".join(f"    {line}\n" for line in ALL[name].split("\n"))
    (folder / "added_to.py").write_text(text)
    return module_of(folder / "added_to.py")


def _called(module: ModuleType, function: Callable[..., Any], number: int) -> Any:
    """What a call gives and leaves, with changes from outside between some calls."""
    if number == 5:
        module.LOG.append(7)
    elif number == 7:
        del module.LOG[:]
        module.OWNER.log.clear()
    elif number == 9:
        module.OWNER.log = [3]
    x = torch.full((2,), 1.0 + number) * (-1 if number % 3 == 2 else 1)
    result = function(x)
    left = module.LOG, module.OWNER.log, module.OWNER.other, module.NESTED, list(module.SUBCLASS)
    return result, left, vars(module.OWNER).get("kept") is module.LOG


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("name", ALL)
def test_each_call_leaves_what_eager_leaves(name: str, tmp_path: Path) -> None:
    (tmp_path / "eager").mkdir()
    eager, module = _module(name, tmp_path / "eager"), _module(name, tmp_path)
    converted: Any = to_static(module.f)
    for number in range(12):
        expected, got = _called(eager, eager.f, number), _called(module, converted, number)
        assert not difference(got, expected), number


@pytest.mark.parametrize("name", ADDS)
def test_no_call_after_the_third_is_traced(name: str, tmp_path: Path) -> None:
    module = _module(name, tmp_path)
    converted: Any = to_static(module.f)
    for number in range(3):
        converted(torch.full((2,), 1.0 + number))
    before = len(converted.programs)
    for number in range(3, 12):
        converted(torch.full((2,), 1.0 + number))
    assert len(converted.programs) == before


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")  # the list has two contents
def test_a_list_that_is_read_takes_nothing_from_numbers() -> None:
    """A number that changes stays an input of one Program, though a list beside it has to be looked at."""
    class Counter:
        step = 0

    seen: list[int] = []

    def reads(x: Any) -> Any:
        Counter.step += 1
        if len(seen) > 100:
            raise ValueError("full")
        seen.append(1)
        seen.pop()
        return x * Counter.step

    converted: Any = to_static(reads)
    for number in range(8):
        seen[:] = [0] * (number % 2)
        assert torch.equal(converted(torch.ones(2)), torch.ones(2) * (number + 1))
    assert len(converted.programs) <= 6
