"""Which of the tensors that a recursive function is given, or gives, are one object."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from runtime.errors import Dy2StaticError
from tests.oracle import check, check_saved

Tensor = torch.Tensor


def both(t: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    if d.abs().sum() < 1:
        z = t * 1
        return z, z
    return both(t, d / 2)


def two(t: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    if d.abs().sum() < 1:
        return t * 1, t * 2
    a, b = two(t, d / 2)
    return (a, b) if a is not b else (a, a)


def held(t: Tensor, d: Tensor) -> dict[str, Any]:
    if d.abs().sum() < 1:
        z = t * 1
        return {"a": z, "l": [z, t * 2]}
    return held(t, d / 2)


def some(t: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    if d.abs().sum() < 1:
        z = t * 1
        if t.sum() > 0:
            return z, z
        return z, t * 2
    return some(t, d / 2)


def asked(a: Any, b: Any) -> Any:
    return (a is b, id(a) == id(b), len({a, b}), b in {a: 1}, len(dict.fromkeys([a, b])), any(b is q for q in [a]),
            {a: 1}.get(b, 2))  # fmt: skip


def is_of_results(x: Tensor) -> Any:
    return asked(*both(x, x)), asked(*two(x, x))


def is_of_held(x: Tensor) -> Any:
    r = held(x, x)
    return asked(r["a"], r["l"][0]), asked(r["a"], r["l"][1]), r


def one_of_two_calls(x: Tensor) -> Any:
    a, b = both(x, x)
    c, _ = both(x, x)
    return asked(a, c), asked(a, b)


def inside(t: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    if d.abs().sum() < 1:
        return t * 3, t * 3
    a, b = inside(t, d / 2)
    return (a * 1, a * 2) if a is b else (a * 3, b * 4)


def inside_same(t: Tensor, d: Tensor) -> tuple[Tensor, Tensor]:
    if d.abs().sum() < 1:
        return t, t
    a, b = inside_same(t * 1, d / 2)
    return (a, a) if a is b else (a, b * 2)


def is_inside(x: Tensor) -> Any:
    return inside(x, x), inside_same(x * 1, x)


def parameters(x: Tensor) -> Any:
    def go(t: Tensor, u: Tensor, d: Tensor) -> Any:
        if d.abs().sum() < 1:
            return (1 if t is u else 2), (3 if t is x else 4), len({t, u}), t
        return go(u * 1, t * 1, d / 2)

    def one(t: Tensor, u: Tensor, d: Tensor) -> Any:
        if d.abs().sum() < 1:
            return asked(t, u), t
        z = t * 2
        return one(z, z, d / 2)

    z = x * 2
    return go(x * 1, x * 2, x), one(z, z, x)


def given_out(x: Tensor) -> Any:
    return both(x, x), held(x, x), two(x, x)


ACCEPTED = [is_of_results, is_of_held, one_of_two_calls, is_inside, parameters, given_out]


def is_of_some(x: Tensor) -> Any:
    a, b = some(x, x)
    return a is b


def id_of_some(x: Tensor) -> Any:
    a, b = some(x, x)
    return id(a) == id(b)


def set_of_some(x: Tensor) -> Any:
    return len(set(some(x, x)))


def key_of_some(x: Tensor) -> Any:
    a, b = some(x, x)
    return b in {a: 1}


def keys_of_some(x: Tensor) -> Any:
    return len(dict.fromkeys(some(x, x)))


def two_then_one(x: Tensor) -> Any:
    def go(t: Tensor, u: Tensor, d: Tensor) -> Any:
        if d.abs().sum() < 1:
            return (1 if t is u else 2), t
        return go(t, t, d / 2)

    return go(x * 1, x * 2, x)


def one_then_two(x: Tensor) -> Any:
    def go(t: Tensor, u: Tensor, d: Tensor) -> Any:
        if d.abs().sum() < 1:
            return len({t, u}), t
        return go(t * 1, u * 1, d / 2)

    z = x * 1
    return go(z, z, x)


def of_the_function_around(x: Tensor) -> Any:
    def go(t: Tensor, d: Tensor) -> Any:
        if d.abs().sum() < 1:
            return 1 if t is x else 2
        return go(t * 1, d / 2)

    return go(x, x)


def made_before(x: Tensor) -> Any:
    z = x * 2

    def go(t: Tensor, d: Tensor) -> Any:
        if d.abs().sum() < 1:
            return {z: 1}.get(t, 2)
        return go(z if d.sum() > 2 else t * 1, d / 2)

    return go(x * 3, x)


def of_an_argument(x: Tensor) -> Any:
    def go(t: Tensor, d: Tensor) -> Tensor:
        return t if d.abs().sum() < 1 else go(t * 1, d / 2)

    z = x * 1
    return go(z, x) is z


REFUSED = [is_of_some, id_of_some, set_of_some, key_of_some, keys_of_some, two_then_one, one_then_two,
           of_the_function_around, made_before, of_an_argument]  # fmt: skip


def inputs() -> list[Any]:
    return [(torch.tensor(row),) for row in ([3.0, 4.0, 5.0], [0.1, 0.2, 0.3], [-3.0, -9.0, 0.5])]


@pytest.mark.parametrize("needs", [False, True], ids=["without gradients", "with gradients"])
@pytest.mark.parametrize("function", ACCEPTED, ids=lambda f: f.__name__)
def test_the_same_in_all_calls(function: Callable[[Tensor], Any], needs: bool, tmp_path: Path) -> None:
    calls = [(call[0].requires_grad_(needs),) for call in inputs()]
    converted = check(function, *calls)
    check_saved(function, converted, tmp_path / "f", *calls)


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_another_in_some_calls(function: Callable[[Tensor], Any]) -> None:
    with pytest.raises(Dy2StaticError) as raised:
        dy2static.to_static(function)(*inputs()[0])
    assert raised.value.code == "D2S264" and raised.value.location is not None
