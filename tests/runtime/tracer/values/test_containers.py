"""Containers and what they hold: one of several contents, what paths leave, what objects refer to."""

from __future__ import annotations

import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import Location
from runtime.tracer.python_state.journal import MISSING, Place
from runtime.tracer.values import containers
from runtime.tracer.values.containers import Leaving, Several
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.structure import Choice, DictContent, ListContent, Row
from tests.oracle import same
from tests.runtime.tracer.control.staging import SIGNS, Local, Plain, Staging, agree
from tests.runtime.tracer.values.growing import items_up_to


class UsersList(list[Any]):
    def __init__(self, *items: Any) -> None:
        super().__init__(items)
        self.name = "a"


class UsersDict(dict[Any, Any]):
    pass


class Thing:
    def __init__(self, **held: Any) -> None:
        vars(self).update(held)

    def method(self) -> None:
        pass


MADE: dict[str, Callable[[], Any]] = {
    "a list": lambda: [1],
    "a dict": lambda: {"k": 1},
    "a set": lambda: {1},
    "a deque": lambda: deque([1], 4),
    "an OrderedDict": lambda: OrderedDict(k=1),
    "a defaultdict": lambda: defaultdict(int, k=1),
    "a list of a user's class": lambda: UsersList(1),
    "a dict of a user's class": lambda: UsersDict(k=1),
}


def add(held: Any, value: Any) -> None:
    """Let a container hold another thing, of another kind than what it holds."""
    if isinstance(held, dict):
        held["j"] = value
    elif isinstance(held, set):
        held.add(value)
    else:
        held.append(value)


def changed(do: Plain, x: torch.Tensor, kind: str, value: Any = "b") -> Any:
    """A container that holds one more where the sum of ``x`` is above zero."""
    made, longer = do.new(MADE[kind]()), MADE[kind]()
    add(longer, value)
    if isinstance(do, Staging):
        contents = tuple(map(containers.content, (made, longer)))
        containers.put(do.session, made, Choice(do.session.scalar("int", do.truth(x.sum() > 0)), contents))
        return made
    return longer if x.sum() > 0 else made


@pytest.mark.parametrize("kind", MADE)
def test_a_content_that_differs_is_one_of_several(kind: str, staging: Staging) -> None:
    """Each in a container of the same kind, with the same attributes, that nobody else has."""
    x = staging.given("x")
    made = changed(staging, x, kind)
    found = containers.several(made)
    assert isinstance(found, Choice) and len(found.options) == 2 and containers.opened(made) is found
    for hidden in found.options:
        assert type(hidden) is type(made) and hidden is not made
        assert containers.kind_of(hidden) == containers.kind_of(made)
        assert staging.session.containers.hidden[id(hidden)] == (hidden, made)
    longer = MADE[kind]()
    add(longer, "b")
    wanted = [Place("content", one).get() for one in (MADE[kind](), longer)]
    assert [Place("content", one).get() for one in found.options] == wanted
    content = containers.content(made)
    assert isinstance(content, Choice) and list(content.options) == wanted
    assert containers.content(made, (found, 1)) == wanted[1] and containers.content(made, (content, 1)) is not None
    run = staging.finish(made)
    same(run(x=torch.ones(3)), longer)
    same(run(x=-torch.ones(3)), MADE[kind]())


@pytest.mark.parametrize("kind", MADE)
def test_an_ordinary_content(kind: str, staging: Staging) -> None:
    value = MADE[kind]()
    assert containers.several(value) is None and containers.opened(value) is value
    content = containers.content(value)
    assert content == Place("content", value).get()
    kinds = {dict: DictContent, set: frozenset}
    assert type(content) is next((made for cls, made in kinds.items() if isinstance(value, cls)), ListContent)
    empty = containers.empty_like(value)
    assert type(empty) is type(value) and not Place("content", empty).get() and not containers.attributes(empty)
    assert getattr(empty, "maxlen", 0) == getattr(value, "maxlen", 0)
    assert getattr(empty, "default_factory", 0) is getattr(value, "default_factory", 0)


