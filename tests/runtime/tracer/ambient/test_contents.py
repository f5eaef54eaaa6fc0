"""What iterators, buffers and files hold, as something to compare: equal as long as nothing reads or writes them."""

from __future__ import annotations

import array
import csv
import io
import itertools
import os
import types
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from runtime.tracer.ambient import contents
from runtime.tracer.ambient.contents import READING, cells_of, inner, is_iterator, locals_of, parts, state_of
from runtime.tracer.ambient.poison import Poison


def generator(items: Any) -> Iterator[Any]:
    for item in items:
        yield item


class Own:
    """An iterator that is written in Python."""

    def __init__(self, items: Any) -> None:
        self.going = iter(items)

    def __iter__(self) -> Own:
        return self

    def __next__(self) -> Any:
        return next(self.going)


ADVANCED: dict[str, Callable[[], Any]] = {
    "list": lambda: iter([1, 2, 3]), "tuple": lambda: iter((1, 2, 3)), "text": lambda: iter("abc"),
    "bytes": lambda: iter(b"abc"), "range": lambda: iter(range(3)), "a long range": lambda: iter(range(2**70)),
    "set": lambda: iter({1, 2, 3}), "dict": lambda: iter({1: 1, 2: 2}), "values": lambda: iter({1: 1, 2: 2}.values()),
    "items": lambda: iter({1: 1, 2: 2}.items()), "deque": lambda: iter(deque([1, 2])),
    "reversed": lambda: reversed([1, 2, 3]), "reversed range": lambda: reversed(range(3)),
    "reversed dict": lambda: reversed({1: 1, 2: 2}),
    "generator": lambda: generator([1, 2, 3]), "expression": lambda: (one for one in [1, 2]),
    "count": itertools.count, "repeat": lambda: itertools.repeat(1, 3),
    "enumerate": lambda: enumerate([5, 5, 5]), "islice": lambda: itertools.islice([1, 2, 3], 2),
    "product": lambda: itertools.product([1, 2], repeat=2), "permutations": lambda: itertools.permutations([1, 2]),
    "combinations": lambda: itertools.combinations([1, 2, 3], 2), "array": lambda: iter(array.array("b", [1, 2])),
    "accumulate": lambda: itertools.accumulate([1, 2]), "dropwhile": lambda: itertools.dropwhile((0).__gt__, [1, 2]),
    "tee": lambda: itertools.tee([1, 2])[0],
    "of items": lambda: iter(Items()), "cycle": lambda: itertools.cycle([1, 2]),
    "chain": lambda: itertools.chain([1, 2]),
    "ordered": lambda: iter(OrderedDict({1: 1, 2: 2})),
    "zip_longest": lambda: itertools.zip_longest([1, 2]), "takewhile": lambda: itertools.takewhile(bool, [1, 2]),
    "filterfalse": lambda: itertools.filterfalse(str.isdigit, "ab"), "pairwise": lambda: itertools.pairwise([1, 2, 3]),
    "starmap": lambda: itertools.starmap(pow, [(1, 2), (2, 3)]), "compress": lambda: itertools.compress([1, 2], [1, 1]),
    "a cycle again": lambda: advanced(itertools.cycle([1, 2, 3]), 4),
    "groups": lambda: map(len, itertools.groupby([1, 2])),
    "of lists": lambda: itertools.chain.from_iterable([[1], [2]]), "a chain going": lambda: advanced(chained(), 1),
    "a group": lambda: next(itertools.groupby([1, 1, 2]))[1], "with a start": lambda: initial([1, 2], 5),
    "zip": lambda: zip([1, 2, 3]), "map": lambda: map(str, [1, 2]), "filter": lambda: filter(None, [1, 2]),
    "nested": lambda: zip(map(str, itertools.chain(itertools.count(), [1])), itertools.repeat(1)),
    "big numbers": lambda: (one * 1.0 for one in range(1000, 1003)),
}  # fmt: skip


def chained() -> Iterator[int]:
    return itertools.chain([1], [2])


def initial(items: list[int], start: int) -> Iterator[int]:
    return itertools.accumulate(items, initial=start)


def advanced(going: Iterator[Any], steps: int) -> Iterator[Any]:
    for _ in range(steps):
        next(going)
    return going


INNER = {"zip": lambda: zip([1, 2, 3]), "map": lambda: map(str, [1, 2]), "filter": lambda: filter(None, [1, 2])}
"""What they advance is part of what they read from."""


class Items:
    def __getitem__(self, place: int) -> int:
        if place > 3:
            raise IndexError
        return place


