"""Checks as code: for every kind of fact, what a check lets pass is still so by the guard itself, the long way."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from runtime.tracer.python_state.guard_code import Check, CheckWriter
from runtime.tracer.python_state.guards import Guard, GuardSet
from runtime.tracer.python_state.journal import Place

Tensor = torch.Tensor


def attribute_guard(owner: Any, name: str) -> Guard:
    """That an attribute is what it is now, as a trace records it."""
    guards = GuardSet()
    place = Place("attribute", owner, name)
    guards.add("key", place.describe(), lambda: getattr(owner, name), getattr(owner, name), place)
    (guard,) = guards.freeze()
    return guard


def check_of(*guards: Guard) -> Check:
    writer = CheckWriter(())
    for guard in guards:
        writer.guard(guard)
    check = writer.finish()
    assert check is not None and check() == ()
    assert all(guard.holds() for guard in guards)
    return check


def passes(check: Check, *args: Any) -> bool:
    return check(*args) is not None


# -- attributes of any object


class Plain:
    shared: Any = "shared"

    def __init__(self, held: Any = 1) -> None:
        self.held = held


class Slotted:
    __slots__ = ("held",)


class Meta(type):
    @property
    def of_meta(cls) -> int:
        return 1


class OfMeta(metaclass=Meta):
    pass


class Computed:
    @property
    def held(self) -> Any:
        return self.__dict__["inner"]

    @held.setter
    def held(self, value: Any) -> None:
        self.__dict__["inner"] = value


def slotted() -> Any:
    owner = Slotted()
    owner.held = 1
    return owner


def computed() -> Any:
    owner = Computed()
    owner.held = 1
    return owner


def cell() -> Any:
    value = 1
    return (lambda: value).__closure__[0]  # type: ignore[index]


def odd(name: str) -> Callable[[], Any]:
    def make() -> Any:
        owner = Plain()
        setattr(owner, name, 1)
        return owner

    return make


OWNERS: dict[str, tuple[Callable[[], Any], str]] = {
    "an object": (Plain, "held"), "a slot": (slotted, "held"), "a property": (computed, "held"),
    "of its class": (lambda: type("Sub", (Plain,), {"shared": 1})(), "shared"),
    "a class": (lambda: type("Sub", (), {"held": 1}), "held"),
    "a module": (lambda: odd("held")() and types.ModuleType("m"), "__doc__"),
    "a cell": (cell, "cell_contents"),
    "a function": (lambda: types.FunctionType((lambda a=1: a).__code__, {}, "f", (1,)), "__defaults__"),
    "no identifier": (odd("a b"), "a b"), "a keyword": (odd("class"), "class"), "not of ascii": (odd("ü"), "ü"),
    "a quote": (odd("'"), "'"), "a line": (odd("a\nb"), "a\nb"), "nothing": (odd(""), ""),
}  # fmt: skip


@pytest.mark.parametrize("kind", OWNERS)
def test_an_attribute_of_any_object(kind: str) -> None:
    make, name = OWNERS[kind]
    owner = make()
    guard = attribute_guard(owner, name)
    before, check = getattr(owner, name), check_of(guard)
    for value in (2, None, (2,), "a"):
        if kind == "a function" and not isinstance(value, (tuple, type(None))) or value == before:
            continue
        setattr(owner if kind != "of its class" else type(owner), name, value)
        assert not passes(check) and not guard.holds()
        setattr(owner if kind != "of its class" else type(owner), name, before)
        assert passes(check) and guard.holds()
    if kind not in ("a property", "a function"):
        delattr(owner if kind != "of its class" else type(owner), name)
        assert not passes(check) and not guard.holds()


def test_an_attribute_that_hides_the_class() -> None:
    owner = Plain()
    guard = attribute_guard(owner, "shared")
    check = check_of(guard)
    owner.shared = "own"
    assert not passes(check) and not guard.holds()


class Changing:
    """An attribute that is another one at each read."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def test_what_cannot_be_read_any_more() -> None:
    owner = Plain()
    guard = attribute_guard(owner, "held")
    check = check_of(guard)
    owner.__class__ = Changing
    del owner.held
    assert not passes(check) and not guard.holds()


