"""Scalar operators are Python's: the same values, types and exceptions, and the type of a result known beforehand."""

from __future__ import annotations

import itertools
import math
import operator
import warnings

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.errors import TraceError
from runtime.ops.scalar import FUNCTIONS, MATH, is_certain, kind_of_dtype, result_kind

VALUES = [True, False, 0, 1, -3, 7, 2**70, 0.0, -0.0, 1.5, -2.5, 1e300, math.inf, math.nan, 1 + 2j, "a", "3", ""]
PYTHON = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "truediv": lambda a, b: a / b,
    "floordiv": lambda a, b: a // b, "mod": lambda a, b: a % b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b, "eq": lambda a, b: a == b, "ne": lambda a, b: a != b,
    "and_": lambda a, b: a & b, "or_": lambda a, b: a | b, "xor": lambda a, b: a ^ b,
}  # fmt: skip
SMALL = {"pow": lambda a, b: a**b, "lshift": lambda a, b: a << b, "rshift": lambda a, b: a >> b}
UNARY = {
    "neg": lambda a: -a, "pos": lambda a: +a, "abs": abs, "not_": lambda a: not a, "bool": bool, "int": int,
    "float": float, "complex": complex, "str": str, "repr": repr, "ascii": ascii, "round": round, "format": format,
    "invert": operator.invert,
}  # fmt: skip


