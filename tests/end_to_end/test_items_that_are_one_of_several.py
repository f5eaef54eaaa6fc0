"""Lists that grow, whose items hold something that is one of several, joined to others that may be more."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check

CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, 0.5], [-1.0, -1.0, -1.0])]


def word(x: torch.Tensor) -> str:
    return "pos" if x.sum() > 0 else "neg"


def longer(x: torch.Tensor) -> str:
    return "pos" if x.sum() > 0 else "negative"


def count(x: torch.Tensor) -> int:
    return int((x > 0).sum())


def zipped(x: torch.Tensor) -> Any:
    return list(zip(range(count(x)), word(x))), list(zip(word(x), range(count(x))))


def of_other_lengths(x: torch.Tensor) -> Any:
    return list(zip(range(count(x) + 4), longer(x)))


def with_a_grown_list(x: torch.Tensor) -> Any:
    s = longer(x)
    grown = []
    for i in range(count(x)):
        grown.append(x * i)
    return list(zip(grown, s)), list(zip(s, grown))


def with_a_joined_tuple(x: torch.Tensor) -> Any:
    s = word(x)
    t = (1, 2) if x.sum() > 0 else (3, 4, 5)
    return list(zip(s, t)), list(zip(t, s))


def mapped(x: torch.Tensor) -> Any:
    return list(map(lambda i, c: (i, c), range(count(x)), word(x)))


def made_of_it(x: torch.Tensor) -> Any:
    s, n = word(x), count(x)
    return list(zip(range(n), s[1:])), list(zip(range(n), s + s))


def numbered(x: torch.Tensor) -> Any:
    return list(enumerate(zip(range(count(x)), word(x))))


def starred(x: torch.Tensor) -> Any:
    return list(itertools.starmap(lambda i, c: {"c": c, "i": i * x}, zip(range(count(x)), word(x))))


def plain(x: torch.Tensor) -> Any:
    return list(zip([1, 2, 3], word(x))), list(enumerate(word(x)))


def two_comprehensions(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        found = [(i, "pos"[i]) for i in range(count(x))]
    else:
        found = [(i, "neg"[i]) for i in range(count(x))]
    return found


def one_of_more_kinds(x: torch.Tensor) -> Any:
    found = []
    for i in range(count(x)):
        found.append((i, ("a", 1.5)[i % 2]))
    if x.sum() > 0:
        for i in range(count(x)):
            found.append((i, (torch, 1.5, x)[i % 3]))
    return found


def one_then_several(x: torch.Tensor) -> Any:
    found = []
    for i in range(count(x)):
        found.append((i, "a"))
    for i in range(count(x)):
        found.append((i, "xyz"[i]))
    return found


def in_dicts(x: torch.Tensor) -> Any:
    if x.sum() > 0:
        found = [{"at": (i, x[i]), "what": "pos"[i]} for i in range(count(x))]
    else:
        found = [{"at": (i, x[i]), "what": "neg"[i]} for i in range(count(x))]
    return found


def changed_by_a_loop(x: torch.Tensor) -> Any:
    found = [(0, "s")]
    for i in range(count(x)):
        last = found[-1][1]
        found.append((i, last if x[i] > 1 else "uvw"[i]))
    return found


@pytest.mark.parametrize("function", [
    zipped, of_other_lengths, with_a_grown_list, with_a_joined_tuple, mapped, made_of_it, numbered, starred, plain,
    two_comprehensions, one_of_more_kinds, one_then_several, in_dicts, changed_by_a_loop,
], ids=lambda function: function.__name__)  # fmt: skip
@pytest.mark.parametrize("gradient", [False, True])
def test_which_of_several_an_item_holds_is_known_after_the_join(function: Callable[..., Any], gradient: bool) -> None:
    check(function, *((x.clone().requires_grad_(gradient),) for (x,) in CALLS))
