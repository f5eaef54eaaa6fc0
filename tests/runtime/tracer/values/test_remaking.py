"""Objects taken apart into what they are made of, and made anew: each kind, with what it holds and what it is."""

from __future__ import annotations

import array
import collections
import copy
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import io
import itertools
import mmap
import operator
import pathlib
import random
import re
import sys
import threading
import types
import uuid
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from runtime.tracer.python_state.journal import MISSING
from runtime.tracer.values import remaking
from runtime.tracer.values.remaking import REMADE, Parts, is_fixed, parts_of, remake, with_attributes, without_values
from tests.oracle import same


class UsersList(list[Any]):
    def __init__(self, *items: Any) -> None:
        super().__init__(items)

    def append(self, item: Any) -> None:
        raise AssertionError("it ran when the first one was made")


class UsersDict(dict[Any, Any]):
    pass


class UsersDeque(collections.deque[Any]):
    pass


class Number(int):
    def __new__(cls, value: int, note: str) -> Number:
        made = int.__new__(cls, value)
        made.note = note
        return made

    note: str


class Text(str):
    __slots__ = ("more",)


class Real(float):
    pass


class Items(tuple[Any, ...]):
    def __new__(cls, *items: Any) -> Items:
        return tuple.__new__(cls, items)


class Names(frozenset[Any]):
    pass


