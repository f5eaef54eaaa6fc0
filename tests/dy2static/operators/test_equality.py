"""``==`` and ``!=`` of lists, tuples and dicts that hold what is only known while the Program runs."""

from __future__ import annotations

import collections
import itertools
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import check

CALLS = [(torch.full((3,), value),) for value in (4.0, 1.0, -1.0, 30.0)]
"""Three, six, eight and no items are appended."""


def grown(x, item=2):
    found = []
    while x.sum() < 20:
        found.append(item)
        x = x + 1
    return found, x


def with_a_plain_list(x):
    found, x = grown(x)
    want = [2, 2, 2]
    if found == want:
        x = x * 2
    return x, found == [], found != want, want == found, found == [2, 2, 3], found == (2, 2, 2), found == 3


def inside_others(x):
    found, x = grown(x)
    want = [2, 2, 2]
    return [found] == [want], (1, {"a": found}) == (1, {"a": want}), {"a": found} != {"b": want}


def among_others(x):
    found, x = grown(x)
    lists = [[2], [2, 2, 2], []]
    return found in lists, found not in [[2, 2], [2] * 6], [2] in [found, [3]]


def of_tuples(x):
    found, x = grown(x, (1, 2.5, None))
    want = [(1, 2.5, None)] * 3
    return found == want, found == [(1, 2.5, 0)] * 3


def items_that_differ(x):
    number = int(x.sum())
    want = (3, 12)
    found = [1, 2] if x.sum() > 0 else (1, 2)
    table = {"a": number}
    return (3, number) == want, (number, 3) != want, found == want, [1, 2] == found, table == {"a": want[1]}


def tensors(x):
    y = x * 1
    small = x.sum()
    return [x] == [x], [x, 1] == [y], [small] == [x.sum()], (small, 1) == (x.sum() + 1, 1), [y[0]] != [x[0]]


def appended_on_one_path(x):
    found, want = [], [1]
    if x.sum() > 0:
        found.append(1)
    return found == want, want != found, {"n": found} == {"n": want}


def order(x):
    found, x = grown(x)
    return found < [2, 2], found >= [2, 2, 2], [3] <= found, found > []


def both_grew(x):
    one, x = grown(x - 1)
    other, x = grown(x - 1)
    return one == other


def with_an_empty_one(x):
    found, _ = grown(x, x)
    return found == [], [] == found, found != [], found == (), tuple(found) == (), not (found == [])


@pytest.mark.parametrize("function", [
    with_an_empty_one,
    with_a_plain_list, inside_others, among_others, of_tuples, items_that_differ, tensors, appended_on_one_path, order,
    both_grew,
])  # fmt: skip
def test_as_eager(function):
    check(function, *CALLS)


def grown_tensors(x):
    found, _ = grown(x, x)
    return found == [x]


def index(x):
    found, x = grown(x)
    lists = [[2], [2, 2]]
    return lists.index(found)  # of one that is not there the message shows the value


def test_what_is_refused():
    with pytest.raises(TraceError, match=r"D2S253[\s\S]*test_equality.py.*grown_tensors"):
        to_static(grown_tensors)(CALLS[0][0])


@pytest.mark.parametrize("call", range(len(CALLS)))
def test_a_message_shows_what_was_looked_for(call):
    with pytest.raises(ValueError) as expected:
        index(*CALLS[call])
    with pytest.raises(ValueError) as found:
        to_static(index)(*CALLS[call])
    assert str(found.value) == str(expected.value)


ITEMS = {
    "numbers": "v", "pairs": "(v, 1.5)", "or None": "v if v > 1 else None", "texts": "f'{v}'",
    "of tuples": "((v, v), 1)",
}  # fmt: skip
OPERATIONS = ("a == b", "a != b", "a < b", "a >= b", "(a, 1) == (b, 1)", "(a, 0) > (b, 1)", "[a] == [b]",
              "a in [[], b]", "(1, tuple(a)) == (1, tuple(b))", "sorted([(1, a), (1, b)])",
              "sorted([a, b], reverse=True)", "max(a, b)", "a[:2] == b[:2]", "(a if k else b) < b",
              "(a if k else [v for v in b]) == b", "min((2, b), (1, a))")
APART = """def f(x, y):
    a, b, k = [], [], bool(x.sum() > 4)
    for v in x.tolist():
        if v >= 0:
            a.append({item})
    for v in y.tolist():
        if v >= 0:
            b.append({item})
    return {operation}, len(a)
"""


@pytest.mark.sample(8)
@pytest.mark.parametrize(("items", "operation"), list(itertools.product(ITEMS, OPERATIONS)))
def test_two_that_grew(items: str, operation: str, tmp_path: Path) -> None:
    """Also the TypeError of None and a number."""
    path = tmp_path / "apart.py"
    path.write_text(APART.format(item=ITEMS[items], operation=operation))
    names: dict[str, Any] = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    rows = [[1, 2, 3], [1, -2, 2], [1, 2, -3], [3, 1, 0], [-1, -1, -1]]
    check(names["f"], *[(torch.tensor(one), torch.tensor(other)) for one in rows for other in rows])


class Pair(NamedTuple):
    first: Any
    second: Any = 2.0


Other = collections.namedtuple("Other", "a b")


class OwnList(list):
    pass


class OwnDict(dict):
    pass


class AlwaysLess(tuple):
    def __lt__(self, other):
        return True


KINDS = {
    "tuple": lambda v: (v, 2.0), "named tuple": Pair, "other named tuple": lambda v: Other(v, 2.0),
    "list": lambda v: [v, 2.0], "own list": lambda v: OwnList([v, 2.0]), "always less": lambda v: AlwaysLess((v, 2.0)),
    "dict": lambda v: {"a": v, "b": 2.0}, "own dict": lambda v: OwnDict(a=v, b=2.0),
    "ordered": lambda v: collections.OrderedDict(a=v, b=2.0),
    "otherwise ordered": lambda v: collections.OrderedDict(b=2.0, a=v),
    "with a default": lambda v: collections.defaultdict(int, a=v, b=2.0),
}  # fmt: skip


@pytest.mark.parametrize(("one", "other"), list(itertools.product(KINDS, KINDS)))
def test_objects_of_derived_classes(one, other):
    """They are equal, and in order, as what they hold is, unless their class says otherwise."""
    first, second = KINDS[one], KINDS[other]

    def function(x):
        a, b = first(x[0].item()), second(1.0)
        found = [a == b, b != a, [a] == [b], {"k": a} == {"k": b}, a in [b, 3], (1, a) == (1, b)]
        if isinstance(a, tuple) and isinstance(b, tuple) or isinstance(a, list) and isinstance(b, list):
            found += [a < b, b < a, a >= b, min(a, b) == a, sorted([b, a])[0] == b]
        return found

    check(function, *CALLS)
