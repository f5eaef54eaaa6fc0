"""Objects that the function makes: each call makes its own, as in eager; what was there before stays what it is."""

from __future__ import annotations

import array
import collections
import contextlib
import copy
import dataclasses
import enum
import functools
import gc
import io
import json
import sys
import threading
import types
import warnings
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import dy2static
from dy2static import to_static
from dy2static.conversion import convert
from runtime.errors import StorageError
from tests.oracle import same

X = torch.tensor([1.0, 2.0])
Namespace = types.SimpleNamespace


class Items(list[Any]):
    tag: Any


class Named(dict[str, Any]):
    tag: Any


class Unique(set[Any]):
    tag: Any


class Queue(collections.deque[Any]):
    tag: Any


class Factory(collections.defaultdict[str, Any]):
    tag: Any


class Pair(tuple[Any, ...]):
    tag: Any


class Number(int):
    tag: Any


class Buffer(bytearray):
    tag: Any


class Failure(Exception):
    def __init__(self, text: str, held: Any) -> None:
        super().__init__(text)
        self.held = held


class Holder:
    def __init__(self, a: Any = None, b: Any = None) -> None:
        self.a, self.b = a, b

    def get(self) -> Any:
        return self.a


class Slots:
    __slots__ = ("a",)

    def __init__(self, a: Any) -> None:
        self.a = a


class Once:
    made: Any = None

    def __new__(cls) -> Any:
        cls.made = cls.made or object.__new__(cls)
        return cls.made


class Color(enum.Enum):
    RED = 1


@dataclasses.dataclass
class Record:
    a: Any
    b: Any = None


def tagged(value: Any, tag: Any) -> Any:
    value.tag = tag
    return value


def int_error(x: Any) -> Any:
    try:
        int("x")
    except ValueError as error:
        error.note = [x * 2]  # type: ignore[attr-defined]
        return error


def caused(x: Any) -> Any:
    try:
        try:
            raise KeyError(1)
        except KeyError as error:
            raise Failure("a", x * 2) from error
    except Failure as error:
        return error


def counting(x: Any) -> Any:
    count = 0

    def step() -> Any:
        nonlocal count
        count += 1
        return x * count

    def now() -> int:
        return count

    return step, now


def recursive(x: Any) -> Any:
    def go(n: int) -> Any:
        return other(n - 1) if n else x

    def other(n: int) -> Any:
        return go(n)

    go.tag = [x]  # type: ignore[attr-defined]
    return go, other


def written(x: Any) -> Any:
    data = bytearray(b"ab") + b"c"
    data[0] = 65
    return data, data


def views(x: Any) -> Any:
    whole = np.arange(12.0).reshape(3, 4) + 1
    return whole, whole.T, whole[::-1], whole[1:, ::2], np.asfortranarray(whole), np.broadcast_to(whole, (2, 3, 4))


def grown(x: Any) -> Any:
    items = Items()
    i = 0
    while x.sum() > i:
        items.append(x + i)
        i += 1
    return items


def branched(x: Any) -> Any:
    space = Namespace(a=1)
    items = Items([1])
    if x.sum() > 0:
        space.a = x * 2
        items.append(x)
    else:
        items.append(2)
    return space, items


def chosen(x: Any) -> Any:
    if x.sum() > 0:
        return functools.partial(Holder, [2])
    return functools.partial(Holder, b=[1])


def of_library(x: Any) -> Any:
    made = json.loads('{"a": [1]}', object_hook=lambda found: Namespace(**found))
    return made, made.a