class Failed(ValueError):
    def __init__(self, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class Named(KeyError):
    def __init__(self, *, name: str) -> None:
        super().__init__(name, "is not there")


class Reduced:
    """A class of a library that says what it is made of."""

    def __init__(self, first: Any, second: Any) -> None:
        self.made_of = (first, second)

    def __reduce__(self) -> Any:
        return Reduced, self.made_of, {"more": getattr(self, "more", 0)}


class Colour(enum.Enum):
    RED = 1


def with_more(value: Any, **attributes: Any) -> Any:
    for name, held in attributes.items():
        setattr(value, name, held)
    return value


def again(value: Any) -> Any:
    found = parts_of(value)
    assert found is not None and found.kind in REMADE
    return remake(found.kind, found.named, found.items)


X = torch.ones(2)
ALIKE: dict[str, tuple[str, Callable[[], Any]]] = {
    "a bytearray": ("copy", lambda: bytearray(b"ab")),
    "an array of Python's": ("copy", lambda: array.array("d", [1.0, 2.0])),
    "an array of NumPy's": ("copy", lambda: numpy.array([[1, 2], [3, 4]], dtype=numpy.int16)),
    "no elements": ("copy", lambda: numpy.zeros((0, 3))),
    "without dimensions": ("copy", lambda: numpy.array(3.0)),
    "one in Fortran's order": ("copy", lambda: numpy.asfortranarray(numpy.arange(6.0).reshape(2, 3))),
    "a list of a user's class": ("container", lambda: with_more(UsersList(1, X), more=[2])),
    "a dict of a user's class": ("container", lambda: with_more(UsersDict(a=X), more=2)),
    "a deque": ("container", lambda: collections.deque([1, 2])),
    "a deque that is full": ("container", lambda: collections.deque([1, 2], 2)),
    "a deque of a user's class": ("container", lambda: with_more(UsersDeque([1], 3), more=2)),
    "a defaultdict": ("container", lambda: collections.defaultdict(list, a=[X])),
    "an OrderedDict": ("container", lambda: collections.OrderedDict(b=1, a=2)),
    "a Counter": ("container", lambda: collections.Counter("aab")),
    "a set": ("container", lambda: {1, "a"}),
    "an int of a user's class": ("derived", lambda: with_more(Number(3, "c"), more=X)),
    "a text of a user's class": ("derived", lambda: with_more(Text("a"), more=(1,))),
    "a text without what its slot may hold": ("derived", lambda: Text("a")),
    "a float of a user's class": ("derived", lambda: Real("nan")),
    "a tuple of a user's class": ("derived", lambda: with_more(Items(1, X), more=2)),
    "a frozenset of a user's class": ("derived", lambda: with_more(Names({1, 2}), more=2)),
    "a date": ("reduced", lambda: datetime.date(2020, 1, 2)),
    "a uuid": ("reduced", lambda: uuid.UUID(int=7)),
    "a random generator": ("reduced", lambda: random.Random(3)),
    "what counts": ("reduced", lambda: itertools.count(3)),
    "a namespace": ("reduced", lambda: types.SimpleNamespace(a=X, b=[1])),
    "what says what it is made of": ("reduced", lambda: with_more(Reduced(X, 2), more=5)),
}


def seen(value: Any) -> Any:
    """What a value is, for a comparison."""
    if isinstance(value, random.Random):
        return value.getstate()
    if isinstance(value, itertools.count):
        return repr(value)
    if isinstance(value, (bytearray, array.array, datetime.date, uuid.UUID)):
        return repr(value)
    return value


@pytest.mark.filterwarnings("ignore:Pickle, copy, and deepcopy support:DeprecationWarning")
@pytest.mark.parametrize("kind", ALIKE)
def test_made_anew_and_alike(kind: str) -> None:
    wanted, make = ALIKE[kind]
    value = make()
    found = parts_of(value)
    assert found is not None and found.kind == wanted
    made = again(value)
    assert type(made) is type(value) and made is not value
    same(seen(made), seen(value))
    if hasattr(value, "__dict__"):
        same(vars(made), vars(value))
    same(seen(value), seen(make()))  # the first one is as it was


def test_a_partial_holds_what_it_held() -> None:
    value = with_more(functools.partial(operator.add, X, a=[1]), more=2)
    made = again(value)
    assert made is not value and (made.func, made.args[0], made.keywords, made.more) == (operator.add, X, {"a": [1]}, 2)


def test_a_copy_shares_nothing() -> None:
    for value in (bytearray(b"ab"), numpy.array([1, 2])):
        found = parts_of(value)
        assert found is not None and found.named is not value
        one, other = again(value), again(value)
        one[0] = 7
        assert other[0] != 7 and value[0] != 7 and found.named[0] != 7


def test_what_may_not_be_written_may_not_afterwards() -> None:
    value = numpy.arange(3)
    value.flags.writeable = False
    assert not again(value).flags.writeable and not again(value[1:]).flags.writeable
    value = numpy.frombuffer(b"abcd", dtype=numpy.uint8)
    made = again(value)
    assert not made.flags.writeable and bytes(made) == b"abcd"


def test_files_in_memory_go_on_where_they_are() -> None:
    for file, text in ((io.StringIO("abc"), "xy"), (io.BytesIO(b"abc"), b"xy")):
        file.read(1)
        made = again(file)
        assert made is not file and made.tell() == 1 and made.read() == file.getvalue()[1:]
        made.write(text)
        assert file.tell() == 1 and len(file.getvalue()) == 3


VIEWS: dict[str, Callable[[Any], Any]] = {
    "a row": lambda base: base[1],
    "a column": lambda base: base[:, 1],
    "turned around": lambda base: base[::-1, ::-1],
    "transposed": lambda base: base.T,
    "a part": lambda base: base[1:, :2],
    "another dtype": lambda base: base.view(numpy.int16),
    "no elements": lambda base: base[:0],
    "as a row": lambda base: base.ravel(order="K"),
    "broadcast": lambda base: numpy.broadcast_to(base[0], (2, 3)),
}


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("kind", VIEWS)
def test_a_view_shares_the_memory_of_what_it_is_a_view_of(kind: str, order: Any) -> None:
    base = numpy.array([[1, 2, 3], [4, 5, 6]], dtype=numpy.int16 if order == "C" else numpy.int32, order=order)
    if kind == "another dtype" and order == "F":
        base = numpy.asfortranarray(numpy.zeros((1, 1), dtype=numpy.int32) + 70_000)
    value = VIEWS[kind](base)
    found = parts_of(value)
    assert found is not None and found.kind == "array view" and found.items["base"] is base
    other = numpy.array(base * 10, order=order, dtype=base.dtype)
    made = remake(found.kind, found.named, {**found.items, "base": other})
    expected = VIEWS[kind](other)
    assert (made.tolist(), made.dtype, made.strides) == (expected.tolist(), expected.dtype, expected.strides)
    assert made.flags.writeable == expected.flags.writeable
    assert numpy.shares_memory(made, other) == numpy.shares_memory(expected, other)


def test_numpy_has_the_whole_memory_as_the_base() -> None:
    found = parts_of(numpy.arange(12).reshape(3, 4)[:, ::2])
    assert found is not None and found.items["base"].shape == (12,)


RECORDS = [("a", "O"), ("b", "i4")]
OF_OBJECTS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "items": (lambda: of_objects(object), lambda base: base[1:]),
    "turned around": (lambda: of_objects(object), lambda base: base[::-2]),
    "transposed": (lambda: of_objects(object), lambda base: base.reshape(2, 3).T),
    "records": (lambda: of_objects(RECORDS), lambda base: base[2:]),
    "a field": (lambda: of_objects(RECORDS), lambda base: base["a"]),
    "a field of numbers": (lambda: of_objects(RECORDS), lambda base: base["b"][::2]),
    "dates": (lambda: numpy.arange("2020", "2026", dtype="M8[Y]"), lambda base: base[1:]),
    "a user's": (lambda: numpy.arange(6.0), lambda base: base.reshape(2, 3).T.view(Own)),
    "fields by name": (lambda: of_objects([("b", "i4")]), lambda base: base.view(numpy.recarray)),
    "masked": (lambda: numpy.arange(6.0), lambda base: numpy.ma.array(base, mask=base > 2, copy=False)),
    "attributes": (lambda: numpy.arange(6.0), lambda base: with_more(base[1:].view(Own), more=3)),
}  # fmt: skip


