"""A user's pass: where it runs, what it may do, and what it is told when it breaks a Program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

import dy2static
import runtime
from runtime.errors import Dy2StaticError
from runtime.ir import Operator, Program
from runtime.ir.walk import copy_program
from runtime.passes import BuildStrategy, Registered, chosen, register_pass

X = torch.tensor([-1.0, 2.0])


def relu_as_abs(program: Program) -> None:
    """Every relu is an abs."""
    for op in program.block.walk():
        if op.name == "aten.relu.default":
            op.name = "aten.abs.default"


def f(x):
    if x.sum() > 0:
        x = torch.relu(x) + 1
    return torch.relu(x)


@pytest.fixture
def registered() -> Iterator[Callable[..., Registered]]:
    """``register_pass``, undone at the end."""
    made: list[Registered] = []

    def register(*args: Any, **kwargs: Any) -> Registered:
        made.append(register_pass(*args, **kwargs))
        return made[-1]

    yield register
    for one in made:
        one.remove()


def test_programs_from_now_on_go_through_it(registered: Callable[..., Registered]) -> None:
    before = dy2static.to_static(f)
    assert torch.equal(before(X), torch.tensor([1.0, 3.0]))
    handle = registered(relu_as_abs)
    after = dy2static.to_static(f)
    assert torch.equal(after(X), torch.tensor([2.0, 3.0])) and torch.equal(before(X), torch.tensor([1.0, 3.0]))
    x = X.clone().requires_grad_()
    after(x).sum().backward()
    assert x.grad is not None and x.grad.tolist() == [-1.0, 1.0]
    handle.remove()
    handle.remove()
    assert torch.equal(dy2static.to_static(f)(X), torch.tensor([1.0, 3.0]))
    assert runtime.register_pass is register_pass


def names() -> list[str]:
    return [one.name for one in chosen(BuildStrategy())]


def test_places(registered: Callable[..., Registered]) -> None:
    registered(relu_as_abs, before="identities")
    registered(lambda program: None, name="second", after="relu_as_abs")
    registered(lambda program: None, name="last")
    registered(lambda program: None, name="of one that is off", before="fold_conv_bn")
    assert names() == ["relu_as_abs", "second", "identities", "constants", "common_subexpressions", "dead_code", "scan",
                       "last", "of one that is off"]  # fmt: skip


def test_another_program_may_be_given(registered: Callable[..., Registered]) -> None:
    def another(program: Program) -> Program:
        copy = copy_program(program)
        relu_as_abs(copy)
        return copy

    registered(another)
    assert torch.equal(dy2static.to_static(f)(X), torch.tensor([2.0, 3.0]))


def unknown_operator(program: Program) -> None:
    next(op for op in program.block.walk() if op.name == "aten.relu.default").name = "aten.wibble.default"


def unread_variable(program: Program) -> None:
    program.block.ops.insert(0, Operator("aten.relu.default", (program.block.ops[-1].outputs[0],), outputs=()))


def without_inputs(program: Program) -> Program:
    copy = copy_program(program)
    copy.inputs.clear()
    return copy


@pytest.mark.parametrize(
    ("rewrite", "message"),
    [(unknown_operator, "'unknown_operator' broke"), (unread_variable, "'unread_variable' broke"),
     (without_inputs, "other inputs"), (lambda program: 3, "gives a int")],
)  # fmt: skip
def test_a_pass_that_breaks_a_program(registered: Callable[..., Registered], rewrite: Any, message: str) -> None:
    registered(rewrite)
    with pytest.raises(Dy2StaticError, match=message):
        dy2static.to_static(f)(X)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"before": "wibble"}, "no pass 'wibble'"), ({"before": "scan", "after": "scan"}, "one place"),
     ({"name": "scan"}, "already")],
)  # fmt: skip
def test_what_cannot_be_registered(options: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        register_pass(relu_as_abs, **options)
    assert "relu_as_abs" not in names()