def test_others_hold_no_content() -> None:
    for value in (1, "a", (1,), torch.ones(1), None, Thing(), {}.keys(), types.MappingProxyType({})):
        assert containers.several(value) is None and containers.opened(value) is value


def test_a_marker_refuses_whatever_python_asks(staging: Staging) -> None:
    marker = Several(Choice(staging.number(staging.given("i")), ([], [])))
    for ask in (hash, len, str, bool, iter, lambda one: one == 1, lambda one: one.items, lambda one: {one: 1}):
        with pytest.raises(TraceError) as found:
            ask(marker)  # type: ignore[operator]
        assert found.value.code == "D2S254"


@pytest.mark.parametrize("show", [dict.keys, dict.values, dict.items, types.MappingProxyType])
def test_what_shows_a_dict_shows_each_of_several(show: Callable[[Any], Any], staging: Staging) -> None:
    x = staging.given("x")
    view = show(changed(staging, x, "a dict"))
    found = containers.several(view)
    assert isinstance(found, Choice)
    wanted = [show({"k": 1}), show({"k": 1, "j": "b"})]
    assert [type(one) for one in found.options] == [type(view)] * 2
    assert [list(one) for one in found.options] == [list(one) for one in wanted]


PUT_TOGETHER: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "a list and another": ("a list", lambda one: one + [7]),
    "another and a list": ("a list", lambda one: [7] + one),
    "a list twice": ("a list", lambda one: one + one),
    "a repeated list": ("a list", lambda one: one * 2),
    "a dict and another": ("a dict", lambda one: one | {"m": 7}),
    "another and a dict": ("a dict", lambda one: {"m": 7, "k": 8} | one),
    "a dict over another": ("a dict", lambda one: one | {"k": 7, "m": 8}),
}


@pytest.mark.parametrize("how", PUT_TOGETHER)
def test_what_pythons_own_operators_made(how: str, staging: Staging) -> None:
    kind, make = PUT_TOGETHER[how]

    def told(do: Any, x: torch.Tensor) -> Any:
        made = make(changed(do, x, kind))
        if do is staging:
            assert isinstance(containers.several(made), Choice)
        return made

    agree(staging, told, *SIGNS)


def test_of_two_whose_contents_differ_on_their_own(staging: Staging) -> None:
    x = staging.given("x")
    made = changed(staging, x, "a list") + changed(staging, x - 1, "a list")
    with pytest.raises(TraceError) as found:
        containers.several(made)
    assert found.value.code == "D2S254"


def test_one_of_several_in_one_of_several(staging: Staging) -> None:
    x, i = staging.given("x i")
    session = staging.session
    a, b = staging.number(i), staging.session.scalar("int", staging.truth(x.sum() > 0))
    inner = Choice(b, ("p", "q"))
    flat = containers.flat(session, Choice(a, ("r", inner, "s")))
    assert flat.options == ("r", "p", "q", "s")
    deep = containers.flat(session, Choice(a, (Choice(b, (inner, "t")), "u", inner)))
    assert deep.options == ("p", "q", "t", "u", "p", "q")
    plain = Choice(a, (1, 2))
    assert containers.flat(session, plain) is plain
    run = staging.finish((flat.selector, deep.selector))
    for number, total, wanted in ((0, 1, (0, 2)), (0, -1, (0, 0)), (1, 1, (2, 3)), (1, -1, (1, 3)), (2, 1, (3, 5)),
                                  (2, -1, (3, 4))):  # fmt: skip
        assert run(x=torch.full((3,), float(total)), i=torch.tensor(number)) == wanted


def test_a_container_is_given_a_content(staging: Staging) -> None:
    x = staging.given("x")
    n = staging.session.scalar("int", staging.truth(x.sum() > 0))
    xs, table = [9], {"k": 9}
    containers.put(staging.session, xs, ListContent([1, 2]))
    assert xs == [1, 2] and containers.several(xs) is None
    containers.put(staging.session, xs, Choice(n, (ListContent([1]), Choice(n, (ListContent([2]), ListContent([]))))))
    found = containers.several(xs)
    assert isinstance(found, Choice) and list(found.options) == [[1], [2], []]
    containers.put(staging.session, table, Choice(n, (DictContent(k=1), DictContent(j=2))))
    assert list(containers.several(table).options) == [{"k": 1}, {"j": 2}]  # type: ignore[union-attr]
    run = staging.finish((xs, table))
    assert run(x=torch.ones(3)) == ([], {"j": 2}) and run(x=-torch.ones(3)) == ([1], {"k": 1})