class Own(numpy.ndarray[Any, Any]):
    more: Any


def of_objects(dtype: Any) -> Any:
    found = numpy.zeros(6, dtype=dtype)
    if dtype in (object, RECORDS):
        (found["a"] if dtype is RECORDS else found)[:] = [None, 1, (2,), "a", 5, 6]
    return found


@pytest.mark.parametrize("kind", OF_OBJECTS)
def test_a_view_of_objects_records_and_users_arrays(kind: str) -> None:
    make, look = OF_OBJECTS[kind]
    value, other = look(make()), make()
    found = parts_of(value)
    assert found is not None and found.kind == "array view"
    made, expected = rebuilt(value, other), look(other)
    assert type(made) is type(value) and (made.dtype, made.strides) == (expected.dtype, expected.strides)
    assert list(made.flat) == list(expected.flat) and numpy.shares_memory(made, other)
    assert {**vars(made)}.keys() == {**vars(expected)}.keys() if hasattr(made, "__dict__") else True


SHOWN: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "all": (lambda: bytearray(b"abcdefgh"), memoryview),
    "a part": (lambda: bytearray(b"abcdefgh"), lambda base: memoryview(base)[2:6]),
    "every second": (lambda: bytearray(b"abcdefgh"), lambda base: memoryview(base)[1:7:2]),
    "turned around": (lambda: bytearray(b"abcdefgh"), lambda base: memoryview(base)[6:1:-2]),
    "as others": (lambda: bytearray(b"abcdefgh"), lambda base: memoryview(base).cast("H")[1:]),
    "as a table": (lambda: bytearray(b"abcdefgh"), lambda base: memoryview(base).cast("H", (2, 2))),
    "read only": (lambda: bytearray(b"abcdefgh"), lambda base: memoryview(base).toreadonly()),
    "numbers": (lambda: array.array("i", [1, 2, 3]), lambda base: memoryview(base)[1:]),
    "bytes": (lambda: b"abcdefgh", lambda base: memoryview(base)[1:]),
    "an array": (lambda: numpy.arange(6.0), lambda base: memoryview(base)[::-2]),
    "a transposed array": (lambda: numpy.arange(6.0).reshape(2, 3).T, memoryview),
    "an array of bytes": (lambda: bytearray(b"abcdefgh"), lambda base: numpy.frombuffer(base, dtype=numpy.int16)),
    "an array of a part": (lambda: bytearray(b"abcdefgh"), lambda base: numpy.asarray(memoryview(base)[2:])),
}  # fmt: skip


@pytest.mark.parametrize("kind", SHOWN)
def test_what_shows_other_memory(kind: str) -> None:
    make, look = SHOWN[kind]
    value, other = look(make()), make()
    made, expected = rebuilt(value, other), look(other)
    assert type(made) is type(value) and made.tolist() == expected.tolist() == value.tolist()
    assert (made.shape, made.strides, made.itemsize) == (expected.shape, expected.strides, expected.itemsize)
    if isinstance(made, memoryview):
        assert made.obj is other or kind == "a transposed array"
        assert (made.format, made.readonly) == (expected.format, expected.readonly)
    if not isinstance(other, bytes):
        for place in range(len(other)):
            other[place] = 65
        assert made.tolist() == expected.tolist() != value.tolist()