MADE: dict[str, Any] = {
    "array": lambda x: np.array([1, 2]),
    "array sum": lambda x: np.array([1, 2]) + 1,
    "array views": views,
    "array of bytes": lambda x: np.frombuffer(b"abcd", dtype=np.uint8),
    "array of buffer": lambda x: np.frombuffer(bytearray(b"abcd"), dtype=np.uint8),
    "array of objects": lambda x: np.array([[1], None], dtype=object),
    "masked array": lambda x: np.ma.array([1, 2], mask=[0, 1]),
    "arrays": lambda x: np.split(np.zeros(4), 2),
    "bytearray": lambda x: bytearray(b"ab"),
    "bytearray written": written,
    "bytearray's subclass": lambda x: tagged(Buffer(b"ab"), [x * 2]),
    "array.array": lambda x: array.array("i", [1]) + array.array("i", [2]),
    "memoryview": lambda x: memoryview(bytearray(b"ab")),
    "namespace": lambda x: Namespace(a=[1]),
    "namespace of tensors": lambda x: Namespace(a=x * 2, b=Namespace(c=[x])),
    "record": lambda x: Record([1], x),
    "record copied": lambda x: dataclasses.replace(Record([1]), b=x),
    "counter": lambda x: collections.Counter("aab") + collections.Counter("b"),
    "ordered dict": lambda x: collections.OrderedDict(a=x * 2),
    "user dict": lambda x: collections.UserDict(a=x * 2),
    "user list": lambda x: collections.UserList([x * 2]),
    "chain map": lambda x: collections.ChainMap({"a": x * 2}, {"b": 1}),
    "list's subclass": lambda x: tagged(Items([x * 2]), [x]),
    "list's subclass, plain": lambda x: Items([1]),
    "list's subclass that grew": grown,
    "dict's subclass": lambda x: tagged(Named(tag=x * 2), [x]),
    "set's subclass": lambda x: tagged(Unique([1]), [x]),
    "deque's subclass": lambda x: tagged(Queue([x * 2], 4), [x]),
    "defaultdict's subclass": lambda x: tagged(Factory(list, a=x * 2), [x]),
    "tuple's subclass": lambda x: tagged(Pair([x * 2, 1]), [x]),
    "int's subclass": lambda x: tagged(Number(3), [x]),
    "file of text": lambda x: io.StringIO("ab"),
    "file of bytes": lambda x: io.BytesIO(b"ab"),
    "partial": lambda x: functools.partial(dict, a=[1]),
    "partial of tensors": lambda x: functools.partial(torch.add, x * 2),
    "method": lambda x: Holder([x * 2]).get,
    "method of a list": lambda x: [x * 2].append,
    "method of a bytearray": lambda x: bytearray(b"a").append,
    "closure of a list": lambda x: (lambda held: lambda: held)([x * 2]),
    "closures that count": counting,
    "closures that know each other": recursive,
    "lambdas": lambda x: [lambda i=i: x * i for i in range(3)],
    "exception": lambda x: ValueError([x * 2]),
    "exception caught": int_error,
    "exception with a cause": caused,
    "exception of a file": lambda x: OSError(2, "a", "b"),
    "exception of an import": lambda x: ImportError("a", name="b"),
    "exceptions": lambda x: [StopIteration([1]), SystemExit(3)],
    "slots": lambda x: Slots([x * 2]),
    "object": lambda x: Holder([x * 2], bytearray(b"ab")),
    "event": lambda x: threading.Event(),
    "class": lambda x: type("Made", (), {"a": [1]}),
    "object of a class made inside": lambda x: type("Made", (), {})(),
    "named tuple's class": lambda x: collections.namedtuple("Made", "a b"),
    "keys of a dict": lambda x: {"a": 1}.keys(),
    "copied": lambda x: copy.deepcopy({"a": bytearray(b"ab"), "b": np.zeros(2)}),
    "of a library": of_library,
    "of a branch": branched,
    "one of several": chosen,
}  # fmt: skip


