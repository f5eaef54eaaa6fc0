"""Cached functions that give lists, dicts and objects, called on a path that only some inputs take: what they give may
be read, as each run makes it anew; who changes it, hands it on or asks which one it is, is refused."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import same


class Recipe:
    def __init__(self, size: int) -> None:
        self.order = [1, 0]
        self.names = {"rows": size, "extra": []}
        self.size = size


Helpers = tuple[Callable[..., Any], Callable[..., Any]]


def helpers() -> Helpers:
    """Caches of their own for each test."""
    @functools.lru_cache(16)
    def recipe(size: int) -> Recipe:
        made = Recipe(size)
        made.names["more"] = size * 2
        made.order.reverse()
        return made

    @functools.cache
    def table(given: Any, size: int = 3) -> dict[str, Any]:
        return {"scale": size, "order": given.order if isinstance(given, Recipe) else [given]}

    return recipe, table


def read_in_a_branch(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    if x.sum() > 0:
        made = recipe(4)
        x = x.permute(made.order) * made.names["rows"] + len(made.names["extra"]) + made.names["more"]
    return x


def read_in_a_loop(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    while x.norm() > 1:
        found = table(recipe(2))
        x = x.permute(*found["order"]).t() / found["scale"]
    return x


def read_on_two_paths(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    x = x * table(1)["scale"] if x.sum() > 0 else x + table(1)["scale"]
    if x.max() > 2:
        x = x - table(1)["order"][0]
    return x


def with_a_size_of_the_run(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    rows = x[x[:, 0] > 0]
    return rows * recipe(len(rows)).names["more"], table(len(rows))["order"][0]


def tensor_of_it(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    if x.sum() > 0:
        return x * torch.tensor(table(5)["order"])
    return x


def changed(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    if x.sum() > 0:
        table(1)["order"].append(2)
    return x


def attribute_changed(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    if x.sum() > 0:
        recipe(1).size += 1
    return x


def returned(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    return table(2) if x.sum() > 0 else {"scale": 1}


def used_afterwards(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    found = {"scale": 1}
    if x.sum() > 0:
        found = table(2)
    return x * found["scale"]


def compared(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    if x.sum() > 0 and table(1)["order"] is table(1, size=3)["order"]:
        return x + 1
    return x


def kept(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    found = []
    for row in x:
        if row.sum() > 0:
            found.append(table(1))
    return x * len(found)


READ = [read_in_a_branch, read_in_a_loop, read_on_two_paths, with_a_size_of_the_run, tensor_of_it]
REFUSED = [changed, attribute_changed, returned, used_afterwards, compared, kept]
XS = [torch.tensor([[1.0, 2.0], [3.0, -1.0]]), torch.tensor([[-1.0, -2.0], [3.0, -1.0]]), torch.ones(2, 2) * 0.1]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("function", READ, ids=lambda one: one.__name__)
def test_read(function: Callable[..., Any], first: int) -> None:
    mine, theirs = helpers(), helpers()
    static = to_static(lambda x: function(x, *mine))
    for x in [XS[first], *XS, *XS]:
        same(static(x), function(x, *theirs))


@pytest.mark.parametrize("function", REFUSED, ids=lambda one: one.__name__)
def test_refused(function: Callable[..., Any]) -> None:
    mine = helpers()
    with pytest.raises(TraceError) as error:
        to_static(lambda x: function(x, *mine))(XS[0])
    assert error.value.code == "D2S276", error.value


def test_what_the_cache_holds_already_is_its_own() -> None:
    """An entry from before the trace is used as it is, and may be changed."""
    mine, theirs = helpers(), helpers()
    for _, table in (mine, theirs):
        table(1)
    static = to_static(lambda x: changed(x, *mine))
    for x in XS:
        static(x), changed(x, *theirs)
    assert mine[1](1) == theirs[1](1) and len(mine[1](1)["order"]) == 3


def test_what_the_cache_comes_to_hold() -> None:
    """Traced where the cache held nothing, on a path; then it holds something, which somebody changes."""
    def make() -> tuple[Any, Any]:
        @functools.cache
        def rows(n: int) -> torch.Tensor:
            return torch.zeros(3)

        @functools.cache
        def items(n: int) -> list[int]:
            return [n]

        def f(x: torch.Tensor) -> Any:
            r = x
            if x.sum() > 0:
                r = r + rows(2) + items(2)[0]
            rows(2).add_(1)
            return r

        return f, items

    (mine, my_items), (theirs, their_items) = make(), make()
    static = to_static(mine)
    for number in range(4):
        for x in (torch.ones(3), -torch.ones(3)):
            same(static(x), theirs(x))
        if number == 1:
            my_items(2)[0] = their_items(2)[0] = 7
    assert len(static.programs) <= 3
