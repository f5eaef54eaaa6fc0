"""What is done to one of several values is done to each, and a run has what eager has, its errors included."""

from __future__ import annotations

import operator
import sys
from collections import OrderedDict, defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import torch

from runtime.errors import TraceError
from runtime.tracer.numbers.scalars import StagedFloat
from runtime.tracer.python_state.journal import MISSING, Undefined
from runtime.tracer.values import choices
from runtime.tracer.values.choices import distribute, held_choice, lengths, spread, unbound_message, with_option
from runtime.tracer.values.structure import Choice
from tests.oracle import same
from tests.runtime.tracer.control.staging import SIGNS, Local, Plain, Staging, agree, agree_or_raise


class Pair(NamedTuple):
    first: Any
    second: Any


class UsersList(list[Any]):
    pass


class Matrix:
    def __matmul__(self, other: Any) -> Any:
        return ("matmul", other)

    def __rmatmul__(self, other: Any) -> Any:
        return (other, "matmul")


def one_of(do: Plain, x: torch.Tensor, first: Any, second: Any) -> Any:
    """``first`` where the sum of ``x`` is above zero, else ``second``."""
    return do.branch(x.sum() > 0, Local(), lambda: first, lambda: second)


NUMBERS = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lt", "le", "gt", "ge", "eq", "ne")
WHOLE = ("and_", "or_", "xor", "lshift", "rshift")


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("pair", [(3, 2.5), (True, 1.5)])
def test_numbers_of_two_kinds(name: str, pair: tuple[Any, Any], staging: Staging) -> None:
    act = getattr(operator, name)

    def told(do: Any, x: torch.Tensor) -> Any:
        v = one_of(do, x, *pair)
        assert do is not staging or isinstance(v, Choice)
        return act(v, 2), act(2, v), act(v, v), act(v, 0.5)

    agree(staging, told, *SIGNS)


@pytest.mark.parametrize("name", [*NUMBERS[:4], *NUMBERS[7:]])
def test_a_number_or_a_tensor(name: str, staging: Staging) -> None:
    act = getattr(operator, name)

    def told(do: Any, x: torch.Tensor) -> Any:
        v = one_of(do, x, 3, x * 2)
        return act(v, x), act(x, v) if name in ("eq", "ne") else act(v, 2), act(2.0, v)

    agree(staging, told, *SIGNS)


@pytest.mark.parametrize("name", WHOLE)
def test_ints_and_bools(name: str, staging: Staging) -> None:
    act = getattr(operator, name)
    agree(staging, lambda do, x: (act(one_of(do, x, 6, True), 3), act(5, one_of(do, x, 2, False))), *SIGNS)


@pytest.mark.parametrize("name", ["neg", "pos", "abs"])
def test_signs(name: str, staging: Staging) -> None:
    act = getattr(operator, name)
    agree(staging, lambda do, x: (act(one_of(do, x, -6, 1.5)), act(one_of(do, x, True, x))), *SIGNS)


def test_bits_turned_over(staging: Staging) -> None:
    agree(staging, lambda do, x: ~one_of(do, x, 6, x > 0), *SIGNS)


def test_products_of_matrices(staging: Staging) -> None:
    matrix = Matrix()
    agree(staging, lambda do, x: (one_of(do, x, x, x.int()) @ matrix, matrix @ one_of(do, x, 1, "a")), *SIGNS)


