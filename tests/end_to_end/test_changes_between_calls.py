"""What a Program rests on and code may change between two calls: classes, orders, stored methods, inherited state."""

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import itertools
import math
import operator
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from dy2static import to_static
from tests.oracle import difference

Read = Callable[[torch.Tensor], Any]


class First:
    number = 2


class Second(First):
    number = 3


class FirstDict(dict[str, int]):
    number = 2


class SecondDict(FirstDict):
    number = 3


class FirstModule(nn.Module):
    number = 2


class SecondModule(FirstModule):
    number = 3


class FirstSlotted:
    __slots__ = ("stored",)
    number = 2


class SecondSlotted(FirstSlotted):
    __slots__ = ()
    number = 3


CLASSES: dict[str, tuple[Callable[[], Any], type]] = {
    "object": (First, Second), "dict": (FirstDict, SecondDict), "module": (FirstModule, SecondModule),
    "slotted": (FirstSlotted, SecondSlotted),
}  # fmt: skip
HELD = types.SimpleNamespace()
OTHER = types.SimpleNamespace()
ASKED: dict[str, Read] = {
    "type": lambda x: type(HELD.one).__name__,
    "__class__": lambda x: HELD.one.__class__.__name__,
    "isinstance": lambda x: isinstance(HELD.one, OTHER.cls),
    "is": lambda x: type(HELD.one) is OTHER.cls,
    "issubclass": lambda x: issubclass(type(HELD.one), OTHER.cls),
    "attribute": lambda x: HELD.one.number,
    "getattr": lambda x: getattr(HELD.one, "number"),
    "of the class": lambda x: type(HELD.one).number,
    "in": lambda x: type(HELD.one) in (OTHER.cls,),
    "key": lambda x: {type(HELD.one): 1}.get(OTHER.cls, 0),
    "lookup": lambda x: object.__getattribute__(HELD.one, "__class__").__name__,
    "in a list": lambda x: [type(one).__name__ for one in HELD.several],
}


def _hold(read: Read, *changes: Callable[[], Any]) -> None:
    """As eager before the changes, after each, and at the second call after it."""

    def function(x: torch.Tensor) -> Any:
        return x * 2, read(x)

    converted: Any = to_static(function)
    x = torch.ones(2)
    for change in (lambda: None, *changes):
        change()
        for _ in range(2):
            expected = function(x)
            got = converted(x)
            assert not difference(got, expected)
            for one, other in zip(got, expected):
                assert not isinstance(other, torch.Tensor) or one.requires_grad == other.requires_grad


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("asked", ASKED)
def test_the_class_of_an_object(kind: str, asked: str) -> None:
    make, cls = CLASSES[kind]
    HELD.one, OTHER.cls = make(), cls
    HELD.several = [HELD.one]
    _hold(ASKED[asked], lambda: setattr(HELD.one, "__class__", cls))


class Ordered(collections.OrderedDict[str, int]):
    """A user's class of them."""


ORDERS: dict[str, Read] = {
    "last": lambda x: x * list(HELD.table.values())[-1],
    "reversed": lambda x: next(reversed(HELD.table.values())),
    "first": lambda x: next(iter(HELD.table.values())),
    "list": lambda x: list(HELD.table),
    "items": lambda x: list(HELD.table.items()),
    "for": lambda x: [key for key in HELD.table],
    "keys backwards": lambda x: list(reversed(HELD.table)),
    "displays": lambda x: ([*HELD.table], {**HELD.table}, dict(HELD.table)),
    "text": lambda x: repr(HELD.table),
    "equal": lambda x: HELD.table == type(HELD.table)(other=1, held=2),
    "copy": lambda x: list(HELD.table.copy()),
    "unpacked": lambda x: (lambda **given: list(given))(**HELD.table),
}


@pytest.mark.parametrize("kind", [collections.OrderedDict, Ordered])
@pytest.mark.parametrize("read", ORDERS)
def test_the_order_of_an_ordered_dict(kind: Any, read: str) -> None:
    HELD.table = kind(other=1, held=2)
    _hold(ORDERS[read], lambda: HELD.table.move_to_end("other"), lambda: HELD.table.move_to_end("held"))


