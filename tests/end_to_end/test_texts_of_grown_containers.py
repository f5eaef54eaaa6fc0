"""Texts of lists, tuples, dicts and sets of which only the run knows what they hold, and text joined of their items.

Every kind of container goes through every use, with many items, few and none.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import TraceError
from tests.oracle import check, check_saved

CALLS = [(torch.tensor(one),) for one in ([1.0, 2.0, 1.0, 3.0], [2.0, 2.0], [-20.0, 7.5], [30.0, 3.0, 9.0])]


@dataclass
class Point:
    x: float
    name: str = "p"


def whole_numbers(x: torch.Tensor) -> Any:
    out = []
    while x.sum() < 10:
        x = x + 1
        out.append(int(x.sum()))
    return out


def floats(x: torch.Tensor) -> Any:
    return [one / 3 for one in whole_numbers(x)]


def texts(x: torch.Tensor) -> Any:
    return [f"{one}'s" for one in whole_numbers(x)]


def flags_or_none(x: torch.Tensor) -> Any:
    return [one > 6 if one > 5 else None for one in whole_numbers(x)]


def pairs(x: torch.Tensor) -> Any:
    return [(one, str(one)) for one in whole_numbers(x)]


def in_a_tuple(x: torch.Tensor) -> Any:
    return tuple(whole_numbers(x))


def in_a_deque(x: torch.Tensor) -> Any:
    return deque(whole_numbers(x), maxlen=3)


def tensors(x: torch.Tensor) -> Any:
    return [x.detach() * one for one in whole_numbers(x)]


def lists(x: torch.Tensor) -> Any:
    return [[one, 0] for one in whole_numbers(x)]


def dicts(x: torch.Tensor) -> Any:
    return [{"v": one} for one in whole_numbers(x)]


def objects(x: torch.Tensor) -> Any:
    return [Point(one) for one in floats(x)]


def counted(x: torch.Tensor) -> Any:
    counts = {}
    for one in x:
        counts[int(one)] = counts.get(int(one), 0) + 1
    return counts


def in_a_counter(x: torch.Tensor) -> Any:
    return Counter(one % 4 for one in whole_numbers(x))


def grouped(x: torch.Tensor) -> Any:
    groups = defaultdict(list)
    for one in whole_numbers(x):
        groups[one % 3].append(one)
    return groups


def ordered(x: torch.Tensor) -> Any:
    made = OrderedDict()
    for one in whole_numbers(x):
        made[f"k{one % 4}"] = one / 2
    return made


def in_a_set(x: torch.Tensor) -> Any:
    return {one % 5 for one in whole_numbers(x)}


def shown(made: Any) -> Any:
    return str(made), repr(made), f"{made}", f"{made!r}"


def formatted(made: Any) -> Any:
    return "%s" % (made,), "%d: %r" % (len(made), made), "{}".format(made), f"{made!s:>40}|", "%(m)s" % {"m": made}


def in_others(made: Any) -> Any:
    return str([made, 1]), str({"a": made}), f"{(made,)}"


def in_ascii(made: Any) -> Any:
    return ascii(made)


def of_views(made: Any) -> Any:
    return str(made.keys()), repr(made.values()), f"{made.items()}"


def joined(made: Any) -> Any:
    return ", ".join(map(str, made)), "-".join(str(one) for one in made), "".join([repr(one) for one in made])


def of_items(made: Any) -> Any:
    return ", ".join(f"{key}:{value}" for key, value in made.items()), "; ".join(map(str, made.values()))


def of_sorted(made: Any) -> Any:
    return ", ".join(map(str, sorted(made))), str(sorted(made)), f"{sorted(made, reverse=True)}"


def printed(made: Any) -> Any:
    print(made, len(made), sep="|")


MAKERS = [
    whole_numbers, floats, texts, flags_or_none, pairs, in_a_tuple, in_a_deque, tensors, lists, dicts, objects, counted,
    in_a_counter, grouped, ordered, in_a_set,
]  # fmt: skip
USES = [shown, formatted, in_others, in_ascii, of_views, joined, of_items, of_sorted, printed]
CASES = [(make, use) for make in MAKERS for use in USES if (make, use) != (tensors, of_sorted)]  # Python cannot


@pytest.mark.parametrize(("make", "use"), CASES, ids=lambda one: one.__name__)
@pytest.mark.sample(12)
def test_as_eager(make: Callable[[Any], Any], use: Callable[[Any], Any], tmp_path) -> None:
    def function(x: torch.Tensor) -> Any:
        return use(make(x)), x * 2

    check_saved(function, check(function, *CALLS), tmp_path / "saved.d2s", *CALLS, paths=("program",))


def fields_of_a_tuple(x: torch.Tensor) -> Any:
    return "%d %d" % tuple(whole_numbers(x))


def text_without_an_order(x: torch.Tensor) -> Any:
    return str(in_a_set(x) - {1})


@pytest.mark.parametrize("function", [fields_of_a_tuple, text_without_an_order])
def test_refused(function):
    with pytest.raises(TraceError, match="D2S253|D2S265"):
        to_static(function)(*CALLS[0])


def added(x: torch.Tensor) -> Any:
    items = whole_numbers(x)
    first, second, third = ["a"], ["b"], ["c", "d", "e"]
    first += map(str, items)
    second.extend(map(str, items))
    third[1:2] = zip(items, map(str, items))
    return first, second, third


def in_sets(x: torch.Tensor) -> Any:
    items, made = whole_numbers(x), {1}
    made.update(map(lambda one: one % 4, items))
    apart = {7}.isdisjoint(map(lambda one: one % 4, items))
    return sorted(made), {3, 2}.union(map(lambda one: one % 4, items)), apart, {*items}, {*map(str, items), "a"}


def differences(x: torch.Tensor) -> Any:
    seen, other = set(), set()
    while x.sum() < 20:
        x = x + 1
        seen.add(int(x.sum()) % 5)
        other.add(int(x[0]) % 3)
    return (", ".join(map(str, sorted(seen - other))), f"{sorted(seen & other)}", "%s" % sorted(seen ^ other),
            [one for one in sorted(seen | other)], str(sorted(seen.difference(other, [4]))))  # fmt: skip


@pytest.mark.parametrize("function", [added, in_sets, differences])
def test_items_of_what_builtins_give(function, tmp_path):
    check_saved(function, check(function, *CALLS), tmp_path / "saved.d2s", *CALLS)
