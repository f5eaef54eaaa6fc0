"""What Python of the standard library reads of objects from outside: where it changes, the function is traced again."""

from __future__ import annotations

import argparse
import collections
import collections.abc
import contextlib
import copy
import dataclasses
import enum
import fractions
import functools
import inspect
import json
import operator
import pprint
import statistics
import string
import sys
import threading
import types
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import check

FACTOR = 2


class Level(enum.IntEnum):
    LOW = 1


class Color(enum.Enum):
    RED = 1
    BLUE = 2


class Word(str, enum.Enum):
    A = "a"


class Config(collections.UserDict):  # type: ignore[type-arg]
    pass


class Falling(collections.UserDict):  # type: ignore[type-arg]
    def __missing__(self, key: Any) -> Any:
        return FACTOR


class Items(collections.UserList):  # type: ignore[type-arg]
    pass


class Text(collections.UserString):
    pass


class Chain(collections.ChainMap):  # type: ignore[type-arg]
    pass


class Options(argparse.Namespace):
    pass


class Template(string.Template):
    pass


class Ratio(fractions.Fraction):
    pass


class Worker(threading.Thread):
    pass


class Mapped(collections.abc.Mapping):  # type: ignore[type-arg]
    def __init__(self) -> None:
        self.held = {"a": 1}

    def __getitem__(self, key: Any) -> Any:
        return self.held[key] * FACTOR

    def __iter__(self) -> Any:
        return iter(self.held)

    def __len__(self) -> int:
        return len(self.held)


class Sequenced(collections.abc.Sequence):  # type: ignore[type-arg]
    def __init__(self) -> None:
        self.items = [1, 2]

    def __getitem__(self, key: Any) -> Any:
        return self.items[key]

    def __len__(self) -> int:
        return len(self.items)


class Point:
    def __init__(self, a: Any, b: Any = None) -> None:
        self.a, self.b = a, b


@functools.total_ordering
class Ordered(Point):
    def __lt__(self, other: Any) -> Any:
        return self.a * FACTOR < other.a

    def __eq__(self, other: object) -> Any:
        return isinstance(other, Ordered) and self.a == other.a

    __hash__ = None  # type: ignore[assignment]


class Slotted:
    __slots__ = ("a",)

    def __init__(self, a: Any) -> None:
        self.a = a


@dataclasses.dataclass
class Record:
    a: Any = 1
    b: Any = None


class Encoder(json.JSONEncoder):
    def default(self, one: Any) -> Any:
        return one.a


class Once(type):
    made: dict[Any, Any] = {}

    def __call__(cls, *args: Any) -> Any:
        if cls not in Once.made:
            Once.made[cls] = super().__call__(*args)
        return Once.made[cls]


class Single(metaclass=Once):
    def __init__(self) -> None:
        self.k = 1


class Found:
    one: Any = None

    def __new__(cls) -> Any:
        if cls.one is None:
            cls.one = object.__new__(cls)
            cls.one.k = 1
        return cls.one


@pytest.fixture
def world() -> Any:
    """What is outside of the functions, anew for each test, in the module's own namespace."""
    held = types.SimpleNamespace(
        config=Config(a=1), falling=Falling(), items=Items([1]), text=Text("ab"), chain=Chain({"a": 1}),
        options=Options(a=1), template=Template("$a"), ratio=Ratio(3, 4), worker=Worker(name="one"),
        mapped=Mapped(), sequenced=Sequenced(), plain=collections.UserDict(a=1), third=fractions.Fraction(1, 3),
        first=Ordered(1), second=Ordered(3), point=Point(1, Record(1)), record=Record(1, Record(2)),
        slotted=Slotted(1), number=Slotted(7))  # fmt: skip
    globals()["W"] = held
    globals()["FACTOR"] = 2
    kept = [(member, dict(vars(member))) for member in (*Level, *Color, *Word)]
    Once.made.clear()
    Found.one = None
    Single(), Found()
    yield held
    for member, attributes in kept:
        vars(member).clear()
        vars(member).update(attributes)
    globals()["FACTOR"] = 2


W: Any = None


def set_to(path: str, value: Any) -> Callable[[], None]:
    """A change: something that ``W`` leads to gets another value."""
    owner, name = path.rsplit(".", 1)
    return lambda: setattr(eval(owner, globals()), name, value)