class Tripled(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, t: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return t * 3


class Base:
    held: Any = None


class Derived(Base):
    def given(self) -> Any:
        return super().held


@dataclasses.dataclass
class Record:
    a: Any = 1
    b: Any = 2.0


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer, self.other = nn.Linear(2, 2), nn.Linear(2, 2)


def _set(owner: Any, name: str, value: Any) -> Callable[[], Any]:
    return lambda: setattr(owner, name, value)


@pytest.mark.parametrize("asked", ["func", "__name__", "missing"])
@pytest.mark.parametrize("make", [FirstSlotted, types.SimpleNamespace])
def test_a_method_that_is_stored(make: Any, asked: str) -> None:
    HELD.one = make()
    HELD.one.stored = Tripled.apply
    _hold(lambda x: (hasattr(HELD.one.stored, asked), getattr(HELD.one.stored, asked, 3) == 3),
          _set(HELD.one, "stored", functools.partial(torch.sum)), _set(HELD.one, "stored", Tripled.apply))  # fmt: skip


@pytest.mark.parametrize("read", [
    lambda x: x + len(object.__getattribute__(HELD.one, "held")),
    lambda x: x + sum(object.__getattribute__(HELD.one, "held")),
    lambda x: x + sum(HELD.one.held),
    lambda x: x + sum(HELD.one.__dict__["held"]),
])  # fmt: skip
def test_an_attribute_that_object_looks_up(read: Read) -> None:
    HELD.one = types.SimpleNamespace(held=collections.UserList([1, 2]))
    _hold(read, lambda: HELD.one.held.extend([4]), lambda: HELD.one.__dict__.update(held=collections.deque([1, 2])))


@pytest.mark.parametrize("make", [collections.UserList, list, collections.deque])
def test_what_super_gives(make: Any) -> None:
    Base.held = make([1, 2])
    HELD.one = Derived()
    _hold(lambda x: ([one for one in HELD.one.given()], len(HELD.one.given())), lambda: Base.held.pop(),
          _set(Derived, "held", range(3)), _set(Base, "held", [7]))  # fmt: skip
    del Derived.held


@pytest.mark.parametrize("read", [
    lambda x: nn.Linear.forward(HELD.net.layer, x),
    lambda x: type(HELD.net.layer).forward(HELD.net.layer, x),
    lambda x: HELD.net.layer(x),
    lambda x: sum(one.sum() for one in HELD.net.parameters()) * x,
    lambda x: len(list(HELD.net.parameters())),
    lambda x: [name for name, _ in HELD.net.named_parameters()],
])  # fmt: skip
def test_the_parameters_of_a_layer(read: Read) -> None:
    HELD.net = Net()
    net = HELD.net
    _hold(read, _set(net.layer, "weight", nn.Parameter(torch.ones(2, 2))), _set(net.layer, "weight", net.other.weight),
          _set(net.layer, "weight", nn.Parameter(torch.ones(2, 2), False)))  # fmt: skip


@pytest.mark.parametrize("read", [
    lambda x: x + dataclasses.astuple(HELD.record)[0].sum(),
    lambda x: x + dataclasses.asdict(HELD.record)["a"].sum(),
    lambda x: x + copy.deepcopy(HELD.record).a.sum(),
    lambda x: x + copy.deepcopy(HELD.record.a).sum(),
    lambda x: x + copy.copy(HELD.record).a.sum(),
    lambda x: x + dataclasses.replace(HELD.record, b=1).a.sum(),
])  # fmt: skip
def test_a_tensor_in_an_object_that_is_copied(read: Read) -> None:
    HELD.record = Record(torch.tensor([True, False]))
    _hold(read, _set(HELD, "record", Record(nn.Parameter(torch.ones(2)))),
          lambda: setattr(HELD.record, "a", torch.ones(2, 3)[0]),
          lambda: setattr(HELD.record, "a", nn.Parameter(torch.ones(2))))  # fmt: skip


TENSOR = torch.tensor([2.0, 3.0])


@pytest.mark.parametrize("read", [
    lambda x: x + TENSOR[0], lambda x: x + TENSOR.view(1, 2), lambda x: x + TENSOR.detach(),
    lambda x: TENSOR.view(2, 1) * x,
])  # fmt: skip
def test_views_of_a_tensor_from_outside_in_inference_mode(read: Read) -> None:
    converted: Any = to_static(read)
    x = torch.ones(2)
    for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad, torch.inference_mode):
        with mode():
            assert not difference(converted(x), read(x))


def _base(self: Any, t: torch.Tensor, times: int) -> Any:
    return t * times


def _second(self: Any, t: Any) -> Any:
    return t * 11


METHODS: dict[str, Any] = {
    "function": lambda self, t: t * 2,
    "cache": functools.cache(lambda self, t: 5),
    "lru_cache": functools.lru_cache(maxsize=3)(lambda self, t: 5),
    "partialmethod": functools.partialmethod(_base, times=2),
    "singledispatchmethod": functools.singledispatchmethod(lambda self, t: t * 2),
    "staticmethod of C": staticmethod(torch.neg),
    "staticmethod": staticmethod(lambda t: t * 4),
    "classmethod": classmethod(lambda cls, t: t * 6),
    "classmethod of a partial": classmethod(functools.partial(lambda times, cls, t: t * times, 2)),
    "function of C": torch.neg,
    "partial": functools.partial(lambda times, t: t * times, 3),
}


