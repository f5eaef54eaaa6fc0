"""What structures are called in messages."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import pytest
import torch

from runtime.tracer.values.describing import describe
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.structure import (
    DYNAMIC,
    Array,
    Fields,
    Known,
    Made,
    Number,
    Options,
    Reference,
    Sequence,
    Structure,
    Tensor,
)


class Pair(NamedTuple):
    first: int
    second: int


@dataclasses.dataclass
class Record:
    name: str


def tensor(*shape: object, dtype: torch.dtype = torch.float32) -> Tensor:
    return Tensor(shape, None, dtype, torch.device("cpu"), False, True)


CALLED: list[tuple[Structure, str]] = [
    (Known(None), "None"),
    (Known("a"), "a str"),
    (Known({}), "a dict"),
    (Known(Record("a")), "a Record"),
    (Number("float"), "a Python float"),
    (Number("str"), "a Python str"),
    (tensor(), "a float32 tensor of 0 dimensions"),
    (tensor(DYNAMIC), "a float32 tensor of 1 dimension"),
    (tensor(2, 3, dtype=torch.int64), "a int64 tensor of 2 dimensions"),
    (Sequence(tuple, ()), "a tuple of 0 items"),
    (Sequence(tuple, (Known(1),)), "a tuple of 1 item"),
    (Sequence(list, (Known(1), Number("int"))), "a list of 2 items"),
    (Fields(Pair, ("first", "second"), (Known(1), Known(2))), "a Pair of 2 items"),
    (Fields(dict, ("a",), (Known(1),)), "a dict of 1 item"),
    (Made("cell", Record), "a Record"),
    (Array(Number("int")), "a list that grows"),
    (Reference(Heap()), "a list"),
    (Options((Known(None), Number("int"))), "a Python int"),
    (Options((Number("int"), Options((Known(1), tensor())))), "a float32 tensor of 0 dimensions"),
]


@pytest.mark.parametrize("number", range(len(CALLED)))
def test_a_structure_in_words(number: int) -> None:
    item, words = CALLED[number]
    assert describe(item) == words
