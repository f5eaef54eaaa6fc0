"""Cached functions that give lists, dicts and objects, called on a path that only some inputs take: what they give may
be read, as each run makes it anew; who changes it, hands it on or asks which one it is, is refused."""

from __future__ import annotations

import functools
import types
from collections import deque
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


class Held:
    def __init__(self, one: Any) -> None:
        self.one = deque([one])


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


def known_before(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    """It leaves a path on which another one was asked for."""
    found = table(len(x[x > 0]))
    if x.sum() > 0:
        kept, more = found, table(7)["scale"]
    else:
        kept, more = {"scale": 2, "order": [5]}, 1
    return x * kept["scale"] + kept["order"][0] + more


def known_before_a_loop(x: torch.Tensor, recipe: Any, table: Any) -> Any:
    found = table(len(x[x > 0]))
    kept: dict[str, Any] = {"scale": 2, "order": [5]}
    while x.sum() > 0:
        x = x - table(9)["scale"]
        kept = found
    return x * kept["order"][0]


READ = [read_in_a_branch, read_in_a_loop, read_on_two_paths, with_a_size_of_the_run, tensor_of_it, known_before,
        known_before_a_loop]  # fmt: skip
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


HOLDERS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "a deque": (lambda one: deque([one]), lambda held: held[0]),
    "a partial": (lambda one: functools.partial(len, one), lambda held: held.args[0]),
    "a default": (lambda one: lambda given=one: given, lambda held: held()),
    "a proxy": (lambda one: types.MappingProxyType({"k": one}), lambda held: held["k"]),
    "a namespace": (lambda one: types.SimpleNamespace(k=one), lambda held: held.k),
    "an exception": (lambda one: ValueError(one), lambda held: held.args[0]),
    "a view": (lambda one: {"k": one}.values(), lambda held: next(iter(held))),
    "a slice": (lambda one: slice(one, None), lambda held: held.start),
    "an object": (Held, lambda held: held.one[0]),
}  # fmt: skip


@pytest.mark.parametrize("kind", HOLDERS)
def test_one_that_leaves_a_path_inside_something(kind: str) -> None:
    """It was another one in each run: a change of it was lost without a word."""
    hold, take = HOLDERS[kind]
    _, table = helpers()

    def function(x: torch.Tensor) -> Any:
        held = hold(table(1)["order"] if x.sum() > 0 else table(2)["order"])
        take(held)[0] += 5
        return x * table(1)["order"][0]

    def on_paths(x: torch.Tensor) -> Any:
        if x.sum() > 0:
            held = hold(table(1)["order"])
        else:
            held = hold(table(2)["order"])
        take(held)[0] += 5
        return x * table(1)["order"][0]

    for one in (function, on_paths):
        with pytest.raises(TraceError, match="D2S276"):
            to_static(one)(XS[0])


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
