"""``unsafe_chunk`` and its like give views of which autograd does not know: wherever the gradients would differ from
eager's, the write is refused."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import difference

Take = Callable[[torch.Tensor], torch.Tensor]
VIEWS: dict[str, Take] = {
    "unsafe_chunk": lambda x: x.unsafe_chunk(2)[0],
    "unsafe_split": lambda x: x.unsafe_split(1)[0],
    "unsafe_split_with_sizes": lambda x: torch.unsafe_split_with_sizes(x, [1, 1])[0],
    "_unsafe_view": lambda x: torch.ops.aten._unsafe_view(x, [3, 2]),
    "lift": lambda x: torch.ops.aten.lift(x),
}


def only_reads(x: torch.Tensor, take: Take) -> Any:
    y = take(x)
    return y * y, x * 2


def writes(x: torch.Tensor, take: Take) -> Any:
    y = take(x)
    y *= 2
    return y


def writes_a_view_of_it(x: torch.Tensor, take: Take) -> Any:
    y = take(x)
    y[0].exp_()
    return y


def writes_on_a_path(x: torch.Tensor, take: Take) -> Any:
    y = take(x)
    if x.sum() > 3:
        y *= 2
    return y, x * x


def writes_where_it_may_be_one(x: torch.Tensor, take: Take) -> Any:
    y = x * 1
    if x.sum() > 3:
        y = take(x)
    y *= 2
    return y * y


def writes_in_a_loop(x: torch.Tensor, take: Take) -> Any:
    y = take(x)
    while y.sum() < 100:
        y *= 2
    return y * y


def writes_the_base(x: torch.Tensor, take: Take) -> Any:
    y = take(x)
    x *= 2
    return y * y


def writes_the_base_and_returns(x: torch.Tensor, take: Take) -> Any:
    y = take(x)
    x *= 2
    return x * 1, y


def writes_without_gradients(x: torch.Tensor, take: Take) -> Any:
    with torch.no_grad():
        y = take(x)
        y *= 2
    return x * x


def writes_a_copy(x: torch.Tensor, take: Take) -> Any:
    y = take(x).clone()
    y *= 2
    return y, x * 2


def made_without_gradients(x: torch.Tensor, take: Take) -> Any:
    with torch.no_grad():
        y = take(x)
    y *= 2
    return y, x * 2


def base_of_one_made_without_gradients(x: torch.Tensor, take: Take) -> Any:
    with torch.no_grad():
        y = take(x)
    x *= 2
    return y * x.sum()


def history_from_elsewhere(x: torch.Tensor, take: Take) -> Any:
    base = x.detach() * 2
    y = take(base)
    y *= x[0, 0]
    return y * 1, base


def history_of_the_base(x: torch.Tensor, take: Take) -> Any:
    base = x.detach() * 2
    y = take(base)
    base *= x
    return y * base.sum(), base


def history_on_a_path(x: torch.Tensor, take: Take) -> Any:
    base = x.detach() * 2
    y = take(base)
    if x.sum() > 3:
        base *= x
    return y * 1, base


def detached_and_written(x: torch.Tensor, take: Take) -> Any:
    base = x.detach() * 2
    y = take(base)
    y *= 2
    return y * x[0, 0], base


READ = {"only_reads", "writes_without_gradients", "writes_a_copy"}
EITHER = {"detached_and_written"}
FUNCTIONS = {one.__name__: one for one in (
    only_reads, writes, writes_a_view_of_it, writes_on_a_path, writes_where_it_may_be_one, writes_in_a_loop,
    writes_the_base, writes_the_base_and_returns, writes_without_gradients, writes_a_copy, made_without_gradients,
    base_of_one_made_without_gradients, history_from_elsewhere, history_of_the_base, history_on_a_path,
    detached_and_written)}  # fmt: skip


def outcome(function: Any, needs: bool) -> Any:
    x = torch.arange(1.0, 7.0).reshape(2, 3).requires_grad_(needs)
    given = x * 1
    results = function(given)
    if needs:
        sum(one.sum() for one in (results if type(results) is tuple else (results,))).backward()
    return results, given, x.grad


@pytest.mark.parametrize("needs", [False, True])
@pytest.mark.parametrize("view, name", list(itertools.product(VIEWS, FUNCTIONS)))
def test_eager_or_refused(view: str, name: str, needs: bool) -> None:
    def function(x: torch.Tensor) -> Any:
        return FUNCTIONS[name](x, VIEWS[view])

    expected = outcome(function, needs)
    try:
        got = outcome(to_static(function), needs)
    except TraceError as error:
        assert "[D2S222]" in str(error) and needs and name not in READ
        return
    assert not difference(got, expected)
    assert not needs or name in READ | EITHER
