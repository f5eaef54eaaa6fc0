"""What there was before a construct is told apart from what its paths make, whatever dies meanwhile."""

from __future__ import annotations

import gc
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from runtime.tracer.control.older import Identities, older
from runtime.tracer.recording.session import Session
from runtime.tracer.values.structure import Choice
from tests.oracle import check

ITERATORS: list[Callable[[list[Any]], Iterator[Any]]] = [
    lambda items: itertools.islice(items, 2), itertools.cycle, lambda items: itertools.accumulate(items, initial=[]),
    itertools.chain.from_iterable, lambda items: zip(items, itertools.islice(items, 1)), reversed,
    lambda items: itertools.zip_longest(items, [()]), lambda items: itertools.product(items, items),
]  # fmt: skip


@pytest.mark.parametrize("make", ITERATORS, ids=range(len(ITERATORS)))
@pytest.mark.parametrize("left", [True, False])
def test_identities_are_those_of_objects_that_live(session: Session, make: Callable[[list[Any]], Iterator[Any]],
                                                   left: bool) -> None:  # fmt: skip
    """An iterator says what it would be rebuilt from, which may be made for the answer alone."""
    iterator = make([[1], [2], [3]])
    for _ in range(1 if left else 100):
        next(iterator, None)

    def reads() -> Any:
        return iterator

    objects = Identities()
    found = older(session, [reads], (), objects)
    alive = {id(one) for one in gc.get_objects()}
    fresh = [[number] for number in range(10_000)] + [iter(()) for _ in range(1000)]
    assert not objects & {id(one) for one in fresh} and not found & {id(one) for one in fresh}
    assert id(iterator) in objects and id(iterator) in alive


def _lists_in_a_loop(x: torch.Tensor, y: torch.Tensor) -> Any:
    p, q, r = x * 0.5, y * 2, torch.ones(3)
    ys, fixed = [r], (p, q, r)
    for t in itertools.islice(fixed, 2):
        p = p + t
    for _ in range(int((q > 0).sum())):
        if (r > 0).any():
            ys = [r, *fixed]
            fixed = (*fixed[:2], q * 2)
    return ys, p


def test_a_list_made_in_a_loop_after_an_iterator() -> None:
    """It was taken for a part of the iterator that had been made and was gone, at some addresses."""
    for seed in range(8):
        torch.manual_seed(seed)
        check(_lists_in_a_loop, [torch.randn(3), torch.randn(3)])


class _Derived(Choice):
    """As what stands for a row is derived from ``Choice``."""

    __slots__ = ()


@pytest.mark.parametrize("cls", [Choice, _Derived])
def test_what_the_options_of_a_choice_hold(session: Session, cls: type[Choice]) -> None:
    inner: list[Any] = [1]
    value = cls(0, ([inner],))  # type: ignore[arg-type]
    found = older(session, [], [value], Identities())
    assert {id(value.options[0]), id(inner)} <= found