def rebuilt(value: Any, memory: Any) -> Any:
    """One like it, of the last memory that it leads to."""
    found = parts_of(value)
    if found is None or found.kind not in ("array view", "memory view"):
        return memory
    return remake(found.kind, found.named, {**found.items, "base": rebuilt(found.items["base"], memory)})


def test_views_of_memory_that_nobody_can_make() -> None:
    released = memoryview(bytearray(b"ab"))
    released.release()
    mapped = mmap.mmap(-1, 8)
    for value in (memoryview(mapped), numpy.frombuffer(mapped, dtype=numpy.uint8), io.BytesIO(b"ab").getbuffer()):
        assert remaking.shows_memory(value) and parts_of(getattr(value, "base", value)) is None
    assert parts_of(released) is None and not remaking.shows_memory(released)
    nothing = memoryview(bytearray(b"ab"))[1:1]
    assert not remaking.shows_memory(nothing) and not remaking.shows_memory(numpy.ones(2)[:0])
    assert not remaking.shows_memory(numpy.ones(2)) and not remaking.shows_memory(memoryview(b"a"))


def raised(make: Callable[[], None]) -> BaseException:
    try:
        make()
    except BaseException as error:
        return error
    raise AssertionError


def chained() -> None:
    try:
        raise KeyError("a")
    except KeyError as error:
        raise Failed(3) from error


def in_a_handler() -> None:
    try:
        raise KeyError("a")
    except KeyError:
        raise OSError(2, "no", "file")


RAISED: dict[str, Callable[[], BaseException]] = {
    "a new one": lambda: ValueError("a", 1),
    "without arguments": lambda: RuntimeError(),
    "a user's": lambda: with_more(Failed(2), more=X),
    "one that is made of other things": lambda: Named(name="a"),
    "from another": lambda: raised(chained),
    "in a handler": lambda: raised(in_a_handler),
    "a missing key": lambda: raised(lambda: {}["a"]),
    "a missing module": lambda: ImportError("no", name="a", path="b"),
    "what ends a generator": lambda: StopIteration(3),
    "what ends the process": lambda: SystemExit(4),
    "a text that cannot be read": lambda: raised(lambda: b"\xff".decode()),
    "wrong syntax": lambda: raised(lambda: compile("a b", "f.py", "exec")),
    "with other arguments": lambda: with_more(ValueError("a"), args=("b", "c")),
    "a number of the system's": lambda: OSError(1, "a"),
}


@pytest.mark.parametrize("kind", RAISED)
def test_exceptions(kind: str) -> None:
    error = RAISED[kind]()
    made = again(error)
    assert made is not error and type(made) is type(error) and made.args == error.args and str(made) == str(error)
    assert made.__cause__ is error.__cause__ and made.__context__ is error.__context__
    assert made.__suppress_context__ == error.__suppress_context__ and made.__traceback__ is error.__traceback__
    same(vars(made), vars(error))
    for name in ("errno", "filename", "strerror", "name", "path", "value", "code", "start", "reason", "lineno"):
        assert getattr(made, name, None) == getattr(error, name, None), name


@pytest.mark.parametrize("error", [NameError("no", name="a"), AttributeError("no", name="a", obj=X)], ids=repr)
def test_exceptions_that_know_a_name(error: Any) -> None:
    assert again(error).name == "a"


def test_methods_are_bound_to_what_they_are_given() -> None:
    one, other = [1], [2]
    found = parts_of(one.append)
    assert found is not None and (found.kind, found.named, found.items["owner"]) == ("bound", "append", one)
    made = remake(found.kind, found.named, {"owner": other})
    made(3)
    assert other == [2, 3] and one == [1] and made.__self__ is other
    user, users_other = Failed(1), Failed(2)
    found = parts_of(user.add_note if hasattr(user, "add_note") else user.with_traceback)
    assert found is not None and found.kind == "bound" and found.items["owner"] is user
    method = types.MethodType(operator.attrgetter("code"), user)
    found = parts_of(method)
    assert found is not None and found.kind == "bound method" and found.items["owner"] is user
    assert remake(found.kind, found.named, {**found.items, "owner": users_other})() == 2
    assert again(user.__str__)() == "code 1"


UNKNOWN: dict[str, Callable[[], Any]] = {
    "a class": lambda: Failed,
    "a module": lambda: types,
    "a generator": lambda: (one for one in ()),
    "a lock": threading.Lock,
    "a frame": lambda: sys._getframe(),
    "a number whose class makes it in Python": lambda: fractions.Fraction(1, 3),
    "a path": lambda: pathlib.PurePosixPath("a", "b"),
    "a member of an enum": lambda: Colour.RED,
    "one that is known by a name": lambda: with_reduction("a name"),
    "one whose class makes it in Python": lambda: Singled(),
}


