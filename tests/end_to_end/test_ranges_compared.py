"""``range(n)``, of a number that a tensor decides, compared with ranges: they are equal if they give the same items."""

from __future__ import annotations

import operator
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check

INPUTS = [torch.tensor(values) for values in (
    [1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [-1.0, -1.0, -1.0], [1.0, 2.0, -1.0])]  # fmt: skip

USES: list[Callable[[Any, Any], Any]] = [
    lambda x, n: x * 2 if range(n) == range(3) else x,
    lambda x, n: (range(n) == range(3), range(n) == range(False), range(n) != range(2), range(0) == range(n)),
    lambda x, n: (operator.eq(range(n), range(3)), operator.ne(range(2), range(n))),
    lambda x, n: (range(3) in [range(n)], range(n) in (range(2), range(3)), range(n) not in deque([range(1)])),
    lambda x, n: ((range(n), 1) == (range(3), 1), {"r": range(n)} == {"r": range(3)}, [[range(n)]] != [[range(1)]]),
    lambda x, n: ([range(n)].index(range(3)) if n == 3 else -1, [range(n), range(3)].count(range(3))),
    lambda x, n: (range(0, n, 2) == range(0, 4, 2), range(5, 5 + n) == range(n), range(n, 0, -1) == range(3, 0, -1)),
    lambda x, n: (range(n) == range(n), range(n + 1) == range(n), range(0, 3, n + 1) == range(0, 3, 4)),
    lambda x, n: (range(n) == [0, 1, 2], range(n) == 3, range(n) is None, range(3).__eq__(range(n))),
    lambda x, n: range(3).__ne__(range(n)),
    lambda x, n: [range(n), 1] < [range(3), 2] if n == 3 else x,
    lambda x, n: x if (range(n) if n > 1 else range(1)) == range(3) else -x,
    lambda x, n: [x * i for i in range(n) if range(i) != range(1)],
]


@pytest.mark.parametrize("number", range(len(USES)))
@pytest.mark.parametrize("grad", [False, True])
def test_uses(number: int, grad: bool) -> None:
    use = USES[number]

    def function(x: torch.Tensor) -> Any:
        return use(x, int((x > 0).sum()))

    check(function, *((x.clone().requires_grad_(grad),) for x in INPUTS), paths=("program",))


REFUSED: list[Callable[[Any, Any], Any]] = [
    lambda x, n: hash(range(n)) == hash(range(n)), lambda x, n: {range(3): "three"}.get(range(n), "other"),
    lambda x, n: {range(n)} == {range(3)}, lambda x, n: range(n) in {range(3)},
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_none_is_hashed(number: int) -> None:
    use = REFUSED[number]

    def function(x: torch.Tensor) -> Any:
        return use(x, int((x > 0).sum()))

    with pytest.raises(TraceError, match="D2S261"):
        to_static(function)(INPUTS[0])
