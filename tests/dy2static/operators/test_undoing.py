"""What code that is not converted did in a trace that failed is undone, or was not done."""

from __future__ import annotations

import array
import io
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import EagerWarning, not_to_static, to_static

X = torch.ones(3)


@pytest.fixture(autouse=True)
def told() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EagerWarning)
        yield


def array_of_numpy() -> tuple[Any, Any]:
    held = np.zeros(2)
    return held, lambda: held.__iadd__(1)


def view_of_array() -> tuple[Any, Any]:
    held = np.zeros((2, 2))[:, 1]
    return held, lambda: held.fill(held[0] + 1)


def byte_array() -> tuple[Any, Any]:
    held = bytearray()
    return held, lambda: held.extend(b"x")


def array_of_python() -> tuple[Any, Any]:
    held = array.array("i", [1])
    return held, lambda: held.append(2)


def memory_view() -> tuple[Any, Any]:
    held = memoryview(bytearray(b"ab"))

    def change() -> None:
        held[0] = (held[0] + 1) % 256

    return held, change


def text_file() -> tuple[Any, Any]:
    held = io.StringIO()
    return held, lambda: held.write("x")


def iterator() -> tuple[Any, Any]:
    held = iter(range(10))
    return held, lambda: next(held)


def plain_list() -> tuple[Any, Any]:
    held: list[int] = []
    return held, lambda: held.append(1)


def generators() -> tuple[Any, Any]:
    random.seed(0)
    np.random.seed(0)
    return None, lambda: (random.random(), np.random.rand())


def seen(held: Any) -> Any:
    if held is None:
        return random.getstate(), np.random.get_state()[1].tolist()
    if isinstance(held, io.StringIO):
        return held.getvalue()
    if isinstance(held, memoryview):
        return bytes(held)
    return list(held)


@pytest.mark.parametrize("fails", ["after", "inside", "nothing"])
@pytest.mark.parametrize("make", [
    array_of_numpy, view_of_array, byte_array, array_of_python, memory_view, text_file, iterator, plain_list,
    generators,
])  # fmt: skip
def test_it_happens_once_for_each_call(make: Any, fails: str) -> None:
    def run(convert: bool) -> tuple[Any, Any]:
        held, change = make()

        @not_to_static
        def note(x: torch.Tensor, value: Any) -> Any:
            change()
            return float(x.numpy()[0]) if fails == "inside" else 2.0

        def f(x: torch.Tensor) -> torch.Tensor:
            factor = note(x, held)
            return x * factor * (float(x.numpy()[0]) if fails == "after" else 1.0)

        function = to_static(f, full_graph=False) if convert else f
        results = [function(X * n).tolist() for n in (1, 2, 3)]
        return results, seen(held)

    assert run(True) == run(False)