@pytest.mark.parametrize("kind", ADVANCED)
def test_an_iterator_that_gave_an_item_is_another_one(kind: str) -> None:
    going = ADVANCED[kind]()
    before = state_of(going)
    assert is_iterator(going) and before is not None and state_of(going) == before, "it was only looked at"
    first = next(going)
    assert state_of(going) != before
    again = ADVANCED[kind]()
    assert state_of(again) is not None and next(again) == first, "looking takes nothing"


def test_an_iterator_of_a_callable() -> None:
    """What it calls is asked for its items."""
    items = [1, 2]
    assert [one for one in inner(iter(items.pop, 0)) if one is items] and inner(iter(int, 1)) == []


@pytest.mark.parametrize("kind", [zip, itertools.chain, lambda one: itertools.cycle(one), itertools.zip_longest])
def test_an_iterator_of_one_that_is_written_in_python(kind: Any) -> None:
    own = Own([1])
    going = kind(own)
    assert any(one is own for found in (going, *inner(going)) for one in inner(found))


def test_an_iterator_that_is_advanced_twice_by_itself() -> None:
    """Nothing is known of how often it was entered, and it ends."""
    going: Any = iter([1])
    for _ in range(100):
        going = zip(going)
    before = state_of(going)
    assert before == state_of(going) is not None and len(inner(going)) == 1
    again = iter([1, 2, 3])
    pairs = zip(again, again)
    before = state_of(pairs)
    next(pairs)
    assert state_of(pairs) != before


def test_a_number_is_not_known_by_its_place() -> None:
    """Of numbers that are made anew one may come to lie where another was."""
    def numbers() -> Iterator[float]:
        value = 0.5
        for _ in range(100):
            yield value
            value = value + 1000.0

    going = numbers()
    seen = set()
    for _ in range(50):
        next(going)
        seen.add(state_of(going))
    assert len(seen) == 50


@pytest.mark.parametrize("kind", INNER)
def test_what_an_iterator_advances_shows_it(kind: str) -> None:
    going = INNER[kind]()
    [below] = inner(going)
    before = state_of(below)
    next(going)
    assert is_iterator(below) and state_of(below) != before and inner(going)[0] is below


def test_what_has_ended() -> None:
    for make in (lambda: iter([1]), lambda: generator([1]), lambda: iter({1: 1})):
        going: Any = make()
        before = state_of(going)
        list(going)
        assert state_of(going) != before and state_of(going) == state_of(going)
    assert state_of(going) is not None and inner(generator([])) != []
    done = generator([])
    list(done)
    assert state_of(done) == ("finished",) and inner(done) == []


def test_a_generator_is_where_it_stands_and_what_its_names_are() -> None:
    one = [1]
    going = generator(one)
    before = state_of(going)
    one.append(2)
    assert state_of(going) == before
    next(going)
    after = state_of(going)
    next(going)
    assert state_of(going)[1] == after[1] and state_of(going) != after, "the item is another one"
    assert any(each is one for each in inner(going))


@pytest.mark.parametrize("value", [
    [1], {1: 2}, {1}, (1,), frozenset(), len, Own([1]), lambda: None, 3, "a", None, torch.ones(1), range(3), object(),
    Own, types, Path("."), {}.keys(), zip, slice(1),
], ids=lambda one: type(one).__name__)  # fmt: skip
def test_what_is_no_iterator(value: Any) -> None:
    assert not is_iterator(value) and state_of(value) is None and inner(value) == []


def test_what_refuses_to_say_its_class() -> None:
    class Refusing:
        @property
        def __class__(self) -> Any:  # type: ignore[override]
            raise RuntimeError("nobody asks")

    assert not is_iterator(Refusing())
    assert state_of(Refusing()) is None and inner(Refusing()) == []


def test_stand_ins_are_no_iterators() -> None:
    class One(Poison):
        __slots__ = ()

    assert not is_iterator(One()) and state_of(One()) is None


# -- buffers

BUFFERS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "bytearray": (lambda: bytearray(b"abc"), lambda b: b.__setitem__(1, 0)),
    "longer": (lambda: bytearray(b"abc"), lambda b: b.extend(b"d")),
    "array": (lambda: array.array("i", [1, 2]), lambda b: b.__setitem__(1, 5)),
    "memoryview": (lambda: memoryview(bytearray(b"abc")), lambda b: b.__setitem__(1, 0)),
    "a big one": (lambda: bytearray(1 << 17), lambda b: b.__setitem__(70_000, 1)),
    "numpy": (lambda: numpy.zeros(3), lambda b: b.__setitem__(1, 1)),
    "minus zero": (lambda: numpy.zeros(3), lambda b: b.__setitem__(1, -0.0)),
    "a big numpy": (lambda: numpy.zeros(1 << 15), lambda b: b.__setitem__(30_000, 1)),
    "another shape": (lambda: numpy.zeros(4), lambda b: setattr_quiet(b, (2, 2))),
    "strided": (lambda: numpy.zeros(6)[::2], lambda b: b.__setitem__(1, 1)),
    "objects": (lambda: numpy.array([1, "a"], dtype=object), lambda b: b.__setitem__(1, "b")),
    "records": (lambda: numpy.zeros(2, dtype=[("a", "i4")]), lambda b: b["a"].__setitem__(0, 1)),
}  # fmt: skip


