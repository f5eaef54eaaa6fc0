"""Lists that loops and branches fill with what is drawn: numbers, lists of draws, lists of what a draw has kept.

A list of one kind of items among other kinds gets items of a third kind: where it is another kind, there is no list.
"""

from __future__ import annotations

import itertools
import random
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import check

GENERATORS: dict[str, Callable[[], Any]] = {
    "Random": lambda: random.Random(3),
    "RandomState": lambda: np.random.RandomState(3),
    "default_rng": lambda: np.random.default_rng(3),
}
ITEMS = {
    "a number": "g.random()",
    "kept tensors": "[t for t in (x, x * 2) if g.random() < 0.5]",
    "kept numbers": "[n for n in (1, 2.5) if g.random() < 0.5]",
    "draws": "[g.random() for _ in range(2)]",
    "pairs": "[(g.random(), x) for _ in range(2)]",
    "one of several": "[n if g.random() < 0.5 else 'a' for n in (1, 2)]",
    "a pair of one of several": "(1, 'a' if g.random() < 0.5 else x)",
    "a pair": "(1, x * g.random())",
    "no draw": "x * 3",
}
WAYS = {
    "a loop in a branch": """
    if x.sum() > 0:
        for _ in range(int((x > 0).sum())):
            log.append({0})
    else:
        log.append({1})
    log.append({2})
""",
    "branches in a loop": """
    for _ in range(int((x > 0).sum())):
        if g.random() < 0.5:
            log.append({0})
        else:
            log.append({1})
    log.append({2})
""",
    "a while loop": """
    while g.random() < 0.6:
        log.append({0})
    if x.sum() > 0:
        log.append({1})
    for _ in range(2):
        log.append({2})
""",
    "a comprehension": """
    log = [({0} if g.random() < 0.5 else {1}) for _ in range(int((x > 0).sum()))]
    log.append({2})
""",
}
CASES = [(generator, way, *items) for generator in GENERATORS for way in WAYS
         for items in itertools.permutations(ITEMS, 3)]  # fmt: skip
WHERE_ROWS_WIDEN = [(generator, "a loop in a branch", "kept tensors", "a number", "draws") for generator in GENERATORS]
ALLOWED = ("D2S226", "D2S250", "D2S251", "D2S254", "D2S255")


def _program(case: tuple[str, ...], folder: Path) -> types.ModuleType:
    _, way, *items = case
    body = WAYS[way].format(*(ITEMS[item] for item in items))
    file = folder / f"draws_{abs(hash(case))}.py"
    file.write_text(f"def f(x, g):\n    log = []{body}    return log, g.random()\n")
    return module_of(file, file.stem)


def _check(case: tuple[str, ...], grad: bool, folder: Path) -> None:
    make, function = GENERATORS[case[0]], _program(case, folder).f
    static = to_static(function)
    values = ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [1.0, -0.5, 2.0])
    check(lambda x: function(x, make()), *([torch.tensor(one, requires_grad=grad)] for one in values),
          static=lambda x: static(x, make()), paths=("program",))  # fmt: skip


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("case", WHERE_ROWS_WIDEN, ids="-".join)
def test_rows_get_wider_where_there_are_some(case: tuple[str, ...], grad: bool, tmp_path: Path) -> None:
    _check(case, grad, tmp_path)


@pytest.mark.sample(400)
@pytest.mark.parametrize("case", CASES, ids="-".join)
def test_items_of_three_kinds(case: tuple[str, ...], tmp_path: Path) -> None:
    try:
        _check(case, CASES.index(case) % 2 == 0, tmp_path)
    except Exception as error:
        if getattr(error, "code", None) not in ALLOWED:
            raise
