"""Operators that may raise what an ``except`` clause around them names: refused, for no handler can see it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.ir import ScalarType, TensorType, Variable
from runtime.ops.scalar import FUNCTIONS
from runtime.tracer.ambient import catching
from runtime.tracer.ambient.calls import Findings, Restart
from runtime.tracer.ambient.catching import LastItem, Passed
from runtime.tracer.recording.session import Session


class Own(Exception):
    pass


class Around:
    """A ``try`` whose clauses name these; ``depth``: how many functions run around its body."""

    def __init__(self, types: Any, depth: int = 0) -> None:
        self.types = types
        self.depth = depth

    def __call__(self) -> Any:
        return self.types


@pytest.fixture
def around(session: Session) -> Callable[..., None]:
    """``around(types, ...)``: there are these handlers, the outermost first."""
    def put(*types: Any, depth: int = 0) -> None:
        session.exceptions.catching[:] = [
            one if isinstance(one, LastItem) else Around(one, depth) for one in types]  # fmt: skip

    return put


def variable(session: Session, kind: str = "int") -> Variable:
    return session.new_variable(ScalarType(kind))  # type: ignore[arg-type]


def tensor(session: Session, *sizes: int, dtype: torch.dtype = torch.float32) -> Variable:
    return session.new_variable(TensorType(dtype, sizes))


def refused(session: Session, name: str, *args: Any, **attrs: Any) -> bool:
    """Whether such an Operator is refused here, with the code for it."""
    try:
        catching.require_uncaught(session, name, args, attrs)
    except TraceError as error:
        assert error.code in ("D2S229", "D2S266") and error.location is not None
        return True
    return False


# -- numbers

SAMPLES: dict[str, list[Any]] = {
    "int": [0, -3, 3, 7], "float": [0.0, -2.5, 1e308, math.inf, math.nan, 0.5], "bool": [False, True], "str": ["", "x"],
}  # fmt: skip
WHOLE = {"scalar.math.sqrt", "scalar.math.log", "scalar.truediv", "scalar.floordiv", "scalar.mod"}
"""For them it is said, whatever the numbers are."""


def raised(name: str, kinds: tuple[str, ...]) -> set[type[BaseException]]:
    """What Python's function raises for numbers of these kinds."""
    found = set()
    for values in itertools.product(*(SAMPLES[kind] for kind in kinds)):
        try:
            FUNCTIONS[name](*values)
        except (ArithmeticError, ValueError) as error:
            found.add(type(error))
        except TypeError:
            pass
    return found


ONE, TWO = [("int",), ("float",), ("bool",)], [("int", "int"), ("float", "float"), ("bool", "int")]
CALLS = [(name, kinds) for names, some in (
    (("int", "float", "math.sqrt", "math.exp", "math.log", "round", "neg"), ONE),
    (("truediv", "floordiv", "mod", "add", "mul", "pow", "lt"), TWO),
) for name in names for kinds in some]  # fmt: skip


@pytest.mark.parametrize("name, kinds", CALLS, ids=lambda one: one if isinstance(one, str) else "-".join(one))
def test_what_a_function_of_numbers_raises_is_refused(
    name: str, kinds: tuple[str, ...], session: Session, around: Any
) -> None:
    name = f"scalar.{name}"
    args = [variable(session, kind) for kind in kinds]
    expected = raised(name, kinds)
    for handler in (ZeroDivisionError, OverflowError, ValueError, ArithmeticError):
        around(handler)
        found = refused(session, name, *args)
        assert found or not any(issubclass(one, handler) for one in expected), "a handler would see it in eager"
        assert not found or name in WHOLE or any(issubclass(one, handler) for one in expected)
    around(KeyError)
    assert not refused(session, name, *args)


def test_broad_handlers_have_no_fear_of_values(session: Session, around: Any) -> None:
    value = variable(session, "float")
    for handler in (Exception, BaseException, RuntimeError):
        around(handler)
        assert not refused(session, "scalar.int", value)
    around(Exception)
    assert refused(session, "scalar.truediv", value, variable(session)), "division is what all fear"


def test_nobody_catches(session: Session, around: Any) -> None:
    around()
    for name in ("scalar.truediv", "array.get"):
        assert not refused(session, name, variable(session), variable(session))
    assert not refused(session, "raise", exception="ValueError")


