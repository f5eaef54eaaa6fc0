"""Operators that give back the tensor that they were given: a write to it is one to the leaf, and says so."""

from __future__ import annotations

import pytest
import torch

from dy2static import to_static
from tests.oracle import check

SAME = {
    "float": lambda x: x.float(), "to": lambda x: x.to(torch.float32), "real": lambda x: x.real, "plus": lambda x: +x,
    "positive": lambda x: x.positive(), "flatten": lambda x: x.flatten(), "contiguous": lambda x: x.contiguous(),
    "twice": lambda x: x.float().flatten(), "resolve": lambda x: x.resolve_conj(), "of a row": lambda x: x[:2].float(),
    "at least": lambda x: torch.atleast_1d(x), "type_as": lambda x: x.type_as(x), "reshape": lambda x: x.reshape(3),
    "view": lambda x: x[:], "expand": lambda x: x.expand(3), "conj": lambda x: x.conj(),
}  # fmt: skip


@pytest.mark.parametrize("on_a_path", [False, True])
@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_a_write_says_what_it_writes(make, on_a_path):
    def f(x, c):
        z = make(x)
        if on_a_path and c > 0:
            z = z * 2
        z.add_(1)
        return z

    said = []
    for function in (f, to_static(f)):
        with pytest.raises(RuntimeError) as error:
            function(torch.ones(3, requires_grad=True), torch.tensor(-1.0))
        said.append(str(error.value).splitlines()[0])
    assert said[0] == said[1]


@pytest.mark.parametrize("make", SAME.values(), ids=SAME)
def test_it_is_written_where_that_may_be(make):
    def f(x, c):
        y = x * 1
        z = make(y)
        z.mul_(3)
        if c > 0:
            z[0] = 7
        return y, z, z is y

    check(f, (torch.ones(3), torch.tensor(1.0)), (torch.ones(3), torch.tensor(-1.0)))
