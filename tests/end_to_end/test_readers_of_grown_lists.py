"""Code that is not converted and comes to a list whose length only the run knows: it sees what eager sees, or the call
is refused."""

from __future__ import annotations

import collections
import contextlib
import copy
import dataclasses
import functools
import itertools
import operator
import sys
import types
from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import TraceError
from tests.oracle import check

pytestmark = pytest.mark.filterwarnings("ignore::dy2static.program_cache.RetraceWarning")  # of the globals

CALLS = [(torch.tensor(values),) for values in ([1.0, 2.0, 3.0], [-1.0, -2.0, -3.0], [0.5, -0.25, 2.0])]
SEEN: list[int] = []
"""A global that grows."""


def grown(x: Any, items: Any = None) -> Any:
    """A list with an item for each positive number."""
    items = [] if items is None else items
    for t in x:
        if t > 0:
            items.append(1)
    return items


def marked(x: Any) -> Any:
    """A dict whose keys depend on the path."""
    held = {"z": 1}
    if x.sum() > 0:
        held["a"] = 1
        held["b"] = 2
    return held


def answer(function: Callable[..., Any]) -> str:
    """``same`` or ``refused``; a difference fails."""
    try:
        check(function, *CALLS, tolerance=1e-6)
    except TraceError as error:
        assert error.code and error.location is not None, error
        return "refused"
    return "same"


class P:
    """Every special method reads what it holds."""

    def __init__(self, p: Any) -> None:
        self.p = p

    def __hash__(self) -> int:
        return len(self.p)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, P) and len(self.p) == len(other.p)

    def __repr__(self) -> str:
        return f"P{len(self.p)}"

    def __index__(self) -> int:
        return len(self.p)

    def __add__(self, other: Any) -> Any:
        return len(self.p)

    __radd__ = __add__

    def __dir__(self) -> list[str]:
        return ["a"] * len(self.p)


class Indirect(P):
    """Its methods come to the list by another method, a property and the object itself."""

    def __init__(self, p: Any) -> None:
        super().__init__([1])
        self.q = p

    def __len__(self) -> int:
        return len(self.q)

    @property
    def size(self) -> int:
        return self.counted()

    def counted(self) -> int:
        return len(self.q)

    def __hash__(self) -> int:
        return self.size

    def __eq__(self, other: object) -> bool:
        return isinstance(other, (P, Indirect)) and hash(self) == hash(other)

    def __repr__(self) -> str:
        return f"I{len(self)}"

    def __index__(self) -> int:
        return len(self)

    def __add__(self, other: Any) -> Any:
        return self.counted()

    __radd__ = __add__

    def __dir__(self) -> list[str]:
        return ["a"] * self.size


class ByFunctions(P):
    """Its methods hand the object on to functions."""

    def __hash__(self) -> int:
        return length_of(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, P) and length_of(self) == length_of(other)

    def __repr__(self) -> str:
        return f"P{length_of(self)}"

    def __index__(self) -> int:
        return length_of(self)


def length_of(owner: Any) -> int:
    return length_of_what(owner)


def length_of_what(owner: Any) -> int:
    return len(owner.p)


class OfClass(P):
    """Its methods read what its class holds."""

    p: Any = SEEN

    def __init__(self) -> None:
        pass


@dataclasses.dataclass(frozen=True)
class Frozen:
    inner: Any


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "list": lambda x: P(grown(x)),
    "dict": lambda x: P(marked(x)),
    "indirect": lambda x: Indirect(grown(x)),
    "later": lambda x: _filled_later(x),
    "by functions": lambda x: ByFunctions(grown(x)),
    "of a class": lambda x: _of_class(x),
}


def _of_class(x: Any) -> Any:
    SEEN.clear()
    grown(x, SEEN)
    return OfClass()


def _filled_later(x: Any) -> Any:
    made = P([1])
    made.p = grown(x)
    return made


