"""What pictures of Python values are made of: parts and back, constants that are one, and what carries a structure."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import ArrayType, ScalarType, TensorType
from runtime.tracer.ambient.calls import Restart
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.recording.session import Session
from runtime.tracer.values import structure
from runtime.tracer.values.alias_sets import AliasSet, Lost
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.structure import (
    DYNAMIC,
    MISSING,
    PLAIN,
    Array,
    Attribute,
    Before,
    Choice,
    DictContent,
    Fields,
    Growing,
    Known,
    ListContent,
    Made,
    Number,
    Options,
    Reference,
    Row,
    Sequence,
    Structure,
    Tensor,
    Undefined,
)
from runtime.tracer.values.tables import Table
from tests.oracle import same
from tests.runtime.tracer.control.staging import Staging


class Pair(NamedTuple):
    first: Any
    second: Any = 2


class UsersTuple(tuple[Any, ...]):
    def __new__(cls, *items: Any) -> UsersTuple:
        assert items, "nothing is made of no items"
        return tuple.__new__(cls, items)


class UsersList(list[Any]):
    pass


class UsersDict(dict[Any, Any]):
    def __setitem__(self, key: Any, value: Any) -> None:
        raise AssertionError("it ran when the first one was made")


@dataclasses.dataclass
class Record:
    name: str
    value: Any = None


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any
    late: Any = dataclasses.field(init=False)


@dataclasses.dataclass(frozen=True)
class Slotted:
    __slots__ = ("value",)
    value: Any


@dataclasses.dataclass
class Output(OrderedDict[str, Any]):
    """As transformers has its outputs: an item for each field that is not None, and the field itself."""

    loss: Any = None
    logits: Any = None

    def __post_init__(self) -> None:
        for one in dataclasses.fields(self):
            if getattr(self, one.name) is not None:
                OrderedDict.__setitem__(self, one.name, getattr(self, one.name))


def with_attributes(value: Any, **attributes: Any) -> Any:
    vars(value).update(attributes)
    return value


X = torch.tensor([3.0, 1.0])
TAKEN_APART: dict[str, tuple[Callable[[], Any], tuple[Any, ...]]] = {
    "no items": (dict, ()),
    "a dict": (lambda: {"a": X, 1: "b", None: (), 1.5: 0}, ("a", 1, None, 1.5)),
    "an OrderedDict": (lambda: OrderedDict(b=1, a=X), ("b", "a")),
    "a defaultdict": (lambda: defaultdict(list, a=1), ("a", Attribute("default_factory"))),
    "a Counter": (lambda: Counter("aab"), ("a", "b")),
    "a dict of a user's class": (lambda: UsersDict(a=1), ("a",)),
    "one with attributes": (lambda: with_attributes(UsersDict(a=1), more=X), ("a", Attribute("more"))),
    "a content": (lambda: DictContent(a=1), ("a",)),
    "a dict that is a dataclass": (lambda: Output(logits=X), ("logits",)),
    "a field set without its item": (
        lambda: with_attributes(Output(logits=X), loss=1), ("logits", Attribute("loss"))),
    "a named tuple": (lambda: Pair(X), ("first", "second")),
    "a named tuple of torch's": (lambda: torch.sort(X), ("values", "indices")),
    "a tuple of a user's class": (lambda: UsersTuple(X, 2), ("item0", "item1")),
    "a record": (lambda: Record("a", X), ("name", "value")),
    "a record with more": (lambda: with_attributes(Record("a"), more=(1,)), ("name", "value", "more")),
    "a frozen one, of which a field is not set": (lambda: Frozen(X), ("value",)),
    "one with slots": (lambda: Slotted(X), ("value",)),
}  # fmt: skip


@pytest.mark.parametrize("kind", TAKEN_APART)
def test_keys_and_items_make_another_one_that_is_like_the_first(kind: str) -> None:
    make, wanted = TAKEN_APART[kind]
    value = make()
    found = structure.field_items(value)
    assert found is not None and found[0] == wanted and len(found[1]) == len(wanted)
    made = structure.rebuild_fields(type(value), *found)
    assert made is not value and type(made) is type(value)
    same(made, value)
    if hasattr(value, "__dict__"):
        same(vars(made), vars(value))
    again = structure.field_items(made)
    assert again is not None and again[0] == wanted and all(a is b for a, b in zip(again[1], found[1]))


def test_a_method_of_a_tensor_is_its_name_and_the_tensor(staging: Staging) -> None:
    x = staging.given("x")
    for method, name in ((x.add, "add"), (x.abs, "abs"), (x.split, "split"), (x.__radd__, "__radd__")):
        found = structure.field_items(method)
        assert found is not None and found[0] == (name,) and len(found[1]) == 1 and found[1][0] is x
        made = structure.rebuild_fields(type(method), *found)
        assert made == method and made.__self__ is x
    assert structure.field_items(X.add) is None, "the caller's tensor is no value of the trace"


NOT_TAKEN_APART: dict[str, Callable[[], Any]] = {
    "a number": lambda: 1,
    "a list": lambda: [X],
    "a tuple": lambda: (X,),
    "a set": lambda: {1},
    "a tensor": lambda: X,
    "a dict with a tensor as its key": lambda: {X: 1},
    "a dict with a tuple as its key": lambda: {(1, 2): 1},
    "a tuple of a user's class with an attribute": lambda: with_attributes(UsersTuple(1), more=1),
    "a class that is a dataclass": lambda: Record,
    "a method of a list": lambda: [1].append,
    "a method of a record": lambda: Record("a").__eq__,
    "an object": object,
    "a tuple of C's": lambda: time.gmtime(0),
}


@pytest.mark.parametrize("kind", NOT_TAKEN_APART)
def test_others_have_no_keys_and_items(kind: str) -> None:
    assert structure.field_items(NOT_TAKEN_APART[kind]()) is None


def test_the_keys_of_a_content_may_be_anything() -> None:
    content = DictContent({X: 1, (1, 2): 2})
    found = structure.field_items(content)
    assert found is not None and found[0][0] is X and found[0][1:] == ((1, 2),) and found[1] == (1, 2)


def test_what_is_missing_is_not_set() -> None:
    made = structure.rebuild_fields(Record, ("name", "value"), (MISSING, 1))
    assert vars(made) == {"value": 1}
    made = structure.rebuild_fields(UsersDict, ("a", Attribute("b"), Attribute("c")), (1, MISSING, 2))
    assert dict(made) == {"a": 1} and vars(made) == {"c": 2}


def test_named_tuples() -> None:
    for value in (Pair(1), torch.sort(X), torch.linalg.slogdet(torch.eye(2))):
        assert structure.is_namedtuple(value)
    for other in ((1, 2), UsersTuple(1), X.shape, time.gmtime(0), Pair, [1]):
        assert not structure.is_namedtuple(other)


def test_containers() -> None:
    for value in ([], {}, set(), deque(), UsersList(), UsersDict(), OrderedDict(), defaultdict(int), Counter()):
        assert structure.is_container(value)
    for other in ((), ListContent(), DictContent(), frozenset(), Output(), "a", Record("a"), X, range(2), list):
        assert not structure.is_container(other)


SAME: list[tuple[Any, Any]] = [
    (1, 1), ("a", "a"), (None, None), (1.5, 1.5), (float("nan"), float("nan")), (torch.int8, torch.int8), (X, X),
    (frozenset({1, "a"}), frozenset({"a", 1})), (frozenset(), frozenset()), (Undefined("a"), Undefined("b")),
]  # fmt: skip
OTHERS: list[tuple[Any, Any]] = [
    (1, 2), (1, True), (1, 1.0), (0.0, -0.0), (0j, -0j), ("a", b"a"), (None, 0), (X, X.clone()), ([], []), ((), []),
    (frozenset({1}), frozenset({True})), (frozenset({1}), frozenset({1, 2})), (frozenset({1}), {1}),
    (frozenset({(1,)}), frozenset({(1.0,)})), (Undefined("a"), MISSING),
]  # fmt: skip


@pytest.mark.parametrize("pair", range(len(SAME)))
def test_one_constant(pair: int) -> None:
    a, b = SAME[pair]
    assert structure.same_known(a, b) and structure.same_known(b, a)


@pytest.mark.parametrize("pair", range(len(OTHERS)))
def test_two_constants(pair: int) -> None:
    a, b = OTHERS[pair]
    assert not structure.same_known(a, b) and not structure.same_known(b, a)


def test_two_zeros_in_sets() -> None:
    assert not structure.same_known(frozenset({0.0}), frozenset({-0.0}))


def test_keys_are_the_same_in_the_same_order() -> None:
    other = X.clone()
    assert structure.same_keys((), ()) and structure.same_keys(("a", 1, X), ("a", 1, X))
    assert structure.same_keys((1,), (True,)), "as in a dict"
    for a, b in ((("a", 1), (1, "a")), (("a",), ("a", "b")), ((X,), (other,)), ((X,), (1,)), (("a",), ("b",))):
        assert not structure.same_keys(a, b) and not structure.same_keys(b, a)


def test_what_a_value_holds_of_the_trace(session: Session, number: Callable[..., Staged]) -> None:
    n = number()
    grown = [Growing((n.var,), Number("int"), AliasSet())]
    inside: list[Any] = [X, n, Choice(n, (1, "a")), grown, grown[0], Row(Heap(), 0)]  # type: ignore[arg-type]
    for one in inside:
        for value in (one, [one], (1, (one,)), {"a": one}, Record("a", [one]), Pair(one), ListContent([one])):
            assert structure.has_traced(value)
    for value in (1, "a", None, [], (1, [2]), {"a": ()}, Record("a", 1), Pair(1), {1}, object(), X.dtype):
        assert not structure.has_traced(value)
    itself: list[Any] = []
    itself.append(itself)
    assert not structure.has_traced(itself)


def test_what_a_list_that_grows_holds_by_its_attributes(session: Session) -> None:
    record = Record("a")
    assert structure.can_be_copied(session, record)
    for other in (Frozen(1), {"a": 1}, Output(), Pair(1), [1], object()):
        assert not structure.can_be_copied(session, other)
    session.objects.externals[id(record)] = record, None
    assert not structure.can_be_copied(session, record), "one of the caller's is held as itself"


FLOATS = Tensor((2, DYNAMIC), None, torch.float32, torch.device("cpu"), False, True)
OF_FLOATS = TensorType(torch.float32, None)
INT = ScalarType("int")
CARRIED: dict[str, tuple[Structure, list[Any]]] = {
    "a constant": (Known(1), []),
    "what an iteration made": (Made("cell", Record), []),
    "an int": (Number("int"), [INT]),
    "a text": (Number("str"), [ScalarType("str")]),
    "a tensor": (FLOATS, [OF_FLOATS]),
    "a tuple": (Sequence(tuple, (FLOATS, Known(1), Number("bool"))), [OF_FLOATS, ScalarType("bool")]),
    "no items": (Sequence(tuple, ()), []),
    "fields": (Fields(dict, ("a", "b"), (Number("int"), FLOATS)), [INT, OF_FLOATS]),
    "a list that grows": (Array(FLOATS), [ArrayType(OF_FLOATS)]),
    "one of pairs": (
        Array(Sequence(tuple, (FLOATS, Number("int")))), [ArrayType(OF_FLOATS), ArrayType(INT)]),
    "one of several": (Options((FLOATS, Known(None), Number("int"))), [INT, OF_FLOATS, INT]),
    "nothing": (Options(()), [INT]),
    "several in several": (Options((Options((FLOATS, Known(1))), Number("int"))), [INT, INT, OF_FLOATS, INT]),
    "a row": (Reference(Heap()), [INT]),
    "a row of a table": (Reference(Table(dict, ("a",)), dict), [INT]),
}  # fmt: skip


@pytest.mark.parametrize("kind", CARRIED)
def test_the_variables_that_carry_a_structure(kind: str, session: Session) -> None:
    item, wanted = CARRIED[kind]
    assert structure.types_of(session, item) == wanted and structure.width(item) == len(wanted)


def test_a_context_for_copies_and_for_places() -> None:
    copies = PLAIN.copies()
    assert copies.copying and not PLAIN.copying and copies.copies() is copies and copies.made is PLAIN.made
    mixing = copies.mixing(True)
    assert mixing.mixed_lists and mixing.copying and mixing.mixing(True) is mixing
    assert PLAIN.mixing(False) is PLAIN and not mixing.mixing(False).mixed_lists


def test_what_grew_is_found_in_lists_deques_and_tuples(number: Callable[..., Staged]) -> None:
    grown = Growing((number().var,), Number("int"), AliasSet())
    for holder in ([grown], (grown,), deque([grown]), UsersList([grown]), ListContent([grown])):
        assert structure.growing(holder) is grown
    for other in ([], [1], [[grown]], (), {"a": grown}, {1}, grown, None, Pair(grown), UsersTuple(grown)):
        assert structure.growing(other) is None


def test_a_list_that_grew_tells_python_nothing(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    assert not session.containers.has_growing
    grown = Growing((session.read(x),), FLOATS, AliasSet())
    assert session.containers.has_growing and grown.read() is grown and grown.variables == (session.read(x),)
    asked: tuple[Callable[[Any], Any], ...] = (
        len, list, bool, str, repr, hash, lambda one: one[0], lambda one: one == 1, lambda one: one + 1,
        lambda one: one < one, lambda one: one.append)  # fmt: skip
    for ask in asked:
        with pytest.raises(TraceError) as found:
            ask(grown)
        assert found.value.code == "D2S253"


def test_what_may_have_been_written_is_not_read(staging: Staging) -> None:
    x = staging.given("x")
    alias_set = AliasSet()
    grown = Growing((staging.session.read(x),), FLOATS, alias_set)
    grown.lost = Lost(staging.session.location())
    with pytest.raises(TraceError) as found:
        grown.variables
    assert found.value.code == "D2S222" and grown.arrays == (staging.session.read(x),)


def test_whoever_asks_what_was_there_before_begins_again() -> None:
    owner = [1]
    held = Before(owner)
    assert structure.before([held]) is held and held.whatever_it_is
    for other in ([], [1], [held, 1], (held,), held, None, UsersList([held])):
        assert structure.before(other) is None
    with pytest.raises(Restart) as found:
        structure.growing([held])
    assert found.value.known.looked_at == {id(owner)}


def test_rows(staging: Staging) -> None:
    session = staging.session
    heap, n = Heap(), staging.number(staging.given("i"))
    heap.add(session, [1, 2])
    row = Row(heap, n)
    for known in ([row], ListContent([row])):
        assert structure.list_row(known) is row and structure.row_of(known) is row
    for other in ([], [row, row], [1], (row,), UsersList([row]), deque([row]), row, None, 1, X, n, list):
        assert structure.list_row(other) is None and structure.row_of(other) is None
    assert row.visible(session) and Row(heap, 0).visible(session)
    assert isinstance(row.item, Number) and row.alias_set is heap.alias_set and row.lost is None
    assert [var.type for var in row.arrays] == [ArrayType(INT)] == [var.type for var in row.read().variables]
    with session.open("cond"):
        inner = Row(heap, n + 1)
        assert inner.visible(session)
    assert not inner.visible(session), "its number is known in the Block alone"
