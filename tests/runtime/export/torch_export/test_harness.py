"""The harness itself: what it takes for eager's result, and what not."""

from __future__ import annotations

import collections
from typing import Any

import pytest
import torch

from runtime.ir.tree import Leaf, Record
from tests.runtime.export.torch_export.harness import same

Point = collections.namedtuple("Point", "x y")
POINT = Record("namedtuple", "Point", (("keys", ("x", "y")), ("x", Leaf(0)), ("y", 3)))
EITHER = Record("choice", "", (("selector", Leaf(0)), ("option0", Leaf(1)), ("option1", (Leaf(2), 3))))
OBJECT = Record("object", "object 0 builtins.slice", ())
ONE = torch.ones(2)
LARGE = 2**40


@pytest.mark.parametrize(
    ("got", "wanted", "tree"),
    [
        (ONE, ONE, Leaf(0)),
        (3, 3, 3),
        (torch.tensor(3), 3, Leaf(0)),
        (torch.tensor(3.0, dtype=torch.float64), 3.0, Leaf(0)),
        ((None, None, None, {}), (1 + 2j, b"abc", torch.float32, slice(1, 2)), (1 + 2j, b"abc", torch.float32, OBJECT)),
        ((ONE, 3), Point(ONE, 3), POINT),
        ({"which": torch.tensor(1), "if0": ONE * 5, "if1": (ONE, 3)}, (ONE, 3), EITHER),
        ({"a": [ONE, "x"]}, {"a": [ONE, "x"]}, {"a": [Leaf(0), "x"]}),
    ],
)  # fmt: skip
def test_what_is_eagers(got: Any, wanted: Any, tree: Any) -> None:
    same(got, wanted, tree, 1e-5)


@pytest.mark.parametrize(
    ("got", "wanted", "tree"),
    [
        (3, 1 + 2j, 1 + 2j),
        ("x", b"abc", b"abc"),
        (ONE, torch.float32, torch.float32),
        (3, slice(1, 2), OBJECT),
        ("y", "x", "x"),
        (None, "x", "x"),
        ("x", None, None),
        (ONE * 2, ONE, Leaf(0)),
        (torch.tensor(3.0), 3, Leaf(0)),
        (torch.tensor(LARGE + 1), LARGE, Leaf(0)),
        (torch.tensor(3.0), 3.0, Leaf(0)),
        (True, 1, 1),
        ((ONE,), (ONE, 3), (Leaf(0), 3)),
        ((ONE, 3, 3), (ONE, 3), (Leaf(0), 3)),
        ([ONE, 3], (ONE, 3), (Leaf(0), 3)),
        ((ONE, 4), Point(ONE, 3), POINT),
        ({"x": ONE, "y": 3}, Point(ONE, 3), POINT),
        ({"which": torch.tensor(0), "if0": ONE * 5, "if1": (ONE, 3)}, (ONE, 3), EITHER),
        ({"which": torch.tensor(1), "if0": ONE * 5, "if1": (ONE, 4)}, (ONE, 3), EITHER),
        ({"b": ONE}, {"a": ONE}, {"a": Leaf(0)}),
        ({"a": ONE, "b": ONE}, {"a": ONE}, {"a": Leaf(0)}),
    ],
)  # fmt: skip
def test_what_is_not(got: Any, wanted: Any, tree: Any) -> None:
    with pytest.raises(AssertionError):
        same(got, wanted, tree, 1e-5)