def _stored(table: dict[Any, Any], key: Any) -> dict[Any, Any]:
    table[key] = 7
    return table


def _deleted(table: dict[Any, Any], key: Any) -> int:
    del table[key]
    return len(table)


def _items(*values: Any) -> Any:
    yield from values


READERS: dict[str, Callable[[Any], Any]] = {
    "repr of a list": lambda v: repr([v]),
    "repr of a tuple": lambda v: repr((1, (v,))),
    "str of a dict": lambda v: str({"k": v}),
    "str of a deque": lambda v: str(deque([v])),
    "ascii": lambda v: ascii([v]),
    "repr of a namespace": lambda v: repr(types.SimpleNamespace(a=v)),
    "repr of a frozen dataclass": lambda v: repr([Frozen(v)]),
    "f-string": lambda v: f"{[v]}",
    "f-string of a tuple": lambda v: f"{(v, 1)!r:>20}",
    "format": lambda v: format([v]),
    "percent": lambda v: "%s" % [v],
    "str.format": lambda v: "{}".format([v]),
    "print": lambda v: print([v]),
    "set": lambda v: len({v, P([1])}),
    "set of a tuple": lambda v: len({(v, 1), (P([1]), 1)}),
    "set comprehension": lambda v: len({k for k in [v, P([1]), P([1, 1, 1])]}),
    "set of an iterator": lambda v: len(set(iter([P([1]), v]))),
    "set of a generator": lambda v: len(set(_items(P([1]), v))),
    "dict display": lambda v: len({v: 1, P([1]): 2}),
    "dict comprehension": lambda v: len({k: 1 for k in [v, P([1])]}),
    "dict": lambda v: len(dict([(v, 1), (P([1]), 2)])),
    "dict of a zip": lambda v: len(dict(zip([P([1]), v], [1, 2]))),
    "update with an iterator": lambda v: len({P([1])}.union(iter([v]))),
    "update with a map": lambda v: len({P([1])}.union(map(lambda one: one, [v]))),
    "fromkeys of an iterator": lambda v: len(dict.fromkeys(iter([P([1]), v]))),
    "frozenset of a map": lambda v: len(frozenset(map(lambda one: one, [P([1]), v]))),
    "dict of a generator": lambda v: len(dict(_items((P([1]), 1), (v, 1)))),
    "dict of a comprehension": lambda v: len(dict((key, 1) for key in (P([1]), v))),
    "Counter of an iterator": lambda v: len(collections.Counter(iter([P([1]), v]))),
    "update of a dict": lambda v: _filled(v),
    "or of dicts": lambda v: len({P([1]): 1} | {v: 1}),
    "two stars": lambda v: len({**{P([1]): 1}, **{v: 1}}),
    "set of a dict": lambda v: len({P([1])}.union({v: 1})),
    "unpacked": lambda v: len({*[P([1]), v]}),
    "index": lambda v: _place(v),
    "cached": lambda v: cached(v),
    "text of an exception": lambda v: str(ValueError(v)),
    "text of an exception with two": lambda v: repr(ValueError(v, 1)),
    "join": lambda v: ",".join(map(repr, [v])),
    "join of lists": lambda v: ",".join(map(str, [[v]])),
    "sorted by text": lambda v: sorted([[v], [P([1, 1])]], key=str)[0][0] is v,
    "key of min": lambda v: min([[v], [P([1, 1])]], key=repr)[0] is v,
    "group": lambda v: len([key for key, _ in itertools.groupby([v, P([1])])]),
    "fromkeys": lambda v: len(dict.fromkeys([v, P([1])])),
    "frozenset": lambda v: len(frozenset([v, P([1])])),
    "get": lambda v: {P([1, 1, 1]): 1, P([1]): 2}.get(v),
    "dict.get": lambda v: dict.get({P([1, 1, 1]): 1, P([1]): 2}, v),
    "pop": lambda v: {P([1]): 1}.pop(v, 9),
    "setdefault": lambda v: {P([1]): 1}.setdefault(v, 9),
    "item": lambda v: {P([]): 0, P([1]): 1, P([1, 1]): 2, P([1, 1, 1]): 3}[v],
    "setitem": lambda v: len(_stored({P([1]): 1}, v)),
    "delitem": lambda v: _deleted({P([]): 0, P([1]): 1, P([1, 1]): 2, P([1, 1, 1]): 3}, v),
    "in a dict": lambda v: v in {P([1, 1, 1]): 1},
    "in a set": lambda v: v in {P([1]), P([1, 1])},
    "not in a set": lambda v: v not in {P([1]), P([1, 1])},
    "in keys": lambda v: v in {P([1]): 1}.keys(),
    "contains": lambda v: operator.contains({P([1])}, v),
    "__contains__": lambda v: {P([1])}.__contains__(v),
    "add": lambda v: ({P([1])}.add(v)),
    "add, and the length": lambda v: _added(v),
    "update": lambda v: _updated(v),
    "union": lambda v: len({P([1])} | {v}),
    "difference": lambda v: len({P([1])} - {v}),
    "union method": lambda v: len({P([1])}.union([v])),
    "Counter": lambda v: collections.Counter([v, P([1])])[P([1])],
    "OrderedDict": lambda v: collections.OrderedDict([(v, 1)]).get(P([1])),
    "defaultdict": lambda v: collections.defaultdict(int, [(v, 1)]).get(P([1])),
    "itemgetter": lambda v: operator.itemgetter(v)({P([]): 0, P([1]): 1, P([1, 1]): 2, P([1, 1, 1]): 3}),
    "hash": lambda v: hash(v) == hash(P([1])),
    "in values": lambda v: v in {1: P([1])}.values(),
    "in items": lambda v: (1, v) in {1: P([1])}.items(),
    "hash of a tuple": lambda v: hash((v, 1)) == hash((P([1]), 1)),
    "list.pop": lambda v: [5, 6, 7, 8].pop(v),
    "list.insert": lambda v: _inserted(v),
    "round": lambda v: round(1.23456, v),
    "sum": lambda v: sum([1], v),
    "sum of items": lambda v: sum([v, 1]),
    "dir": lambda v: len(dir(v)),
    "times": lambda v: [0] * v,
    "times a text": lambda v: "x" * v,
    "times bytes": lambda v: b"x" * v,
    "times, reflected": lambda v: v * (1,),
    "times in place": lambda v: _multiplied(v),
    "operator.mul": lambda v: operator.mul([0], v),
    "deque with a maxlen": lambda v: deque([1, 2, 3], maxlen=v),
    "range": lambda v: list(range(v)),
    "islice": lambda v: list(itertools.islice([1, 2, 3, 4], v)),
}