def parts(value: Any) -> Any:
    """What can be seen of an object, down to tensors and numbers; where one object stands twice is seen, too."""
    numbers: dict[int, int] = {}
    kept = []

    def see(one: Any) -> Any:
        if isinstance(one, (torch.Tensor, str, int, float, bytes, type(None))) and not hasattr(one, "tag"):
            return one
        if isinstance(one, (type, types.ModuleType, types.BuiltinFunctionType)) and not hasattr(one, "__self__"):
            return getattr(one, "__name__", "")
        if id(one) in numbers:
            return f"again {numbers[id(one)]}"
        numbers[id(one)] = len(numbers)
        kept.append(one)
        found: list[Any] = [type(one).__name__]
        if isinstance(one, np.ndarray):
            return [*found, one.tolist(), one.strides, one.flags.writeable, str(one.dtype)]
        if isinstance(one, dict):
            found += [list(one), *map(see, one.values())]
        elif isinstance(one, (list, tuple, collections.deque)):
            found += [see(item) for item in one]
        elif isinstance(one, (set, bytearray, array.array)):
            found.append(sorted(one))
        elif isinstance(one, io.StringIO | io.BytesIO):
            found.append(one.getvalue())
        elif isinstance(one, BaseException):
            found += [*map(see, (one.args, one.__cause__, one.__context__))]
        elif isinstance(one, functools.partial):
            found += [see(one.args), see(one.keywords)]
        elif isinstance(one, types.FunctionType):
            names = zip(one.__code__.co_freevars, one.__closure__ or ())
            found += [one.__name__, see(one.__defaults__)]
            found += [see(cell.cell_contents) for name, cell in sorted(names, key=lambda p: p[0]) if name[0] != "_"]
        elif hasattr(one, "__self__"):
            found.append(see(one.__self__))
        for name, held in sorted(getattr(one, "__dict__", {}).items()):
            if not isinstance(one, (type, threading.Event)) and name[0] != "_":
                found += [name, see(held)]
        return found

    return see(value)


def alike(mine: Any, eager: Any) -> None:
    same(parts(mine), parts(eager))


def shared(one: Any, two: Any) -> list[str]:
    """Objects that can be changed and that two results have in common."""
    found: list[str] = []

    def reach(value: Any, into: dict[int, Any], depth: int = 0) -> None:
        if depth > 6 or isinstance(value, (str, int, float, bytes, type(None), types.ModuleType, torch.Tensor)):
            return
        if isinstance(value, types.BuiltinFunctionType) and isinstance(value.__self__, (types.ModuleType, type(None))):
            return
        if isinstance(value, type) and getattr(sys.modules.get(value.__module__), value.__name__, None) is value:
            return
        if id(value) in into or type(value).__module__.startswith(("runtime", "dy2static")):
            return
        into[id(value)] = value
        if isinstance(value, (list, tuple, set, collections.deque)):
            for item in value:
                reach(item, into, depth + 1)
        if isinstance(value, dict):
            for item in value.values():
                reach(item, into, depth + 1)
        if isinstance(value, types.FunctionType):
            for name, cell in zip(value.__code__.co_freevars, value.__closure__ or ()):
                if name[0] != "_":
                    reach(cell.cell_contents, into, depth + 1)
        if not isinstance(value, (types.FunctionType, type)):
            reach(getattr(value, "__self__", None), into, depth + 1)
        reach(getattr(value, "keywords", None), into, depth + 1)
        if not isinstance(value, type):
            for item in list(getattr(value, "__dict__", {}).values()):
                reach(item, into, depth + 1)

    first: dict[int, Any] = {}
    second: dict[int, Any] = {}
    reach(one, first)
    reach(two, second)
    for key in first.keys() & second.keys():
        if not isinstance(first[key], (tuple, types.FunctionType)) or first[key]:
            found.append(type(first[key]).__name__)
    return found


