"""A container among the arguments that is reached in another way as well is one object to the Program, as in eager.

Each case calls one converted function with the two being one object and with two equal ones, in both orders: whether
they are one is part of what finds the Program of a call.
"""

from __future__ import annotations

import collections
import contextvars
import dataclasses
import linecache
from typing import Any

import pytest
import torch

import dy2static
from dy2static import Dy2StaticError, to_static


class Box:
    """An object that holds one."""

    def __init__(self, held: Any) -> None:
        self.held = held


class Holder(torch.nn.Module):
    """A module that holds one."""

    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held


@dataclasses.dataclass
class Record:
    """A dataclass, which is taken apart where it holds a tensor."""

    held: Any


VARIABLE: contextvars.ContextVar[Any] = contextvars.ContextVar("VARIABLE")

KINDS = {  # how to make one, to write it, and to read it
    "list": (lambda t: [1, 2], "{}.append(7)", "len({})"),
    "tensors": (lambda t: [t, t + 1], "{}.append(x)", "sum(one.sum() for one in {})"),
    "dict": (lambda t: {"a": 1}, "{}['n'] = 1", "len({})"),
    "default": (lambda t: collections.defaultdict(list, a=[t]), "{}['n'].append(x)", "len({})"),
    "set": (lambda t: {1, 2}, "{}.add(9)", "len({})"),
    "deque": (lambda t: collections.deque([1, 2]), "{}.append(3)", "len({})"),
    "object": (lambda t: Box([1]), "{}.held = [1, 2, 3]", "len({}.held)"),
    "dataclass": (lambda t: Record(t), "{}.held = x * 5", "{}.held.sum()"),
}
WAYS = {  # how it is spelled, and the arguments after the first two that lead to it
    "global": ("GLOBAL", "", lambda one: ()),
    "cell": ("cell", "", lambda one: ()),
    "context variable": ("VARIABLE.get()", "", lambda one: ()),
    "attribute": ("box.held", ", box", lambda one: (Box(one),)),
    "module": ("module.held", ", module", lambda one: (Holder(one),)),
    "in a list": ("outer[0]", ", outer", lambda one: ([one],)),
    "in a deque": ("outer[0]", ", outer", lambda one: (collections.deque([one]),)),
    "another argument": ("other", ", other", lambda one: (one,)),
}
USES = {
    "the argument is written": "{write_a}; return x * {read_b}",
    "the other is written": "{write_b}; return x * {read_a}",
    "both are written": "{write_a}; {write_b}; return x * {read_a}, x * {read_b}, [a, {b}]",
    "is": "return x * 2 if a is {b} else x * 3",
    "returned": "return x, a, {b}",
    "stored": "STORED['a'], STORED['b'] = a, {b}; return x * 2",
}
ORDERS = [(True, False, True), (False, True)]
EVERY_WAY = ("list", "tensors")
CASES = [(kind, way) for kind in KINDS for way in WAYS
         if kind in EVERY_WAY or way in ("global", "in a list", "another argument")]


def _function(kind: str, way: str, use: str, path: str, space: dict[str, Any]) -> Any:
    _, write, read = KINDS[kind]
    spelled, parameters, _ = WAYS[way]
    body = USES[use].format(
        b=spelled, write_a=write.format("a"), write_b=write.format(spelled), read_a=read.format("a"),
        read_b=read.format(spelled))
    text = (f"def made():\n    cell = None\n    def bind(one):\n        nonlocal cell\n        cell = one\n"
            f"    def function(x, a{parameters}):\n        cell\n        {body}\n    return function, bind\n")
    linecache.cache[path] = (len(text), None, text.splitlines(keepends=True), path)
    exec(compile(text, path, "exec"), space)
    return space["made"]()


def _picture(value: Any, seen: dict[int, int]) -> Any:
    """Values, and which objects are one."""
    if isinstance(value, torch.Tensor):
        return value.tolist()
    if value is None or isinstance(value, (int, float, str)):
        return value
    if isinstance(value, tuple):
        return tuple(_picture(item, seen) for item in value)
    if id(value) in seen:
        return ("again", seen[id(value)])
    seen[id(value)] = len(seen)
    if isinstance(value, dict):
        return {key: _picture(item, seen) for key, item in value.items()}
    if isinstance(value, (list, collections.deque, set)):
        return [type(value).__name__, *(_picture(item, seen) for item in value)]
    return (type(value).__name__, _picture(value.held, seen))


