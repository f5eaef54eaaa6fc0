"""Containers of users' classes whose methods do other things than Python's, or refuse: a trace takes back what it
changed in them, and what a Program changes in the caller's is what eager does."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import pytest
import torch

import dy2static

X = torch.tensor([1.0, 2.0])


class Closed(collections.OrderedDict):  # as the outputs of transformers' models
    def update(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError("no update")

    def clear(self) -> None:
        raise TypeError("no clear")

    def pop(self, *args: Any) -> Any:
        raise TypeError("no pop")


@dataclasses.dataclass
class Output(Closed):
    loss: Any = None
    logits: Any = None

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            if getattr(self, field.name) is not None:
                self[field.name] = getattr(self, field.name)


class Counting(dict):
    writes = 0

    def __setitem__(self, key: Any, value: Any) -> None:
        Counting.writes += 1
        super().__setitem__(key, value)

    def __iter__(self) -> Any:
        return iter(["other"])


class Doubling(list):
    def __iter__(self) -> Any:
        return iter([2 * item for item in list.__iter__(self)])

    def extend(self, items: Any) -> None:
        raise TypeError("no extend")

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("no store")


class Picky(set):
    def update(self, *others: Any) -> None:
        raise TypeError("no update")


def test_an_output_made_inside() -> None:
    static = dy2static.to_static(lambda x: Output(logits=x * 2))
    for _ in range(2):
        made = static(X)
        assert type(made) is Output and list(made) == ["logits"] and torch.equal(made["logits"], X * 2)
        assert torch.equal(made.logits, X * 2) and made.loss is None


def test_an_output_made_on_a_path() -> None:
    def f(x: Any) -> Any:
        if x.sum() > 0:
            out = Output(logits=x * 2)
        else:
            out = Output(logits=x * 3)
        return out

    static = dy2static.to_static(f)
    for x in (X, -X):
        assert torch.equal(static(x).logits, f(x).logits)


def add_key(d: Any) -> None:
    d["b"] = 2


def append(items: Any) -> None:
    items.append(5)


def add_item(items: Any) -> None:
    items.add(5)


@pytest.mark.parametrize("make, change", [
    (lambda: Closed(a=1), add_key), (lambda: Counting(a=1), add_key), (lambda: Doubling([1, 2]), append),
    (lambda: Picky([1]), add_item), (lambda: collections.deque([1], maxlen=3), append),
])  # fmt: skip
def test_the_callers_container_is_changed_once_for_each_call(make: Any, change: Any) -> None:
    mine, theirs = make(), make()
    holder = [mine]

    def f(x: Any) -> Any:
        change(holder[0])
        return x * 2

    static = dy2static.to_static(f)
    for _ in range(2):
        static(X)
        change(theirs)
        base = next(cls for cls in type(mine).__mro__ if cls.__module__ in ("builtins", "collections"))
        assert list(base.__iter__(mine)) == list(base.__iter__(theirs))
