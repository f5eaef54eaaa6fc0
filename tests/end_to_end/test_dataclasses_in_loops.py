"""Instances of dataclasses that can be changed, in loops: which is which is known in the loop and after it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from tests.oracle import check

X = torch.tensor([1.0, 2.0, 3.0])
CALLS = [
    (X,), (-X,), (torch.tensor([1.0, -1.0, -1.0]),), (torch.tensor([1.0, -1.0, 0.5]),), (X.clone().requires_grad_(),),
]  # fmt: skip
"""Three iterations, none, one, two."""


@dataclass
class D:
    value: Any
    hits: int = 0


@dataclass
class Post:
    value: Any
    items: list[Any] = field(default_factory=list)
    total: Any = field(init=False)

    def __post_init__(self):
        self.total = self.value.sum()
        self.extra = self.value + 1


def kept_in_a_loop(x):
    keep = box = D(x)
    for j in range((x > 0).sum()):
        keep = box
        box.hits += 1
        if j == 1:
            box = D(x * j)
    keep.value = keep.value + 5
    return keep is box, keep.hits, box.hits, box.value, keep.value


def names_of_an_iteration(x):
    box = keep = D(x)
    for _ in range((x > 0).sum()):
        box = D(x * 2)
        keep = box
        box.hits = 4
    keep.hits += 1
    return box.hits, keep is box, keep.value


def of_the_iteration_before(x):
    last, box = None, D(x)
    same = []
    for j in range((x > 0).sum()):
        last = box
        box = D(last.value + 1, j)
        last.hits += 10
        same.append(last is box)
    if last is not None:
        last.value = last.value * 2
        return last.hits, box.hits, last.value, box.value, last is box, same
    return box.hits


def replaced_on_some_iterations(x):
    first = D(x)
    box = first
    for j in range((x > 0).sum()):
        if x[j] > 1.5:
            box = D(x * 2, j)
        box.hits += 1
    first.value = x * 9
    return first.hits, box.hits, box.value, first is box


def replaced_in_all(x):
    first = D(x)
    box = first
    for _ in range((x > 0).sum()):
        box = dataclasses.replace(box, value=box.value + 1)
        box.hits += 1
    box.hits += 1
    return first.hits, box.hits, box.value, first is box


def in_one_of_an_iteration(x):
    outer = D(D(x))
    inner = outer.value
    for j in range((x > 0).sum()):
        inner = D(x + j)
        outer = D(inner, j)
        inner.hits = j + 2
    outer.value.hits += 1
    return inner.hits, inner is outer.value, outer.hits


def no_fields_in_a_loop(x):
    box = D(x)
    box.note = x
    for j in range((x > 0).sum()):
        before = box
        box = D(x + 1)
        box.note = before.note + j
    return box.note, box.value


def while_with_a_store(x):
    box = D(x)
    keep = box
    while box.hits < 3 and box.value.sum() > 0:
        box.value = box.value * 2
        box.hits += 1
    return keep.hits, keep.value, keep is box


def change_places_in_a_list(x):
    held = [D(x), D(x * 2)]
    first = held[0]
    for j in range((x > 0).sum()):
        held = [held[1], held[0]]
        held[0].hits += j + 1
    first.value = first.value + 9
    return held[0].hits, held[1].hits, held[0].value, held[0] is first


def item_of_a_dict_in_a_loop(x):
    d = {"a": D(x)}
    keep = d["a"]
    for j in range((x > 0).sum()):
        d["a"] = D(d["a"].value + 1, j)
    d["a"].hits += 5
    return d["a"].hits, keep.hits, d["a"] is keep


def returned_from_a_loop(x):
    box = D(x)
    for j in range((x > 0).sum()):
        box = D(box.value + 1, j)
        if j == 1:
            return box, 1
    box.hits += 9
    return box, 2


def in_nested_loops(x):
    box = D(x)
    last = box
    for _ in range((x > 0).sum()):
        for k in range((x > 0).sum()):
            box = D(box.value + k, box.hits + 1)
        last = box
        last.hits += 100
    return box.hits, last.hits, last is box, box.value


def list_in_a_field(x):
    box = Post(x)
    old = box
    for j in range((x > 0).sum()):
        box = Post(x * j, [x])
        box.items[0] = box.items[0] + 1
    return old.items, box.items, box is old, box.total


AS_EAGER = [
    names_of_an_iteration, of_the_iteration_before, replaced_on_some_iterations, replaced_in_all,
    in_one_of_an_iteration, no_fields_in_a_loop, while_with_a_store, change_places_in_a_list,
    item_of_a_dict_in_a_loop, returned_from_a_loop, in_nested_loops, list_in_a_field,
]  # fmt: skip


@pytest.mark.parametrize("function", AS_EAGER, ids=lambda f: f.__name__)
def test_as_eager(function):
    check(function, *CALLS)


def test_several_names_on_some_paths_only():
    check(kept_in_a_loop, *CALLS)