def _run(kind: str, way: str, use: str, order: tuple[bool, ...], path: str, convert: bool) -> list[Any]:
    space: dict[str, Any] = {"VARIABLE": VARIABLE, "STORED": {}, "GLOBAL": None, "__name__": "cases"}
    function, bind = _function(kind, way, use, path, space)
    if convert:
        function = dy2static.to_static(function)
    results = []
    for one_object in order:
        t = torch.tensor([1.0, 2.0])
        given = KINDS[kind][0](t)
        other = given if one_object else KINDS[kind][0](t)
        space["GLOBAL"] = other
        bind(other)
        VARIABLE.set(other)
        x = torch.tensor([3.0, 4.0], requires_grad=True)
        arguments = (x, given, *WAYS[way][2](other))
        result = function(*arguments)
        first = result[0] if isinstance(result, tuple) else result
        first.sum().backward()
        assert x.grad is not None
        results.append(_picture([result, arguments[1:], other, space["STORED"], x.grad], {}))
    return results


@pytest.mark.sample(3)
@pytest.mark.filterwarnings("ignore::dy2static.program_cache.RetraceWarning")
@pytest.mark.parametrize(("kind", "way"), CASES)
def test_a_container_that_is_reached_otherwise_is_one_object(kind: str, way: str) -> None:
    for use in USES:
        for order in ORDERS:
            path = f"<reached otherwise: {kind} {way} {use}>"
            expected = _run(kind, way, use, order, path, convert=False)
            assert _run(kind, way, use, order, path, convert=True) == expected, (use, order)


HELD: list[Any] = [1]
TUPLE: tuple[Any, ...] = (1, [2])


def test_the_default_of_a_called_function_is_the_argument() -> None:
    def helper(x, held=HELD):
        held.append(3)
        return x * len(held)

    @dy2static.to_static
    def function(x, one):
        y = helper(x)
        return y * len(one)

    HELD[:] = [1]
    x = torch.ones(2)
    assert function(x, HELD).tolist() == [4.0, 4.0]
    assert function(x, [1]).tolist() == [3.0, 3.0]
    assert function(x, HELD).tolist() == [16.0, 16.0]
    assert HELD == [1, 3, 3, 3]


def test_the_default_of_another_parameter_is_the_argument() -> None:
    @dy2static.to_static
    def function(x, one, held=HELD):
        held.append(3)
        return x * len(one)

    HELD[:] = [1]
    x = torch.ones(2)
    assert function(x, [1]).tolist() == [1.0, 1.0]
    assert function(x, HELD).tolist() == [3.0, 3.0]
    assert function(x, HELD, []).tolist() == [3.0, 3.0]
    assert HELD == [1, 3, 3]


def test_what_is_stored_is_what_the_next_call_is_given() -> None:
    class Cached(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = []

        def forward(self, x, cache):
            self.cache.append(x)
            return sum(cache, torch.zeros(2)), len(cache)

    module = Cached()
    converted = dy2static.to_static(Cached())
    for one in (module, converted):
        one.results = [one(torch.ones(2), one.cache if i % 2 else list(one.cache)) for i in range(4)]
    assert [(a.tolist(), n) for a, n in converted.results] == [(a.tolist(), n) for a, n in module.results]


def test_a_tuple_is_compared_by_identity() -> None:
    @dy2static.to_static
    def function(x, one):
        return x * 2 if one is TUPLE else x * 3

    x = torch.ones(1)
    for _ in range(2):
        assert function(x, TUPLE).item() == 2.0
        assert function(x, (1, [2])).item() == 3.0


def test_an_equal_set_of_another_call_is_the_one_that_is_written() -> None:
    @dy2static.to_static
    def function(x, some):
        some.add(5)
        return x * len(some), some

    for _ in range(3):
        some = {1, 2}
        result, given = function(torch.ones(1), some)
        assert (result.item(), given is some, some) == (3.0, True, {1, 2, 5})
    assert len(function.programs) == 1


def test_containers_that_nothing_else_leads_to_share_a_program() -> None:
    @dy2static.to_static
    def function(x, one):
        return x * len(one) * len(HELD)

    HELD[:] = [1]
    for _ in range(3):
        function(torch.ones(1), [1, 2])
    assert len(function.programs) == 1
    function(torch.ones(1), HELD)
    function(torch.ones(1), HELD)
    assert len(function.programs) == 2


HELD: list[int] = [1]
ITEMS = iter(range(10))


def test_an_iterator_from_outside_is_not_advanced_twice():
    """Meeting the caller's own container begins the trace again: what was taken from an iterator stays taken."""

    def taken(x, items):
        first = next(ITEMS)
        return x * first, globals()["HELD"] is items

    try:
        to_static(taken)(torch.ones(2), HELD)
    except Dy2StaticError as error:
        assert error.code == "D2S266"
    assert next(ITEMS) == 1
