"""The container that a variable holds before a loop, which makes others for it: where it goes when these come.

It may have other keys or items than those of the iterations, and be seen by another name afterwards.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.oracle import check, check_saved


class Named(dict):  # type: ignore[type-arg]
    pass


class Items(list):  # type: ignore[type-arg]
    pass


def with_name(value: Any, name: Any) -> Any:
    value.name = name
    return value


PAIRS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "other_keys": (lambda x: {"a": x}, lambda x: {"k": x + 1, "l": x * 2}),
    "more_keys": (lambda x: {"a": x}, lambda x: {"a": x + 1, "l": x * 2}),
    "another_order": (lambda x: {"a": x, "l": x * 3}, lambda x: {"l": x + 1, "a": x * 2}),
    "no_keys": (lambda x: {}, lambda x: {"k": x + 1}),
    "keys_then_none": (lambda x: {"a": x}, lambda x: {}),
    "same_keys": (lambda x: {"a": x}, lambda x: {"a": x + 1}),
    "ordered": (lambda x: OrderedDict(a=x), lambda x: OrderedDict(k=x + 1)),
    "defaults": (lambda x: defaultdict(list, a=x), lambda x: defaultdict(list, k=x + 1)),
    "sets": (lambda x: {1}, lambda x: {2, 3}),
    "longer": (lambda x: [x], lambda x: [x + 1, x * 2]),
    "empty": (lambda x: [], lambda x: [x + 1]),
    "other_items": (lambda x: [x], lambda x: ["text"]),
    "other_shapes": (lambda x: [x], lambda x: [x.sum(), 1]),
    "deques": (lambda x: deque([x]), lambda x: deque([x + 1, x * 2])),
    "other_maxlen": (lambda x: deque([x], 3), lambda x: deque([x + 1], 2)),
    "other_classes": (lambda x: {"a": x}, lambda x: [x + 1]),
    "users_dict": (lambda x: Named(a=x), lambda x: Named(k=x + 1)),
    "users_list": (lambda x: Items([x]), lambda x: Items([x + 1, x * 2])),
    "attributes": (lambda x: with_name(Named(a=x), x * 3), lambda x: with_name(Named(k=x + 1), x * 4)),
    "other_attributes": (lambda x: with_name(Items([x]), 1), lambda x: Items([x + 1])),
}


def moved_on(first, later):
    def f(x, n):
        p, q = first(x * 5), first(x)
        for _ in range(int(n)):
            p = q
            q = later(x)
        return p, q, p is q

    return f


def swapped(first, later):
    def f(x, n):
        p, q = first(x * 5), first(x)
        while n > 0:
            n = n - 1
            p, q = q, p
            q = later(x)
        return p, q, p is q

    return f


def through_three(first, later):
    def f(x, n):
        p, q, r = None, first(x * 5), first(x)
        for _ in range(int(n)):
            p, q = q, r
            r = later(x)
        return p, q, r

    return f


def put_into_another(first, later):
    def f(x, n):
        q = first(x)
        box = [None]
        for _ in range(int(n)):
            box[0] = q
            q = later(x)
        return box, q

    return f


def in_an_attribute(first, later):
    def f(x, n):
        q, holder = first(x), Named()
        holder.held = None
        for _ in range(int(n)):
            holder.held = q
            q = later(x)
        return holder.held, q

    return f


def put_besides(first, later):
    def f(x, n):
        q = first(x)
        box = [first(x * 3)]
        for _ in range(int(n)):
            q = later(x)
            box[0] = q
        return box, q, box[0] is q

    return f


def put_besides_by_key(first, later):
    def f(x, n):
        q = first(x)
        table = {"one": q, "two": later(x * 3)}
        for i in range(int(n)):
            q = later(x * i)
            table["two"] = q
        return table, q, table["one"] is q

    return f


def put_besides_on_one_path(first, later):
    def f(x, n):
        q, holder = first(x), Named()
        holder.held = q
        for i in range(int(n)):
            q = later(x)
            if x.sum() > i:
                holder.held = q
        return holder.held, q, holder.held is q

    return f


def on_one_path(first, later):
    def f(x, n):
        p, q = first(x * 5), first(x)
        for i in range(int(n)):
            if x.sum() > i:
                p = q
            q = later(x)
        return p, q, len(p)

    return f


def read_first(first, later):
    def f(x, n):
        q, count = first(x), 0
        for _ in range(int(n)):
            count = count * 10 + len(q)
            q = later(x)
        return q, count

    return f


def of_two_loops(first, later):
    inner = moved_on(first, later)

    def f(x, n):
        total = 0
        for _ in range(int(n)):
            p, q, same = inner(x, n)
            total = total * 100 + len(p) * 10 + len(q)
        return total

    return f


SHAPES = [moved_on, swapped, through_three, put_into_another, put_besides, put_besides_by_key,
          put_besides_on_one_path, in_an_attribute, on_one_path, read_first, of_two_loops]  # fmt: skip


def calls() -> list[tuple[Any, ...]]:
    return [(torch.tensor([1.0, 1.5], requires_grad=True), torch.tensor(n)) for n in (2, 0, 1, 3)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("pair", PAIRS)
def test_the_first_goes_where_it_is_put(pair: str, shape: Any) -> None:
    check(shape(*PAIRS[pair]), *calls())


@pytest.mark.sample(3)
@pytest.mark.parametrize("shape", [moved_on, swapped, read_first], ids=lambda shape: shape.__name__)
@pytest.mark.parametrize("pair", [pair for pair in PAIRS if pair != "users_dict"])  # a file holds no class of theirs
def test_so_does_that_of_a_file(pair: str, shape: Any, tmp_path: Path) -> None:
    first, later = PAIRS[pair]
    function = shape(first, later)
    static = to_static(function)
    static(*calls()[0])
    check_saved(function, static, tmp_path / "f", *calls())


def put_elsewhere_by_each_iteration(x: torch.Tensor) -> Any:
    """What ``r`` begins with looked like the list that the first attempt saw an iteration leave there."""
    grown: list[torch.Tensor] = []
    r = [x, x * 2]
    box = [grown]
    for _ in range(int((x > 0).sum())):
        box[0] = grown
        r = box[0]
        grown = grown + [x * 3]
    return grown, r, box, r is box[0]


def test_a_list_that_turns_out_to_be_no_first_of_them() -> None:
    for values in ([1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [1.0, -1.0, -1.0], [1.0, 1.0, -1.0]):
        check(put_elsewhere_by_each_iteration, (torch.tensor(values),))
    check(put_elsewhere_by_each_iteration, (torch.tensor([-1.0, -2.0]),), (torch.tensor([1.0, 2.0]),))
