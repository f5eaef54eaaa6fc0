"""Symbols for sizes and Variables for symbols: what is recorded for a size, and what is known of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import TraceError
from runtime.ir import ScalarType, Variable
from runtime.tracer.numbers import symbols
from runtime.tracer.numbers.scalars import StagedInt, wrap


def test_a_size_is_read_off_the_input_once(session: Any, given: Any, recorded: Any) -> None:
    x = given("x", None, 3)
    recorded()
    n = session.sizes.staged(x.shape[0])
    assert isinstance(n, StagedInt) and session.sizes.staged(x.shape[0]).var is n.var
    assert recorded() == ["scalar.size"] and session.program.block.ops[-1].args == (session.read(x), 0)
    assert session.sizes.dim(x.shape[0]) == "s0" and session.sizes.dim(x.shape[0] * 2 + 1) == "2*s0 + 1"
    assert session.sizes.is_of_inputs(x.shape[0]) and not session.sizes.is_of_inputs(session.sizes.fresh())


def test_names_of_symbols(session: Any, given: Any) -> None:
    x, y = given("x", None), given("y", None, None)
    fresh = [session.sizes.fresh() for _ in range(2)]
    sizes = [*x.shape, *y.shape, *fresh, x.shape[0]]
    assert [session.sizes.dim(size) for size in sizes] == ["s0", "s1", "s2", "n0", "n1", "s0"]


EXPRESSIONS: dict[str, tuple[Callable[[Any, Any], Any], list[str]]] = {
    "n + 1": (lambda n, m: n + 1, ["scalar.add"]),
    "n * m + 2": (lambda n, m: n * m + 2, ["scalar.mul", "scalar.add"]),
    "n // 2": (lambda n, m: n // 2, ["scalar.floordiv"]),
    "n % 3": (lambda n, m: n % 3, ["scalar.mod"]),
    "min": (torch.sym_min, ["scalar.min"]),
    "max": (torch.sym_max, ["scalar.max"]),
    "n > m": (lambda n, m: n > m, ["scalar.gt"]),
    "n >= m": (lambda n, m: n >= m, ["scalar.ge"]),
    "n <= m": (lambda n, m: n <= m, ["scalar.le"]),
    "n < m": (lambda n, m: n < m, ["scalar.lt"]),
    "n == m": (lambda n, m: n == m, ["scalar.eq"]),
    "n != 3": (lambda n, m: n != 3, ["scalar.ne"]),
    "n / 2": (lambda n, m: n / 2, ["scalar.truediv"]),
    "float": (lambda n, m: torch.sym_float(n), ["scalar.float"]),
    "n": (lambda n, m: n, []),
    "n - n": (lambda n, m: n - n, []),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_an_expression_is_operators(name: str, session: Any, given: Any, recorded: Any) -> None:
    make, names = EXPRESSIONS[name]
    x = given("x", None, None)
    for size in x.shape:
        session.sizes.materialize(size)
    recorded()
    value = make(*x.shape)
    operand = session.sizes.materialize(value) if not isinstance(value, int) else value
    assert sorted(recorded()) == sorted(names)
    assert isinstance(operand, Variable) == (name != "n - n")


def test_a_size_that_nothing_tells_is_refused(session: Any) -> None:
    with pytest.raises(TraceError) as caught:
        session.sizes.materialize(session.sizes.fresh())
    assert caught.value.code == "D2S233"


def test_what_a_block_may_read(session: Any, given: Any) -> None:
    x = given("x", None)
    fresh = session.sizes.fresh()
    assert session.sizes.visible(3) and session.sizes.visible(x.shape[0]) and not session.sizes.visible(fresh)
    with session.open("cond"):
        inner = session.new_variable(session.type_of(x), "y")
        session.sizes.bind_size(fresh, inner, 0)
        within = session.sizes.visible(fresh)
    assert within and not session.sizes.visible(fresh)


def test_the_first_to_have_a_size_is_where_it_is_read(session: Any, given: Any) -> None:
    x, y = given("x", None), given("y", 3)
    first, second = session.read(x), session.read(y)
    session.sizes.bind_size(x.shape[0], second, 0)
    assert session.sizes.is_read_off(x.shape[0], first, 0) and not session.sizes.is_read_off(x.shape[0], second, 0)
    assert not session.sizes.is_read_off(x.shape[0], first, 1)
    session.sizes.bind_size(3, second, 0)
    session.sizes.bind_size(x.shape[0] + 1, second, 0)
    assert not session.sizes.is_read_off(x.shape[0] + 1, second, 0), "that is no symbol"


def test_a_number_keeps_its_relation_to_what_it_is_made_of(session: Any, given: Any, number: Any) -> None:
    x, k = given("x", None), number()
    n = session.sizes.staged(x.shape[0])
    made = session.sizes.symbolic((n + 1) * 2)
    assert made.node.expr == ((x.shape[0] + 1) * 2).node.expr
    assert session.sizes.symbolic(k + 1).node.expr == session.sizes.symbolic(k).node.expr + 1
    assert session.sizes.symbolic(k) is session.sizes.symbolic(k)
    assert session.sizes.symbolic(k % 2).node.expr.is_Symbol, "that is a number of its own"


def test_containers_of_numbers(session: Any, number: Any) -> None:
    k = number()
    symbol = session.sizes.symbolic(k)
    assert session.sizes.symbolic([k, (k, 1), "x"]) == [symbol, (symbol, 1), "x"]
    assert session.sizes.symbolic({"a": k})["a"] is symbol
    cut = session.sizes.symbolic(slice(None, k, 2))
    assert (cut.start, cut.stop, cut.step) == (None, symbol, 2)


def test_text_is_no_symbol(session: Any) -> None:
    text = wrap(session.new_variable(ScalarType("str"), "t"))
    with pytest.raises(TraceError) as caught:
        session.sizes.symbolic(text)
    assert caught.value.code == "D2S234"


def test_numbers_of_each_kind_have_symbols_of_that_kind(session: Any, number: Any) -> None:
    kinds = {"int": torch.SymInt, "float": torch.SymFloat, "bool": torch.SymBool}
    for kind, cls in kinds.items():
        one = number(kind)
        assert type(session.sizes.symbolic(one)) is cls
        again = session.sizes.staged(session.sizes.symbolic(one))
        assert again.var is one.var and again.kind == kind


def test_values_that_are_settled(session: Any, given: Any, number: Any) -> None:
    x, k = given("x", None, None), number()
    n, m = map(session.sizes.staged, x.shape)
    settled = session.sizes.settled
    assert settled(3) == 3 and settled(n) is None and settled(k) is None and settled(n + 1) is None
    assert settled(number("float")) is None and settled(k % 2) is None
    assert session.sizes.expression(n) == x.shape[0].node.expr and session.sizes.expression(k) is None
    constant = StagedInt(k.var, 4)
    assert settled(constant) == 4 and settled(constant + 1) == 5 and settled(constant * n) is None
    assert settled(-constant) == -4 and settled(session.scalar("min", constant, 1)) == 1


def test_facts_of_inputs_are_assumed_and_others_asserted(
    session: Any, given: Any, number: Any, recorded: Any
) -> None:
    x, k = given("x", None), session.sizes.symbolic(number())
    recorded()
    torch._check(x.shape[0] > 3)
    session.sizes.collect_asserts()
    assert [fact.expr for fact in session.program.assumes] == ["3 < s0"] and recorded() == []
    torch._check(k > 5)
    session.sizes.collect_asserts()
    assert recorded() == ["scalar.lt", "assert"] and len(session.program.assumes) == 1
    assert "do not fit together" in session.program.block.ops[-1].attrs["message"]
    session.sizes.collect_asserts()
    assert recorded() == [], "each fact once"


def test_what_is_forgotten(session: Any, number: Any, recorded: Any) -> None:
    k, j = number(), number()
    symbol, made = session.sizes.symbolic(k), k + j
    with session.sizes.forgotten():
        torch._check(symbol > 5)
        inside = session.sizes.symbolic(made)
        session.sizes.collect_asserts()
    recorded()
    session.sizes.collect_asserts()
    assert recorded() == [] and session.shape_env.bound_sympy(symbol.node.expr).lower < 0, "it is not known any more"
    torch._check(symbol > 5)
    session.sizes.collect_asserts()
    assert recorded()[-1] == "assert", "and may be asked again"
    assert session.sizes.symbolic(k) is symbol, "a number that is read stays what it is"
    assert session.sizes.symbolic(made) is not inside, "one that is computed is not: it may have used what was known"


def test_sympy_is_imported_when_it_is_asked_for() -> None:
    later = symbols._Later("fractions")
    assert "Fraction" not in vars(later)
    from fractions import Fraction

    assert later.Fraction is Fraction and vars(later)["Fraction"] is Fraction
    with pytest.raises(AttributeError):
        later.nothing
