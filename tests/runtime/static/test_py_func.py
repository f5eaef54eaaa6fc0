"""What a function over arrays does with its arrays is its own affair: nothing else sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from runtime import static
from runtime.errors import ProgramError
from runtime.static import optimizer

Array = np.ndarray[Any, Any]
X = np.array([[-1.0, 2.0, -3.0]], dtype="float32")
_BUFFER = np.zeros((1, 3), "float32")


def writes_its_argument(a: Array) -> Array:
    return np.maximum(a, 0, out=a)


def reuses_a_buffer(a: Array) -> Array:
    _BUFFER[:] = np.maximum(a, 0)
    return _BUFFER


def writes_through_torch(a: Array) -> Array:
    torch.from_numpy(a).clamp_(min=0)
    return a


def keeps_and_writes_later() -> Callable[[Array], Array]:
    kept: list[Array] = []

    def func(a: Array) -> Array:
        for one in kept:
            one.fill(99)
        made = np.maximum(a, 0)
        kept.extend([a, made])
        return made

    return func


FUNCTIONS: dict[str, Callable[[], Callable[[Array], Array]]] = {
    "writes its argument": lambda: writes_its_argument, "reuses a buffer": lambda: reuses_a_buffer,
    "writes through torch": lambda: writes_through_torch, "keeps and writes later": keeps_and_writes_later,
    "a view": lambda: lambda a: np.maximum(a, 0)[::-1][::-1], "Fortran's order": lambda: lambda a: np.asfortranarray(
        np.maximum(a, 0)),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_nothing_else_changes(name: str) -> None:
    func = FUNCTIONS[name]()
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 3])
        w = static.create_parameter([1, 3], name="w", default_initializer=lambda w: nn.init.constant_(w, -2.0))
        hidden = x * 1
        made = [static.py_func(func, one, main.current_block().create_var(f"o{n}", "float32", [-1, 3]))
                for n, one in enumerate((x, hidden, hidden * -2, w))]  # fmt: skip
        fetched = [*made, sum(made), x + 0, hidden + 0, w + 0]
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    given = X.copy()
    plus = np.maximum(X, 0)
    for _ in range(3):
        found = executor.run(main, feed={"x": given}, fetch_list=fetched, scope=scope)
        minus, zero = np.maximum(X * -2, 0), np.zeros((1, 3), "float32")
        expected = [plus, plus, minus, zero, 2 * plus + minus, X, X, np.full((1, 3), -2.0)]
        for one, other in zip(found, expected, strict=True):
            assert np.array_equal(one, other)
        w_now = scope.find_var("w")
        assert np.array_equal(given, X) and w_now is not None and w_now.tolist() == [[-2.0] * 3]


def test_what_is_given_back_may_be_written_in_the_program() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        hidden = static.data("x", [None, 3]) * 1
        made = static.py_func(lambda a: a, hidden, main.current_block().create_var("o", "float32", [-1, 3]))
        made.add_(100.0)
        fetched = [made, hidden + 0]
    found = static.Executor().run(main, feed={"x": X}, fetch_list=fetched)
    assert np.array_equal(found[0], X + 100) and np.array_equal(found[1], X)


def test_backward_functions_that_write_their_arrays() -> None:
    buffer = np.zeros((1, 3), "float32")

    def back(x: Array, y: Array, dy: Array) -> Array:
        np.multiply(dy, x > 0, out=dy)
        x.fill(7)
        y.fill(7)
        buffer[:] = dy
        return buffer

    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None, 3])
        w = static.create_parameter([3], name="w", default_initializer=nn.init.ones_)
        total = x * 0
        for number, factor in enumerate((1, -1)):
            out = main.current_block().create_var(f"o{number}", "float32", [-1, 3])
            total = total + factor * static.py_func(writes_its_argument, x * w * factor, out, back)
        _, ((_, grad),) = optimizer.SGD(0.0).minimize(total.sum())
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    for _ in range(2):
        (found,) = executor.run(main, feed={"x": X}, fetch_list=[grad], scope=scope)
        assert np.array_equal(found, X[0])  # relu(y) - relu(-y) is y


NO_TENSORS: dict[str, Callable[[Array], Any]] = {
    "text": lambda a: np.array(["a"]), "objects": lambda a: np.array([object()]), "None": lambda a: None,
    "rows of two lengths": lambda a: [[1.0], [1.0, 2.0]],
}  # fmt: skip


@pytest.mark.parametrize("name", NO_TENSORS)
def test_what_is_no_tensor(name: str) -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        out = main.current_block().create_var("o", "float32", [-1, 3])
        made = static.py_func(NO_TENSORS[name], static.data("x", [None, 3]), out)
    with pytest.raises(ProgramError, match="<lambda> gives"):
        static.Executor().run(main, feed={"x": X}, fetch_list=[made])
