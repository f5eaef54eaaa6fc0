"""Lists, deques and dicts of which a branch chose the content, changed by functions that are Python of several steps
inside: ``insert`` and ``pop`` at a number of the run, heaps, bisection, ``map`` of a method. Each step sees the one
before."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.from_files import module_of
from tests.oracle import check, check_saved

STEPS = {
    "insert": "k.insert(n, new)", "pop": "k.pop(n % len(k))", "pop twice": "k.pop(n % len(k))\nk.insert(n, new)",
    "of the class": "list.insert(k, n, new)", "a method read before": "m = k.insert\nm(n, new)",
    "partial": "functools.partial(list.insert, k)(n, new)", "map": "list(map(k.append, [new, new]))",
    "push": "heapq.heappush(k, new)", "heapify": "k.append(new)\nheapq.heapify(k)",
    "replace": "heapq.heapreplace(k, new)", "pushpop": "heapq.heappushpop(k, new)",
    "insort": "bisect.insort(k, new)", "by a key": "bisect.insort(k, new, key=lambda e: e[0])",
    "sort": "k.append(new)\nk.sort()", "remove": "k.remove(k[n % len(k)])",
    "stored": "k[n % len(k)] = new\nk[0] = k[-1]",
    "reduce": "functools.reduce(lambda a, e: (a.insert(n, e), a)[1], [new, new], k)",
    "in a loop": "for i in range(n):\n    k.insert(i, new)", "part": "k[n % len(k):] = [new]\ndel k[:n % len(k)]",
}  # fmt: skip
ITEMS = {"a dict": "({v}, {{'n': {i}}})", "a list": "({v}, [{i}])", "a number": "({v}, {i})",
         "both": "({v}, ({i}, {{'n': {i}}}))", "tensors": "({v}, {{'x': x * {i}}})"}  # fmt: skip
AROUND = {
    "one branch": "k = [A]\nif x[0] > 0:\n    k.append(B)\nSTEPS\nreturn k, len(k)",
    "two branches": "k = [A]\nif x[0] > 0:\n    k.append(B)\nif x[1] > 0:\n    k.append(C)\nSTEPS\nreturn k",
    "on a path": "k = [A]\nif x[0] > 0:\n    k.append(B)\nif x[1] > 0:\n    STEPS\nreturn k",
    "in another list": "h = {'k': [A]}\nif x[0] > 0:\n    h['k'].append(B)\nk = h['k']\nSTEPS\nreturn h",
}
CALLS = [(torch.tensor(values), torch.tensor(n)) for n in (0, 1, 2) for values in (
    [1.0, 2.0, 3.0, 0.5], [-1.0, -2.0, 3.0, 7.0], [1.0, -2.0, 0.125, 0.25], [-1.0, 2.0, 5.0, 1.0])]  # fmt: skip


def _indented(text: str, by: str) -> str:
    return text.replace("\n", "\n" + by)


def function(folder: Path, steps: str, item: str, around: str) -> Any:
    text = around
    for name, (value, number) in {"A": ("x[2]", 0), "B": ("x[0]", 1), "C": ("x[1]", 2)}.items():
        text = text.replace(name, item.format(v=f"{value}.item()", i=number))
    before = text[: text.index("STEPS")].rpartition("\n")[2]
    text = text.replace("STEPS", _indented(steps, before))
    new = item.format(v="x[3].item()", i=9)
    file = folder / "changed.py"
    file.write_text("import bisect, functools, heapq\ndef f(x, n):\n    n = n.item()\n"
                    f"    new = {new}\n    {_indented(text, '    ')}\n")  # fmt: skip
    return module_of(file).f


@pytest.mark.sample(38)
@pytest.mark.parametrize(("steps", "item", "around"), list(itertools.product(STEPS, ITEMS, AROUND)))
def test_as_eager(steps: str, item: str, around: str, tmp_path: Path) -> None:
    f = function(tmp_path, STEPS[steps], ITEMS[item], AROUND[around])
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("steps", ["push", "insert", "pop", "insort"])
def test_with_gradients(steps: str, needs_gradient: bool, tmp_path: Path) -> None:
    f = function(tmp_path, STEPS[steps], ITEMS["tensors"], AROUND["one branch"])
    calls = [(x.clone().requires_grad_(needs_gradient), n) for x, n in CALLS]
    check(f, *calls)