def test_what_is_no_change_of_a_fact_is_raised() -> None:
    """A user's own exception is no answer; the long way raises it too."""
    class Raises:
        held = 1

    owner = Raises()
    guard = attribute_guard(owner, "held")
    check = check_of(guard)
    Raises.held = property(lambda self: 1 // 0)  # type: ignore[assignment]
    for ask in (check, guard.holds):
        with pytest.raises(ZeroDivisionError):
            ask()


# -- what values look like


def function() -> None:
    pass


LIKE: dict[str, tuple[Any, list[Any], list[Any]]] = {
    "None": (None, [], [0, False, [], ""]),
    "True": (True, [], [1, False, 1.0, None]),
    "an int": (1, [int("1")], [True, 1.0, 2, "1"]),
    "a big one": (10**30, [10**30 + 0], [10**30 + 1]),
    "a float": (0.0, [float("0")], [-0.0, 0, 0j, 1.0]),
    "nan": (float("nan"), [float("nan")], [0.0, complex(float("nan"), 0)]),
    "a complex": (complex(0, -0.0), [complex("0-0j")], [0j, 0.0]),
    "a text": ("ab", ["".join("ab")], [b"ab", "b"]),
    "bytes": (b"ab", [bytes([97, 98])], ["ab", bytearray(b"ab")]),
    "a dtype": (torch.float32, [], [torch.float64, "float32"]),
    "a device": (torch.device("cpu"), [torch.device("cpu")], ["cpu", torch.device("meta")]),
    "a list": ([1, [2.0]], [[1, [2.0]]], [[True, [2.0]], (1, [2.0]), [1]]),
    "a tuple": ((1, "a"), [(1, "a")], [(1.0, "a"), [1, "a"]]),
    "a dict": ({"a": 1}, [{"a": 1}], [{"a": True}, {"b": 1}, {}]),
    "a function": (function, [], [lambda: None, None]),
    "a class": (Plain, [], [Slotted, type("Plain", (), {})]),
    "a builtin": (len, [], [max]),
}  # fmt: skip


@pytest.mark.parametrize("kind", LIKE)
@pytest.mark.parametrize("owner", [Plain, lambda: Net(None)], ids=["object", "module"])
def test_a_value_of_each_kind(kind: str, owner: Callable[[], Any]) -> None:
    value, alike, others = LIKE[kind]
    holder = owner()
    holder.held = value
    guard = attribute_guard(holder, "held")
    check = check_of(guard)
    for one in (value, *alike):
        holder.held = one
        assert passes(check) and guard.holds(), one
    for one in others:
        holder.held = one
        assert not passes(check) and not guard.holds(), one


def test_an_object_is_known_by_identity_and_class() -> None:
    owner, held = Plain(), Plain()
    owner.held = held
    guard = attribute_guard(owner, "held")
    check = check_of(guard)
    held.more = 1  # type: ignore[attr-defined]
    assert passes(check) and guard.holds()
    owner.held = Plain()
    assert not passes(check) and not guard.holds()
    owner.held = held
    held.__class__ = type("Other", (Plain,), {})
    assert not passes(check) and not guard.holds()


def test_a_module_that_gets_another_class() -> None:
    owner, held = Plain(), types.ModuleType("m")
    owner.held = held
    guard = attribute_guard(owner, "held")
    check = check_of(guard)
    held.__class__ = type("Other", (types.ModuleType,), {})
    assert not passes(check) and not guard.holds()


def test_an_object_that_is_equal_to_everything() -> None:
    class Equal:
        def __eq__(self, other: object) -> bool:
            return True

        __hash__ = None  # type: ignore[assignment]

    owner = Plain(Equal())
    guard = attribute_guard(owner, "held")
    check = check_of(guard)
    owner.held = Equal()
    assert not passes(check) and not guard.holds()
    for value in (1, "a", torch.float32, 0.5):
        owner.held = value
        guard = attribute_guard(owner, "held")
        check = check_of(guard)
        owner.held = Equal()
        assert not passes(check) and not guard.holds()


def test_a_number_of_a_users_class() -> None:
    class Number(int):
        pass

    owner = Plain(1)
    guard = attribute_guard(owner, "held")
    check = check_of(guard)
    owner.held = Number(1)
    assert not passes(check) and not guard.holds()


def test_pinned_containers_stay_the_very_same() -> None:
    owner, inner = Plain(), [1]
    owner.held = {"a": inner}
    guards = GuardSet()
    place = Place("attribute", owner, "held")
    guards.add("key", "held", lambda: owner.held, owner.held, place)
    guards.pin(inner)
    (guard,) = guards.freeze()
    check = check_of(guard)
    owner.held = {"a": inner}
    assert passes(check) and guard.holds()
    owner.held = {"a": [1]}
    assert not passes(check) and not guard.holds()


def test_globals_are_read_in_their_namespace() -> None:
    space: dict[str, Any] = {"a": 1, "b'": None}
    guards = GuardSet()
    for name in space:
        guards.add(name, name, lambda name=name: space[name], space[name], Place("global", space, name))
    frozen = guards.freeze()
    check = check_of(*frozen)
    for change in ({"a": 2}, {"b'": 0}):
        before = dict(space)
        space.update(change)
        assert not passes(check) and not all(guard.holds() for guard in frozen)
        space.update(before)
        assert passes(check)
    del space["a"]
    assert not passes(check) and not frozen[0].holds()


def test_facts_without_a_place_are_asked_as_they_are() -> None:
    held, answers = [1], [True]
    guards = GuardSet()
    guards.add("read", "a content", lambda: held, held)
    guards.add_test("test", "a test", lambda: answers[0])
    frozen = guards.freeze()
    check = check_of(*frozen)
    held[0] = 2
    assert not passes(check)
    held[0], answers[0] = 1, False
    assert not passes(check)
    answers[0] = True
    assert passes(check)


def test_a_program_for_one_call() -> None:
    guards = GuardSet()
    guards.add_once("why")
    writer = CheckWriter(())
    (guard,) = guards.freeze()
    writer.guard(guard)
    check = writer.finish()
    assert check is not None and not passes(check) and not guard.holds()


# -- attributes of modules


class Net(nn.Module):
    kind: Any = "net"

    def __init__(self, held: Any = 2) -> None:
        super().__init__()
        self.held = held
        self.inner = nn.Identity()
        self.register_parameter("weight", None)
        self.register_buffer("mean", None)


class Asked(Net):
    def __getattr__(self, name: str) -> Any:
        return super().__getattr__(name)


class Looked(Net):
    def __getattribute__(self, name: str) -> Any:
        return super().__getattribute__(name)


PARTS = {"held": None, "inner": "_modules", "weight": "_parameters", "mean": "_buffers"}


def put(owner: nn.Module, name: str, value: Any) -> None:
    """Store where the module keeps it."""
    slot = PARTS[name]
    (owner.__dict__ if slot is None else owner.__dict__[slot])[name] = value


def take_slot(owner: nn.Module, name: str) -> None:
    """The module gets another dict, in which the attribute is another one."""
    slot = PARTS[name]
    if slot is not None:
        owner.__dict__[slot] = {name: "other"}
    else:
        put(owner, name, "other")


CHANGES: dict[str, Callable[[Any, Any, str], Any]] = {
    "another value": lambda owner, cls, name: put(owner, name, "other"),
    "gone": lambda owner, cls, name: delattr(owner, name),
    "hidden by its own": lambda owner, cls, name: owner.__dict__.update({name: "own"}),
    "hidden by its own that is the same": lambda owner, cls, name: owner.__dict__.update({name: getattr(owner, name)}),
    "a class attribute": lambda owner, cls, name: setattr(cls, name, "class"),
    "of a base": lambda owner, cls, name: setattr(cls.__mro__[1], name, "base"),
    "a property": lambda owner, cls, name: setattr(cls, name, property(lambda self: "property")),
    "a property that gives the same": lambda owner, cls, name: setattr(cls, name, same_property(owner, name)),
    "__getattr__": lambda owner, cls, name: setattr(cls, "__getattr__", lambda self, name: "asked"),
    "__getattribute__": lambda owner, cls, name: setattr(cls, "__getattribute__", looking_for(name)),
    "another dict": lambda owner, cls, name: take_slot(owner, name),
    "another class": lambda owner, cls, name: setattr(owner, "__class__", sub(cls, name)),
    "a class below": lambda owner, cls, name: setattr(owner, "__class__", type("Below", (cls,), {})),
    "more beside it": lambda owner, cls, name: (setattr(owner, "more", 1), owner.register_buffer("other", None)),
    "nothing": lambda owner, cls, name: None,
}  # fmt: skip


def looking_for(asked: str) -> Callable[[Any, str], Any]:
    return lambda self, name: "looked" if name == asked else object.__getattribute__(self, name)


def same_property(owner: Any, name: str) -> property:
    value = getattr(owner, name)
    return property(lambda self: value)


def sub(cls: type, name: str) -> type:
    return type("Sub", (cls,), {name: property(lambda self: "sub")})


HARMLESS = {"more beside it", "nothing"}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("base", [Net, Asked, Looked])
def test_an_attribute_of_a_module(base: type, name: str, change: str) -> None:
    middle = type("Middle", (base,), {})
    cls = type("Own", (middle,), {})
    owner = cls()
    holder = Plain(owner)
    guards = [attribute_guard(holder, "held"), attribute_guard(owner, name)]
    check = check_of(*guards)
    CHANGES[change](owner, cls, name)
    holds = all(guard.holds() for guard in guards)
    assert passes(check) <= holds, "the check lets pass what is not so"
    assert change not in HARMLESS or passes(check)


@pytest.mark.parametrize("base", [Net, Asked, Looked])
def test_what_a_module_has_from_its_class(base: type) -> None:
    cls = type("Own", (base,), {})
    owner = cls()
    guard = attribute_guard(owner, "kind")
    check = check_of(guard)
    for change in (lambda: setattr(cls, "kind", "class"), lambda: owner.__dict__.update(kind="own")):
        change()
        assert not passes(check) and not guard.holds()
        if "kind" in cls.__dict__:
            del cls.kind
            assert passes(check) and guard.holds()


def test_a_module_before_its_init() -> None:
    owner = Net.__new__(Net)
    object.__setattr__(owner, "held", 1)
    guard = attribute_guard(owner, "held")
    check = check_of(guard)
    owner.__dict__["held"] = 2
    assert not passes(check) and not guard.holds()


def test_a_part_that_another_dict_hides() -> None:
    owner = Net()
    guard = attribute_guard(owner, "inner")
    check = check_of(guard)
    owner._parameters["inner"] = nn.Parameter(torch.ones(1))
    assert not guard.holds() and not passes(check)


def test_a_part_that_was_a_buffer_and_is_a_parameter() -> None:
    owner = Net()
    owner.mean = torch.ones(1)
    owner.mean = None
    guard = attribute_guard(owner, "mean")
    check = check_of(guard)
    del owner.mean
    owner.register_parameter("mean", None)
    assert passes(check) <= guard.holds()


def test_many_attributes_of_many_modules() -> None:
    """Classes and dicts are asked once for all."""
    class Own(Net):
        pass

    owners = [Own(number) for number in range(3)]
    guards = [attribute_guard(owner, name) for owner in owners for name in PARTS]
    check = check_of(*guards)
    for owner in owners:
        for name in PARTS:
            before = getattr(owner, name)
            put(owner, name, "other")
            assert not passes(check)
            put(owner, name, before)
            assert passes(check)
    Own.weight = None  # type: ignore[assignment]
    assert not passes(check)


# -- what is written by others


def holding(owner: nn.Module, *guards: Guard) -> Check:
    """A check that a module has the submodules that it has, before what is said of them."""
    writer = CheckWriter(())
    space = writer.local(f"{writer.bind(owner)}.__dict__")
    writer.hold(writer.local(f"{space}['_modules']"), dict(owner._modules))
    for guard in guards:
        writer.guard(guard)
    check = writer.finish()
    assert check is not None and passes(check) and all(guard.holds() for guard in guards)
    return check


def set_items(owner: nn.Module, **modules: nn.Module) -> None:
    owner._modules.clear()
    owner._modules.update({name.strip("_"): one for name, one in modules.items()})


def test_submodules_that_are_held() -> None:
    owner = nn.Sequential(nn.Identity(), nn.Identity())
    guard = attribute_guard(owner, "1")
    check = holding(owner, guard)
    first, second = owner
    owner.append(nn.Identity())
    assert not passes(check) and guard.holds()
    del owner[2]
    assert passes(check)
    set_items(owner, _1=second, _0=first)
    assert not passes(check), "in another order"
    set_items(owner, _0=first, _1=nn.Identity())
    assert not passes(check) and not guard.holds()
    set_items(owner, _0=first, _1=second)
    assert passes(check)
    owner.__dict__["1"] = nn.Identity()
    assert not passes(check) and not guard.holds(), "it is hidden"


class Equal(nn.Module):
    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    __hash__ = nn.Module.__hash__


def test_submodules_that_are_equal() -> None:
    owner = nn.Sequential(Equal())
    guard = attribute_guard(owner, "0")
    check = holding(owner, guard)
    owner[0] = Equal()
    assert not guard.holds() and not passes(check)


def test_a_held_submodule_of_another_class() -> None:
    owner = nn.Sequential(Net())
    guard = attribute_guard(owner, "0")
    check = holding(owner, guard)
    owner[0].__class__ = Asked
    assert not guard.holds() and not passes(check)


def test_a_fact_that_writes_itself() -> None:
    owner, asked = Plain(), []

    def test() -> bool:
        asked.append(1)
        return owner.held == 1

    guards = GuardSet()
    guards.add_test("key", "held", test, write=lambda check: check.require(f"{check.bind(owner)}.held == 1"))
    (guard,) = guards.freeze()
    writer = CheckWriter(())
    writer.guard(guard)
    check = writer.finish()
    assert check is not None and passes(check) and not asked
    owner.held = 2
    assert not passes(check) and not guard.holds() and asked


# -- tensors

TENSORS: dict[str, Callable[[], Tensor]] = {
    "floats": lambda: torch.ones(2, 3), "doubles": lambda: torch.ones(2, 3, dtype=torch.float64),
    "other sizes": lambda: torch.ones(3, 2), "other strides": lambda: torch.ones(3, 2).t(),
    "needs a gradient": lambda: torch.ones(2, 3, requires_grad=True),
    "a parameter": lambda: nn.Parameter(torch.ones(2, 3)), "another device": lambda: torch.ones(2, 3, device="meta"),
    "another rank": lambda: torch.ones(6), "no tensor": lambda: None,  # type: ignore[dict-item, return-value]
    "sparse": lambda: torch.ones(2, 3).to_sparse(),
}  # fmt: skip


@pytest.mark.parametrize("kind", [kind for kind in TENSORS if kind not in ("no tensor", "sparse")])
def test_a_tensor_looks_as_it_does_now(kind: str) -> None:
    writer = CheckWriter(("x",))
    tensor = TENSORS[kind]()
    writer.give(writer.tensor("x", tensor))
    check = writer.finish()
    assert check is not None
    for other, make in TENSORS.items():
        one = make()
        found = check(one)
        assert (found is not None) == (other == kind), other
        assert found is None or found[0] is one


def test_sizes_that_are_free() -> None:
    writer = CheckWriter(("x",))
    writer.tensor("x", torch.ones(2, 3), [None, 3])
    check = writer.finish()
    assert check is not None and check(torch.ones(5, 3)) == ()
    assert not passes(check, torch.ones(5, 4)) and not passes(check, torch.ones(3)) and not passes(check, None)


def test_one_tensor_in_two_places() -> None:
    tensor = torch.ones(2)
    writer = CheckWriter(("x", "y"))
    first, second = writer.tensor("x", tensor), writer.tensor("y", tensor)
    assert first != second and writer.tensor("x", tensor) == first
    check = writer.finish()
    assert check is not None
    other = torch.ones(2)
    assert passes(check, tensor, tensor) and passes(check, other, other) and not passes(check, tensor, other)


def test_tensors_that_are_to_differ() -> None:
    one, other = torch.ones(2), torch.ones(2)
    writer = CheckWriter(("x", "y", "z"))
    for name, tensor in (("x", one), ("y", other), ("z", one)):
        writer.apart(writer.tensor(name, tensor), tensor)
    check = writer.finish()
    assert check is not None
    assert passes(check, one, other, one) and not passes(check, one, one, one)
    alone = CheckWriter(("x",))
    alone.apart(alone.tensor("x", one), one)
    only = alone.finish()
    assert only is not None and passes(only, other)


def test_sparse_tensors_have_their_kind() -> None:
    writer = CheckWriter(("x",))
    tensor = torch.eye(2).to_sparse()
    writer.give(writer.tensor("x", tensor))
    check = writer.finish()
    if check is not None:  # where PyTorch has a quick test for them
        assert passes(check, tensor) and not passes(check, torch.eye(2))
        assert not passes(check, torch.ones(2, 2).to_sparse(1))


# -- the text


def test_results_come_in_order_and_conditions_once() -> None:
    writer = CheckWriter(("x", "y"))
    first, second = writer.local("x + 1"), writer.local("y * 2")
    assert writer.local("x + 1") == first != second
    writer.give(second)
    writer.give(first)
    for _ in range(2):
        writer.require("x > 0")
    assert sum("x > 0" in line for line in writer._lines) == 1 and writer.given == [second, first]
    check: Any = writer.finish([f"{first} < 10", f"{second} != 4"])
    assert check(1, 3) == (6, 2) and check(0, 3) is None and check(9, 3) is None and check(1, 2) is None


def test_an_object_has_one_name() -> None:
    writer, one, other = CheckWriter(()), [1], [1]
    assert writer.bind(one) == writer.bind(one) != writer.bind(other)


@pytest.mark.parametrize("error", [AttributeError, KeyError, IndexError, NameError, ValueError, RuntimeError])
def test_what_cannot_be_read_is_no_longer_so(error: type[Exception]) -> None:
    def read() -> Any:
        raise error

    writer = CheckWriter(())
    writer.require(f"{writer.bind(read)}()")
    check = writer.finish()
    assert check is not None and not passes(check)


def test_a_check_of_nothing() -> None:
    check = CheckWriter(("x",)).finish()
    assert check is not None and check(1) == ()
    assert CheckWriter(()).attribute("o1", "held") == "o1.held"
    for name in ("class", "ü", "a b", "", "None"):
        assert CheckWriter(()).attribute("o1", name) == f"getattr(o1, {name!r})"