def test_a_divisor_that_is_known_not_to_be_zero(session: Session, around: Any) -> None:
    around(ZeroDivisionError)
    one, two = variable(session), variable(session)
    with session.open("cond") as scope:
        session.values.divisors.append((scope, two))
        assert not refused(session, "scalar.floordiv", one, two) and refused(session, "scalar.floordiv", two, one)
    assert refused(session, "scalar.floordiv", one, two), "it is known in that Block alone"
    around(OverflowError)
    number = variable(session, "float")
    session.values.divisors.append((session.scope, number))
    assert refused(session, "scalar.floordiv", variable(session, "float"), number) == (
        OverflowError in raised("scalar.floordiv", ("float", "float")))


@pytest.mark.parametrize("name", ["scalar.truediv", "scalar.floordiv", "scalar.mod"])
def test_a_plain_divisor(name: str, session: Session, around: Any) -> None:
    around(ZeroDivisionError)
    assert refused(session, name, variable(session), 0)
    assert not refused(session, name, variable(session), 2)


def test_plain_operands_are_the_values_they_are(session: Session, around: Any) -> None:
    around(ValueError)
    assert refused(session, "scalar.int", variable(session, "float"))
    assert not refused(session, "scalar.add", variable(session), 2.0)
    assert not refused(session, "scalar.int", tensor(session, 2)), "of other operands nothing is tried"


# -- items


@pytest.mark.parametrize("handler", [IndexError, LookupError, Exception])
def test_items_of_lists(handler: type, session: Session, around: Any) -> None:
    around(handler)
    for name in ("array.get", "array.set", "array.pop"):
        assert refused(session, name, variable(session), variable(session))
    assert not refused(session, "array.append", variable(session), variable(session))


@pytest.mark.parametrize("name", ["index.Tensor", "index_select.default", "gather.default", "embedding.default"])
def test_indexing_with_tensors(name: str, session: Session, around: Any) -> None:
    args = tensor(session, 3), [tensor(session, 2, dtype=torch.int64)]
    for handler, expected in ((IndexError, True), (LookupError, True), (Exception, False), (KeyError, False)):
        around(handler)
        assert refused(session, f"aten.{name}", *args) is expected


@pytest.mark.parametrize("literal, expected", [
    ([0, 2], False), ([-3], False), ([3], True), ([-4], True), ([0, 9], True), ([True, False, True], True),
], ids=str)  # fmt: skip
def test_an_index_that_is_known(literal: list[Any], expected: bool, session: Session, around: Any) -> None:
    """As Python raises for such an index, but for masks."""
    index = tensor(session, len(literal), dtype=torch.int64)
    session.values.literals[index] = torch.tensor(literal)
    around(IndexError)
    assert refused(session, "aten.index.Tensor", tensor(session, 3), [index]) is expected
    assert refused(session, "aten.index.Tensor", tensor(session, 3, 9), [index, None]) is expected
    assert refused(session, "aten.index.Tensor", tensor(session, 9, 3), [None, index]) is expected
    assert refused(session, "aten.index.Tensor", tensor(session, 3), [None, index]), "there are too many"


def test_a_number_that_selects(session: Session, around: Any) -> None:
    around(IndexError)
    assert not refused(session, "aten.select.int", tensor(session, 3), 0, 1)
    assert refused(session, "aten.select.int", tensor(session, 3), 0, variable(session))


@pytest.mark.parametrize("handler, expected", [
    (torch.linalg.LinAlgError, True), (RuntimeError, True), (Exception, True), (ValueError, False), (IndexError, False),
])  # fmt: skip
def test_linear_algebra(handler: type, expected: bool, session: Session, around: Any) -> None:
    around(handler)
    for name in ("linalg_cholesky", "linalg_inv", "cholesky", "linalg_solve", "linalg_svd"):
        assert refused(session, f"aten.{name}.default", tensor(session, 3, 3)) is expected
    assert not refused(session, "aten.add.Tensor", tensor(session, 3), tensor(session, 3))


# -- raise and assert


@pytest.mark.parametrize("handler, expected", [
    (ValueError, True), (Exception, True), (BaseException, True), ((KeyError, ValueError), True), (KeyError, False),
    ((), False), (3, False), (UnicodeError, False),
])  # fmt: skip
def test_what_the_user_raises(handler: Any, expected: bool, session: Session, around: Any) -> None:
    around(handler)
    assert refused(session, "raise", exception="ValueError") is expected
    assert refused(session, "assert", exception="ValueError") is expected
    assert catching.is_handled(session, ValueError) is False, "there is no function to hand it to"


def test_a_class_of_the_users(session: Session, around: Any) -> None:
    around(Own)
    assert not refused(session, "raise", exception="Own")
    session.exceptions.raised_types["Own"] = Own
    assert refused(session, "raise", exception="Own") and not refused(session, "raise", exception="Other")