def outcome(function, *args):
    """The value with its type, or the exception with its message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            value = function(*args)
    except (ArithmeticError, AttributeError, TypeError, ValueError) as error:  # AttributeError: stdev() of infinity
        return type(error), str(error)
    return type(value), repr(value)


@pytest.mark.parametrize("name", PYTHON)
def test_binary(name):
    for a, b in itertools.product(VALUES, VALUES):
        assert outcome(FUNCTIONS[f"scalar.{name}"], a, b) == outcome(PYTHON[name], a, b)


@pytest.mark.parametrize("name", SMALL)
def test_binary_of_small_values(name):
    small = [value for value in VALUES if value != 2**70]
    for a, b in itertools.product(small, small):
        mine, python = outcome(FUNCTIONS[f"scalar.{name}"], a, b), outcome(SMALL[name], a, b)
        assert mine == python or (mine[0] is python[0] is TypeError)  # pow() is named otherwise in the message


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    for a in VALUES:
        assert outcome(FUNCTIONS[f"scalar.{name}"], a) == outcome(UNARY[name], a)


@pytest.mark.parametrize("name", MATH)
def test_math(name):
    for count in (1, 2):
        for args in itertools.product([value for value in VALUES if value != 2**70], repeat=count):
            assert outcome(FUNCTIONS[f"scalar.math.{name}"], *args) == outcome(getattr(math, name), *args)


@pytest.mark.parametrize(
    ("name", "args", "expected"),
    [
        ("format", (255, "#06x"), "0x00ff"), ("format", (math.pi, ".2f"), "3.14"), ("format", (True,), "True"),
        ("round", (2.5,), 2), ("round", (2.675, 2), 2.67), ("round", (1234, -2), 1200), ("round", (2.5, None), 2),
        ("int", ("ff", 16), 255), ("min", (2, 1.0, True), 1.0), ("max", (True, 1), True), ("max", (1, 2), 2),
        ("select", (True, 1, 2), 1), ("select", (0.0, 1, 2), 2), ("is_none", (None,), True), ("is_none", (0,), False),
        ("pow", (3, 4, 5), 1), ("pow", (2, -1), 0.5), ("bit_length", (255,), 8), ("is_integer", (2.0,), True),
        ("expect", (1.5, "float"), 1.5), ("lshift", (1, 70), 2**70), ("complex", (1, 2), 1 + 2j),
    ],
)  # fmt: skip
def test_values(name, args, expected):
    found = FUNCTIONS[f"scalar.{name}"](*args)
    assert found == expected and type(found) is type(expected)


def test_min_and_max_pick_as_python_does_with_nan():
    assert FUNCTIONS["scalar.min"](math.nan, 1.0) != FUNCTIONS["scalar.min"](math.nan, 1.0)  # nan stays where it leads
    assert FUNCTIONS["scalar.min"](1.0, math.nan) == 1.0


def test_from_tensors():
    tensor = torch.arange(6.0).reshape(2, 3)
    assert FUNCTIONS["scalar.size"](tensor, -1) == 3
    assert FUNCTIONS["scalar.numel"](tensor) == 6
    assert FUNCTIONS["scalar.dim"](tensor) == 2
    assert FUNCTIONS["scalar.truth"](tensor[0, 0]) is False
    assert type(FUNCTIONS["scalar.item"](tensor[1, 1])) is float
    with pytest.raises(RuntimeError, match="Boolean value of Tensor with more than one value is ambiguous"):
        FUNCTIONS["scalar.truth"](tensor)


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float16, torch.float64, torch.complex64])
def test_kind_of_dtype(dtype):
    assert kind_of_dtype(dtype) == type(torch.zeros((), dtype=dtype).item()).__name__


STABLE = sorted(set(FUNCTIONS) - {
    "scalar.item", "scalar.number", "scalar.index", "scalar.size", "scalar.numel", "scalar.dim", "scalar.expect",
    "scalar.select", "scalar.min",
    "scalar.max", "scalar.truth", "scalar.is_none",
})  # fmt: skip
numbers = st.one_of(
    st.booleans(), st.integers(-9, 9), st.floats(-9, 9), st.sampled_from([math.inf, math.nan, 1 + 2j, "7", "x", None])
)


@settings(max_examples=1500, deadline=None)
@given(st.sampled_from(STABLE), st.lists(numbers, min_size=1, max_size=3), st.data())
def test_the_kind_of_a_result_is_known_beforehand(name, values, data):
    kinds = ["none" if value is None else type(value).__name__ for value in values]
    known = [value if data.draw(st.booleans()) else None for value in values]
    real = outcome(FUNCTIONS[name], *values)
    if real[0] is TypeError and "str" not in kinds:
        with pytest.raises((TypeError, TraceError)):
            result_kind(name, kinds, known)
    elif not issubclass(real[0], Exception) and is_certain(name, kinds, known):
        assert result_kind(name, kinds, known) == real[0].__name__


@pytest.mark.parametrize(
    ("kinds", "values", "kind", "certain"),
    [
        (["int", "int"], [], "int", False), (["int", "int"], [None, 2], "int", True),
        (["int", "int"], [None, -2], "float", True), (["int", "bool"], [], "int", True),
        (["float", "float"], [], "float", False), (["float", "float"], [None, 2.0], "float", True),
        (["float", "float"], [None, 0.5], "float", False), (["float", "float"], [2.0, None], "float", True),
        (["int", "float"], [-2, None], "float", False), (["float", "int"], [], "float", True),
        (["complex", "float"], [], "complex", True), (["int", "int", "int"], [], "int", True),
    ],
)  # fmt: skip
def test_powers(kinds, values, kind, certain):
    assert result_kind("scalar.pow", kinds, values) == kind
    assert is_certain("scalar.pow", kinds, values) is certain


def test_what_is_not_certain_is_checked_when_it_runs():
    expect = FUNCTIONS["scalar.expect"]
    assert expect((4.0) ** 0.5, "float") == 2.0
    with pytest.raises(TypeError, match=r"this value is complex .* but float was expected"):
        expect((-4.0) ** 0.5, "float")
    with pytest.raises(TypeError, match="this value is bool"):
        expect(True, "int")


def test_a_choice_between_kinds_is_refused():
    assert result_kind("scalar.min", ["int", "int"]) == "int"
    assert result_kind("scalar.select", ["bool", "float", "float"]) == "float"
    with pytest.raises(TraceError, match="the type of this min depends on which value it picks: int, float"):
        result_kind("scalar.min", ["int", "float"])
    with pytest.raises(TypeError, match="unsupported operand type"):
        result_kind("scalar.add", ["int", "none"])
