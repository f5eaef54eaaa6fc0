"""Powers of ints: which are open, and what is recorded for them."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.tracer.numbers import powers, staging


def test_which_are_open(number: Any) -> None:
    n, x = number(), number("float")
    assert powers.is_open("pow", ["int", "int"], [2, n]) and powers.is_open("pow", ["bool", "bool"], [n, n])
    assert not powers.is_open("pow", ["int", "int"], [n, 2]), "the sign of a plain exponent is known"
    assert not powers.is_open("pow", ["float", "int"], [x, n]) and not powers.is_open("pow", ["int", "float"], [n, x])
    assert not powers.is_open("pow", ["int"] * 3, [n, n, 7]), "with a modulus it is an int"
    assert not powers.is_open("mul", ["int", "int"], [2, n])


def test_an_exponent_that_is_no_less_than_zero(session: Any, number: Any, recorded: Any) -> None:
    n = abs(number())
    recorded()
    made = powers.power(session, 2, n)
    assert made.kind == "int" and recorded() == ["scalar.pow"]
    assert session.program.block.ops[-1].inputs == [n.var]


def test_an_exponent_that_may_be(session: Any, number: Any, recorded: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[Any, Any]] = []
    monkeypatch.setattr(staging, "_stage", [lambda *args: asked.append((args[1], args[3])) or args[2]])
    n = number()
    recorded()
    flag = powers.power(session, 2, n)
    [(name, (negative, natural))] = asked
    assert name == "cond" and flag.kind == "bool" and recorded() == ["scalar.lt"]
    assert session.program.block.ops[-1].args == (n.var, 0)
    assert (negative().kind, natural().kind) == ("float", "int") and recorded() == ["scalar.pow", "scalar.pow"]


def test_who_stages_branches_is_the_last_that_says_so(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(staging, "_stage", [])
    staging.register(lambda *args: "before")
    staging.register(lambda *args: args)
    runs = (lambda: 1, lambda: 2)
    assert staging.cond(session, "flag", *runs)[1:4] == ("cond", "flag", runs)
    found = staging.switch(session, "index", list(runs), "choice")
    assert found[1:4] == ("switch", "index", runs) and found[5] == "choice"
    names = found[4]
    assert names.names == () and names.get() == () and names.set((1,)) is None and names.holds(None) is False