def test_asserts_of_the_tracer(session: Session, around: Any) -> None:
    around(Exception)
    assert refused(session, "raise", exception="RuntimeError")
    assert not refused(session, "assert", exception="RuntimeError")
    assert not refused(session, "assert", exception="UnboundLocalError")
    for handler in (NameError, UnboundLocalError):
        around(handler)
        assert refused(session, "assert", exception="UnboundLocalError")


def test_clauses_are_asked_in_their_order(session: Session, around: Any) -> None:
    around((Passed(ValueError), Exception))
    assert not refused(session, "raise", exception="ValueError") and refused(session, "raise", exception="KeyError")
    around((Passed((ValueError, KeyError)), Exception))
    assert not refused(session, "raise", exception="KeyError")
    around((Exception, Passed(ValueError)))
    assert refused(session, "raise", exception="ValueError")


def test_an_outer_handler_sees_what_an_inner_one_passes(session: Session, around: Any) -> None:
    around(ValueError, Passed(ValueError))
    assert refused(session, "raise", exception="ValueError")
    around(Passed(ValueError), KeyError)
    assert not refused(session, "raise", exception="ValueError")


def test_the_error_says_what_and_by_whom(session: Session, around: Any) -> None:
    around(ArithmeticError)
    with pytest.raises(TraceError, match="whether this raises ZeroDivisionError .* where the except ArithmeticError"):
        catching.require_uncaught(session, "scalar.mod", [variable(session), variable(session)], {})
    with pytest.raises(TraceError, match="D2S229"):
        catching.require_uncaught_type(session, OverflowError)
    catching.require_uncaught_type(session, ValueError)


# -- where items end


def test_a_loop_learns_that_there_are_no_more(session: Session, around: Any) -> None:
    around(LastItem("__next__", StopIteration))
    with pytest.raises(TraceError, match="D2S266\\] whether __next__ raises StopIteration, and there is another item"):
        catching.require_uncaught(session, "raise", [], {"exception": "StopIteration"})
    around(LastItem("__getitem__", IndexError))
    assert not refused(session, "aten.index.Tensor", tensor(session, 3), [tensor(session, 1)]), "it has no such fear"
    assert refused(session, "raise", exception="IndexError") and LastItem("__next__", StopIteration)() is StopIteration
    assert catching.handlers(session) == ""


# -- where an exception is handed to


@pytest.fixture
def functions(session: Session) -> list[str]:
    session.code.functions[:] = ["a.py:1", "a.py:5", "a.py:9"]
    return session.code.functions


@pytest.mark.parametrize("depth, route", [(1, {0, 1, 2}), (2, {1, 2}), (3, {2})])
def test_the_functions_between_hand_it_on(
    depth: int, route: set[int], session: Session, around: Any, functions: list[str]
) -> None:
    around(ValueError, depth=depth)
    between = frozenset(functions[place] for place in route)
    assert catching.is_handled(session, ValueError) and not catching.is_caught(session, ValueError)
    assert not catching.is_handled(session, KeyError)
    with pytest.raises(Restart) as found:
        catching.require_uncaught(session, "raise", [], {"exception": "ValueError"})
    assert found.value.known == Findings(escaping=between)
    session.call.known = found.value.known
    assert catching.is_caught(session, ValueError) and refused(session, "raise", exception="ValueError")


def test_the_innermost_handler_catches(session: Session, functions: list[str]) -> None:
    session.exceptions.catching[:] = [Around(ValueError, 1), Around(KeyError, 2), Around(Passed(ValueError), 3)]
    session.call.known = Findings(escaping=frozenset(functions))
    assert catching.is_caught(session, ValueError) and catching.is_caught(session, KeyError)
    session.call.known = Findings(escaping=frozenset(functions[1:]))
    assert catching.is_caught(session, KeyError) and not catching.is_caught(session, ValueError)
    session.exceptions.catching.append(lambda: ValueError)  # of ours, which no function is around
    assert not catching.is_handled(session, ValueError)


# -- as text


def test_handlers_as_text(session: Session, around: Any) -> None:
    around()
    assert catching.handlers(session) == ""
    around(Exception, (Passed(ValueError), KeyError), Own, KeyError, 3, (TypeError, (OSError,)))
    assert catching.handlers(session) == "TypeError OSError KeyError !ValueError Exception"
    around(torch.linalg.LinAlgError, type("ValueError", (Exception,), {}))
    assert catching.handlers(session) == ""


def test_a_call_that_cannot_hand_it_on(session: Session) -> None:
    session.exceptions.escape, session.exceptions.escape_place = "left", session.location()
    error = catching.unsupported(session)
    assert isinstance(error, TraceError) and error.code == "D2S229" and session.exceptions.escape is None
    assert error.location == session.exceptions.escape_place
