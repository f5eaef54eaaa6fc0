"""Values from outside that are equal for Python, and not the same for a program that reads them: each has its Program.

Each pair is an argument, an attribute, a global, a captured variable and a default, one after the other and back.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from dy2static import to_static
from tests.oracle import same

X = torch.arange(3.0)


def in_order(x: Any, v: Any) -> Any:
    out = []
    for k in v:
        out.append((k, x * k))
    return out


def listed(x: Any, v: Any) -> Any:
    return list(v), x + 1


def inside(x: Any, v: Any) -> Any:
    out = []
    for (k,) in v:
        out.append(k)
    return out, x


def shown(x: Any, v: Any) -> Any:
    return repr(v), x


def one_more(x: Any, v: Any) -> Any:
    d = v.copy()
    d.append(x.sum())
    return len(d), d.maxlen


def missing(x: Any, v: Any) -> Any:
    d = v.copy()
    return d["q"], x


def as_tensor(x: Any, v: Any) -> Any:
    t = torch.from_numpy(v)
    return t.stride(), t.is_contiguous(), t * x


def writeable(x: Any, v: Any) -> Any:
    return v.flags.writeable, x


def of_a_key(x: Any, v: Any) -> Any:
    return list(v["a"]), x


def kind(x: Any, v: Any) -> Any:
    return type(v).__name__, x


def _frozen(array: Any) -> Any:
    array.setflags(write=False)
    return array


PAIRS: dict[str, tuple[Any, Any, Callable[[Any, Any], Any]]] = {
    "order of a set": ({8, 0}, {0, 8}, in_order),
    "order of a frozenset": (frozenset([8, 0]), frozenset([0, 8]), listed),
    "text of a set": ({8, 0}, {0, 8}, shown),
    "tuples in a set": ({(1,)}, {(True,)}, inside),
    "zeros in a set": ({0.0}, {-0.0}, listed),
    "a set in a dict": ({"a": {8, 0}}, {"a": {0, 8}}, of_a_key),
    "a frozenset in a dict": ({"a": frozenset([(1,)])}, {"a": frozenset([(True,)])}, shown),
    "order of a dict": ({8: 1, 0: 2}, {0: 2, 8: 1}, listed),
    "order of a Counter": (collections.Counter("ab"), collections.Counter("ba"), listed),
    "maxlen": (collections.deque([1], maxlen=1), collections.deque([1]), one_more),
    "default_factory": (collections.defaultdict(int), collections.defaultdict(float), missing),
    "strides of an array": (numpy.ones((3, 3)), numpy.asfortranarray(numpy.ones((3, 3))), as_tensor),
    "an array that may not be written": (numpy.ones(2), _frozen(numpy.ones(2)), writeable),
    "a number of an array": (numpy.float32(1), numpy.float64(1), kind),
    "zero": (0.0, -0.0, shown),
    "bytes": (b"a", bytearray(b"a"), kind),
    "bounds of an empty range": (range(1, 0), range(0), shown),
    "bounds of a slice": (slice(0, 1), slice(False, True), shown),
}  # fmt: skip


class Owner:
    held: Any = None


def as_argument(use: Any) -> Callable[[Any], Any]:
    static = to_static(use)
    return lambda value: static(X, value)


def as_attribute(use: Any) -> Callable[[Any], Any]:
    owner = Owner()

    def f(x: Any) -> Any:
        return use(x, owner.held)

    static = to_static(f)

    def call(value: Any) -> Any:
        owner.held = value
        return static(X)

    return call


HELD: Any = None


def as_global(use: Any) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        return use(x, HELD)

    static = to_static(f)

    def call(value: Any) -> Any:
        globals()["HELD"] = value
        return static(X)

    return call


def as_captured(use: Any) -> Callable[[Any], Any]:
    held: Any = None

    def f(x: Any) -> Any:
        return use(x, held)

    static = to_static(f)

    def call(value: Any) -> Any:
        nonlocal held
        held = value
        return static(X)

    return call


def as_default(use: Any) -> Callable[[Any], Any]:
    def inner(x: Any, v: Any = None) -> Any:
        return use(x, v)

    def f(x: Any) -> Any:
        return inner(x)

    static = to_static(f)

    def call(value: Any) -> Any:
        assert isinstance(inner, types.FunctionType)
        inner.__defaults__ = (value,)
        return static(X)

    return call


@pytest.mark.parametrize("place", [as_argument, as_attribute, as_global, as_captured, as_default])
@pytest.mark.parametrize("name", PAIRS)
def test_each_has_its_program(name: str, place: Callable[[Any], Callable[[Any], Any]]) -> None:
    one, other, use = PAIRS[name]
    call = place(use)
    for value in (one, other, one):
        same(call(value), use(X, value), bits=True)
