"""Lists, dicts and objects that are several items of a list that grows, or an item and something else: one object."""

from __future__ import annotations

import collections
import linecache
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static
from tests.oracle import check


@dataclass
class Pair:
    value: Any
    seen: list[Any] = field(default_factory=list)


class Plain:
    def __init__(self, value: Any) -> None:
        self.value = value


MAKERS = {
    "list": lambda x: [x],
    "dict": lambda x: {"value": x},
    "dataclass": lambda x: Pair(x),
    "object": lambda x: Plain(x),
    "tuple of a list": lambda x: ([x], 1),
    "list of a list": lambda x: [[x], x + 1],
}
"""An object with a tensor. (Called as ``make`` below, which converted code converts.)"""

PROGRAMS = """
for i in range(n): out.append(c) # the same one each time
---
for i in range(n): out.append(c) # and as a result of its own
r = c, r
---
out.append(c) # as an item first
for i in range(n): out.append(make(x + i))
r = c, r
---
for i in range(n): # made in the iteration, put in twice
    d = make(x + i)
    out.append(d)
    out.append(d)
---
for i in range(n): out.append(make(x + i))
out.append(out[0]) # taken out and put in again
---
for i in range(n): out.append(make(x + i))
r = out[-1], r # taken out
---
for i in range(n): out.append(make(x + i))
r = r, list(out) # two lists with the same items
---
for i in range(n): out.append(make(x + i))
r = r, out[1:]
---
for i in range(n): out.append(make(x + i))
out = out + out
r = out
---
for i in range(n): out.append(make(x + i))
out.extend(out[:1])
---
for i in range(n): out.append(make(x + i))
out.extend(list(out))
---
for i in range(n): out.append(make(x + i))
out *= 2
---
for i in range(n): out.append(make(x + i))
out[1:1] = out[:1]
---
for i in range(n): out.append(make(x + i))
other = [make(x)]
for a in out: other.append(a)
r = out, other
---
for i in range(n): # carried from iteration to iteration
    out.append(c)
    if i == 0:
        c = make(x + i)
---
if x.sum() > 0: # on a path
    out.append(c)
for i in range(n): out.append(c)
---
for i in range(n): # one of two
    e = make(x - i)
    out.append(c if x.sum() + i > 1 else e)
    out.append(e)
---
for i in range(n): out.append(make(x + i))
moved = []
while len(out) > 1: moved.append(out.pop())
r = out, moved
---
out.append((c, c)) # twice in one item
for i in range(n): out.append((make(x), c))
---
for i in range(n): # made for the list alone
    out.append(make(x + i))
"""


def _function(text: str, make: Any) -> Any:
    lines = "\n".join(f"    {line}" for line in text.strip().splitlines())
    source = f"def f(x):\n    n, out, c = int(x.abs().sum()), [], make(x)\n    r = out\n{lines}\n    return r\n"
    name = f"<items that are one object {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"make": make}
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"]


CALLS = [(torch.tensor([value, value / 2]),) for value in (1.5, -1.5, 2.1)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("text", PROGRAMS.split("---"), ids=lambda text: text.strip().splitlines()[0][:50])
def test_as_eager(text: str, kind: str, tmp_path: Path) -> None:
    function = _function(text, MAKERS[kind])
    static = check(function, *CALLS)
    if kind in ("list", "dict"):
        dy2static.save(static, tmp_path / "f.d2s")
        check(function, *CALLS, static=dy2static.load(tmp_path / "f.d2s"), paths=("program",))


def of_deques(x: Any) -> Any:
    c, out = [x], collections.deque(maxlen=4)
    for _ in range(int(x.abs().sum())):
        out.append(c)
    return out


def of_arguments(x: Any, given: Any) -> Any:
    out = []
    for t in given:
        if t[0].sum() > x.sum():
            out.append(t)
    return out, given


class Keeps(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: list[Any] = []

    def forward(self, x: Any) -> Any:
        c = [x]
        for _ in range(int(x.abs().sum())):
            self.seen.append(c)
        return len(self.seen), c


def test_of_deques() -> None:
    check(of_deques, *CALLS)


def test_of_arguments() -> None:
    check(of_arguments, *((torch.tensor(0.0), [[torch.tensor(value)] for value in (1.0, -1.0, 2.0)]) for _ in range(2)))


def test_in_attributes() -> None:
    eager, static = Keeps(), Keeps()
    converted = to_static(static)
    for (x,) in CALLS:
        (count, c), (found, d) = eager(x), converted(x)
        assert count == found and torch.equal(c[0], d[0])
        assert [one is c for one in eager.seen] == [one is d for one in static.seen]


def test_what_is_made_for_the_list_alone_needs_no_references() -> None:
    def f(x: Any) -> Any:
        out = []
        for i in range(int(x.sum())):
            out.append([x * i])
        return out

    static = to_static(f)
    static(torch.ones(2))
    assert not any(op.name in ("array.load", "array.store") for op in static.programs[0].block.walk())


def test_an_item_taken_on_a_path_may_be_what_was_put_in() -> None:
    """Which item comes out nobody says: refused, in place of False."""

    def f(x: Any, y: Any) -> Any:
        p, q = x * 0.5, y * 2
        items, item = [p, q], q
        if (y > 0).any():
            items.append(item)
        if x.sum() < 1.5:
            item = items[0]
        return item, item is p

    with pytest.raises(dy2static.Dy2StaticError, match="D2S264"):
        to_static(f)(torch.full((3,), 0.1), torch.ones(3))


def changed_on_the_other_path(x: Any) -> Any:
    row = [x]
    out = [row]
    if x.sum() > 0:
        for i in range(int(x.abs().sum())):
            out.append([x * i])
    else:
        for i in range(int(x.abs().sum())):
            out.append([x + i])
        row.append(x * 3)
    return out


def test_a_change_after_it_entered_on_another_path() -> None:
    check(changed_on_the_other_path, *CALLS)
