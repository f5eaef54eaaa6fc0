"""Numbers: tensors given as one, conversions of tensors to one, and powers whose type depends on the value."""

from __future__ import annotations

import math
import operator
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from runtime.errors import TraceError
from runtime.storage.allowed import allowed_operators
from tests.end_to_end.staged_calls import function_of
from tests.oracle import check

T = torch.tensor
_NUMBERS = ("Scalar", "Scalar?")


# -- tensors where an operator takes a number


def _example(argument: Any) -> Any:
    kind = argument.real_type.str()
    if kind in _NUMBERS:
        return 0.5
    if kind.startswith("Tensor[]"):
        return [torch.rand(2, 2), torch.rand(2, 2)]
    if kind.startswith("Tensor"):
        return torch.rand(2, 2)
    return {"int": 1, "SymInt": 1, "float": 0.5, "bool": False}.get(kind, [2, 2] if "[" in kind else None)


def fresh(value: Any) -> Any:
    """What an operator may write in place without the next call seeing it."""
    if isinstance(value, (list, tuple)):
        return type(value)(fresh(item) for item in value)
    return value.clone() if isinstance(value, torch.Tensor) else value


def calls_with_numbers() -> Iterator[tuple[str, Callable[..., Any], list[Any], dict[str, Any], int | str]]:
    """Calls of every allowed operator that takes a number, which eager accepts with 0.5, and where it stands."""
    seen: set[tuple[str, Any]] = set()
    for full in sorted(allowed_operators()):
        namespace, name, overload = full.split(".")
        function = function_of(name) if namespace == "aten" and "out" not in overload else None
        function = function if hasattr(getattr(torch.ops.aten, name, None), overload) else None  # a newer torch's list
        schema = getattr(getattr(torch.ops.aten, name), overload)._schema if function is not None else None
        for argument in schema.arguments if schema is not None else ():
            if argument.real_type.str() not in _NUMBERS:
                continue
            args: list[Any] = []
            kwargs: dict[str, Any] = {}
            place: int | str = ""
            for one in schema.arguments:
                if one is not argument and one.has_default_value():
                    continue
                if one.kwarg_only or (one is argument and one.has_default_value()):
                    kwargs[one.name] = _example(one)
                else:
                    args.append(_example(one))
                if one is argument:
                    place = one.name if one.name in kwargs else len(args) - 1
            try:
                torch.manual_seed(0)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    function(*args, **kwargs)
            except (RuntimeError, TypeError, ValueError, IndexError, NotImplementedError):
                continue
            if (name, place) not in seen:
                seen.add((name, place))
                yield full, function, args, kwargs, place


def _has_no_gradient(error: Exception) -> bool:
    text = str(error)
    return "is not implemented" in text and "derivative" in text or "inconsistent range for TensorList" in text


@pytest.mark.slow
def test_tensors_that_need_a_gradient_are_no_numbers() -> None:
    """For every operator that takes a number, what eager does with a tensor without dimensions happens."""
    counts: Counter[str] = Counter()
    wrong, refused = [], []
    for full, function, args, kwargs, place in calls_with_numbers():
        for needed in (True, False):
            number = torch.tensor(0.5, requires_grad=needed)

            def call(
                x: Any, function: Any = function, args: Any = args, kwargs: Any = kwargs, place: Any = place
            ) -> Any:
                given = [x if place == index else fresh(arg) for index, arg in enumerate(args)]
                return function(*given, **{key: x if place == key else arg for key, arg in kwargs.items()})

            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    check(call, (number,), paths=("program",))
            except TraceError as error:
                counts[f"refused {error.code}"] += 1
                refused.append(full)
            except Exception as error:
                if _has_no_gradient(error):
                    counts["eager has no gradient"] += 1
                    continue
                wrong.append(f"{full} {place} needed={needed}: {type(error).__name__} {str(error)[:150]}")
            else:
                counts["as eager"] += 1
    print(dict(counts), refused)
    assert not wrong, "\n".join(wrong)
    assert counts["as eager"] > 300


def fill_on_a_path(x, y):
    fill = y.sum()
    if x.sum() > 0:
        fill = x.sum()
    return torch.full((2,), fill)


def test_a_number_that_needs_a_gradient_on_some_paths_is_refused() -> None:
    with pytest.raises(TraceError, match="D2S239"):
        check(fill_on_a_path, (torch.ones(3, requires_grad=True), torch.ones(3)))


def clamped(x, low, high):
    return torch.clamp(x, low, high)


def test_the_overload_for_tensors_is_taken_where_eager_takes_it() -> None:
    number = torch.tensor(0.5, requires_grad=True)
    check(clamped, (torch.randn(4, requires_grad=True), number, number.detach() + 1), (torch.randn(4), T(-0.5), T(0.5)))


# -- conversions of tensors


def as_int(x):
    return int(x)


def as_float(x):
    return float(x)


