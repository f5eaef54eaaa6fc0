"""What code that is not converted changes before it raises an exception that the user's code catches."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import not_to_static, to_static

NOTES: list[int] = []


class Held:
    """What is changed outside."""

    value: int = 0


HELD = Held()


@not_to_static
def changing(tensor: torch.Tensor, items: list[Any], held: Any) -> None:
    tensor.note = 3  # type: ignore[attr-defined]
    items.append(7)
    held.value = held.value + 5
    raise ValueError("no")


def of_a_result(x: Any) -> Any:
    y, items, held = x * 2, [], Held()
    try:
        changing(y, items, held)
    except ValueError:
        pass
    return y, getattr(y, "note", None), items, held.value


def of_an_argument(x: Any) -> Any:
    try:
        changing(x, [], Held())
    except ValueError:
        return x * 2
    return x


def outside(x: Any) -> Any:
    try:
        changing(x, NOTES, HELD)
    except ValueError:
        pass
    return x * 2


def on_a_path(x: Any) -> Any:
    if x.sum() > 0:
        try:
            changing(x, NOTES, HELD)
        except ValueError:
            pass
    return x * 2


def written(x: Any) -> Any:
    y = x * 2
    try:
        writing(y)
    except ValueError:
        y = y + 1
    return y


@not_to_static
def writing(tensor: torch.Tensor) -> None:
    tensor.add_(1)
    raise ValueError


@pytest.mark.parametrize("function", [of_a_result, of_an_argument, outside, on_a_path, written])
def test_as_eager(function: Any) -> None:
    def seen(called: Any) -> list[Any]:
        NOTES.clear()
        HELD.value = 0
        found = []
        for number in (1, -1, 1):
            x = torch.ones(3) * number
            result = called(x)
            tensor = result[0] if isinstance(result, tuple) else result
            found.append((repr(result), getattr(tensor, "note", None), repr(x), getattr(x, "note", None),
                          list(NOTES), HELD.value))
        return found

    assert seen(to_static(function)) == seen(function)