@pytest.mark.filterwarnings("ignore:functools.partial will be a method descriptor")
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("kind", METHODS)
def test_a_method_of_a_class(kind: str, inside: bool) -> None:
    """Also one that only a path calls, of an object from outside and of one that the function makes."""

    class Owner:
        method: Any = METHODS[kind]

    class Child(Owner):
        pass

    owner = Child()
    given: Any = 1 if "cache" in kind else None

    def function(x: torch.Tensor) -> Any:
        z = x
        if x.sum() > 0:
            z = (Child() if inside else owner).method(x if given is None else given) * x
        return z

    converted: Any = to_static(function)
    changes = (lambda: None, lambda: setattr(Owner, "method", _second), lambda: setattr(Child, "method", METHODS[kind]),
               lambda: setattr(Child, "method", functools.partialmethod(_base, times=7)))  # fmt: skip
    for change in changes:
        change()
        for x in (torch.ones(2), -torch.ones(2)):
            assert not difference(converted(x), function(x))


class Sequence:
    """Says itself what its items are."""

    def __init__(self) -> None:
        self.data = [1, 2]

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, index: int) -> int:
        return self.data[index]

    def __iter__(self) -> Any:
        return iter(self.data)


class Other(list[int]):
    def __iter__(self) -> Any:
        return iter([9, *self[:1]])


@pytest.mark.parametrize("make", [Sequence, collections.UserList, Other])
@pytest.mark.parametrize("read", [
    lambda x: list(reversed(HELD.sequence)),
    lambda x: operator.length_hint(HELD.sequence), lambda x: math.prod(HELD.sequence),
    lambda x: list(itertools.accumulate(HELD.sequence)), lambda x: type(np.asarray(HELD.sequence).sum()).__name__,
    lambda x: np.asarray(list(HELD.sequence)).sum() * x, lambda x: list(itertools.pairwise(HELD.sequence)),
    lambda x: sum(HELD.sequence), lambda x: sorted(HELD.sequence), lambda x: max(HELD.sequence),
])  # fmt: skip
def test_what_a_sequence_says_of_itself(make: Any, read: Read) -> None:
    HELD.sequence = make()
    data = HELD.sequence if isinstance(HELD.sequence, list) else HELD.sequence.data
    data[:] = [1, 2]
    _hold(read, lambda: data.append(6), lambda: data.__setitem__(0, 8))
    data[:] = [7, 1]
    _hold(read, data.reverse)


@pytest.mark.parametrize("read", [lambda x: repr(HELD.net), lambda x: str(HELD.net), lambda x: f"{HELD.net}"])
def test_the_text_of_a_module(read: Read) -> None:
    HELD.net = nn.Sequential(nn.Dropout(0.0), nn.Linear(2, 2))
    _hold(read, _set(HELD.net[0], "p", 1.0), lambda: HELD.net.append(nn.ReLU()))


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("make", (lambda: types.SimpleNamespace(first=1), lambda: torch.nn.Linear(2, 2)),
                         ids=("object", "module"))
def test_attributes_beside_one_that_is_stored(make: Any) -> None:
    """What ``vars`` gives of an object whose other attributes come and go."""

    def outcomes(convert: Any) -> list[Any]:
        one = make()

        def use(x: Any) -> Any:
            one.stored = x.sum()
            names = [name for name in vars(one) if not name.startswith("_")]
            return x * len(vars(one)), names, "more" in one.__dict__, vars(one).get("more")

        static = convert(use)
        found = []
        for change in (None, None, 3, 3, 4, None, 5):
            if change is not None:
                one.more = change
            elif hasattr(one, "more"):
                del one.more
            found += static(torch.ones(2)), static(torch.ones(2))
        return found

    assert not difference(outcomes(to_static), outcomes(lambda use: use))


def test_a_global_that_comes_beside_one_that_is_stored() -> None:
    def use(x: Any) -> Any:
        global STORED_GLOBAL
        STORED_GLOBAL = 3
        return x * (2 if "OTHER_GLOBAL" in globals() else 1), globals().get("OTHER_GLOBAL")

    static = to_static(use)
    for value in (None, None, 3, 4, None):
        globals().pop("OTHER_GLOBAL", None)
        if value is not None:
            globals()["OTHER_GLOBAL"] = value
        assert not difference(static(torch.ones(2)), use(torch.ones(2)))
    globals().pop("STORED_GLOBAL")
