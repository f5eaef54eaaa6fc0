"""What operators say of calls that are wrong whatever a staged number among the arguments is: eager's own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from dy2static import to_static
from tests.oracle import check

Call = Callable[[torch.Tensor, int], Any]
WRONG: dict[str, Call] = {
    "arange without a step": lambda x, n: torch.arange(0, n, 0),
    "linspace of bools": lambda x, n: torch.linspace(0, 1, n, dtype=torch.bool),
    "add of other sizes": lambda x, n: torch.add(x, torch.ones(2), alpha=n),
    "narrow of no dimension": lambda x, n: torch.narrow(x, 5, 0, n),
    "full of a negative size": lambda x, n: torch.full((n, -3), 1.0),
    "tril_indices of negative rows": lambda x, n: torch.tril_indices(-1, n),
    "triu_indices of negative rows": lambda x, n: torch.triu_indices(-1, n),
    "eye of negative columns": lambda x, n: torch.eye(n, -1),
    "repeat_interleave of no dimension": lambda x, n: x.repeat_interleave(n, dim=4),
    "roll of no dimension": lambda x, n: torch.roll(x, n, 3),
    "diag_embed in one dimension": lambda x, n: torch.diag_embed(x, n, 0, 0),
    "baddbmm of vectors": lambda x, n: torch.baddbmm(x, x, x, beta=n),
    "multinomial of a cube": lambda x, n: torch.multinomial(x.reshape(1, 1, 3).abs(), n),
    "kthvalue of no dimension": lambda x, n: torch.kthvalue(x, n, dim=3),
    "topk of no dimension": lambda x, n: torch.topk(x, n, dim=3),
    "split of no dimension": lambda x, n: torch.split(x, n, dim=3),
    "rot90 in one dimension": lambda x, n: torch.rot90(x, n, (0, 0)),
    "a window of ints": lambda x, n: torch.bartlett_window(n, dtype=torch.int64),
    "pooling of a vector": lambda x, n: F.avg_pool2d(x, n),
}
SETTLED: dict[str, Call] = {
    "linspace": lambda x, n: torch.linspace(0, 1, n - 2),
    "logspace": lambda x, n: torch.logspace(0, 1, n - 3),
    "ones": lambda x, n: torch.ones(n - 2),
    "enough for linspace": lambda x, n: torch.linspace(0, 1, n + 2),
    "arange": lambda x, n: torch.arange(0, n * 3),
    "indices": lambda x, n: torch.tril_indices(n + 1, n + 2),
    "window": lambda x, n: torch.hamming_window(n + 3),
    "repeated": lambda x, n: x.repeat_interleave(n + 1),
    "one_hot": lambda x, n: F.one_hot(torch.tensor([0, 1]), n + 1),
}
"""Calls with a number that is 1 for every call, as was asked of it before."""


@pytest.mark.parametrize("on_a_path", [False, True])
@pytest.mark.parametrize("name", WRONG)
def test_wrong_whatever_the_number_is(name: str, on_a_path: bool) -> None:
    wrong = WRONG[name]

    def function(x: torch.Tensor) -> Any:
        n = int(x.sum())
        if on_a_path:
            if x[0] > 0:
                return wrong(x, n)
            return x
        return wrong(x, n)

    check(to_static(function), (torch.tensor([1.0, -1.0, 3.0]),), (torch.tensor([-1.0, 1.0, 3.0]),))


@pytest.mark.parametrize("on_a_path", [False, True])
@pytest.mark.parametrize("name", SETTLED)
def test_a_number_that_is_the_same_for_every_call(name: str, on_a_path: bool) -> None:
    call = SETTLED[name]

    def function(x: torch.Tensor) -> Any:
        n = int((x > 0).sum())
        if on_a_path:
            if x[0] > 0:
                torch.ones(n)
                x.reshape(n, 3)
                return call(x, n)
            return x
        torch.ones(n)
        x.reshape(n, 3)
        return call(x, n)

    check(to_static(function), (torch.tensor([1.0, -1.0, -3.0]),), *([(torch.tensor([-1.0, 1.0, 3.0]),)] * on_a_path))