OTHER = {"a": 3, "b": 4}
READS: dict[str, tuple[Callable[[Any], Any], Callable[[], None]]] = {
    "value_of_a_member": (lambda x: x * Color.RED.value, set_to("Color.RED._value_", 5)),
    "asked_for_by_name": (lambda x: x * getattr(Level.LOW, "value", 3), set_to("Level.LOW._value_", 5)),
    "value_of_a_text": (lambda x: x * len(Word.A.value), set_to("Word.A._value_", "abcd")),
    "name_of_a_member": (lambda x: x * len(Color.RED.name), set_to("Color.RED._name_", "other")),
    "text_of_a_member": (lambda x: x * len(f"{Color.RED}"), set_to("Color.RED._name_", "other")),
    "repr_of_a_member": (lambda x: x * len(repr(Color.RED)), set_to("Color.RED._name_", "other")),
    "member_by_value": (lambda x: x * len(Color(2).name), set_to("Color.BLUE._name_", "other")),
    "member_by_name": (lambda x: x * Color["RED"].value, set_to("Color.RED._value_", 5)),
    "members": (lambda x: x * sum(one.value for one in Color), set_to("Color.RED._value_", 5)),
    "item": (lambda x: x * W.config["a"], set_to("W.config.data", OTHER)),
    "length": (lambda x: x * len(W.config), set_to("W.config.data", OTHER)),
    "get": (lambda x: x * W.config.get("a"), set_to("W.config.data", OTHER)),
    "contains": (lambda x: x * (2 if "b" in W.config else 1), set_to("W.config.data", OTHER)),
    "equal": (lambda x: x * (2 if W.config == {"a": 1} else 1), set_to("W.config.data", OTHER)),
    "changed_in_place": (lambda x: x * W.config["a"], lambda: W.config.update(a=3)),
    "missing": (lambda x: x * W.falling["q"], lambda: globals().update(FACTOR=7)),
    "of_a_user_list": (lambda x: x * W.items[0], set_to("W.items.data", [4, 5])),
    "length_of_a_user_list": (lambda x: x * len(W.items), set_to("W.items.data", [4, 5])),
    "over_a_user_list": (lambda x: x * sum(one for one in W.items), set_to("W.items.data", [4, 5])),
    "of_a_user_string": (lambda x: x * len(W.text.upper()), set_to("W.text.data", "abcde")),
    "of_a_chain": (lambda x: x * W.chain["a"], set_to("W.chain.maps", [{"a": 4, "b": 3}])),
    "of_a_namespace": (lambda x: x * len(repr(W.options)), set_to("W.options.more", 7)),
    "name_in_a_namespace": (lambda x: x * (2 if "more" in W.options else 1), set_to("W.options.more", 7)),
    "template": (lambda x: x * len(W.template.substitute(a="xyz")), set_to("W.template.template", "$a b c")),
    "numerator": (lambda x: x * W.ratio.numerator, set_to("W.ratio._numerator", 7)),
    "float_of_a_fraction": (lambda x: x * float(W.ratio), set_to("W.ratio._numerator", 7)),
    "librarys_own": (lambda x: x * float(W.third), set_to("W.third._numerator", 7)),
    "librarys_own_dict": (lambda x: x * W.plain["a"], set_to("W.plain.data", OTHER)),
    "name_of_a_thread": (lambda x: x * len(W.worker.name), set_to("W.worker.name", "other")),
    "mixin_get": (lambda x: x * W.mapped.get("a"), set_to("W.mapped.held", OTHER)),
    "mixin_values": (lambda x: x * sum(W.mapped.values()), set_to("W.mapped.held", OTHER)),
    "what_a_mixin_calls": (lambda x: x * W.mapped.get("a"), lambda: globals().update(FACTOR=7)),
    "methodcaller": (lambda x: x * operator.methodcaller("get", "a")(W.mapped), set_to("W.mapped.held", OTHER)),
    "mixin_in": (lambda x: x * (2 if 9 in W.sequenced else 1), set_to("W.sequenced.items", [9, 9])),
    "mixin_index": (lambda x: x * W.sequenced.index(2), set_to("W.sequenced.items", [9, 9, 2])),
    "mixin_iteration": (lambda x: x * sum(one for one in W.sequenced), set_to("W.sequenced.items", [9, 9])),
    "mean": (lambda x: x * statistics.mean(W.sequenced), set_to("W.sequenced.items", [9, 9])),
    "total_ordering": (lambda x: x * (2 if W.first <= W.second else 1), set_to("W.first.a", 9)),
    "what_it_calls": (lambda x: x * (2 if W.first >= W.second else 1), lambda: globals().update(FACTOR=7)),
    "copied_slots": (lambda x: x * copy.copy(W.slotted).a, set_to("W.slotted.a", 8)),
    "json": (lambda x: x * len(json.dumps([W.point], cls=Encoder)), set_to("W.point.a", 50)),
    "pprint": (lambda x: x * len(pprint.pformat(W.record)), set_to("W.record.b.a", 50)),
    "getmembers": (lambda x: x * dict(inspect.getmembers(W.point))["a"], set_to("W.point.a", 50)),
    "formatter": (lambda x: x * len(string.Formatter().format("{0.a}", W.point)), set_to("W.point.a", 50)),
    "format": (lambda x: x * len("{0.a} {p.b.a}".format(W.point, p=W.point)), set_to("W.point.b.a", 50)),
    "format_width": (lambda x: x * len("{0:{1.a}}".format(1, W.number)), set_to("W.number.a", 9)),
    "of_a_single_object": (lambda x: x * Single().k, lambda: setattr(Single(), "k", 5)),
    "of_one_that_new_finds": (lambda x: x * Found().k, lambda: setattr(Found(), "k", 5)),
    "of_a_weak_reference": (lambda x: x * weakref.ref(W.point)().a, set_to("W.point.a", 50)),
    "on_a_member_by_value": (lambda x: x * getattr(Color(1), "tag", 1), set_to("Color.RED.tag", 5)),
}  # fmt: skip


