"""Entries of heaps and lists, compared part by part: the last part is a tensor, or holds some, and nobody knows whether
two of these are one object. That matters where all parts before are equal, so only such a run may end for it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import check, check_saved

ITEMS = {
    "a number": "v", "a vector": "v * w", "a dict": "{'v': v, 'n': i}", "a pair": "(v, i)",
    "a named tuple": "Item(v * w, i)", "an object": "Box(v * w)",
}  # fmt: skip
USES = {
    "a heap": "heapq.heappush(kept, entry)", "a heap that stays small":
        "heapq.heappush(kept, entry)\nif len(kept) > 2:\n    heapq.heappop(kept)",
    "sorted each time": "kept.append(entry)\nkept.sort()",
    "the least": "kept.append(entry)\nkept[:] = [min(kept)]",
    "where there is none": "if entry not in kept:\n    kept.append(entry)",
}  # fmt: skip
PROGRAM = """
import heapq
from typing import NamedTuple
import torch

class Item(NamedTuple):
    value: torch.Tensor
    place: int

class Box:
    def __init__(self, value):
        self.value = value

def f(x, w):
    kept = []
    for i, v in enumerate(x):
        if v > 0:
            entry = (round(v.item(), 3), NUMBER, ITEM)
            USE
    return kept
"""
CALLS = [(torch.tensor(values), torch.tensor([1.0, 2.0])) for values in (
    [0.5, -1.0, 0.25, 2.0], [-0.5, -1.0, -2.0, 0.75], [3.0, 2.0, 1.0, 0.5], [-1.0, -1.0, -1.0, -1.0])]  # fmt: skip


def function(folder: Path, item: str, use: str, number: str = "i") -> Any:
    file = folder / "told_apart.py"
    use = use.replace("\n", "\n            ")
    file.write_text(PROGRAM.replace("NUMBER", number).replace("ITEM", item).replace("USE", use))
    return module_of(file).f


@pytest.mark.sample(18)
@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize(("item", "use"), [
    one for one in itertools.product(ITEMS, USES) if one != ("a vector", "sorted each time")])
def test_as_eager(item: str, use: str, needs_gradient: bool, tmp_path: Path) -> None:
    f = function(tmp_path, ITEMS[item], USES[use])
    calls = [(x.clone().requires_grad_(needs_gradient), w) for x, w in CALLS]
    check_saved(f, check(f, *calls), tmp_path / "f", *calls, gradient_tolerance=1e-6)


@pytest.mark.parametrize("item", ["v", "v[None]", "(v,)", "{'v': v}"])
def test_equal_entries_of_one_element(item: str, tmp_path: Path) -> None:
    """Single elements are compared as they are, whichever objects they are of."""
    f = function(tmp_path, item, "if entry not in kept:\n    kept.append(entry)", number="0")
    check(f, *CALLS, (torch.tensor([0.5, 0.5, 0.25, 0.5]), CALLS[0][1]), (torch.ones(4), CALLS[0][1]))


@pytest.mark.parametrize("item", ["v * w", "{'v': v * w}", "w"])
def test_equal_entries_of_several_elements(item: str, tmp_path: Path) -> None:
    """Where eager would have to know whether they are one object, the run ends."""
    f = function(tmp_path, item, "if entry not in kept:\n    kept.append(entry)", number="0")
    static = to_static(f)
    check(f, *CALLS, static=static)
    with pytest.raises(RuntimeError):
        static(torch.ones(4), CALLS[0][1])