def _added(v: Any) -> int:
    held = {P([1])}
    held.add(v)
    return len(held)


def _updated(v: Any) -> int:
    held = {P([1]): 1}
    held.update([(v, 2)])
    return len(held)


def _place(v: Any) -> str:
    try:
        return str([P([])].index(v))
    except ValueError as error:
        return str(error)


def _filled(v: Any) -> int:
    held = {P([1]): 1}
    held |= {v: 2}
    return len(held)


@functools.lru_cache(None)
def cached(value: Any) -> int:
    return 5


def _inserted(v: Any) -> list[int]:
    items = [5, 6, 7, 8]
    items.insert(v, 0)
    return items


def _multiplied(v: Any) -> list[int]:
    items = [0]
    items *= v
    return items


@pytest.mark.sample(6)
@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("reader", READERS)
def test_special_method(reader: str, holder: str) -> None:
    read, hold = READERS[reader], HOLDERS[holder]

    def f(x: Any) -> Any:
        return read(hold(x))

    answer(f)


def test_a_key_that_grows_while_it_is_one() -> None:
    def f(x: Any) -> Any:
        key = P([])
        table = {key: 1}
        grown(x, key.p)
        return table.get(P([])), len(table)

    answer(f)


CONVERTED: dict[str, Callable[[Any], Any]] = {
    "repr": repr, "str": str, "f-string": lambda v: f"{v}", "index": operator.index,
    "equal": lambda v: v == P([1]), "in a list": lambda v: v in [P([1])],
    "kept in a list": lambda v: len([v]), "appended": lambda v: [].append(v), "kept in a dict": lambda v: len({"a": v}),
    "stored in a dict": lambda v: len(_stored_under({}, "a", v)), "get with a default": lambda v: len({}.get("a", [v])),
    "setdefault as a value": lambda v: len([{}.setdefault("a", v)]), "dict of keywords": lambda v: len(dict(a=v)),
}


