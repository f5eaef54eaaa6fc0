"""Where the interpreter writes results, before and after each option; what they are stays, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import BuildStrategy, InputSpec, to_static
from runtime.executor import ownership, reuse
from runtime.ir.printer import print_program


def add_act(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.tanh(x * 2 + y) * 3


def relu_depthwise(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.conv2d(torch.relu(x + 1), w, groups=3) + torch.relu(x + 2).sum()


def written(x: torch.Tensor) -> torch.Tensor:
    out = torch.zeros(4)
    for i in range(4):
        out[i] = x[i] * i
    return out


def summed(x: torch.Tensor) -> torch.Tensor:
    return (x * 2 + x.sin() + x.exp() + x.tanh()).sum()


def in_place(static: Any, *args: Any) -> list[str]:
    """The operators that write in the place of an operand, without gradients."""
    with torch.no_grad():
        static(*args)
    return _methods(static.specialization().ready.runner.plain)


def _methods(executable: Any) -> list[str]:
    """Its pointwise operators that do."""
    decisions = _decisions(executable)
    return [op.name.split(".")[1] for op in executable.program.block.walk()
            if op.name in reuse.POINTWISE and decisions.get((id(op), 0), "NO") != "NO"]  # fmt: skip


def _decisions(executable: Any) -> dict[Any, str]:
    made = ownership.analyse(executable.program, executable._live, grad=False, memory=executable._memory,
                             backward=executable._consuming)  # fmt: skip
    return {key: owner.name for key, owner in made.donated.items()}


X, Y = torch.randn(5), torch.randn(5)
IMAGE, KERNEL = torch.randn(1, 3, 6, 6), torch.randn(3, 1, 3, 3)


@pytest.mark.parametrize(("function", "args", "options", "expected"), [
    (add_act, (X, Y), {}, ["add", "tanh", "mul"]),
    (add_act, (X, Y), {"enable_inplace": False}, []),
    (add_act, (X, Y), {"enable_inplace": False, "fuse_elewise_add_act_ops": True}, ["tanh"]),
    (relu_depthwise, (IMAGE, KERNEL), {}, ["relu", "relu"]),
    (relu_depthwise, (IMAGE, KERNEL), {"enable_inplace": False}, []),
    (relu_depthwise, (IMAGE, KERNEL), {"enable_inplace": False, "fuse_relu_depthwise_conv": True}, ["relu"]),
])  # fmt: skip
def test_pointwise_operators(
    function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, bool], expected: list[str]
) -> None:
    static = to_static(function, build_strategy=BuildStrategy(**options), backend="interpreter")
    assert in_place(static, *args) == expected
    with torch.no_grad():
        assert torch.equal(static(*args), function(*args))


@pytest.mark.parametrize(("options", "some"), [
    ({}, True), ({"enable_inplace": False}, False), ({"enable_inplace": False, "enable_addto": True}, True),
])  # fmt: skip
def test_gradients_are_added_up_in_place(options: dict[str, bool], some: bool) -> None:
    static = to_static(summed, build_strategy=BuildStrategy(**options), backend="interpreter")
    x = torch.randn(4, requires_grad=True)
    static(x).backward()
    (halves,) = static.specialization().ready.runner._halves.values()  # type: ignore[union-attr]
    (stage,) = halves.stages
    assert ("add" in _methods(stage.backward)) is some
    if options.get("enable_addto"):
        assert set(_methods(stage.backward)) == {"add"}
        assert _methods(halves.forward) == []
    expected = x.detach().clone().requires_grad_()
    summed(expected).backward()
    torch.testing.assert_close(x.grad, expected.grad)


def test_what_is_written_is_copied_or_not() -> None:
    lines, x = {}, torch.randn(4)
    for option in (True, False):
        static = to_static(written, build_strategy=BuildStrategy(memory_optimize=option), backend="interpreter")
        with torch.no_grad():
            assert torch.equal(static(x), written(x))
        executable: Any = static.specialization().ready.runner.plain  # type: ignore[union-attr]
        updates = [op for op in executable.program.block.walk() if op.name == "update"]
        decisions = {_decisions(executable)[id(op), 0] for op in updates}
        assert decisions == ({"YES"} if option else {"NO"})
        lines[option] = len([line for line in executable.source(grad=False).splitlines() if " = f" in line])
    assert lines[False] == lines[True] + len(updates), "one copy for each write"


def loop(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    """Has work for each pass."""
    rows = []
    for row in x:
        rows.append(row * 2)
    unread = x.sum() * 3
    k = int(n) + 0
    if 1 > 0:
        k = (int(n) + 1) * (int(n) + 1)
    return torch.stack(rows) * k


@pytest.mark.parametrize("name", ["identities", "constants", "common_subexpressions", "dead_code", "scan"])
@pytest.mark.parametrize("backend", ["interpreter", "c"])
def test_results_without_a_pass(name: str, backend: str) -> None:
    options: dict[str, Any] = {name: False}
    spec = [InputSpec([None, 3], "float32"), InputSpec([], "int64")]
    static = to_static(loop, spec, build_strategy=BuildStrategy(**options), backend=backend)
    usual = to_static(loop, spec, backend=backend)
    x, n = torch.randn(7, 3, requires_grad=True), torch.tensor(2)
    result = static(x, n)
    torch.testing.assert_close(result, loop(x, n))
    usual(x, n)
    (got,) = torch.autograd.grad(result.sum(), [x])
    torch.testing.assert_close(got, torch.full_like(x, 18.0))
    without, with_it = (print_program(one.program) for one in (static, usual))
    if name not in ("identities", "constants"):  # the trace folds what there is of these itself
        assert without != with_it
    assert ("scan(" in without) is (name != "scan") and "scan(" in with_it


def test_the_strategy_is_the_one_of_the_conversion() -> None:
    strategy = BuildStrategy()
    static = to_static(add_act, build_strategy=strategy, backend="interpreter")
    strategy.enable_inplace = False
    assert in_place(static, X, Y) == ["add", "tanh", "mul"]
