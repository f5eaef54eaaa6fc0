"""Containers of users' classes whose own ``len``, iteration, truth and comparison give other things, or raise: what the
tracer reads of them is what Python's class holds, and what the user's code asks is what the user's class says."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest
import torch

from tests.oracle import check

CALLS = tuple((torch.tensor(values, requires_grad=True),) for values in ([1.0, 2.0], [-1.0, -2.0]))


HELD: Any = None


class Refuses:
    """No length, no truth, no order."""

    def __len__(self) -> int:
        raise NotImplementedError

    def __bool__(self) -> bool:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError

    __hash__ = object.__hash__


class Lies:
    """Another length and other items than it holds."""

    def __len__(self) -> int:
        return 99

    def __iter__(self) -> Any:
        return iter((7.0, 8.0))

    def __bool__(self) -> bool:
        return False

    def __contains__(self, item: object) -> bool:
        return False


def made(kind: type, of: type) -> Any:
    cls: Any = type(f"{kind.__name__}{of.__name__.title()}", (kind, of), {})
    return cls({"a": 1.5, "b": [2.0]}) if of is dict else cls([1.5, 2.0])


def unpacks(x: Any, held: Any) -> Any:
    for n, (one, two) in held.pairs:
        x = x * n + one - two
    return x


class Holder:
    def __init__(self, held: Any) -> None:
        self.held, self.inside = held, [held, {"deep": held}]
        self.pairs: Any = ()


KINDS = [(kind, of) for kind in (Refuses, Lies) for of in (list, tuple, dict, set, frozenset, deque)]


@pytest.mark.parametrize(("kind", "of"), KINDS, ids=lambda one: one.__name__)
@pytest.mark.parametrize("place", ["attribute", "global", "closure"])
def test_held_from_outside(kind: type, of: type, place: str) -> None:
    held = made(kind, of)
    holder = Holder(held)
    globals()["HELD"] = held

    def attribute(x: Any) -> Any:
        return x * 2 if holder.held is not None and holder.inside[0] is holder.held else x

    def closure(x: Any) -> Any:
        return (x * 3, isinstance(held, of)) if x.sum() > 0 else (x, type(held).__name__)

    def read_global(x: Any) -> Any:
        if x.sum() > 0:
            return x * (HELD is not None)
        return x

    check({"attribute": attribute, "global": read_global, "closure": closure}[place], *CALLS)


class Pair(tuple[Any, ...]):
    def __len__(self) -> int:
        raise NotImplementedError


class Pairs(tuple[Any, ...]):
    """A tuple of pairs that has no length, but an order."""

    def __len__(self) -> int:
        raise NotImplementedError


def test_unpacking_of_what_has_no_length() -> None:
    holder = Holder(None)
    holder.pairs = Pairs((Pair((2.0, (3.0, 1.0))), Pair((0.5, (1.0, 4.0)))))
    check(lambda x: unpacks(x, holder), *CALLS)


def test_asked_by_the_user() -> None:
    holder = Holder(made(Lies, list))

    def asks(x: Any) -> Any:
        total = [item * x for item in holder.held]
        return total, len(holder.held), bool(holder.held), 1.5 in holder.held, holder.held[0]

    check(asks, *CALLS)
