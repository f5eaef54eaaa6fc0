"""Sizes given to code that is not converted, which may ask for their class: it is given a ``torch.Size``."""

from __future__ import annotations

import copy
import functools
import pickle
import pprint
import reprlib
import unittest
from typing import Any

import pytest
import torch

from dy2static import not_to_static, to_static

CASE = unittest.TestCase()


@not_to_static
def class_of(value: Any, *rest: Any, **named: Any) -> Any:
    return type(value).__name__, isinstance(value, torch.Size), [type(one).__name__ for one in (*rest, *named.values())]


@not_to_static
def given_back(value: Any) -> Any:
    return value


@not_to_static
def inner_classes(value: Any) -> Any:
    return [type(one).__name__ for one in value]


@functools.singledispatch
def kind(value: Any) -> str:
    return "other"


kind.register(torch.Size, lambda value: "size")

USES: dict[str, Any] = {
    "asserted": lambda x, size: CASE.assertIsInstance(size, torch.Size),
    "asserted not": lambda x, size: CASE.assertNotIsInstance(size, torch.Size),
    "class": lambda x, size: class_of(size),
    "among others": lambda x, size: class_of(1, size, (1, 2), named=size),
    "in a tuple": lambda x, size: inner_classes((size, (size, 1), [1])),
    "given back": lambda x, size: (type(given_back(size)).__name__, given_back(size) == size, given_back((size, 1))),
    "the same tuple": lambda x, size: (lambda pair: given_back(pair) is pair)((1, "a")),
    "copied": lambda x, size: type(copy.copy(size)).__name__,
    "pickled": lambda x, size: type(pickle.loads(pickle.dumps(size))).__name__,
    "shown": lambda x, size: (pprint.pformat(size), reprlib.repr(size)),
    "dispatched": lambda x, size: kind(size),
    "used after": lambda x, size: x.new_ones(given_back(size)) + given_back(size)[0],
}
SIZES: dict[str, Any] = {
    "made": lambda x: torch.Size([2, 3]),
    "of a tensor": lambda x: x.shape,
    "sliced": lambda x: x.shape[:1],
    "sum": lambda x: x.shape + (1,),
    "method": lambda x: x.size(),
}  # fmt: skip


@pytest.mark.parametrize("on_path", [False, True])
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("use", USES)
def test_as_eager(use: str, size: str, on_path: bool) -> None:
    def f(x: Any) -> Any:
        y = None
        if not on_path or x.sum() > 0:
            y = USES[use](x, SIZES[size](x))
        return y, x * 2

    def outcome(function: Any, x: Any) -> str:
        try:
            return repr(function(x))
        except AssertionError as error:
            return repr(error)

    static = to_static(f)
    for x in (torch.ones(2, 3), -torch.ones(2, 3)):
        assert outcome(static, x) == outcome(f, x)