def setattr_quiet(value: numpy.ndarray, shape: tuple[int, ...]) -> None:
    value.resize(shape, refcheck=False)


@pytest.mark.parametrize("kind", BUFFERS)
def test_a_buffer_that_is_written(kind: str) -> None:
    make, write = BUFFERS[kind]
    value = make()
    before = state_of(value)
    assert before is not None and state_of(value) == before == state_of(make()) or kind == "objects"
    write(value)
    assert state_of(value) != before


def test_big_buffers_are_not_kept() -> None:
    small, big = state_of(bytearray(1 << 16)), state_of(bytearray((1 << 16) + 1))
    assert len(small[2]) == 1 << 16 and isinstance(big[2], tuple) and len(big[2]) == 2


def test_what_arrays_of_objects_hold() -> None:
    one = [1]
    value = numpy.empty(2, dtype=object)
    value[0] = one
    assert any(each is one for each in inner(value)) and inner(numpy.ones(2)) == []
    before = state_of(value)
    one.append(2)
    assert state_of(value) == before, "what those hold is theirs"


# -- files


def test_files_in_memory() -> None:
    for file in (io.StringIO("abc"), io.BytesIO(b"abc")):
        before = state_of(file)
        file.read(1)
        assert state_of(file) != before
        file.seek(0)
        assert state_of(file) == before and not is_iterator(file)
        file.close()
        assert state_of(file) == ("closed",)


def test_files_on_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("abc\ndef\n")
    with path.open() as file:
        before = state_of(file)
        file.read(1)
        assert before == ("file", 0) and state_of(file) != before
        file.seek(0)
        next(file)
        assert state_of(file) == ("stream",), "Python tells no place while lines are taken"
    assert state_of(file) == ("closed",)
    read, write = os.pipe()
    os.close(write)
    with os.fdopen(read) as pipe:
        assert state_of(pipe) == ("stream",)


def test_an_iterator_over_lines() -> None:
    going = csv.reader(io.StringIO("a,b\nc,d\n"))
    assert is_iterator(going) and state_of(going) is not None


# -- parts


def test_parts_are_what_python_would_rebuild_it_from() -> None:
    items = [1, 2]
    going = iter(items)
    next(going)
    found = parts(going)
    assert any(one is items for one in found) and 1 in found
    assert parts(generator([])) == [] == parts(Own) and all(not isinstance(one, tuple) for one in parts(zip([1], [2])))


def test_the_iterators_that_only_read() -> None:
    readers = [iter([]), iter(()), iter({}), iter({}.values()), iter({}.items()), iter(set()), iter(range(1)), iter(""),
               reversed([]), reversed({}), reversed(range(1)), reversed("ab"), enumerate([]), zip(), map(str, []),
               filter(None, []), itertools.chain(), itertools.islice([], 1)]  # fmt: skip
    assert all(isinstance(one, READING) for one in readers)
    assert not any(isinstance(one, READING) for one in (generator([]), itertools.count(), Own([])))


def test_what_a_weak_reference_leads_to() -> None:
    value = Own([])
    reference = weakref.ref(value)
    assert inner(reference) == [value] and state_of(reference) is None
    del value
    assert inner(reference) == [None]


# -- frames and closures


def test_closures() -> None:
    one, later = [1], None

    def both() -> Any:
        return one, unbound, later

    found = cells_of(both)
    assert any(each is one for each in found) and len(found) == 2
    unbound = 1
    assert len(cells_of(both)) == 3 and cells_of(generator) == []


def test_local_variables_are_not_kept_alive() -> None:
    class Thing:
        pass

    def run() -> Iterator[Any]:
        thing: Any = Thing()
        seen = weakref.ref(thing)
        yield seen
        thing = None
        yield seen

    going = run()
    seen = next(going)
    assert any(isinstance(one, Thing) for one in locals_of(going.gi_frame))  # type: ignore[attr-defined]
    next(going)
    assert seen() is None
    assert contents.locals_of(going.gi_frame)[0] is None  # type: ignore[attr-defined]