def test_too_many_contents(staging: Staging) -> None:
    n = staging.number(staging.given("i"))
    place = Location("f.py", 7)
    for count in (2, 16):
        containers.require_few(staging.session, [], Choice(n, tuple(range(count))), None)
    containers.require_few(staging.session, [], list(range(20)), None)
    with pytest.raises(TraceError, match="17 different") as found:
        containers.require_few(staging.session, {}, Choice(n, tuple(range(17))), place)
    assert found.value.code == "D2S254" and found.value.location == place
    with pytest.raises(TraceError) as found:
        containers.put(staging.session, [], Choice(n, tuple(ListContent([one]) for one in range(17))))
    assert found.value.code == "D2S254"


def test_a_place_holds_what_paths_left(staging: Staging) -> None:
    n = staging.session.scalar("int", staging.truth(staging.given("x").sum() > 0))
    thing, xs = staging.new(Thing(a=1)), [1]
    assert not staging.session.containers.has_unset
    choice = Choice(n, (MISSING, 2))
    containers.store(staging.session, Place("attribute", thing, "a"), choice)
    assert vars(thing)["a"] is choice and staging.session.containers.has_unset
    containers.store(staging.session, Place("content", xs), ListContent([3]))
    assert xs == [3]


def test_a_modules_dict_of_parts_is_one_dict(staging: Staging) -> None:
    """PyTorch's own code reads it."""
    n = staging.session.scalar("int", staging.truth(staging.given("x").sum() > 0))
    module = torch.nn.Module()
    containers.store(staging.session, Place("attribute", module, "_buffers"), Choice(n, ({"a": None}, {})))
    assert type(module._buffers) is dict
    assert [list(one) for one in containers.several(module._buffers).options] == [["a"], []]  # type: ignore[union-attr]
    choice = Choice(n, ({"a": 1}, None))
    containers.store(staging.session, Place("attribute", module, "_modules"), choice)
    assert vars(module)["_modules"] is choice
    vars(module)["_modules"] = {}


def test_a_view_of_one_of_several_containers(staging: Staging) -> None:
    """A container of its own with what the run's one holds."""
    def told(do: Any, x: torch.Tensor) -> Any:
        a, b = do.new(UsersList(1, x)), do.new([2])
        chosen = do.branch(x.sum() > 0, Local(), lambda: a, lambda: b)
        made = containers.view(staging.session, chosen) if do is staging else chosen.copy()
        assert made is not chosen
        return containers.attributes(a), list(b), made

    x = staging.given("x")
    _, _, made = told(staging, x)
    run = staging.finish(made)
    assert run(x=torch.ones(3))[0] == 1 and type(run(x=torch.ones(3))) is UsersList
    assert run(x=-torch.ones(3)) == [2]


def test_one_list_that_is_one_of_several(staging: Staging) -> None:
    n = staging.session.scalar("int", staging.truth(staging.given("x").sum() > 0))
    session = staging.session
    made = containers.one_list(session, Choice(n, ([1], [2, 3])))
    found = containers.several(made)
    assert type(made) is list and isinstance(found, Choice) and list(found.options) == [[1], [2, 3]]
    for other in ([1], 5, Choice(n, ()), Choice(n, ([1], made))):
        assert containers.one_list(session, other) is other


def test_kinds_of_containers() -> None:
    kinds = [containers.kind_of(make()) for make in MADE.values()]
    kinds += [containers.kind_of(deque([1], 5)), containers.kind_of(deque()), containers.kind_of(defaultdict(list)),
              containers.kind_of(defaultdict())]  # fmt: skip
    more = UsersList()
    more.more = 1  # type: ignore[attr-defined]
    kinds.append(containers.kind_of(more))
    assert len(set(kinds)) == len(kinds)
    for make in MADE.values():
        assert containers.kind_of(make()) == containers.kind_of(make())


