"""Tensors made of lists that grow; tensors joined that may be empty; sizes as tensors; tensors as keys."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check

MAKERS: dict[str, Callable[[list[Any], torch.Tensor], Any]] = {
    "tensor": lambda items, x: torch.tensor(items),
    "as_tensor": lambda items, x: torch.as_tensor(items),
    "asarray": lambda items, x: torch.asarray(items),
    "new_tensor": lambda items, x: x.new_tensor(items),
    "tensor of a dtype": lambda items, x: torch.tensor(items, dtype=torch.float64),
    "as_tensor of whole numbers": lambda items, x: torch.as_tensor(items, dtype=torch.int64),
}
ITEMS: dict[str, Callable[[torch.Tensor, int], Any]] = {
    "int": lambda x, i: i,
    "float": lambda x, i: i * 0.5,
    "bool": lambda x, i: (x.sum() > 0).item(),
    "item": lambda x, i: x.detach()[0].item(),
    "tensor": lambda x, i: x.detach()[0] * i,
    "whole tensor": lambda x, i: torch.tensor(i),
    "pair": lambda x, i: [i, i + 1],
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("maker", MAKERS)
def test_a_list_that_grows(maker: str, item: str) -> None:
    def f(x: torch.Tensor, n: torch.Tensor) -> Any:
        items = []
        for i in range(n.item()):
            items.append(ITEMS[item](x, i))
        return MAKERS[maker](items, x)

    for grad in (True, False):
        x = torch.tensor([1.5, -2.0, 3.0], requires_grad=grad)
        check(f, *((x, torch.tensor(n)) for n in (3, 1, 0)))


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("rank", [1, 2])
def test_joined_with_what_may_be_empty(rank: int, grad: bool) -> None:
    def after(x: torch.Tensor, n: torch.Tensor) -> Any:
        return torch.cat([x, torch.ones(n.item())]) * 2

    def before(x: torch.Tensor, n: torch.Tensor) -> Any:
        return torch.cat([torch.ones(n.item()), x]) * 2

    def in_a_branch(x: torch.Tensor, n: torch.Tensor) -> Any:
        y = x
        if x.sum() > 0:
            y = torch.cat([x, torch.ones(n.item())])
        return y * 2

    def of_itself(x: torch.Tensor, n: torch.Tensor) -> Any:
        return torch.cat([x, x.flatten()[: n.item()]]) * 2

    x = torch.arange(1.0, 7.0)[: 6 if rank == 2 else 3].reshape((2, 3) if rank == 2 else (3,)).requires_grad_(grad)
    for f in (after, before, in_a_branch, of_itself):
        check(f, (x, torch.tensor(0)), (x, torch.tensor(2)))  # of rank 2 the second raises


def test_sizes_as_a_tensor() -> None:
    def sizes(x: torch.Tensor) -> Any:
        return torch._shape_as_tensor(x), torch._shape_as_tensor(x)[0] * x

    def unknown(x: torch.Tensor, n: torch.Tensor) -> Any:
        y = x[: n.item()]
        return torch._shape_as_tensor(y), torch._shape_as_tensor(y).prod()

    for grad in (True, False):
        check(sizes, (torch.ones(2, 3, requires_grad=grad),), (torch.ones(5, 3, requires_grad=grad),))
        x = torch.ones(2, 3, requires_grad=grad)
        check(unknown, (x, torch.tensor(1)), (x, torch.tensor(5)))


def test_tensors_as_keys() -> None:
    def reads(x: torch.Tensor) -> Any:
        d = {x: 2}
        return d[x] * x

    def stores(x: torch.Tensor) -> Any:
        a = x * 2
        d = {x: a, a: x}
        d[a] = d[x] + 1
        return d[a], d[x], x in d, a in d, (x * 2) in d, len(d)

    def on_a_path(x: torch.Tensor) -> Any:
        a = x * 2
        d = {a: 1}
        if x.sum() > 0:
            d[a] = d[a] + 1
        return d[a] * x

    for grad in (True, False):
        for f in (reads, stores, on_a_path):
            check(f, (torch.ones(3, requires_grad=grad),), (-torch.ones(3).requires_grad_(grad).detach(),))


def test_a_tensor_that_is_no_key() -> None:
    def f(x: torch.Tensor) -> Any:
        return {x: 1}[x + 1]

    from dy2static import to_static

    for function in (f, to_static(f)):
        with pytest.raises(KeyError):
            function(torch.ones(2))


NESTED: list[Callable[[Any], Any]] = [
    lambda l: torch.tensor([l]), lambda l: torch.tensor([l, l]), lambda l: torch.tensor((l,)),
    lambda l: torch.as_tensor([l]).dtype, lambda l: torch.tensor([l[:1]]), lambda l: torch.tensor([[l]]),
    lambda l: torch.tensor([l], dtype=torch.int64), lambda l: torch.tensor([l]) + 1,
    lambda l: (torch.tensor([l]).sum(), torch.asarray([l, l]).shape),
]  # fmt: skip


@pytest.mark.parametrize("nested", range(len(NESTED)))
@pytest.mark.parametrize("kind", [int, float, bool])
def test_lists_inside_that_may_be_empty(nested: int, kind: Any) -> None:
    make = NESTED[nested]

    def f(x: torch.Tensor) -> Any:
        return make([kind(i) for i in range(int((x > 0).sum()))])

    for grad in (True, False):
        check(f, *((torch.tensor(values, requires_grad=grad),) for values in (
            [1.0, 2.0, 3.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, -1.0])), paths=("program",))  # fmt: skip


def test_lists_of_lists_that_may_be_empty() -> None:
    def f(x: torch.Tensor) -> Any:
        n = int((x > 0).sum())
        return torch.tensor([[j for j in range(n)] for i in range(2)]), x

    check(f, *((torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, -1.0, -1.0])))


RANGES: list[Callable[[Any, int], Any]] = [
    lambda x, n: torch.tensor(range(n)), lambda x, n: torch.as_tensor(range(n)), lambda x, n: torch.tensor([range(n)]),
    lambda x, n: torch.tensor([range(n), range(n)]), lambda x, n: torch.tensor([[n], range(1)]),
    lambda x, n: torch.tensor([range(2), [n, 1]]), lambda x, n: torch.tensor(range(1, n), dtype=torch.float64),
    lambda x, n: torch.tensor([range(1, n)], dtype=torch.int32), lambda x, n: torch.LongTensor(range(n)),
    lambda x, n: torch.Tensor(range(n)), lambda x, n: x.new_tensor(range(n)),
    lambda x, n: (torch.tensor(range(n)) + 1, x * torch.tensor(range(n)).sum()),
    lambda x, n: torch.tensor(range(n)) * x[:n], lambda x, n: torch.tensor(range(x.shape[0])) * x,
    lambda x, n: x[torch.tensor(range(n), dtype=torch.int64)], lambda x, n: x[torch.tensor(range(n + 1))[:2]],
]


@pytest.mark.parametrize("number", range(len(RANGES)))
def test_ranges_that_may_be_empty(number: int) -> None:
    make = RANGES[number]

    def f(x: torch.Tensor) -> Any:
        return make(x, int((x > 0).sum()))

    for grad in (True, False):
        check(f, *((torch.tensor(values, requires_grad=grad),) for values in (
            [1.0, 2.0, 3.0], [-1.0, 2.0, -1.0], [-1.0, -1.0, -1.0])), paths=("program",))  # fmt: skip


UNFIT: list[Callable[[int], Any]] = [
    lambda n: torch.tensor([[n, 1], [2]]), lambda n: torch.tensor([n, [1]]), lambda n: torch.tensor([[1], n]),
    lambda n: torch.tensor([[n, 0.5], 1]), lambda n: torch.tensor([None, n]), lambda n: torch.tensor([{}, n]),
]


@pytest.mark.parametrize("number", range(len(UNFIT)))
def test_what_is_no_data(number: int) -> None:
    make = UNFIT[number]

    def f(x: torch.Tensor) -> Any:
        return make(int((x > 0).sum()))

    check(f, (torch.ones(3),), (-torch.ones(3),))