def test_two_that_are_one_of_several(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        a, b = one_of(do, x, 3, 2.5), one_of(do, x - 2.5, 1.5, 4)
        return a + b, a * a, b - a, a < b

    agree(staging, told, *SIGNS)


def test_a_value_with_itself_is_asked_once(staging: Staging) -> None:
    v = one_of(staging, staging.given("x"), 3, 2.5)
    before = len(staging.session.program.block.ops)
    assert v * v is not None
    made = [op.name for op in staging.session.program.block.ops[before:] if op.name == "switch"]
    assert made == ["switch"] and not [
        op for op in staging.session.program.block.ops[-1].blocks for one in op.ops if one.name == "switch"]


def test_what_one_of_them_cannot_do_is_an_error_of_its_runs(staging: Staging) -> None:
    agree_or_raise(staging, lambda do, x: one_of(do, x, 1, None) + 1, *SIGNS)


def test_texts_and_tuples_are_added(staging: Staging) -> None:
    agree(staging, lambda do, x: (one_of(do, x, "a", (1,)) * 2, one_of(do, x, (x,), (x, x)) * 2), *SIGNS)


def test_items_of_as_many(staging: Staging) -> None:
    class Kept(tuple[Any, ...]):
        def __getitem__(self, index: Any) -> Any:
            raise AssertionError("unpacking takes what is stored")

    def told(do: Any, x: torch.Tensor) -> Any:
        a, b = one_of(do, x, (1, x), [x * 2, "b"])
        c, d = one_of(do, x, (x, 2), Pair(3, 4))
        e, f = one_of(do, x, x[:2], (5, 6))
        g, h = one_of(do, x, Kept((1, 2)), ("a", "b"))
        return a, b, c, d, e, f, g, h

    agree(staging, told, *SIGNS)


def test_how_many_items_there_are(staging: Staging) -> None:
    n = staging.number(staging.given("i"))
    x = torch.ones(3)

    class Said(list[Any]):
        def __iter__(self) -> Any:
            return iter(())

    def of(*options: Any) -> set[int | None]:
        return lengths(Choice(n, options))

    assert of((1, 2), [1, 2], x) == {2, 3} and of((), [1]) == {0, 1}
    assert of(1) == of({}) == of(x.sum()) == of(Said([1])) == of("ab") == {None}
    assert of((1,), Undefined("a"), MISSING) == {1} and of(UsersList([1, 2]), Pair(1, 2)) == {2}


REFUSED: dict[str, Callable[[Any], Any]] = {
    "hash": hash, "a key": lambda v: {v: 1}, "bool": bool, "an index": lambda v: v[0], "a test": lambda v: 1 in v,
    "len": len, "as an index": operator.index, "int": int, "float": float, "str": str, "repr": repr,
    "format": lambda v: f"{v}", "a loop": list, "names": lambda v: dict(**v),
    "an item stored": lambda v: operator.setitem(v, 0, 1), "an item deleted": lambda v: operator.delitem(v, 0),
    "a copy": lambda v: v.__reduce__(),
}  # fmt: skip


@pytest.mark.parametrize("how", REFUSED)
def test_what_code_that_is_not_converted_may_not_do(how: str, staging: Staging) -> None:
    v = one_of(staging, staging.given("x"), (1,), (2, 3))
    with pytest.raises(TraceError) as found:
        REFUSED[how](v)
    assert found.value.code == "D2S210" and found.value.location is not None


def test_its_text_outside_of_a_trace_reads_nothing() -> None:
    assert repr(Choice(None, ())) == "<one of several values, known while the Program runs>"  # type: ignore[arg-type]


def test_an_attribute_that_other_code_asked_for(staging: Staging) -> None:
    v = one_of(staging, staging.given("x"), 1, "a")
    with pytest.raises(AttributeError) as raised:
        v.upper
    with pytest.raises(TraceError, match="attribute 'upper'") as found:
        choices.require_converted(raised.value)
    assert found.value.code == "D2S210"
    for other in (AttributeError("upper", name="upper", obj="a"), ValueError("upper")):
        choices.require_converted(other)


def test_what_is_not_bound_is_an_error_of_its_runs(staging: Staging) -> None:
    x = staging.given("x")
    n = staging.truth(x.sum() > 0)
    choice = Choice(staging.session.scalar("int", n), (Undefined("y"), x))
    run = staging.finish(distribute(staging.session, choice, lambda one: one * 2))
    same(run(x=torch.ones(3)), torch.ones(3) * 2)
    with pytest.raises(UnboundLocalError, match="local variable 'y'"):
        run(x=-torch.ones(3))


def test_an_attribute_that_is_not_set(staging: Staging) -> None:
    x = staging.given("x")
    n = staging.session.scalar("int", staging.truth(x.sum() > 0))
    run = staging.finish(distribute(staging.session, Choice(n, (MISSING, x)), lambda one: one * 3))
    with pytest.raises(AttributeError, match="not set"):
        run(x=-torch.ones(3))


@pytest.mark.parametrize("free", [False, True])
def test_what_python_says_of_a_name_that_is_not_bound(free: bool) -> None:
    def outer() -> Any:
        if free:
            def inner() -> Any:
                return value

            inner()
        value = value if not free else 1  # noqa: F821
        return value

    with pytest.raises(NameError) as found:
        outer()
    assert str(found.value) == unbound_message("value", free)


def test_the_value_itself_where_each_gives_its_own(staging: Staging) -> None:
    x = staging.given("x")
    v = one_of(staging, x, 1, "a")
    assert distribute(staging.session, v, lambda one: one) is v
    narrow = distribute(staging.session, v, lambda one: one, narrows=True)
    assert isinstance(narrow, Choice) and narrow is not v


def test_one_that_a_function_refuses_is_left_out(staging: Staging) -> None:
    """What is left is plain, if there is one kind of it."""
    v = one_of(staging, staging.given("x"), "a", 1.5)

    def number(one: Any) -> Any:
        if isinstance(one, str):
            raise ValueError("no number")
        return one

    found = distribute(staging.session, v, number, narrows=True)
    assert isinstance(found, (float, StagedFloat))
    run = staging.finish(found)
    assert run(x=-torch.ones(3)) == 1.5
    with pytest.raises(ValueError, match="no number"):
        run(x=torch.ones(3))


def table(do: Plain, x: torch.Tensor) -> dict[str, Any]:
    """A dict that has another key where the sum of ``x`` is above zero."""
    made: dict[str, Any] = {"k": 1}
    do.branch(x.sum() > 0, Local(), lambda: do.change(made, lambda held: held.update(j="b")), lambda: None)
    return made


def test_what_a_container_holds_that_is_one_of_several(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        held = table(do, x)
        chosen = one_of(do, x - 2.5, held, [5])
        return distribute(staging.session, chosen, str) if do is staging else str(chosen)

    agree(staging, told, *SIGNS)


def test_which_object_it_is_is_not_asked_of_what_it_holds(staging: Staging) -> None:
    x = staging.given("x")
    held, other = table(staging, x), [5]
    found = distribute(staging.session, one_of(staging, x - 2.5, held, other), lambda one: one is held, itself=True)
    run = staging.finish(found)
    assert run(x=torch.ones(3) * 3) is True and run(x=torch.ones(3)) is False


def test_where_one_of_several_is_found(staging: Staging) -> None:
    x = staging.given("x")
    v, other = one_of(staging, x, 1, "a"), one_of(staging, x, 2, "b")
    for value in (v, [1, v], (v, other), {"k": v}, slice(v), slice(1, None, v), [({"k": [v]},)], Pair(1, v)):
        assert held_choice(value) is v
    for nothing in (1, [1, (2,)], {"k": 1}, {1}, slice(3), x, "a", []):
        assert held_choice(nothing) is None
    found = held_choice([table(staging, x)])
    assert isinstance(found, Choice) and [len(option) for option in found.options] == [2, 1]


def test_an_option_in_its_place(staging: Staging) -> None:
    x = staging.given("x")
    v, other = one_of(staging, x, 1, "a"), one_of(staging, x, 2, "b")
    assert with_option(v, v, 1) == 1 and with_option([v, other, v], v, 1)[::2] == [1, 1]
    assert with_option([v, other], v, 1)[1] is other
    assert with_option({"k": (v, 3), "j": slice(v, 2)}, v, 1) == {"k": (1, 3), "j": slice(1, 2)}
    made = with_option(Pair(v, [v]), v, 1)
    assert type(made) is Pair and made == Pair(1, [1])
    assert type(with_option(UsersList([v]), v, 1)) is UsersList
    kept = [2]
    assert with_option((v, kept), v, 1)[1] is kept, "what holds none stays what it is"


@pytest.mark.parametrize("make", [OrderedDict, lambda: defaultdict(int)])
def test_an_option_in_a_dict_of_another_class(make: Callable[[], Any], staging: Staging) -> None:
    v = one_of(staging, staging.given("x"), 1, "a")
    held = make()
    held["k"] = v
    made = with_option(held, v, 1)
    assert type(made) is type(held) and made == {"k": 1} and held["k"] is v
    if isinstance(held, defaultdict):
        assert made.default_factory is int


def test_a_function_of_values_with_several_inside(staging: Staging) -> None:
    def told(do: Any, x: torch.Tensor) -> Any:
        a, b = one_of(do, x, 1, "a"), one_of(do, x - 2.5, 2, "b")

        def text(values: Any) -> Any:
            return "".join(map(str, values[0])) + str(values[1]["k"])

        values = ([a, 0, a], {"k": b})
        return spread(staging.session, values, text) if do is staging else text(values)

    agree(staging, told, *SIGNS)


def test_without_any_it_is_called_as_it_is(staging: Staging) -> None:
    values = [1, (2,)]
    assert spread(staging.session, values, lambda one: one is values) is True
    assert staging.session.program.block.ops == []


def test_too_many_at_once_are_refused(staging: Staging) -> None:
    x = staging.given("x")
    many = [one_of(staging, x - place, place, str(place)) for place in range(6)]
    with pytest.raises(TraceError) as found:
        spread(staging.session, many, lambda values: str(values))
    assert found.value.code == "D2S255" and "64" in found.value.summary
    assert spread(staging.session, many[:5], lambda values: 1) == 1 and staging.session.constructs.paths == 1

    def deeper(place: int) -> Any:
        return lambda one: distribute(staging.session, many[place], deeper(place + 1)) if place < 6 else 1

    with pytest.raises(TraceError) as found:
        distribute(staging.session, many[0], deeper(1))
    assert found.value.code == "D2S255" and staging.session.constructs.paths == 1


def test_the_message_is_of_this_python() -> None:
    assert ("associated" in unbound_message("a")) is (sys.version_info >= (3, 11))
