"""A ``range`` whose length only the run knows, where Python takes all its numbers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check

USES: dict[str, Callable[[int], Any]] = {
    "list": lambda n: (list(range(n)), tuple(range(n)), deque(range(n)), deque(range(n), 2)),
    "displays": lambda n: ([*range(n)], (*range(n),), [*range(n), 5, *[n]], [*range(n, 0, -2), *range(-n, n, 3)]),
    "other iterators": lambda n: ([*zip(range(n), "abcdefg")], [*enumerate(range(n))], [*map(str, range(n))]),
    "reversed": lambda n: ([*reversed(range(n))], list(reversed(range(n)))),
    "sorted": lambda n: (sorted(range(n)), sorted(range(n), reverse=True), sorted(range(n), key=lambda v: -v)),
    "folded": lambda n: (sum(range(n)), max([*range(n), 0]), min(range(n), default=3), all(range(n)), any(range(n))),
    "joined": lambda n: (",".join(map(str, range(n))), "".join(f"<{v}>" for v in range(n)), "-".join([*"ab"])),
    "comprehensions": lambda n: ([v for v in [*range(n)] if v % 2], [[*range(i)] for i in range(3)]),
    "starred targets": lambda n: [(a, b, c) for a, b, *c in [range(n) if n > 2 else (1, 2)]],
}
INPUTS = ((torch.tensor([2.0, 1.0]),), (torch.tensor([-3.0, 1.25]),), (torch.tensor([3.0, 2.5]),))


@pytest.mark.parametrize("use", USES)
def test_as_eager(use: str) -> None:
    def f(x: Any) -> Any:
        return USES[use](int(x.sum()))

    check(f, *INPUTS)


def test_a_display_is_a_list_like_others() -> None:
    def f(x: Any) -> Any:
        n, total = int(x.sum()), 0
        items = [*range(n)]
        items.append(9)
        items[0] = 5
        for item in [*items, 7]:
            total = total + item
        return items, len(items), total

    check(f, *INPUTS)
