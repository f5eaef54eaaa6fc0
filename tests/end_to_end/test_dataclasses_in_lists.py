"""Instances of dataclasses in lists that grow: copies of what they held, which nothing may tell from the originals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
import torch

import dy2static
from dy2static import TraceError
from tests.oracle import check

X = torch.tensor([1.0, 2.0, 3.0])
CALLS = [
    (X,), (-X,), (torch.tensor([1.0, -1.0, -1.0]),), (torch.tensor([1.0, -1.0, 0.5]),), (X.clone().requires_grad_(),),
]  # fmt: skip
"""Three positive items (the sum is, too), none, one, two."""


@dataclass
class D:
    value: Any
    hits: int = 0


def in_a_list_that_grows(x):
    found = []
    for j in range((x > 0).sum()):
        found.append(D(x * j, j))
    total = x
    for one in found:
        total = total + one.value * one.hits
    return total, found


def of_a_comprehension(x):
    return [D(x * j, j) for j in range((x > 0).sum())]


def one_of_two(x):
    found = []
    for j in range((x > 0).sum()):
        one = D(x) if x[j] > 1.5 else D(x * 2, 1)
        found.append(one)
    return found


def older_and_made(x):
    found = []
    box = D(x)
    for j in range((x > 0).sum()):
        found.append(box)
        found.append(D(x * j))
    return found


def put_back_as_another(x):
    found = []
    for j in range((x > 0).sum()):
        found.append(D(x * j, j))
    while len(found) > 1:
        a, b = found.pop(), found.pop()
        found.append(D(a.value + b.value, a.hits + b.hits))
    return found


def on_one_path(x):
    found = [D(x)]
    if x.sum() > 0:
        found.append(D(x * 2, 1))
    return found, len(found)


def one_in_another(x):
    found = []
    for j in range((x > 0).sum()):
        found.append(D(D(x * j), j))
    return found


def list_of_one(x):
    box = D([])
    for j in range((x > 0).sum()):
        box.value.append(D(x * j))
    return box


def taken_on_one_path(x):
    found = [D(x)]
    for j in range((x > 0).sum()):
        found.append(D(x * j, j))
    last = found[-1] if x.sum() > 0 else D(x * 5, 5)
    return last.value * last.hits


class Box:
    def __init__(self, value):
        self.value = value


def older_object_of_a_class(x):
    box = Box(x + 1)
    found = [box]
    for _ in range((x > 0).sum()):
        found.append((x, 3))
        found.append(box)
    return x * 2, found


AS_EAGER = [
    in_a_list_that_grows, of_a_comprehension, one_of_two, older_and_made, put_back_as_another, on_one_path,
    one_in_another, list_of_one, taken_on_one_path, older_object_of_a_class,
]  # fmt: skip


@pytest.mark.parametrize("function", AS_EAGER, ids=lambda f: f.__name__)
def test_as_eager(function):
    check(function, *CALLS)


def stored_after_append(x):
    found, box = [], D(x)
    for _ in range((x > 0).sum()):
        box = D(x)
        found.append(box)
    box.hits = 5
    return found[-1].hits


def stored_in_the_next_iteration(x):
    found, box = [], D(x)
    for _ in range((x > 0).sum()):
        box.hits = 5
        box = D(x)
        found.append(box)
    return found


def item_is_stored_to(x):
    found = []
    for _ in range((x > 0).sum()):
        found.append(D(x))
    for one in found:
        one.hits += 1
    return found


def older_one_is_stored_to(x):
    found, box = [], D(x)
    for j in range((x > 0).sum()):
        box.hits = j
        found.append(box)
    return found


def item_is_the_last(x):
    found, box = [], D(x)
    for _ in range((x > 0).sum()):
        box = D(x)
        found.append(box)
    return found[-1] is box


def joined_lists(x):
    a, b = D(x), D(x * 2)
    held = [a] if x.sum() > 0 else [a, b]
    a.hits = 3
    return held[0].hits


def stored_under_a_condition(x):
    found, box = [], D(x)
    for j in range((x > 0).sum()):
        if x[j] > 1.5:
            box = D(x * j)
            found.append(box)
    box.hits = 3
    return found


def one_inside_is_stored_to(x):
    found, box = [], D(D(x))
    for j in range((x > 0).sum()):
        box = D(D(x * j))
        found.append(box)
    box.value.hits = 5
    return found


def in_an_inner_loop(x):
    found = []
    for _ in range((x > 0).sum()):
        box = D(x)
        for _ in range((x > 0).sum()):
            found.append(box)
        box.hits = 1
    return found


def after_a_join(x):
    found, box = [], D(x)
    for j in range((x > 0).sum()):
        box = D(x * j)
        found.append(box)
    other = box if x.sum() > 0 else D(x)
    other.hits = 2
    return found


CHANGED = [
    stored_after_append, stored_in_the_next_iteration, item_is_stored_to, older_one_is_stored_to, item_is_the_last,
    joined_lists, stored_under_a_condition, in_an_inner_loop, after_a_join,
]  # fmt: skip


@pytest.mark.parametrize("function", CHANGED, ids=lambda f: f.__name__)
def test_all_names_of_an_item_see_a_change(function):
    check(function, *CALLS)


def test_a_field_that_is_an_object_of_the_class_or_a_tensor_is_refused():
    with pytest.raises(TraceError) as caught:
        dy2static.to_static(one_inside_is_stored_to)(X)
    assert caught.value.code == "D2S245" and caught.value.location is not None


def appended_with_no_field(x):
    found = []
    for _ in range((x > 0).sum()):
        box = D(x)
        box.note = x
        found.append(box)
    return [one.note for one in found]


def test_what_is_no_field_is_not_lost_in_a_list_that_grows():
    check(appended_with_no_field, *CALLS)


def with_the_callers(x, given):
    found = [given]
    for j in range((x > 0).sum()):
        found.append(D(x * j, j))
        found.append(given)
    given.hits += 1
    return found


@pytest.mark.parametrize("x", [X, -X])
def test_the_callers_own_is_held_as_itself(x):
    eager, static = D(x), D(x)
    expected = with_the_callers(x, eager)
    got = dy2static.to_static(with_the_callers)(x, static)
    assert [one is static for one in got] == [one is eager for one in expected]
    assert [one.hits for one in got] == [one.hits for one in expected] and static.hits == 1


def test_an_object_from_before_the_list_is_one_in_what_is_returned():
    found = dy2static.to_static(older_object_of_a_class)(X)[1]
    assert found[0] is found[2] is found[4]


def test_a_saved_program_returns_such_lists(tmp_path):
    class Layer(torch.nn.Module):
        @dy2static.to_static
        def forward(self, x):
            return older_object_of_a_class(x)

    layer = Layer().eval()
    layer(X)
    dy2static.save(layer, str(tmp_path / "saved"))
    doubled, found = dy2static.load(str(tmp_path / "saved"))(X)
    assert torch.equal(doubled, X * 2) and len(found) == 7
    assert found[0] is found[2] and torch.equal(found[0].value, X + 1) and torch.equal(found[1][0], X)