def test_attributes() -> None:
    assert containers.attributes(UsersList()) == {"name": "a"}
    for other in ([], {}, set(), deque(), defaultdict(int), ListContent(), DictContent(), OrderedDict(), UsersDict()):
        assert containers.attributes(other) == {}


def test_items_and_their_places(staging: Staging) -> None:
    x = staging.given("x")
    assert list(containers.items_of(["a", "b"])) == [(0, "a"), (1, "b")]
    assert list(containers.items_of({"k": 1})) == [("k", 1)] and list(containers.items_of({5})) == [(0, 5)]
    assert list(containers.items_of(UsersList(1))) == [(0, 1)] and list(containers.items_of(deque())) == []
    several = changed(staging, x, "a dict")
    assert list(containers.items_of(several)) == [((0, "k"), 1), ((1, "k"), 1), ((1, "j"), "b")]
    assert list(containers.items_of(items_up_to(staging, [x], 1))) == []
    assert list(containers.items_of([Row(Heap(), 0)])) == []


def test_what_leaves_a_path(staging: Staging) -> None:
    session = staging.session
    n = staging.number(staging.given("i"))
    old: list[Any] = []
    inner, itself = [1], {"k": [2]}
    itself["self"] = itself  # type: ignore[assignment]
    held = [3]
    made = [inner, (inner, [4]), old, torch.ones(1), "a"]
    thing = Thing(inner=held, n=5)

    def closure() -> Any:
        return held

    leaving = Leaving(session, lambda one: one is not old)
    leaving.walk(made, ("made",))
    leaving.walk(Choice(n, (itself, 1)), ("chosen",))
    leaving.walk([Row(Heap(), 0)], ("row",))
    found = {tuple(map(str, way)): one for one in leaving.containers.values() for way in one.positions}
    ways = {one.value if isinstance(one.value, str) else id(one.value): one for one in leaving.containers.values()}
    assert ways[id(inner)].positions == {("made", 0), ("made", 1, 0)} and not ways[id(inner)].fixed
    assert ways[id(itself)].positions == {("chosen", (id(n.var), 0)), ("chosen", (id(n.var), 0), "self")}
    assert id(old) in leaving.reached and id(old) not in leaving.containers and len(found) == 7
    leaving.walk((thing, closure), ("fixed",))
    assert leaving.containers[id(held)].fixed, "it is held where no other can be put"
    assert leaving.containers[id(held)].positions >= {("fixed", 0, id(thing), 0)}


def test_an_iterator_over_what_changed_since(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    xs, table = staging.new([1]), staging.new({"k": 1})
    iterators = [iter(xs), zip(xs, [1]), enumerate(xs), iter(table), iter(table.items()), map(str, table)]
    for one in (*iterators, 5, xs):
        containers.require_read(session, one)

    def path() -> None:
        staging.change(xs, lambda held: held.append("b"))
        staging.change(table, lambda held: held.update(j=1))

    staging.branch(x.sum() > 0, Local(), path, lambda: None)
    for one in iterators:
        with pytest.raises(TraceError) as found:
            containers.require_read(session, one)
        assert found.value.code == "D2S266"
    containers.require_read(session, xs)
    containers.require_read(session, iter([1]))


class Counted(list[Any]):
    def __len__(self) -> int:
        raise ValueError("nobody asked how many there are")


class CountedDict(dict[Any, Any]):
    def __len__(self) -> int:
        raise ValueError("nobody asked how many there are")


class Ordered(OrderedDict[Any, Any]):
    def __iter__(self) -> Any:
        raise ValueError("nobody asked for the keys")


@pytest.mark.parametrize("value", [Counted([1]), CountedDict(k=1), Ordered(k=1)], ids=lambda one: type(one).__name__)
def test_users_methods_are_not_asked(value: Any, staging: Staging) -> None:
    assert [item for _, item in containers.items_of(value)] == [1]
    if isinstance(value, dict):
        staging.branch(staging.given("x").sum() > 0, Local(), lambda: value, dict)
