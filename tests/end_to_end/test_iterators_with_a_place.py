"""``itertools.count`` advanced on paths, ``iter`` of lists that grew, and what else walks items one by one."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from tests.oracle import check, check_saved

STARTS = ("", "3", "2, 3", "start=1", "step=2", "int(x[0])", "0.5, 0.25", "x[0].item()", "True")
COUNTED = {
    "on a path": "n = next(c)\nif x.sum() > 0:\n    n = next(c)\nreturn n, next(c)",
    "in a loop": "ids = []\nfor v in x:\n    if v > 0:\n        ids.append(next(c))\nreturn ids, next(c)",
    "until": "while x.sum() < 20:\n    x = x * 1.5 + 1 + next(c)\nreturn x, next(c)",
    "in both": "a = next(c) if x.sum() > 0 else -next(c)\nreturn a, next(c), [next(c) for _ in range(2)]",
    "in a function": "def fresh(v):\n    return next(c) if v > 0 else None\nreturn [fresh(v) for v in x], next(c)",
    "in an object": "class Ids:\n    def __init__(self):\n        self.all = c\n    def take(self, v):\n"
                    "        return next(self.all) if v > 1 else 0\ni = Ids()\nreturn [i.take(v) for v in x], next(c)",
    "by its method": "if x.sum() > 0:\n    c.__next__()\nreturn next(c)",
    "of two": "d = itertools.count(5)\nif x.sum() > 0:\n    c, d = d, c\nreturn next(c), next(d)",
    "as a default": "from collections import defaultdict\nids = defaultdict(lambda: next(c))\nfor v in x:\n"
                    "    if v > 0:\n        ids['p']\n    ids['q']\nreturn dict(ids)",
}  # fmt: skip
GROWN = {
    "first": "return next(iter(g))", "two": "it = iter(g)\nreturn next(it), next(it, None), next(it, 5)",
    "otherwise": "it = iter(g)\na = [next(it, -1) for _ in range(9)]\nreturn a",
    "on a path": "it = iter(g)\na = next(it)\nif x.sum() > 0:\n    a = a + next(it, 1)\nreturn a, next(it, 2)",
    "longer at its end": "it = iter(g)\nfor _ in range(9):\n    next(it, 0)\ng.append(7)\n"
                         "return next(it, None), len(g)",
    "longer before": "it = iter(g)\na = next(it)\ng.append(7)\nwhile a != 7:\n    a = next(it)\nreturn a",
    "of a tuple": "it = iter(tuple(g))\nreturn next(it), next(it, None)",
    "itself": "it = iter(g)\nreturn next(iter(it)), next(it, None)",
    "too many": "it = iter(g)\nreturn [next(it) for _ in range(4)]",
    "in a loop": "it = iter(g)\nn = 0\nwhile n < 2:\n    n = n + 1 if next(it, 0) > 3 else n + 2\n"
                 "return n, next(it, 0)",
}  # fmt: skip
CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [3.0, 3.0, 3.0], [1.0, -2.0, 3.0])]


def function(tmp_path: Path, text: str) -> Any:
    path = tmp_path / "walks.py"
    path.write_text("import itertools\nimport torch\ndef f(x):\n    " + text.replace("\n", "\n    ") + "\n")
    names: dict[str, Any] = {"__name__": "walks"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    return names["f"]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("use", "start"), list(itertools.product(COUNTED, STARTS)))
def test_counters(use: str, start: str, tmp_path: Path) -> None:
    f = function(tmp_path, f"c = itertools.count({start})\n{COUNTED[use]}")
    try:
        check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)
    except Dy2StaticError as error:
        assert use in ("of two", "as a default", "in an object"), error
        assert error.location is not None


@pytest.mark.parametrize("kind", ["number", "tensor"])
@pytest.mark.parametrize("use", GROWN)
def test_grown_lists(use: str, kind: str, tmp_path: Path) -> None:
    grown = "x.sum().item()" if kind == "number" else "x.sum()"
    makes = f"g = []\ny = x\nwhile x.sum() < 20:\n    x = x * 1.5 + 1\n    g.append({grown})\n"
    f = function(tmp_path, makes + GROWN[use])
    try:
        check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)
    except Dy2StaticError as error:
        assert kind == "tensor" and error.location is not None, error  # with a number in its place where there is none


@pytest.mark.parametrize("given", ["c", "[c]", "iter(g)"])
def test_they_do_not_leave(given: str, tmp_path: Path) -> None:
    f = function(tmp_path, "c = itertools.count()\ng = []\nwhile x.sum() < 20:\n    x = x + next(c) + 1\n"
                           f"    g.append(1)\nreturn x, {given}")  # fmt: skip
    with pytest.raises(Dy2StaticError) as caught:
        to_static(f)(*CALLS[0])
    assert caught.value.code == "D2S266"


ORDERED = """
@functools.total_ordering
class Node:
    def __init__(self, cost, name):
        self.cost, self.name = cost, name

    def __eq__(self, other):
        return self.cost == other.cost

    def {0}(self, other):
        return self.cost {1} other.cost

def f(x):
    a, b, c = (Node(v.item(), i) for i, v in enumerate(x))
    first = a if a >= b else b
    return [a < b, a <= b, a > b, a >= b, b >= a, a == b, a != c], first.name, min(a, b, c).name, max(b, c).name, [
        one.name for one in sorted([a, b, c])]
"""


@pytest.mark.parametrize(("method", "sign"), [("__lt__", "<"), ("__le__", "<="), ("__gt__", ">"), ("__ge__", ">=")])
def test_total_ordering(method: str, sign: str, tmp_path: Path) -> None:
    path = tmp_path / "ordered.py"
    path.write_text("import functools\n" + ORDERED.format(method, sign))
    names: dict[str, Any] = {"__name__": "ordered"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    check_saved(names["f"], check(names["f"], *CALLS), tmp_path / "f", *CALLS)


@pytest.mark.parametrize("name", ["frexp", "modf"])
def test_pairs_of_math(name: str, tmp_path: Path) -> None:
    f = function(tmp_path, f"import math\na, b = math.{name}(x[0].item())\nreturn a, b, math.{name}(x[1]), "
                           f"math.{name}(int(x[0]) * 3)")  # fmt: skip
    calls = [(torch.tensor(one),) for one in ([1.0, -2.5], [-0.0, 0.75], [1e-40, -0.1], [7.0, float("inf")])]
    check_saved(f, check(f, *calls), tmp_path / "f", *calls)