@pytest.mark.parametrize("name", READS)
def test_a_change_is_seen(name: str, world: Any) -> None:
    function, change = READS[name]
    call = (torch.tensor([1.0, 2.0], requires_grad=True),)
    static = to_static(function)
    check(function, call, call, static=static)
    before = len(static.programs)
    check(function, call, static=static)
    assert len(static.programs) == before  # nothing changed
    change()
    check(function, call, call, static=static)
    assert len(static.programs) > before


def stores_on_the_single_object(x):
    Single().k = Single().k + 1
    return x * Single().k


def stores_on_a_member(x):
    Color(1).tag = getattr(Color(1), "tag", 0) + 1
    return x * Color(1).tag


def stores_on_a_path(x):
    if x.sum() > 0:
        Single().k = 9
    return x * Single().k


@pytest.mark.parametrize(
    "function", [stores_on_the_single_object, stores_on_a_member, stores_on_a_path], ids=lambda one: one.__name__
)
def test_a_store_on_what_a_class_finds_stays(function: Any, world: Any) -> None:
    owner = Color.RED if function is stores_on_a_member else Single()
    static = to_static(function)
    seen: list[Any] = []
    for one in (function, static):
        owner.__dict__.pop("tag", None)
        owner.__dict__.update({"k": 1} if owner is not Color.RED else {})
        seen.append([])
        for _ in range(4):
            result = one(torch.ones(2))
            seen[-1].append((result.tolist(), getattr(owner, "tag", None), getattr(owner, "k", None)))
    assert seen[0] == seen[1]


class Own:
    def __init__(self) -> None:
        self.data = {"a": 1}

    def __getitem__(self, key: Any) -> Any:
        return self.data[key]

    def __iter__(self) -> Any:
        return iter(self.data)

    def __len__(self) -> int:
        return len(self.data)

    def keys(self) -> Any:
        return self.data.keys()


class Sides(enum.Flag):
    A = 1
    B = 2