def _stored_under(table: dict[Any, Any], key: Any, value: Any) -> dict[Any, Any]:
    table[key] = value
    return table


@pytest.mark.parametrize("reader", CONVERTED)
def test_special_method_that_is_converted(reader: str) -> None:
    read = CONVERTED[reader]

    def f(x: Any) -> Any:
        return read(P(grown(x)))

    assert answer(f) == "same"


class Harmless:
    """It holds a list that grew, and no special method that Python calls reads it."""

    def __init__(self, name: str, items: Any) -> None:
        self.name, self.items = name, items

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return other is self or (isinstance(other, Harmless) and self.name == other.name)

    def __repr__(self) -> str:
        return f"Harmless({self.name})"

    def __len__(self) -> int:
        return len(self.items)

    def __contains__(self, item: Any) -> bool:
        return item in self.items

    def count(self) -> int:
        return len(self.items)


class Plain:
    def __init__(self, items: Any) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)


HARMLESS: dict[str, Callable[[Any], Any]] = {
    "set": lambda v: len({v, v}), "dict": lambda v: {v: 1}[v], "in": lambda v: v in {v}, "repr": lambda v: repr([v]),
    "f-string": lambda v: f"{(v,)}", "get": lambda v: {v: 2}.get(v), "counter": lambda v: collections.Counter([v])[v],
    "union": lambda v: len({v} | {1}),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("reader", HARMLESS)
def test_special_method_that_does_not_read(reader: str) -> None:
    read = HARMLESS[reader]

    def f(x: Any) -> Any:
        return read(Harmless("a", grown(x)))

    assert answer(f) == "same"


@pytest.mark.parametrize("reader", [name for name in HARMLESS if name not in ("repr", "f-string")])
def test_object_without_special_methods(reader: str) -> None:
    read = HARMLESS[reader]

    def f(x: Any) -> Any:
        return read(Plain(grown(x)))

    assert answer(f) == "same"


# -- modules, given to PyTorch's own functions -------------------------------------------------------------------------


class Reads(torch.nn.Module):
    def __init__(self, p: Any) -> None:
        super().__init__()
        self.p = p
        self.seen = 0

    def extra_repr(self) -> str:
        return str(len(self.p))

    def get_extra_state(self) -> int:
        return len(self.p)

    def set_extra_state(self, state: Any) -> None:
        pass

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        self.seen = len(self.p)
        return super()._apply(fn, recurse)

    def train(self, mode: bool = True) -> Any:
        self.seen = len(self.p)
        return super().train(mode)

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        self.seen = len(self.p)
        return super().requires_grad_(requires_grad)

    def forward(self, x: Any) -> Any:
        return x * len(self.p)


OF_MODULES: dict[str, Callable[[Any], Any]] = {
    "repr": repr, "str": str, "f-string": lambda m: f"{m}", "repr of a list": lambda m: repr([m]),
    "state_dict": lambda m: m.state_dict(), "double": lambda m: seen(m.double()),
    "to": lambda m: seen(m.to(torch.float64)), "train": lambda m: seen(m.train()), "eval": lambda m: seen(m.eval()),
    "requires_grad_": lambda m: seen(m.requires_grad_(False)), "half": lambda m: seen(m.half()),
    "Module.__repr__": lambda m: torch.nn.Module.__repr__(m),
    "Module.state_dict": lambda m: torch.nn.Module.state_dict(m), "print": print,
    "call": lambda m: m(torch.ones(2)), "zero_grad": lambda m: m.zero_grad(), "parameters": lambda m: [*m.parameters()],
    "names": lambda m: [name for name, _ in m.named_modules()], "apply": lambda m: len([m.apply(lambda one: None)]),
}


def seen(module: Any) -> list[int]:
    """What its modules have noted."""
    return [one.seen for one in module.modules() if isinstance(one, Reads)]


@pytest.mark.sample(3)
@pytest.mark.parametrize("around", ["alone", "in a Sequential", "in a module of a Sequential"])
@pytest.mark.parametrize("reader", OF_MODULES)
def test_module(reader: str, around: str) -> None:
    read = OF_MODULES[reader]

    def f(x: Any) -> Any:
        module = Reads(grown(x))
        if around != "alone":
            module = torch.nn.Sequential(module)
        if around == "in a module of a Sequential":
            module = torch.nn.Sequential(module)
        return read(module)

    found = answer(f)
    if reader in ("call", "parameters", "names"):
        assert found == "same"


class Sparing(torch.nn.Module):
    """It holds a list that grew, and only what is converted reads it."""

    def __init__(self, p: Any) -> None:
        super().__init__()
        self.p = p
        self.linear = torch.nn.Linear(2, 2)

    def extra_repr(self) -> str:
        return "2"

    def train(self, mode: bool = True) -> Any:
        self.mode = mode
        return super().train(mode)

    def forward(self, x: Any) -> Any:
        return self.linear(x) * len(self.p)


@pytest.mark.parametrize("reader", ["repr", "train", "eval", "zero_grad", "call"])
def test_module_that_does_not_read(reader: str) -> None:
    def f(x: Any) -> Any:
        torch.manual_seed(0)
        module = Sparing(grown(x))
        read = {"repr": repr, "train": lambda m: m.train().p,
                "eval": lambda m: m.eval().p, "zero_grad": lambda m: m.zero_grad(),
                "call": lambda m: m(torch.ones(2))}[reader]  # fmt: skip
        return read(module)

    assert answer(f) == "same"


# -- what a function that is not converted comes to --------------------------------------------------------------------


class Shelf:
    items: list[int] = []


class Caller:
    def __call__(self) -> int:
        return len(SEEN)

    def method(self) -> int:
        return len(SEEN)

    @staticmethod
    def static() -> int:
        return len(SEEN)

    @classmethod
    def of_class(cls) -> int:
        return len(SEEN)

    @property
    def size(self) -> int:
        return len(SEEN)


def size() -> int:
    return len(SEEN)


def size_by_another() -> int:
    return size()


def size_by_default(items: Any = SEEN) -> int:
    return len(items)


@dy2static.not_to_static
def count(owner: Any) -> int:
    return len(owner.items)


@dy2static.not_to_static
def count_shelf() -> int:
    return len(Shelf.items)


@dy2static.not_to_static
def apply(function: Any) -> Any:
    return function()


@dy2static.not_to_static
def size_of(owner: Any) -> Any:
    return owner.size


@dy2static.not_to_static
def deep(value: Any) -> int:
    while not isinstance(value, list) or (value and isinstance(value[0], list)):
        value = value[0] if isinstance(value, list) else value.p
    return len(value)


@dy2static.not_to_static
def through_another() -> int:
    return size_by_another()


@dy2static.not_to_static
def through_a_module() -> int:
    return len(MODULE.items)


@dy2static.not_to_static
def late() -> int:
    return len(sys.modules[__name__].SEEN)  # type: ignore[attr-defined]


MODULE = types.ModuleType("module_of_a_user")


def _nested(value: Any, make: Callable[[Any], Any]) -> Any:
    for _ in range(12):
        value = make(value)
    return value


class Only:
    def __init__(self, p: Any) -> None:
        self.p = p


GLOBALS: dict[str, Callable[[Any], Any]] = {
    "function": lambda x: apply(size),
    "function by another": lambda x: apply(size_by_another),
    "function with a default": lambda x: apply(size_by_default),
    "lambda": lambda x: apply(lambda: len(SEEN)),
    "partial": lambda x: apply(functools.partial(size)),
    "object that is called": lambda x: apply(Caller()),
    "method": lambda x: apply(Caller().method),
    "static method": lambda x: apply(Caller.static),
    "class method": lambda x: apply(Caller.of_class),
    "property": lambda x: size_of(Caller()),
    "through another": lambda x: through_another(),
    "through sys.modules": lambda x: late(),
}


@pytest.mark.parametrize("reader", GLOBALS)
def test_function_of_a_global(reader: str) -> None:
    read = GLOBALS[reader]

    def f(x: Any) -> Any:
        SEEN.clear()
        grown(x, SEEN)
        return read(x)

    answer(f)


LOCALS: dict[str, Callable[[Any], Any]] = {
    "builtin method": lambda x: apply(grown(x).__len__),
    "lists": lambda x: deep(_nested(grown(x), lambda value: [value])),
    "objects": lambda x: deep(_nested(grown(x), Only)),
    "closure": lambda x: (lambda items: apply(lambda: len(items)))(grown(x)),
    "closure of a partial": lambda x: (lambda items: apply(functools.partial(lambda: len(items))))(grown(x)),
    "local class": lambda x: count(type("Local", (), {"items": grown(x)})),
}


@pytest.mark.parametrize("reader", LOCALS)
def test_function_of_a_local(reader: str) -> None:
    read = LOCALS[reader]

    def f(x: Any) -> Any:
        return read(x)

    answer(f)


@pytest.mark.parametrize("read", [lambda: count(Shelf), lambda: count(Shelf()), count_shelf, lambda: count(Sub())],
                         ids=["class", "object", "global class", "derived"])  # fmt: skip
def test_class_attribute(read: Callable[[], Any]) -> None:
    def f(x: Any) -> Any:
        Shelf.items.clear()
        grown(x, Shelf.items)
        return read()

    answer(f)


class Sub(Shelf):
    pass


def test_global_of_a_module() -> None:
    MODULE.items = []  # type: ignore[attr-defined]

    def f(x: Any) -> Any:
        MODULE.items.clear()
        grown(x, MODULE.items)
        return through_a_module()

    answer(f)


@dy2static.not_to_static
def name_of(one: Any) -> str:
    return str(one.name)


class Named:
    """One of its methods reads a global that grows, and nobody calls it."""

    name = "n"
    others = SEEN

    def size(self) -> int:
        return len(SEEN)


def test_method_that_is_not_named() -> None:
    def f(x: Any) -> Any:
        SEEN.clear()
        grown(x, SEEN)
        return name_of(Named()), len(SEEN)

    assert answer(f) == "same"


def test_decorator_that_keeps_a_function() -> None:
    def f(x: Any) -> Any:
        items = grown(x)

        def inner() -> int:
            return len(items)

        @functools.wraps(inner)
        def outer() -> int:
            return inner()

        @contextlib.contextmanager
        def manager() -> Any:
            yield len(items)

        with manager() as entered:
            return outer(), entered, sorted([3, 1, 2], key=lambda one: one * inner())

    assert answer(f) == "same"


# -- items of objects, which C code takes ------------------------------------------------------------------------------


class Iterated:
    def __init__(self, p: Any) -> None:
        self.p = p

    def __iter__(self) -> Any:
        return iter([len(self.p)])


class Indexed:
    def __init__(self, p: Any) -> None:
        self.p = p

    def __getitem__(self, place: int) -> int:
        if place >= len(self.p):
            raise IndexError
        return place


class Mapped:
    def __init__(self, p: Any) -> None:
        self.p = p

    def keys(self) -> list[str]:
        return ["a"]

    def __getitem__(self, key: str) -> int:
        return len(self.p)


class Copied:
    def __init__(self, p: Any) -> None:
        self.p = p

    def __getstate__(self) -> Any:
        return {"n": len(self.p)}


def _with_items(make: Any, change: Callable[[Any, Any], Any]) -> Callable[[Any], Any]:
    def read(v: Any) -> Any:
        made = make()
        found = change(made, v)
        return made if found is None else found

    return read


def _replaced(made: Any, v: Any) -> None:
    made[0:1] = v


def _rest(v: Any) -> Any:
    _, *rest = v
    return rest


def _given(*args: Any, **kwargs: Any) -> Any:
    return args, kwargs


TAKERS: dict[str, Callable[[Any], Any]] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque, "sum": sum,
    "star": lambda v: [*v], "star in a set": lambda v: {*v}, "star in a call": lambda v: _given(*v), "rest": _rest,
    "zip": lambda v: list(zip(v, [1, 2, 3, 4])), "enumerate": lambda v: list(enumerate(v)),
    "map": lambda v: [*map(str, v)],
    "filter": lambda v: list(filter(None, v)), "comprehension": lambda v: [t for t in v],
    "extend": _with_items(lambda: [0], lambda made, v: made.extend(v)),
    "update": _with_items(lambda: {9}, lambda made, v: made.update(v)),
    "slice": _with_items(lambda: [0, 1], _replaced), "+=": _with_items(lambda: [0], operator.iadd),
    "in": lambda v: 3 in v, "fromkeys": dict.fromkeys, "Counter": lambda v: collections.Counter(v),
    "union": lambda v: {1}.union(v), "any": any, "iter": lambda v: list(iter(v)), "min": min,
    "chain": lambda v: list(itertools.chain(v, [0])), "sorted": sorted,
    "from_iterable": lambda v: list(itertools.chain.from_iterable([v])),
    "product": lambda v: list(itertools.product(v, [1])), "join": lambda v: ",".join(map(str, v)),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("make", [Iterated, Indexed])
@pytest.mark.parametrize("taker", TAKERS)
def test_items(taker: str, make: Callable[[Any], Any]) -> None:
    take = TAKERS[taker]

    def f(x: Any) -> Any:
        return take(make([1, *grown(x)] if taker in ("min", "rest") else grown(x)))

    answer(f)


@pytest.mark.parametrize("take", [dict, lambda v: {**v}, lambda v: _given(**v), collections.OrderedDict,
                                  _with_items(dict, lambda made, v: made.update(v))])  # fmt: skip
def test_items_of_a_mapping(take: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        return take(Mapped(grown(x)))

    answer(f)


def test_copy() -> None:
    def f(x: Any) -> Any:
        return vars(copy.copy(Copied(grown(x)))).get("n")

    answer(f)


def test_default_factory() -> None:
    def f(x: Any) -> Any:
        items = grown(x)
        return collections.defaultdict(lambda: len(items))["a"]

    answer(f)


class OfAll(type):
    def __repr__(cls) -> str:
        return f"K{len(SEEN)}"

    def __instancecheck__(cls, value: Any) -> bool:
        return len(SEEN) > 1


class Kind(metaclass=OfAll):
    pass


@pytest.mark.parametrize("read", [lambda: repr([Kind]), lambda: f"{(Kind,)}", lambda: isinstance(1, Kind)])
def test_metaclass(read: Callable[[], Any]) -> None:
    def f(x: Any) -> Any:
        SEEN.clear()
        grown(x, SEEN)
        return read()

    answer(f)
