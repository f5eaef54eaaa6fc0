"""What ``unify`` finds carries both values: each fits it, in either order, and goes to Variables and back.

The structures are those of random values: tensors of several shapes and dtypes, staged and plain numbers, texts, None,
tuples, contents of lists and dicts, records, rows of a heap, lists that grew and values that are one of several.
"""

from __future__ import annotations

import dataclasses
import random
from collections import Counter
from typing import Any, NamedTuple

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.ambient import state
from runtime.tracer.boundary.tracing import trace
from runtime.tracer.recording import reads
from runtime.tracer.recording.session import Session
from runtime.tracer.values.arguments import flatten
from runtime.tracer.values.flattening import lower
from runtime.tracer.values.structure import (
    Array,
    Choice,
    DictContent,
    JoinContext,
    ListContent,
    Options,
    Structure,
    width,
)
from runtime.tracer.values.unification import fits, structure_of, unify


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass
class Record:
    name: str
    value: Any


class Values:
    """Random values inside a trace; ``copies``: with lists and dicts that are copied, not with their contents."""

    def __init__(self, rng: random.Random, x: torch.Tensor, copies: bool) -> None:
        self.rng, self.x = rng, x
        self.list: type[list[Any]] = list if copies else ListContent
        self.dict: type[dict[Any, Any]] = dict if copies else DictContent
        self.number = reads.item(state.current(), x.int().sum())
        self.lists: list[list[Any]] = [[x], [x, x * 2], []]

    def value(self, depth: int = 3) -> Any:
        kinds = [self._tensor, self._number, self._plain, self._list]
        if depth:
            kinds += [self._tuple, self._content, self._fields, self._chosen]
        return self.rng.choice(kinds)(depth - 1)

    def _tensor(self, depth: int) -> Any:
        x = self.x
        return self.rng.choice([x, x * 2, x[:1], x.sum(), x.int(), x.expand(2, 3).t()])

    def _number(self, depth: int) -> Any:
        staged = self.number
        return self.rng.choice([staged, staged + 1, staged > 2, staged * 0.5, 1, 2, 1.5, True])

    def _plain(self, depth: int) -> Any:
        return self.rng.choice([None, "a", "b", torch.float32, len])

    def _list(self, depth: int) -> Any:
        return self.rng.choice(self.lists)

    def _tuple(self, depth: int) -> Any:
        if self.rng.random() < 0.3:
            return Pair(self.value(depth), self.value(depth))
        return tuple(self.value(depth) for _ in range(self.rng.randint(0, 3)))

    def _content(self, depth: int) -> Any:
        return self.list(self.value(depth) for _ in range(self.rng.randint(0, 3)))

    def _fields(self, depth: int) -> Any:
        if self.rng.random() < 0.5:
            return Record(self.rng.choice("ab"), self.value(depth))
        return self.dict((key, self.value(depth)) for key in self.rng.sample("abc", self.rng.randint(0, 2)))

    def _chosen(self, depth: int) -> Any:
        options = tuple(self.value(depth) for _ in range(self.rng.randint(2, 3)))
        return Choice(self.number, options)  # type: ignore[arg-type]

    def variant(self, value: Any) -> Any:
        """A value like another: parts of it are others of their kind, or one of several."""
        if self.rng.random() < 0.15:
            return Choice(self.number, (value, self.variant(value)))
        if type(value) in (tuple, self.list):
            return type(value)(self.variant(item) for item in value)
        if type(value) is self.dict:
            return self.dict((key, self.variant(item)) for key, item in value.items())
        if isinstance(value, (Pair, Record)):
            first, second = value if isinstance(value, Pair) else (value.name, value.value)
            return type(value)(first, self.variant(second))
        kinds = (self._tensor, self._number) if self.rng.random() < 0.3 else ()
        return self.rng.choice(kinds)(0) if kinds else value


def _show(s: Structure) -> str:
    if isinstance(s, Options):
        return "Options(" + ", ".join(map(_show, s.options)) + ")"
    if isinstance(s, Array):
        return f"Array({_show(s.item)})"
    if hasattr(s, "items"):
        return f"{getattr(s, 'kind', getattr(s, 'cls', type)).__name__}(" + ", ".join(map(_show, s.items)) + ")"
    return repr(s)


def _judge(session: Session, values: Values, context: JoinContext) -> str:
    one = values.value()
    other = values.variant(one) if values.rng.random() < 0.5 else values.value()
    first, second = structure_of(session, one, context), structure_of(session, other, context)
    joined = unify(session, first, second, context)
    for value, picture in ((one, first), (other, second)):
        assert fits(session, picture, joined, context), f"{_show(picture)} does not fit {_show(joined)}"
        operands = lower(session, value, joined, context)
        assert len(operands) == width(joined)
    assert fits(session, joined, joined, context)
    back = unify(session, second, first, context)
    assert fits(session, first, back, context) and fits(session, second, back, context), _show(back)
    return type(joined).__name__


CONTEXTS = {
    "plain": JoinContext(),
    "copies": JoinContext(copying=True),
    "mixed": JoinContext(mixed_lists=True),
    "by reference": JoinContext(arrays_hold_containers=False),
}


@pytest.mark.parametrize("context", CONTEXTS.values(), ids=CONTEXTS)
def test_both_values_fit_what_they_are_joined_to(context: JoinContext) -> None:
    found: Counter[str] = Counter()

    def body(x: torch.Tensor) -> Any:
        for seed in range(300):
            values = Values(random.Random(seed), x, context.copying)
            try:
                found[_judge(state.current(), values, context)] += 1
            except TraceError as error:
                found[error.code] += 1
        return x

    trace(body, flatten({"x": torch.ones(3)}), name="f")
    assert found["Options"] and found["Sequence"] and found["Tensor"], found