@pytest.mark.sample(2)
@pytest.mark.parametrize("gradient", [pytest.param(False, marks=pytest.mark.slow), True])
@pytest.mark.parametrize("name", MADE)
def test_each_call_makes_its_own(name, gradient):
    function = MADE[name]
    x = X.clone().requires_grad_(gradient)
    converted = to_static(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = [converted(x), converted(x * 1 if gradient else x), converted(x)]
    before = [function(x), function(x), function(x)]
    common = shared(before[0], before[1])
    for one, two in ((0, 1), (1, 2), (0, 2)):
        assert shared(mine[one], mine[two]) == common
    for value in (mine[0], mine[2]):
        alike(value, before[0])


def test_closures_keep_their_own_state():
    converted = to_static(counting)
    (step, now), (other, _) = converted(X), converted(X)
    assert torch.equal(step(), X) and torch.equal(step(), X * 2) and now() == 2
    assert torch.equal(other(), X)


def test_a_closure_is_new_whoever_keeps_others():
    """What converted code shares is no sign that a function was there before."""
    kept.append(convert(counting, form="routed")(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        test_closures_keep_their_own_state()


kept: list[Any] = []


def test_closures_that_know_each_other():
    go, other = to_static(recursive)(X)
    assert go(3) is X and other(2) is X and go.tag == [X]


def test_gradients_through_what_is_held():
    def make(x):
        return Namespace(a=x * 3), functools.partial(torch.mul, x * 2), lambda y: x * y

    x = X.clone().requires_grad_()
    space, partial, function = to_static(make)(x)
    (space.a.sum() + partial(x).sum() + function(5.0).sum()).backward()
    assert torch.equal(x.grad, 3 + 4 * x.detach() + 5)


GLOBAL = Namespace(array=np.arange(3), buffer=bytearray(b"x"), list=Items([1]), partial=functools.partial(dict, a=[1]),
                   deep={"k": [bytearray(b"y"), np.ones(2)]}, error=ValueError("q"), record=Record([1]))  # fmt: skip
BUFFERS = [bytearray(b"x"), bytearray(b"y")]
LOCAL = threading.local()
LOCAL.buffer = bytearray(b"z")


@dy2static.not_to_static
def found() -> Any:
    return GLOBAL


@functools.lru_cache
def cached(key: int) -> Any:
    return bytearray(b"q")


OLD: dict[str, Any] = {
    "global": lambda x: GLOBAL,
    "array": lambda x: GLOBAL.array,
    "array as it is": lambda x: np.asarray(GLOBAL.array),
    "buffer": lambda x: GLOBAL.buffer,
    "list's subclass": lambda x: GLOBAL.list,
    "partial": lambda x: GLOBAL.partial,
    "exception": lambda x: GLOBAL.error,
    "record": lambda x: GLOBAL.record,
    "item": lambda x: GLOBAL.deep["k"][0],
    "got": lambda x: GLOBAL.deep.get("k")[1],
    "of vars": lambda x: vars(GLOBAL)["buffer"],
    "max": lambda x: max(BUFFERS),
    "next": lambda x: next(iter(BUFFERS)),
    "thread local": lambda x: LOCAL.buffer,
    "cached": lambda x: cached(3),
    "helper": lambda x: found(),
    "helper's attribute": lambda x: found().buffer,
    "helper itself": lambda x: found,
    "class": lambda x: Holder,
    "made once": lambda x: Once(),
    "member": lambda x: Color.RED,
    "operator": lambda x: torch.relu,
}


@pytest.mark.parametrize("name", OLD)
def test_what_was_there_stays(name):
    converted = to_static(OLD[name])
    expected = OLD[name](X)
    assert all(converted(X) is expected for _ in range(3))


KEPT = Holder(Holder(1, 2), 3)
WEAK = weakref.ref(KEPT.a)


@pytest.mark.parametrize("frozen", [False, True])
def test_what_was_there_stays_where_only_its_referrers_tell(frozen):
    """Of objects that the user froze, Python does not say to what they refer."""
    if frozen:
        gc.freeze()
    try:
        converted = to_static(lambda x: WEAK())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it is traced at each call
            assert all(converted(X) is KEPT.a for _ in range(3))
    finally:
        gc.unfreeze()


@dy2static.not_to_static
def made_by(name: str) -> Any:
    """New memory, of code that is not converted."""
    if name == "objects":
        return np.array([None, 1, "a", 5], dtype=object)
    return bytearray(b"abcd") if name == "bytes" else np.arange(4.0)


SHARED: dict[str, tuple[str, Any]] = {
    "objects": ("objects", lambda a: (a, a[1:], a[::-1])), "memoryview": ("bytes", lambda a: (a, memoryview(a)[1:])),
    "only a memoryview": ("bytes", lambda a: (memoryview(a), memoryview(a).obj)),
    "an array of bytes": ("bytes", lambda a: (a, np.frombuffer(a, dtype=np.uint8))),
    "memoryview of an array": ("array", lambda a: (a, memoryview(a), memoryview(a).obj)),
    "a user's array": ("array", lambda a: (a, a.view(np.recarray))),
    "masked": ("array", lambda a: (a, np.ma.array(a, copy=False))),
}


@pytest.mark.parametrize("name", SHARED)
def test_views_of_memory_that_is_made_inside(name):
    """Each was a copy, or the memory of the trace."""
    kind, look = SHARED[name]

    def on_a_path(x):
        return look(made_by(kind)) if x.sum() > 0 else None

    for function in (lambda x: look(made_by(kind)), on_a_path):
        converted = to_static(function)
        for _ in range(3):
            mine, eager = converted(X), function(X)
            for found in (mine, eager):
                assert all(np.shares_memory(one, found[0]) for one in map(np.asarray, found)) or kind == "objects"
                found[0][2] = 65
            assert [list(one) for one in mine] == [list(one) for one in eager]
            assert [[a is b for a in mine] for b in mine] == [[a is b for a in eager] for b in eager]


def test_a_view_of_memory_that_nobody_can_make_is_refused():
    with pytest.raises(dy2static.errors.TraceError, match="D2S228"):
        to_static(lambda x: (lambda file: (file, file.getbuffer()))(io.BytesIO(b"abc")))(X)


ONLY_THERE = Holder(np.zeros(2), 1)
IN_A_DICT = {"k": (bytearray(b"a"), 1)}


@dy2static.not_to_static
def found_by(name: str) -> Any:
    one = globals()["ONLY_" + "THERE" if name == "attribute" else "IN_A_" + "DICT"]
    return one.a if name == "attribute" else one["k"][0]


@pytest.mark.parametrize("name", ["attribute", "item"])
def test_an_array_that_the_collector_passes_over_with_its_holder(name):
    """A dict that holds nothing but arrays and numbers is not looked at: each call had an array of its own."""
    expected = id(found_by(name))
    assert vars(ONLY_THERE)
    gc.collect()
    converted = to_static(lambda x: found_by(name))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is traced at each call
        assert [id(converted(X)) == expected for _ in range(3)] == [True] * 3


def test_arguments_stay():
    held = Holder(bytearray(b"a"), np.zeros(2))
    converted = to_static(lambda o, x: (o, o.a, o.b, vars(o)["a"]))
    for _ in range(2):
        assert all(a is b for a, b in zip(converted(held, X), (held, held.a, held.b, held.a)))


def test_what_is_stored_outside_is_new_at_each_call():
    kept: list[Any] = []
    space = Namespace(a=None)

    def keep(x):
        made = bytearray(b"a") + b"b"
        kept.append(made)
        space.a = made
        return made

    converted = to_static(keep)
    results = [converted(X) for _ in range(3)]
    assert [id(one) for one in kept] == [id(one) for one in results] and len(set(map(id, kept))) == 3
    assert space.a is results[-1]


def test_a_view_of_an_array_from_outside():
    converted = to_static(lambda x: GLOBAL.array[1:])
    one, two = converted(X), converted(X)
    assert one is not two and np.shares_memory(one, GLOBAL.array) and np.shares_memory(two, GLOBAL.array)


def test_an_equal_list_in_a_global_is_another_one():
    global BOUND
    converted = to_static(lambda x: (x, BOUND))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            BOUND = [1]
            assert converted(X)[1] is BOUND


BOUND = [1]


def test_what_nobody_can_make_anew_is_for_one_call():
    converted = to_static(lambda x: (x * 2, threading.Lock()))
    with contextlib.suppress(Warning), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        locks = [converted(X)[1] for _ in range(3)]
    assert len(set(map(id, locks))) == 3


@pytest.mark.parametrize("name", ["array", "bytearray", "namespace of tensors", "partial of tensors", "exception",
                                  "closures that count", "method"])  # fmt: skip
def test_no_file_holds_them(name, tmp_path):
    class Layer(torch.nn.Module):
        def forward(self, x):
            return MADE[name](x)

    layer = Layer()
    with pytest.raises(StorageError) as caught:
        dy2static.save(to_static(layer), str(tmp_path / "f"), input_spec=[dy2static.InputSpec([2], torch.float32)])
    assert caught.value.code == "D2S519"