class Singled:
    def __new__(cls) -> Singled:
        return object.__new__(cls)


class WithReduction:
    def __init__(self, reduced: Any) -> None:
        self.reduced = reduced

    def __reduce__(self) -> Any:
        return self.reduced


def with_reduction(reduced: Any) -> WithReduction:
    return WithReduction(reduced)


@pytest.mark.parametrize("kind", UNKNOWN)
def test_what_nothing_is_known_of(kind: str) -> None:
    assert parts_of(UNKNOWN[kind]()) is None


def test_what_the_protocol_of_reducing_says() -> None:
    """A callable, its arguments, a state, items to append, and pairs to store."""
    value = with_reduction((UsersPlain, (1,), {"more": 2}, iter([3, X]), iter([("a", 4)])))
    made = again(value)
    assert type(made) is UsersPlain and (made.given, made.more) == (1, 2)
    assert made.taken == [3, X] and made.kept == {"a": 4}
    made = again(with_reduction((UsersPlain, (1,), ({"more": 2}, {"less": 3}))))
    assert made.more == 2 and made.less == 3
    made = again(with_reduction((WithState, (), 5)))
    assert made.state == 5
    assert parts_of(with_reduction((getattr, (X, "shape")))) is None, "a name in another object"
    assert parts_of(with_reduction(("text", ()))) is None and parts_of(with_reduction((len, (), 1, 2, 3, 4))) is None


class UsersPlain:
    __slots__ = ("given", "taken", "kept", "less", "__dict__")

    def __init__(self, given: Any) -> None:
        self.given, self.taken, self.kept = given, [], {}

    def append(self, item: Any) -> None:
        self.taken.append(item)

    def __setitem__(self, key: Any, item: Any) -> None:
        self.kept[key] = item


class WithState:
    def __setstate__(self, state: Any) -> None:
        self.state = state


def test_what_nobody_can_change() -> None:
    fixed = [datetime.date(2020, 1, 1), datetime.timedelta(1), decimal.Decimal("1.5"), re.compile("a"), range(3),
             re.match("a", "a"), X.shape, torch.device("cpu"), is_fixed.__code__, ...,
             numpy.float32(1), numpy.bool_(True), slice(1, None, "a")]  # fmt: skip
    for value in fixed:
        assert is_fixed(value)
    for other in (slice([1]), slice(X), [], 1, X, numpy.ones(1), with_reduction(1), Number(1, "a")):
        assert not is_fixed(other)


def test_a_function_without_what_it_holds() -> None:
    held = [1]

    def function(a: int, b: Any = held, *, c: Any = 3) -> Any:
        """What it says."""
        return held, a, b, c

    function.more = 1  # type: ignore[attr-defined]
    made = without_values(function)  # type: ignore[arg-type]
    assert made.__code__ is function.__code__ and made.__globals__ is function.__globals__
    assert (made.__name__, made.__qualname__, made.__doc__, made.__module__) == (
        function.__name__, function.__qualname__, function.__doc__, function.__module__)
    assert made.__defaults__ is None and made.__kwdefaults__ is None and not vars(made)
    assert made.__annotations__ == function.__annotations__ and made.__annotations__ is not function.__annotations__
    (cell,) = made.__closure__ or ()
    with pytest.raises(ValueError, match="empty"):
        cell.cell_contents
    cell.cell_contents = "other"
    assert made(1, 2, c=4) == ("other", 1, 2, 4) and held == [1]


def test_attributes_that_are_missing_are_not_set() -> None:
    made = with_attributes(UsersPlain(1), {"more": 2, "less": 3, "other": MISSING, "taken": [4]})
    assert vars(made) == {"more": 2} and made.less == 3 and made.taken == [4] and not hasattr(made, "other")

    @dataclasses.dataclass(frozen=True)
    class Frozen:
        a: int

    assert with_attributes(copy.copy(Frozen(1)), {"a": 2}) == Frozen(2)


def test_pairs_become_a_dict() -> None:
    assert remake("pairs", None, {"keys": ["a", X], "items": [1, 2]}) == {"a": 1, X: 2}


def test_parts_are_compared() -> None:
    assert Parts("copy") == Parts("copy", None, {}) != Parts("copy", 1)
