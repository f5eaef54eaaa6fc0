"""Texts that only the run knows as keys of dicts, sets and counters."""

from __future__ import annotations

import collections
import enum
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from tests.oracle import check


class Name(str, enum.Enum):
    FIRST = "a0"
    SECOND = "a1"


class Loose:
    """Equal to every text."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str)

    def __hash__(self) -> int:
        return hash("a1")


def counted_with_get(x: Any) -> Any:
    d: Any = {}
    for i in range(x.shape[0]):
        k = f"c{int(x[i].argmax())}"
        d[k] = d.get(k, 0) + 1
    return d


def a_counter(x: Any) -> Any:
    return collections.Counter(f"c{int(r.argmax())}" for r in x)


def a_set(x: Any) -> Any:
    seen: Any = set()
    for r in x:
        seen.add(f"{int(r.argmax())}")
    return len(seen), sorted(seen), "1" in seen


def read_of_four(x: Any) -> Any:
    d = {"a0": x, "a1": x * 2, "a2": x * 3, "a3": x * 4}
    return d[f"a{int(x[0].argmax()) % 4}"]


def grouped(x: Any) -> Any:
    d: Any = collections.defaultdict(list)
    for i, r in enumerate(x):
        d[f"c{int(r.argmax())}"].append(i)
    return dict(d), {k: len(v) for k, v in d.items()}


def functions(x: Any) -> Any:
    d = {"relu": torch.relu, "tanh": torch.tanh}
    positive = x.sum() > 0
    return d["relu" if positive else "tanh"](x), d[f"{'re' if positive else 'ta'}{'lu' if positive else 'nh'}"](x)


def get_and_in(x: Any) -> Any:
    d: Any = {"a": 1}
    return d.get(f"{int(x[0].argmax())}", -1), f"{int(x[0].argmax())}" in d


def in_tuples(x: Any) -> Any:
    d = {(int(r.argmax()), f"{int(r.argmin())}"): r.sum() for r in x}
    return d


def caught(x: Any) -> Any:
    d = {"a0": 1.0}
    try:
        return d[f"a{int(x[0].argmax())}"]
    except KeyError as e:
        return str(e)


def missing(x: Any) -> Any:
    d = {"a0": 1.0}
    return d[f"a{int(x[0].argmax())}"]


def sorted_and_joined(x: Any) -> Any:
    d: Any = {}
    for r in x:
        d[f"k{int(r.argmax())}"] = r
    return sorted(d), list(d.values()), ",".join(d)


def among_numbers(x: Any) -> Any:
    d: Any = {1: x, "a": x * 2}
    return d[f"{'a' if x.sum() > 0 else 'a'}"]


def beside_a_number(x: Any) -> Any:
    d: Any = {1: "x"}
    d[f"k{int(x[0].argmax())}"] = "y"
    return d


def from_keys(x: Any) -> Any:
    names = [f"n{int(r.argmax())}" for r in x]
    return list(dict.fromkeys(names)), {n: names.count(n) for n in names}


def a_comprehension(x: Any) -> Any:
    return {f"t{int(v > 0)}": v for v in x.flatten()}


def members_of_an_enumeration(x: Any) -> Any:
    d = {Name.FIRST: x, Name.SECOND: x * 2}
    return d[f"a{int(x[0].argmax()) % 2}"]  # type: ignore[index]


def kept_and_removed(x: Any) -> Any:
    d: Any = {}
    for i in range(x.shape[0]):
        d[f"k{int(x[i].argmax())}"] = x[i]
    first = d.pop(f"k{int(x[0].argmax())}")
    return first, d.setdefault("more", x[0]), list(d)


FUNCTIONS = [
    counted_with_get, a_counter, a_set, read_of_four, grouped, functions, get_and_in, in_tuples, caught, missing,
    sorted_and_joined, among_numbers, beside_a_number, from_keys, a_comprehension, members_of_an_enumeration,
    kept_and_removed,
]  # fmt: skip
INPUTS = [torch.randn(3, 4, generator=torch.Generator().manual_seed(seed)) for seed in (3, 4, 5)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda function: function.__name__)
def test_as_in_eager(function: Any) -> None:
    calls = [(x.requires_grad_(),) for x in INPUTS]
    check(function, *calls, (torch.ones(3, 4),), paths=("program",), none_is_zero=True)


def test_a_key_that_may_be_equal_to_any_text_is_refused() -> None:
    def read(x: Any) -> Any:
        d: Any = {Loose(): x}
        return d[f"a{int(x[0].argmax())}"]

    with pytest.raises(TraceError, match="D2S265"):
        check(read, (INPUTS[0],), paths=("program",))
