"""Parts and views of tensors whose size, rank or place in memory depends on the path: a write reaches what eager's
does.

Each function runs on inputs that take either path, with sizes that change; what a Program cannot tell is refused.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import same

CHOICES = {
    "rows": lambda x, c: x[1:] if c else x,
    "another rank": lambda x, c: x[0] if c else x,
    "transposed": lambda x, c: x.t() if c else x,
    "flat": lambda x, c: x.view(-1) if c else x,
    "a copy": lambda x, c: x.clone() if c else x,
}
VIEWS = {
    "chunk": lambda y: y.chunk(2)[0],
    "last chunk": lambda y: y.chunk(2)[-1],
    "tensor_split": lambda y: y.tensor_split(2)[0],
    "split": lambda y: y.split(1)[0],
    "unbind": lambda y: y.unbind()[0],
    "meshgrid": lambda y: torch.meshgrid(y.flatten(), indexing="ij")[0],
    "atleast_3d": lambda y: torch.atleast_3d(y),
    "flatten": lambda y: y.flatten(),
    "contiguous": lambda y: y.contiguous(),
    "reshape twice": lambda y: y.reshape(-1).reshape(-1),
    "unsqueeze": lambda y: y.unsqueeze(0),
    "broadcast_tensors": lambda y: torch.broadcast_tensors(y, y)[0],
    "narrow": lambda y: y.narrow(0, 0, 1),
}
WRITES = {
    "the view": lambda x, r: r.mul_(3),
    "the whole": lambda x, r: x.mul_(3),
    "an item": lambda x, r: r.view(-1)[:1].fill_(7) if r.is_contiguous() else r.mul_(2),
}


def _call(f: Any, x: torch.Tensor) -> tuple[Any, torch.Tensor]:
    x = x.clone()
    try:
        return f(x), x
    except TraceError:
        raise
    except RuntimeError as error:
        return str(error).split("(")[0], x


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("write", ["the view", "the whole"])
def test_a_write_reaches_what_it_is_a_part_of(choice, view, write):
    choose, take, put = CHOICES[choice], VIEWS[view], WRITES[write]

    def kept(x):
        y = choose(x, x.sum() > 4)
        r = take(y)
        put(x, r)
        return x, y, r

    def of_nothing_else(x):
        r = take(choose(x, x.sum() > 4))
        put(x, r)
        return x, r

    told = 0
    for f in (kept, of_nothing_else):
        static = to_static(f)
        for size in ((3, 3), (4, 2), (5, 3)):
            for value in (1.5, -1.5):
                x = torch.arange(size[0] * size[1]).view(size) * 0.1 + value
                try:
                    given = _call(static, x)
                except TraceError as error:
                    assert error.code in ("D2S222", "D2S224", "D2S235", "D2S213", "D2S241"), error
                    continue
                expected = _call(f, x)
                assert type(given[0]) is type(expected[0])
                if isinstance(given[0], str):
                    torch.testing.assert_close(given[1], expected[1])
                else:
                    torch.testing.assert_close(given, expected)
                told += 1
    print(f"{told} of 12 calls ran")


def test_a_view_that_autograd_does_not_let_be_written():
    def f(x):
        h = x * 2
        if x.sum() > 0:
            h = h[1:]
        lo, hi = h.chunk(2)
        lo.mul_(3)
        return h.sum()

    x = torch.ones(5, requires_grad=True)
    for one in (f, to_static(f)):
        with pytest.raises(RuntimeError, match="Output 0 of Split(Backward0)? is a view"):
            one(x)


def test_unbind_of_a_size_that_another_made_open():
    def f(x):
        y = x.view(-1) if x.sum() > 4 else x
        r = y.unbind()[0]
        r.mul_(2)
        return x, r.dim()

    static = to_static(f)
    for size in ((2, 3), (3, 3), (4, 2), (2, 2), (4, 2)):
        for value in (0.1, 2.0):
            x = torch.full(size, value)
            same(_call(static, x), _call(f, x))


class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_what_a_function_hands_on_of_a_tensor_that_nothing_names():
    def f(x):
        y = Same.apply(x.t() if x.sum() > 0 else x)
        y.mul_(3)
        return x

    with pytest.raises(TraceError, match="D2S222"):
        to_static(f)(torch.ones(2, 2))