MAPPINGS = [
    "total(**O)", "sum({**O}.values())", "sum(dict(O).values())", "len(list(O))", "len([*O])", "(2 if O else 1)",
    "(2 if 'b' in O else 1)", "len('%(a)s' % O)", "len('{a}'.format(**O))", "len('{a}'.format_map(O))",
    "({'a': 0} | dict(O))['a']", "len(sorted(O))", "len(set(O))", "len(list(zip(O, O)))", "len(''.join(O))",
    "len(list(itertools.chain(O, [1])))", "collections.Counter(O)['a']", "len(list(map(len, O)))",
]  # fmt: skip
SEQUENCES = [
    "sum([*O])", "sum(O)", "O[0]", "max(O)", "(2 if 5 in O else 1)", "sorted(O)[0]", "sum(O + [1])", "O.index(O[-1])",
    "list(reversed(O))[0]", "sum(map(abs, O))", "torch.tensor(list(O)).sum().item()", "next(iter(O))", "math.prod(O)",
]  # fmt: skip
NUMBERS = [
    "float(O)", "int(O * 4)", "math.floor(O * 4)", "(2 if O > 1 else 1)", "float(1 - O)", "float(abs(O))",
    "math.sqrt(O)", "len(str(O))", "float(max(O, 1))", "complex(O).real", "(2 if O == 0.75 else 1)",
]  # fmt: skip
FLAGS = ["(2 if O else 1)", "len(f'{O}')", "(2 if Sides.A in O else 1)"]
if sys.version_info >= (3, 11):
    FLAGS.append("len(list(O))")
KINDS: dict[str, tuple[Callable[[], Any], list[str], str, Any]] = {
    "derived_dict": (lambda: Config(a=1), MAPPINGS, "data", {"a": 33, "b": 7}),
    "dict": (lambda: collections.UserDict(a=1), MAPPINGS, "data", {"a": 33, "b": 7}),
    "chain": (lambda: Chain({"a": 1}), MAPPINGS, "maps", [{"a": 33, "b": 7}]),
    "own": (Own, [one for one in MAPPINGS if "format_map" not in one], "data", {"a": 33, "b": 7}),
    "derived_list": (lambda: Items([1]), SEQUENCES, "data", [5, 9]),
    "list": (lambda: collections.UserList([1]), SEQUENCES, "data", [5, 9]),
    "ratio": (lambda: Ratio(3, 4), NUMBERS, "_numerator", 17),
    "fraction": (lambda: fractions.Fraction(3, 4), NUMBERS, "_numerator", 17),
    "flag": (lambda: Sides.A, FLAGS, "_value_", 3),
}
_HEAD = """import collections
import itertools
import math
import torch
def total(**items):
    return sum(items.values())
"""


@pytest.mark.parametrize("kind", KINDS)
def test_syntax_and_builtins_that_ask_for_items(kind: str, world: Any, tmp_path: Path) -> None:
    make, expressions, name, value = KINDS[kind]
    held = make()
    file = tmp_path / "asked.py"
    file.write_text(_HEAD + "".join(
        f"def f{number}(x):\n    return x * ({one})\n" for number, one in enumerate(expressions)))
    module = module_of(file)
    vars(module).update(O=held, Sides=Sides)
    functions = [getattr(module, f"f{number}") for number in range(len(expressions))]
    statics = [to_static(one) for one in functions]
    call = (torch.tensor([1.0, 2.0]),)
    before = getattr(held, name)
    try:
        for function, static in zip(functions, statics):
            check(function, call, call, static=static)
            assert len(static.programs) == 1
        setattr(held, name, value)
        for function, static in zip(functions, statics):
            check(function, call, call, static=static)
    finally:
        setattr(held, name, before)


@contextlib.contextmanager
def entered(number: Any) -> Any:
    yield number


def left_by_a_stack(x):
    with contextlib.ExitStack() as stack:
        return x * stack.enter_context(entered(2))


def given_on(x):
    with contextlib.ExitStack() as stack:
        return stack.enter_context(entered(x * 2))


@pytest.mark.parametrize("function", [left_by_a_stack, given_on], ids=lambda one: one.__name__)
def test_objects_that_a_library_makes_and_changes_are_no_guards(function: Any) -> None:
    calls = [(torch.ones(2),)] * 5
    assert len(check(function, *calls).programs) == 1


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("function", [lambda x: x * float(W.ratio), lambda x: x * statistics.mean(W.sequenced)],
                         ids=["of_a_fraction", "of_a_users_class"])  # fmt: skip
def test_a_number_that_changes_at_each_call(function: Any, world: Any) -> None:
    static = to_static(function)
    world.sequenced.items = [1, 2, 3, 4, 5, 6, 7, 8]
    for number in range(1, 8):
        world.ratio._numerator = number
        world.sequenced.items[0] = number
        check(function, (torch.ones(2),), static=static)


def test_what_is_not_read_is_no_guard(world: Any) -> None:
    static = to_static(lambda x: x * W.options.a)
    for number in range(5):
        world.options.step = number
        world.options.history = [number]
        assert static(torch.ones(1)) == 1
    assert len(static.programs) == 1