def as_complex(x):
    return complex(x)


def as_index(x):
    return operator.index(x)


def as_count(x):
    return [i * 2 for i in range(x)]


def as_floor(x):
    return math.floor(x)


def as_root(x):
    return math.sqrt(x)


def as_trunc(x):
    return math.trunc(x)


def as_factorial(x):
    return math.factorial(x)


def as_position(x):
    return [10, 20, 30][x]


def as_end(x):
    return [10, 20, 30][:x]


CONVERSIONS = (as_int, as_float, as_index, as_count, as_floor, as_root, as_trunc, as_factorial, as_position)
TENSORS = (torch.ones(2), torch.ones(0), torch.ones(2, dtype=torch.long), T(2), T([2]), T(2.5), T([[1.5]]))


@pytest.mark.parametrize("function", CONVERSIONS, ids=lambda function: function.__name__)
def test_conversions_raise_what_eager_raises(function: Callable[..., Any]) -> None:
    for tensor in TENSORS:
        check(function, (tensor,))


def test_conversions_of_several_elements_to_complex_and_of_ends() -> None:
    check(as_complex, (torch.ones(2),))
    check(as_end, (torch.ones(2, dtype=torch.long),), (T(1.5),))


def int_of_some(x):
    return int(x[x > 0]) + 1


def float_of_some(x):
    return float(x[x > 0])


def count_of_some(x):
    return [i for i in range(x[x > 0])]


@pytest.mark.parametrize("function", [int_of_some, float_of_some, count_of_some])
def test_conversions_of_as_many_as_there_are(function: Callable[..., Any]) -> None:
    check(function, (T([1, 1, -1]),), (T([1, -1, -1]),), (T([-1, -1]),))


# -- powers of ints


def power(x, n):
    return 2 ** int(n) * x


def both_staged(x, n):
    return int(n) ** int(n)


def types(x, n):
    k = 2 ** int(n)
    return k + 1, type(k) is int, isinstance(k, float)


def carried_by_a_loop(x, n):
    k = 1
    for _ in range(int(n) * int(n)):
        k = k * 3 ** int(n)
    return k * x


def augmented(x, n):
    k = int(n)
    k **= int(n)
    return k


def by_function(x, n):
    return pow(3, int(n)) + x, True ** int(n), operator.pow(5, int(n))


def division_by_zero(x, n):
    return 0 ** int(n)


def counter(x, n):
    for i in range(int(n)):
        x = x + 2 ** i + 2 ** (i % 3) + 2 ** abs(int(n))
    return x


POWERS = (power, both_staged, types, carried_by_a_loop, augmented, by_function, division_by_zero)


@pytest.mark.parametrize("function", POWERS, ids=lambda function: function.__name__)
def test_powers_are_ints_or_floats(function: Callable[..., Any]) -> None:
    static = check(function, *[(torch.randn(3, requires_grad=True), T(n)) for n in (-2, 0, 2, 1, -1)])
    assert len(static.programs) == 1


def test_exponents_that_are_never_negative_need_no_branch() -> None:
    static = check(counter, *[(torch.randn(3), T(n)) for n in (3, 0, 2)])
    (program,) = static.programs
    assert not any(op.name == "cond" for op in program.block.walk())


TOLERANCES = {
    "rtol": lambda x, s: torch.allclose(x, x * 1.05, rtol=s),
    "by position": lambda x, s: torch.allclose(x, x * 1.05, s),
    "both": lambda x, s: torch.allclose(x, x * 1.05, s, s),
    "of a method": lambda x, s: x.allclose(x * 1.05, atol=s),
    "in a branch": lambda x, s: x * 2 if torch.allclose(x, x * 1.05, rtol=s) else x,
}
SPACED = {
    "linspace": lambda x, s: torch.linspace(0, s, 3),
    "from a tensor": lambda x, s: torch.linspace(s, 1, 3) * x,
    "of two tensors": lambda x, s: torch.linspace(s, s * 2, 3).requires_grad,
    "logspace": lambda x, s: torch.logspace(s, end=s * 2, steps=3),
    "that needs a gradient": lambda x, s: torch.linspace(0, s, 3, requires_grad=True) * x,
}


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("kind", TOLERANCES)
def test_tolerances(kind, needs_gradient):
    s = torch.tensor(0.1, requires_grad=needs_gradient)
    little = torch.tensor(1e-5, requires_grad=needs_gradient)
    check(TOLERANCES[kind], (torch.ones(3), s), (torch.ones(3), little), (torch.ones(3), s.detach()[None]))


@pytest.mark.parametrize("needs_gradient", [False, True])
@pytest.mark.parametrize("kind", SPACED)
def test_bounds_of_numbers_at_equal_distances_have_no_history(kind, needs_gradient):
    s = torch.tensor(0.1, requires_grad=needs_gradient)
    check(SPACED[kind], (torch.ones(3, requires_grad=True), s))
