"""Control flow of Programs built by hand: the path and the iterations that eager takes, with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from runtime import static
from runtime.errors import ProgramError
from runtime.static import optimizer


def test_paths_and_loops_train_as_eager() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x, k = static.data("x", [None, 4]), static.data("k", [], "int64")
        layer = nn.Linear(4, 4)
        y = static.cond(x.sum() > 0, lambda: layer(x), lambda: x * 2)
        start = torch.zeros((), dtype=torch.int64)
        count, y = static.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, torch.tanh(layer(z))), [start, y])
        z = static.switch_case(k, {0: lambda: y, 2: lambda: y * 3}, lambda: y * 0)
        z = static.case([(x.sum() > 10, lambda: z + 1), (x.sum() < -10, lambda: z - 1)], lambda: z)
        loss = z.mean()
        optimizer.SGD(0.1).minimize(loss)
    scope, executor = static.Scope(), static.Executor()
    torch.manual_seed(0)
    executor.run(startup, scope=scope)
    torch.manual_seed(0)
    eager = nn.Linear(4, 4)
    step = torch.optim.SGD(eager.parameters(), 0.1)
    for number in range(4):
        for x_now in (torch.ones(2, 4), -torch.ones(3, 4), torch.ones(4, 4) * 3, -torch.ones(2, 4) * 3):
            found = executor.run(main, feed={"x": x_now, "k": number}, fetch_list=[loss, count], scope=scope)
            made = eager(x_now) if x_now.sum() > 0 else x_now * 2
            for _ in range(3):
                made = torch.tanh(eager(made))
            made = made * {0: 1, 2: 3}.get(number, 0)
            made = made + 1 if x_now.sum() > 10 else made - 1 if x_now.sum() < -10 else made
            step.zero_grad()
            made.mean().backward()
            step.step()
            assert float(found[0]) == float(made.mean().detach()) and int(found[1]) == 3
    weight = scope.find_var("linear_0.weight")
    assert weight is not None and torch.equal(weight, eager.weight)


def test_nested_paths_writes_and_structures() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x = static.data("x", [None])
        seen = static.create_global_var([1], 0.0, name="seen")

        def inner() -> Any:
            seen.add_(1)
            return {"a": x + 1, "b": [x]}

        found = static.cond(
            x.sum() > 0, lambda: static.cond(x.max() > 2, inner, lambda: {"a": x - 1, "b": [x * 2]}),
            lambda: {"a": x.sum().reshape(1), "b": [x[:1]]},
        )  # fmt: skip
        nothing = static.cond(x.sum() > 0, lambda: seen.mul_(10))
    assert nothing is None or isinstance(nothing, object)
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    for values, a, b in (([1, 3], [2, 4], [1, 3]), ([1, 1], [0, 0], [2, 2]), ([-1, -2], [-3], [-1])):
        given = executor.run(main, feed={"x": np.array(values, "float32")}, fetch_list=[found["a"], found["b"][0]],
                             scope=scope)  # fmt: skip
        assert given[0].tolist() == a and given[1].tolist() == b
    seen_now = scope.find_var("seen")
    assert seen_now is not None and seen_now.tolist() == [100.0]


def test_a_list_that_a_loop_fills() -> None:
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        x, n = static.data("x", [2]), static.data("n", [], "int64")
        rows: list[torch.Tensor] = []

        def body(i: Any, y: Any) -> Any:
            return i + 1, torch.cat([y, (x * i).reshape(1, 2)])

        _, y = static.while_loop(lambda i, y: i < n, body, [torch.zeros((), dtype=torch.int64), x.reshape(1, 2)])
    assert rows == []
    for count in (0, 1, 4):
        feed = {"x": np.array([1, 2], "float32"), "n": count}
        (found,) = static.Executor().run(main, feed=feed, fetch_list=[y])
        assert found.tolist() == [[1, 2], *([i, 2 * i] for i in range(count))]


def relu(x: Any) -> Any:
    return np.maximum(x, 0)


def test_functions_over_arrays() -> None:
    def build(with_numpy: bool) -> Any:
        main, startup = static.Program(), static.Program()
        with static.program_guard(main, startup):
            x, label = static.data("x", [None, 4]), static.data("label", [None, 1], "int64")
            hidden = static.fc(x, 5)
            if with_numpy:
                out = main.current_block().create_var("hidden", "float32", hidden.shape)
                hidden = static.py_func(relu, hidden, out, lambda y, dy: dy * (y > 0), hidden)
            else:
                hidden = torch.relu(hidden)
            loss = static.cross_entropy(static.fc(hidden, 3, act="softmax"), label).mean()
            optimizer.SGD(0.1).minimize(loss)
        scope, executor = static.Scope(), static.Executor()
        torch.manual_seed(0)
        executor.run(startup, scope=scope)
        order = np.random.default_rng(0)
        losses = []
        for rows in (5, 1, 8):
            feed = {"x": order.normal(size=(rows, 4)).astype("float32"), "label": order.integers(0, 3, (rows, 1))}
            losses.append(float(executor.run(main, feed=feed, fetch_list=[loss], scope=scope)[0]))
        return losses, [scope.find_var(name) for name in scope.names()]

    mine, torchs = build(True), build(False)
    assert mine[0] == torchs[0] and all(torch.equal(one, other) for one, other in zip(mine[1], torchs[1]))


def test_several_tensors_in_and_out_of_a_function() -> None:
    main, startup = static.Program(), static.Program()
    seen = []

    def both(a: Any, b: Any) -> Any:
        return a * b, a + b

    def gradient(a: Any, b: Any, product: Any, total: Any, d_product: Any, d_total: Any) -> Any:
        seen.append((a.shape, product.shape))
        return d_product * b + d_total, d_product * a + d_total

    with static.program_guard(main, startup):
        a, b = (static.create_parameter([2], name=name, default_initializer=nn.init.ones_) for name in "ab")
        block = main.current_block()
        product, total = static.py_func(
            both, [a * 2, b * 3], [block.create_var("product", shape=[2]), block.create_var("total", shape=[2])],
            gradient)  # fmt: skip
        optimizer.SGD(1.0).minimize((product * 5 + total).sum())
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    found = executor.run(main, fetch_list=["product", "total", "a", "b"], scope=scope)
    assert [one.tolist() for one in found] == [[6.0, 6.0], [5.0, 5.0], [-31.0, -31.0], [-32.0, -32.0]]
    assert seen == [((2,), (2,))]


def test_a_function_that_gives_another_size_each_time() -> None:
    main = static.Program()
    with static.program_guard(main, static.Program()):
        x = static.data("x", [None])
        positive = static.py_func(lambda a: a[a > 0], x, main.current_block().create_var("p", "float32", [None]))
        total = (positive * 2).sum() + positive.shape[0]
    for values in ([1.0, -2.0, 3.0], [-1.0], []):
        given = np.array(values, "float32")
        found = static.Executor().run(main, feed={"x": given}, fetch_list=["p", total])
        assert found[0].tolist() == [v for v in values if v > 0] and float(found[1]) == sum(2 * v + 1 for v in found[0])


FUNCTIONS: dict[str, tuple[Any, Any, str]] = {
    "dtype": (lambda x: x.astype("float64"), None, "float64"), "shape": (lambda x: x[:1], None, r"shape \(1,\)"),
    "number": (lambda x: (x, x), None, "2 arrays"), "no gradient": (lambda x: x, lambda x, y, dy: None, "None"),
    "gradients": (lambda x: x, lambda x, y, dy: (dy, dy), "2 gradients"),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_a_function_may_not_give(name: str) -> None:
    func, back, message = FUNCTIONS[name]
    main, startup = static.Program(), static.Program()
    with static.program_guard(main, startup):
        w = static.create_parameter([2], name="w", default_initializer=nn.init.ones_)
        y = static.py_func(func, w * 1, main.current_block().create_var("y", "float32", [2]), back)
        if back is not None:
            optimizer.SGD(1.0).minimize(y.sum())
    scope, executor = static.Scope(), static.Executor()
    executor.run(startup, scope=scope)
    with pytest.raises(ProgramError, match=message):
        executor.run(main, fetch_list=["y"], scope=scope)
    held = scope.find_var("w")
    assert held is not None and held.tolist() == [1.0, 1.0]
