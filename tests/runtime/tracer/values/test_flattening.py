"""Values in Variables and back: of each structure, of one of several, and where there is no value."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from runtime import torch_internals
from runtime.errors import TraceError
from runtime.ir import UNDEF, ArrayType, ScalarType, Variable
from runtime.tracer.numbers.scalars import StagedFloat, StagedInt
from runtime.tracer.values import array
from runtime.tracer.values.alias_sets import AliasSet
from runtime.tracer.values.flattening import lift, lower, lower_item, lower_nothing
from runtime.tracer.values.heaps import Heap
from runtime.tracer.values.structure import (
    DYNAMIC,
    PLAIN,
    Array,
    Choice,
    DictContent,
    Fields,
    Growing,
    JoinContext,
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
    types_of,
    width,
)
from runtime.tracer.values.unification import carried, structure_of, unify
from tests.oracle import same
from tests.runtime.tracer.control.staging import Local, Plain, Staging, tensors


class Pair(NamedTuple):
    first: Any
    second: Any


@dataclasses.dataclass(frozen=True)
class Frozen:
    value: Any
    more: Any = 1


CALLS = [{"x": [1.0, -2.0, 3.0], "i": 2}, {"x": [-1.0, 0.5, -3.0], "i": -1}]
VALUES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "a tensor": lambda do, x, n: x * 2,
    "a view": lambda do, x, n: x[1:],
    "a transposed one": lambda do, x, n: (x.expand(2, 3) * 1).t(),
    "an int": lambda do, x, n: n + 1,
    "a float": lambda do, x, n: n * 0.5,
    "a bool": lambda do, x, n: n > 0,
    "a tuple": lambda do, x, n: (x * 2, n, "a"),
    "an empty tuple": lambda do, x, n: (),
    "a named tuple": lambda do, x, n: Pair(x, (n, x + 1)),
    "one of torch's": lambda do, x, n: torch.sort(x),
    "a frozen record": lambda do, x, n: Frozen(x * 2),
    "a frozen record in a tuple": lambda do, x, n: (Frozen((n, x)), None),
    "one of several": lambda do, x, n: do.branch(x.sum() > 0, Local(), lambda: x * 2, lambda: 3),
    "one of several tuples": lambda do, x, n: do.branch(x.sum() > 0, Local(), lambda: (x, 1), lambda: (n, None, x)),
}


@pytest.mark.parametrize("kind", VALUES)
def test_a_value_goes_to_variables_and_back(kind: str, staging: Staging) -> None:
    def told(do: Plain, x: torch.Tensor, i: torch.Tensor) -> Any:
        value = VALUES[kind](do, x, do.number(i))
        if not isinstance(do, Staging):
            return value
        session = do.session
        found = carried(session, structure_of(session, value, PLAIN), PLAIN)
        operands = lower(session, value, found, PLAIN)
        assert len(operands) == width(found) == len(types_of(session, found))
        variables = [one for one in operands if isinstance(one, Variable)]
        assert len(variables) == len(operands) or kind.startswith("one of several")
        if len(variables) < len(operands):
            return value
        made = lift(session, found, iter(variables), PLAIN)
        assert made is not value or value == ()
        assert type(made) is type(value)
        return made

    run = staging.finish(told(staging, *staging.given("x i")))
    for call in CALLS:
        same(run(**tensors(call)), told(Plain(), *tensors(call).values()), apart=True)


def test_a_constant_needs_no_variable(staging: Staging) -> None:
    x = staging.given("x")
    held = [x]
    for value in (1, None, "a", held, x):
        assert lower(staging.session, value, Known(value), PLAIN) == []
        assert lift(staging.session, Known(value), iter(()), PLAIN) is value


def test_an_object_that_an_iteration_made_has_a_stand_in(staging: Staging) -> None:
    made = Made("cell", Frozen)
    stand_in = Frozen(1)
    context = JoinContext(stand_ins={"cell": stand_in})
    assert lower(staging.session, Frozen(2), made, PLAIN) == []
    assert lift(staging.session, made, iter(()), context) is stand_in


def test_numbers_are_of_their_kind(staging: Staging) -> None:
    session = staging.session
    n = staging.number(staging.given("i"))
    assert lower(session, n, Number("int"), PLAIN) == [n.var] and lower(session, 3, Number("int"), PLAIN) == [3]
    assert type(lift(session, Number("int"), iter([n.var]), PLAIN)) is StagedInt
    half = n * 0.5
    assert type(lift(session, Number("float"), iter([half.var]), PLAIN)) is StagedFloat


def test_sizes_that_are_not_known_are_fresh(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    wide = Tensor((DYNAMIC, 2), None, x.dtype, x.device, False, True)
    made = lift(session, wide, iter([session.read(x.expand(2, 3).t() * 1)]), PLAIN)
    other = lift(session, wide, iter([session.read(x.expand(2, 3).t() * 1)]), PLAIN)
    assert made.dim() == 2 and made.shape[1] == 2 and isinstance(made.shape[0], torch.SymInt)
    assert str(made.shape[0]) != str(other.shape[0])
    strided = dataclasses.replace(wide, strides=(1, 3))
    made = lift(session, strided, iter([session.read(x.expand(2, 3).t() * 1)]), PLAIN)
    assert not session.info(made).layout_known
    assert torch_internals.strides_of(made) == (2, 1), "strides say nothing without sizes"
    fixed = Tensor((3, 2), (1, 3), x.dtype, x.device, False, True)
    made = lift(session, fixed, iter([session.read(x.expand(2, 3).t() * 1)]), PLAIN)
    assert session.info(made).layout_known and made.stride() == (1, 3)


def test_what_is_known_of_a_tensor_is_known_afterwards(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    for facts in ((True, True, False), (False, False, True), (True, False, False)):
        needs, some, retains = facts
        item = Tensor((3,), None, x.dtype, x.device, needs, False, some, retains)
        info = session.info(lift(session, item, iter([session.read(x * 2)]), PLAIN))
        assert (info.requires_grad, info.grad_in_some_runs, info.perhaps_retains) == facts and not info.layout_known


def test_a_variable_that_comes_again_is_one_tensor(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    var, other = session.read(x * 2), session.read(x * 3)
    item = structure_of(session, x, PLAIN)
    both = Sequence(tuple, (item, item, item))
    known: dict[Variable, torch.Tensor] = {}
    a, b, c = lift(session, both, iter([var, other, var]), PLAIN, known)
    assert a is c and a is not b and known == {var: a, other: b}
    assert lift(session, item, iter([var]), PLAIN, known) is a
    a, b, c = lift(session, both, iter([var, other, var]), PLAIN)
    assert a is not c


def test_whose_object_it_is_nobody_knows(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    value = (x, Frozen(x))
    found = structure_of(session, value, PLAIN)
    operands: Any = lower(session, value, found, PLAIN)
    made = lift(session, found, iter(operands), PLAIN)
    for one in (made, made[0], made[1]):
        origin = session.origins.known(one)
        assert origin is not None and origin.number == 0
    assert id(made[1]) in session.objects.created


def test_contents(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    item = structure_of(session, x, PLAIN)
    made = lift(session, Sequence(ListContent, (item, Known(1))), iter([session.read(x)]), PLAIN)
    assert type(made) is ListContent and made[1] == 1
    made = lift(session, Fields(DictContent, ("a", "b"), (Known(1), item)), iter([session.read(x)]), PLAIN)
    assert type(made) is DictContent and list(made) == ["a", "b"]
    assert lower(session, DictContent(a=1, b=x), Fields(DictContent, ("a", "b"), (Known(1), item)), PLAIN) == [
        session.read(x)]  # fmt: skip


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_that_grow(kind: Any, staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    pair = Sequence(tuple, (structure_of(session, x, PLAIN), Number("int")))
    grown = Array(pair, AliasSet(), kind)
    operands = lower(session, kind([(x, 1), (x * 2, 2)]), grown, PLAIN)
    assert [isinstance(one, Variable) and type(one.type) for one in operands] == [ArrayType, ArrayType]
    made = lift(session, grown, iter(operands), PLAIN)  # type: ignore[arg-type]
    assert type(made) is kind and isinstance(made[0], Growing) and made[0].alias_set is grown.alias_set
    again = lower(session, made, grown, PLAIN)
    assert again == operands, "a list that has grown has its arrays"
    longer = [x + 1] if kind is tuple else list(made)
    if kind is list:
        array.append(session, longer, (x, 3))
    same(staging.finish(made)(x=torch.ones(3)), kind([(torch.ones(3), 1), (torch.ones(3) * 2, 2)]), apart=True)


def test_lists_that_may_be_one_have_one_alias_set(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    grown = array.of_items(session, [x * 2])
    target = Array(structure_of(session, x, PLAIN), AliasSet())
    assert target.alias_set.find() is not grown[0].alias_set.find()
    lower(session, grown, target, PLAIN)
    assert target.alias_set.find() is grown[0].alias_set.find()


def test_an_empty_list_has_arrays_of_its_items_types(staging: Staging) -> None:
    session = staging.session
    (var,) = lower(session, [], Array(Number("float")), PLAIN)
    assert isinstance(var, Variable) and var.type == ArrayType(ScalarType("float"))


def test_rows_are_their_numbers(staging: Staging) -> None:
    session = staging.session
    heap, other = Heap(), Heap()
    heap.add(session, [1])
    n = staging.number(staging.given("i"))
    assert lower(session, [Row(heap, 2)], Reference(heap), PLAIN) == [2]
    made = lift(session, Reference(heap), iter([n.var]), PLAIN)
    assert isinstance(made[0], Row) and made[0].heap is heap and made[0].number.var is n.var
    for wrong in ([1], [Row(other, 0)]):
        with pytest.raises(TraceError) as found:
            lower(session, wrong, Reference(heap), PLAIN)
        assert found.value.code == "D2S226"


def options(staging: Staging, *values: Any) -> Structure:
    """The structure of one of several values."""
    found: Structure = structure_of(staging.session, values[0], PLAIN)
    for one in values[1:]:
        found = unify(staging.session, found, structure_of(staging.session, one, PLAIN), PLAIN)
    return found


def test_the_place_of_one_of_several(staging: Staging) -> None:
    x = staging.given("x")
    session = staging.session
    several = options(staging, x, None, 1, 2)
    var = session.read(x)
    assert lower(session, x, several, PLAIN) == [0, var, UNDEF]
    assert lower(session, None, several, PLAIN) == [1, UNDEF, UNDEF]
    assert lower(session, 7, several, PLAIN) == [2, UNDEF, 7]
    assert lower_item(session, None, several, PLAIN) == [1, None, None]
    with pytest.raises(AssertionError):
        lower(session, "a", several, PLAIN)


@pytest.mark.parametrize("order", ["tin", "nit", "iit", "ttt", "nbn", "tbi"])
def test_one_of_several_in_the_structure_of_more(order: str, staging: Staging) -> None:
    """Its options stand elsewhere there, and some of them in one place."""
    x, i = staging.given("x i")
    session = staging.session
    number = staging.number(i)
    floats = Tensor((3,), None, x.dtype, x.device, False, True)
    places = {"t": 2, "i": 4, "n": 1, "b": 3}
    target = Options((Number("float"), Known(None), floats, Known("b"), Number("int")))
    values = [{"t": x + place, "i": place + 5, "n": None, "b": "b"}[kind] for place, kind in enumerate(order)]
    selector, unused, tensor, whole = lower(session, Choice(number, tuple(values)), target, PLAIN)
    assert unused is UNDEF and (tensor is UNDEF) is ("t" not in order) and (whole is UNDEF) is ("i" not in order)
    made: list[Any] = [lift(session, Number("int"), iter([selector]), PLAIN)]  # type: ignore[list-item]
    if isinstance(tensor, Variable):
        made.append(lift(session, floats, iter([tensor]), PLAIN))
    made.append(lift(session, Number("int"), iter([whole]), PLAIN) if isinstance(whole, Variable) else whole)
    run = staging.finish([one for one in made if one is not UNDEF])
    for place, kind in enumerate(order):
        chosen, *carried_by = run(x=torch.ones(3), i=torch.tensor(place))
        assert chosen == places[kind]
        if kind == "t":
            same(carried_by[0], torch.ones(3) + place)
        elif kind == "i":
            assert carried_by[-1] == place + 5


def test_one_of_several_in_one_structure(staging: Staging) -> None:
    """All options fit it, so there is no selector."""
    x, i = staging.given("x i")
    session = staging.session
    n = staging.number(i)
    (var,) = lower(session, Choice(n, (x * 2, x + 1, x - 1)), structure_of(session, x, PLAIN), PLAIN)
    assert isinstance(var, Variable)
    run = staging.finish(lift(session, structure_of(session, x, PLAIN), iter([var]), PLAIN))
    for number, wanted in ((0, 2.0), (1, 2.0), (2, 0.0)):
        same(run(x=torch.ones(3), i=torch.tensor(number)), torch.full((3,), wanted))


def test_where_there_is_no_value(staging: Staging) -> None:
    session = staging.session
    item = Tensor((3,), None, torch.float32, torch.device("cpu"), False, True)
    pair = Sequence(tuple, (item, item))
    for plain, wanted in ((Known(1), []), (Number("int"), [UNDEF]), (item, [UNDEF]), (pair, [UNDEF] * 2),
                          (Reference(Heap()), [UNDEF]), (Made("cell", Frozen), [])):  # fmt: skip
        assert lower_nothing(session, plain, PLAIN) == wanted
    (var,) = lower_nothing(session, Array(Number("int")), PLAIN)
    assert isinstance(var, Variable) and var.type == ArrayType(ScalarType("int")), "an empty list"
    several = Options((Reference(Heap()), Sequence(tuple, (Reference(Heap()), item)), Number("int")))
    assert lower_nothing(session, several, PLAIN) == [2, *[UNDEF] * 4], "the first that needs no row"
    assert lower_nothing(session, Options((Reference(Heap()),)), PLAIN) == [0, UNDEF]
    assert lower_nothing(session, Fields(dict, ("a",), (Options((item,)),)), PLAIN) == [0, UNDEF]
    copies = PLAIN.copies()
    assert lower_nothing(session, several, copies) == [UNDEF] * 5
    assert lower_nothing(session, Array(Number("int")), copies) == [UNDEF]
