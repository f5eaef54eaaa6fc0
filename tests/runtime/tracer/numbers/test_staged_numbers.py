"""Python's numbers that only a run computes: which operations are recorded, and which uses are refused."""

from __future__ import annotations

import datetime
import enum
import fractions
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from dy2static import TraceError
from runtime.tracer.ambient import state
from runtime.tracer.numbers import scalars
from runtime.tracer.numbers.scalars import computes_with_numbers, kind_of, python_type, without_class, wrap

RECORDED: dict[str, tuple[Callable[[Any], Any], list[str], str]] = {
    "n + 1": (lambda n: n + 1, ["scalar.add"], "int"),
    "1.5 - n": (lambda n: 1.5 - n, ["scalar.sub"], "float"),
    "n / 2": (lambda n: n / 2, ["scalar.truediv"], "float"),
    "7 // n": (lambda n: 7 // n, ["scalar.floordiv"], "int"),
    "n ** 2": (lambda n: n**2, ["scalar.pow"], "int"),
    "n < 2": (lambda n: n < 2, ["scalar.lt"], "bool"),
    "2 < n": (lambda n: 2 < n, ["scalar.gt"], "bool"),
    "n == 2": (lambda n: n == 2, ["scalar.eq"], "bool"),
    "~n": (lambda n: ~n, ["scalar.invert"], "int"),
    "1 << n": (lambda n: 1 << n, ["scalar.lshift"], "int"),
    "round": (round, ["scalar.round"], "int"),
    "floor": (math.floor, ["scalar.math.floor"], "int"),
    "real": (lambda n: n.real, ["scalar.pos"], "int"),
    "numpy.int64": (lambda n: n < numpy.int64(3), ["scalar.lt"], "bool"),
}


@pytest.mark.parametrize("name", RECORDED)
def test_an_operation_is_an_operator(name: str, number: Any, recorded: Any) -> None:
    use, names, kind = RECORDED[name]
    n = number()
    recorded()
    made = use(n)
    assert made.kind == kind and recorded() == names


def test_operands_keep_their_order(session: Any, number: Any) -> None:
    n, ops = number(), session.program.block.ops
    for made, args in ((lambda: n - 2, (n.var, 2)), (lambda: 2 - n, (2, n.var)), (lambda: 7 // n, (7, n.var))):
        made()
        assert ops[-1].args == args


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
def test_a_comparison_with_a_tensor_is_torchs(name: str, number: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """The tensor stands in front, whichever is in front of the other."""
    mirrored = {"lt": "gt", "gt": "lt", "le": "ge", "ge": "le"}
    asked: list[tuple[str, type]] = []
    monkeypatch.setattr(scalars, "theirs", lambda function, *args: asked.append((function.__name__, type(args[0]))))
    n, x = number(), torch.ones(2)
    getattr(operator, name)(n, x)
    assert asked == [(mirrored.get(name, name), torch.Tensor)]


@pytest.mark.parametrize("made", [lambda n: n == None, lambda n: n != None, lambda n: n.imag])
def test_what_is_known_is_no_operator(made: Any, number: Any, recorded: Any) -> None:
    n = number()
    recorded()
    assert made(n) in (False, True, 0) and recorded() == []


REFUSED: dict[str, Callable[[Any], Any]] = {
    "used as a condition": bool, "hashed": hash, "formatted": lambda n: f"{n}", "turned into text": str,
    "converted to an int": int, "converted to a float": float, "used as an index or size": operator.index,
    "pickled or copied": lambda n: n.__reduce__(), "used to repeat a sequence": lambda n: n * [1],
    "used together with a Fraction": lambda n: n + fractions.Fraction(1, 2),
    "used together with a timedelta": lambda n: datetime.timedelta(1) * n,
    "used together with a complex": lambda n: n + 1j,
    "used together with a float32": lambda n: n.__add__(numpy.float32(1)),
    "given to NumPy's add": lambda n: numpy.float32(1) + n,
}  # fmt: skip


@pytest.mark.parametrize("how", REFUSED)
def test_what_would_freeze_it_is_refused(how: str, number: Any) -> None:
    n = number()
    with pytest.raises(TraceError) as caught:
        REFUSED[how](n)
    assert caught.value.code == "D2S210" and how in str(caught.value)


def test_python_says_what_is_no_operation(number: Any) -> None:
    n, x = number(), number("float")
    for use in (lambda: n + [], lambda: x & 1, lambda: x << 1, lambda: iter(n)):
        with pytest.raises(TypeError):
            use()


def test_divmod_of_floats_has_words_of_its_own(session: Any, number: Any, recorded: Any) -> None:
    n, x = number(), number("float")
    recorded()
    divmod(n, 2)
    assert recorded() == ["scalar.floordiv", "scalar.mod"]
    divmod(1.0, x)
    assert recorded() == ["scalar.ne", "assert", "scalar.floordiv", "scalar.mod"]
    try:
        divmod(1.0, 0.0)
    except ZeroDivisionError as error:
        words = str(error)
    checks = [op for op in session.program.block.ops if op.name == "assert"]
    assert [one.attrs["message"] for one in checks] == [words]
    divmod(x, 2.0)
    assert "assert" not in recorded(), "it is no zero"


def test_a_number_that_outlived_its_trace(number: Any) -> None:
    n = number()
    before = state.enter(None)
    try:
        assert repr(n) == "<int computed while the Program runs>"
        with pytest.raises(TraceError):
            n + 1
    finally:
        state.enter(before)


class Colour(enum.IntEnum):
    RED = 3


class Bits(enum.IntFlag):
    ONE = 1


class Text(str):
    pass


def test_what_an_operator_makes_of_numbers_of_other_classes(session: Any) -> None:
    plain_ones = [(Colour.RED, "add", 3), (Text("a"), "add", "a"), (True, "and_", True), (2.5, "mul", 2.5)]
    for value, name, plain in plain_ones:
        found = without_class(value, name)
        assert type(found) is type(plain) and found == plain
    for value in (numpy.float64(2), None, [1]):
        assert without_class(value, "add") is value
    with pytest.raises(TraceError) as caught:
        without_class(Bits.ONE, "or_")
    assert caught.value.code == "D2S262"
    assert type(without_class(Bits.ONE, "add")) is int, "it has no operator of its own for that"


def test_kinds_and_types(number: Any) -> None:
    for kind, cls in (("int", int), ("float", float), ("bool", bool)):
        one = number(kind)
        assert kind_of(one) == kind and python_type(one) is cls and type(wrap(one.var)) is type(one)
    values = (True, 1, 1.0, 1j, "a", None, Colour.RED, torch.ones(1))
    assert [kind_of(one) for one in values] == ["bool", "int", "float", "complex", "str", None, None, None]
    assert python_type(3) is int and python_type(Colour.RED) is Colour


@pytest.mark.parametrize(
    "name, other, answer",
    [
        ("add", 1, False), ("add", 1j, True), ("lt", 1j, False), ("add", fractions.Fraction(1), True),
        ("lt", fractions.Fraction(1), True), ("mul", datetime.timedelta(1), True),
        ("sub", datetime.timedelta(1), True), ("eq", datetime.timedelta(1), False), ("add", [1], False),
        ("add", numpy.float32(1), True), ("pow", datetime.timedelta(1), False),
    ],
)  # fmt: skip
def test_whether_a_library_computes_with_numbers(name: str, other: Any, answer: bool) -> None:
    assert computes_with_numbers(name, other) is answer
