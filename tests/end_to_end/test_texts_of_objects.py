"""The text of objects that hold what only the run knows: of Python's containers, dataclasses and users' classes."""

from __future__ import annotations

import collections
import dataclasses
import enum
import logging
import types
from typing import Any, NamedTuple

import pytest
import torch

from dy2static import to_static
from tests.oracle import check, check_saved

CALLS = [(torch.tensor([value, 0.5]),) for value in (1.0, -1.0)]


class Way(enum.Enum):
    UP = 1


class Pair(NamedTuple):
    first: Any
    second: Any = None


@dataclasses.dataclass
class Record:
    loss: Any
    tag: Any = "é"
    hidden: int = dataclasses.field(default=0, repr=False)


@dataclasses.dataclass
class Derived(Record):
    inner: Any = None


@dataclasses.dataclass(repr=False)
class Silent:
    value: int = 0

    def __repr__(self):
        return f"Silent é {self.value!r}"


class Users:
    def __init__(self, value):
        self.value = value

    def __repr__(self):
        return f"<é {self.value}>"


class Both(Users):
    def __str__(self):
        return f"both {self.value:.2f}"

    def __format__(self, spec):
        return f"[{spec}] {self.value}"


MAKERS = {
    "dataclass": Record,
    "dataclass in another": lambda v: Derived(v, inner=[Record(v), (Record(2),)]),
    "dataclass with its own text": Silent,
    "dataclass that holds itself": lambda v: _holding_itself(Record(v)),
    "class": Users,
    "class with both": Both,
    "named tuple": lambda v: Pair(v, Record(v)),
    "deque": lambda v: collections.deque([v, Users(v)]),
    "bounded deque": lambda v: collections.deque([v, 1], maxlen=3),
    "OrderedDict": lambda v: collections.OrderedDict(a=v, b=Record(v)),
    "empty OrderedDict": lambda v: collections.OrderedDict(),
    "defaultdict": lambda v: collections.defaultdict(int, a=v),
    "Counter": lambda v: collections.Counter(a=int(v), b=0),
    "namespace": lambda v: types.SimpleNamespace(a=v, b=[Users(v)]),
    "list": lambda v: [Record(v), Users(v), None, Way.UP],
    "nested": lambda v: {"a": (Record(v), [v]), Way.UP: collections.deque([Pair(v)])},
}
VALUES = {
    "number": lambda x: x[0].item(),
    "chosen": lambda x: 1 if x[0] > 0 else 2.5,
    "text": lambda x: f"{x[0].item()}é",
    "known": lambda x: 3,
    "tensor": lambda x: x * 2,
}
WAYS = {
    "str": str, "repr": repr, "ascii": ascii,
    "f-string": lambda o: f"{o} {o!r} {o!s} {o!a}",
    "percent": lambda o: "%s|%r|%s" % (o, o, [o]),
    "format": lambda o: "{} {!r} {a!s}".format(o, [o], a=o),
    "inside": lambda o: repr(({"k": [o]}, o)),
    "print": lambda o: print(o, [o], {"k": o}),
}  # fmt: skip


def _holding_itself(record):
    record.tag = [record]
    return record


def _fits(maker, value):
    return not (maker == "Counter" and value in ("text", "tensor") or maker == "class with both" and value in (
        "text", "tensor"))  # fmt: skip


CASES = [(maker, value, way) for maker in MAKERS for value in VALUES for way in WAYS if _fits(maker, value)]


@pytest.mark.sample(60)
@pytest.mark.parametrize(("maker", "value", "way"), CASES)
def test_as_eager(maker, value, way):
    make, of, tell = MAKERS[maker], VALUES[value], WAYS[way]

    def function(x):
        return tell(make(of(x))), x * 2

    check(function, *CALLS)


@pytest.mark.parametrize("way", ["repr", "print"])
def test_from_a_file(way, tmp_path):
    tell = WAYS[way]

    def function(x):
        return tell(Derived(x[0].item(), "a" if x[0] > 0 else "b", inner=[Users(int(x[0]))])), x * 2

    static = to_static(function)
    static(*CALLS[0])
    check_saved(function, static, tmp_path / "saved.d2s", *CALLS)


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("value", ["known", "number"])
def test_loggers_say_it_as_eager(maker, value, caplog):
    """A record's text is that of the object as its field asks for it, not the text in quotes."""
    make, of = MAKERS[maker], VALUES[value]

    def function(x):
        made = make(of(x))
        logging.getLogger("dy2static.tests.texts").warning("%r of %s and %s", made, made, 3)
        return x * 2

    static = to_static(function)
    for call in CALLS:
        told = []
        for run in (function, static):
            caplog.clear()
            run(*call)
            told.append(caplog.messages[:])
        assert told[0] == told[1] and len(told[0]) == 1
