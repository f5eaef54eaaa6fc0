"""The tensors of a path's value beside those that carry them: none where the structure has another one there."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import torch

from runtime.tracer.values.structure import (
    Array,
    Choice,
    DictContent,
    Fields,
    Known,
    ListContent,
    Number,
    Options,
    Sequence,
    Tensor,
)
from runtime.tracer.values.tensor_pairs import tensor_pairs
from tests.runtime.tracer.control.staging import Staging


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any


def like(tensor: torch.Tensor) -> Tensor:
    return Tensor(tuple(tensor.shape), None, tensor.dtype, tensor.device, False, True)


A, B, C, D = torch.ones(2), torch.zeros(2), torch.ones(2, dtype=torch.int64), torch.ones(2, 2)
OTHER = torch.full((2,), 3.0)
ONE = like(A)


def found(inside: Any, joined: Any, item: Any) -> list[tuple[int, int]]:
    """The pairs by identity."""
    return [(id(a), id(b)) for a, b in tensor_pairs(inside, joined, item)]


def ids(*pairs: tuple[Any, Any]) -> list[tuple[int, int]]:
    return [(id(a), id(b)) for a, b in pairs]


def test_one_tensor() -> None:
    assert found(A, OTHER, ONE) == ids((A, OTHER)) and found(A, A, ONE) == ids((A, A))
    for inside in (C, D, 1, None, A.to("meta")):
        assert found(inside, OTHER, ONE) == []
    assert found(A, 1, ONE) == []


def test_tuples_and_records() -> None:
    pair = Sequence(tuple, (ONE, Number("int"), Sequence(tuple, (ONE,))))
    assert found((A, 1, (B,)), (OTHER, 2, (A,)), pair) == ids((A, OTHER), (B, A))
    assert found([A, 1, (B,)], (OTHER, 2, (A,)), pair) == [] == found((A, 1, (B,)), [OTHER, 2, (A,)], pair)
    named = Fields(Pair, ("first", "second"), (ONE, Known(1)))
    assert found(Pair(A, 1), Pair(OTHER, 1), named) == ids((A, OTHER))
    assert found((A, 1), Pair(OTHER, 1), named) == []
    frozen = Fields(Frozen, ("value",), (Sequence(tuple, (ONE, ONE)),))
    assert found(Frozen((A, B)), Frozen((B, OTHER)), frozen) == ids((A, B), (B, OTHER))
    content = Fields(DictContent, ("a",), (ONE,))
    assert found(DictContent(a=A), DictContent(a=B), content) == ids((A, B))
    listed = Sequence(ListContent, (ONE,))
    assert found(ListContent([A]), ListContent([B]), listed) == ids((A, B))


def test_methods_of_tensors(staging: Staging) -> None:
    x, y = staging.given("x y")
    item = Fields(type(x.abs), ("abs",), (like(x),))
    assert found(x.abs, y.abs, item) == ids((x, y))
    assert found([].append, y.abs, item) == [], "a method of something else"


def test_what_carries_no_tensor() -> None:
    for item in (Known(A), Number("int"), Array(ONE)):
        assert found(A, B, item) == [] == found([A], [B], item)


def test_one_of_several(staging: Staging) -> None:
    n: Any = staging.number(staging.given("i"))
    item = Options((ONE, like(C), Sequence(tuple, (ONE, Known("a"))), Known(None)))
    joined = Choice(n, (OTHER, C * 2, (B, "a"), None))
    assert found(A, joined, item) == ids((A, OTHER))
    assert found(C, joined, item) == ids((C, joined.options[1]))
    assert found((A, "a"), joined, item) == ids((A, B))
    assert found((A, "b"), joined, item) == [] == found((A,), joined, item) == found(None, joined, item)
    several = Choice(n, (A, Choice(n, ((B, "a"), None)), C))
    assert found(several, joined, item) == ids((A, OTHER), (B, B), (C, joined.options[1]))
    assert found(A, OTHER, item) == [], "what carries one of several is one of several"


def test_one_of_several_records(staging: Staging) -> None:
    n: Any = staging.number(staging.given("i"))
    item = Options((Fields(Frozen, ("value",), (ONE,)), Fields(Pair, ("first", "second"), (ONE, ONE)), Number("int")))
    joined = Choice(n, (Frozen(OTHER), Pair(A, B), 1))
    assert found(Frozen(A), joined, item) == ids((A, OTHER))
    assert found(Pair(OTHER, A), joined, item) == ids((OTHER, A), (A, B))
    assert found(Frozen("a"), joined, item) == [] == found(3, joined, item)
