"""Sets, Counters and dicts of lists that a loop makes as long as a tensor decides, whose items are known, or one of
several known ones: names of what was done, of classes, of branches."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.from_files import module_of
from tests.oracle import check, check_saved

ITEMS = {
    "one text": "a = 'keep'", "two texts": "a = 'up' if v > 1 else 'down'", "some": "a = 'up'\nif v < 0:\n    continue",
    "three": "a = 'up' if v > 1 else ('down' if v < 0 else 'same')", "whole numbers": "a = 1 if v > 1 else 0",
    "flags": "a = True if v > 1 else False", "none": "a = None if v > 1 else 'down'",
    "pairs": "a = ('up', 1) if v > 1 else ('down', 0)", "a text of the run": "a = 'up' if v > 1 else str(int(v))",
}  # fmt: skip
USES = {
    "counted": "Counter(done)", "most common": "Counter(done).most_common(2)", "a set": "set(done)",
    "how many": "len(set(done)), len(Counter(done))", "added": "Counter(done) + Counter(done[:1])",
    "updated": "counts.update(done) or counts", "a dict": "dict(zip(done, range(9)))", "keys": "dict.fromkeys(done, 0)",
    "reversed": "Counter(reversed(done))", "asked": "'up' in set(done), Counter(done)['up']",
    "joined": "{*done}",
}  # fmt: skip
CALLS = [(torch.tensor(values), torch.tensor(n)) for n in (0, 2, 4) for values in (
    [2.0, -1.0, 0.5, 3.0], [2.0, 2.0, 2.0, 2.0], [-1.0, -1.0, 0.0, -2.0])]  # fmt: skip


def function(folder: Path, item: str, use: str) -> Any:
    file = folder / "counted.py"
    item = item.replace("\n", "\n        ")
    file.write_text("from collections import Counter\ndef f(x, n):\n    done, i = [], 0\n    counts = Counter()\n"
                    f"    while i < n:\n        v = x[i]\n        i += 1\n        {item}\n        done.append(a)\n"
                    f"    return {use}\n")  # fmt: skip
    return module_of(file).f


@pytest.mark.sample(7)
@pytest.mark.parametrize(("item", "use"), list(itertools.product(ITEMS, USES)))
def test_as_eager(item: str, use: str, tmp_path: Path) -> None:
    f = function(tmp_path, ITEMS[item], USES[use])
    check_saved(f, check(f, *CALLS), tmp_path / "f", *CALLS)
