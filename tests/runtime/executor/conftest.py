"""A second, naive executor to hold the real one against: every value in a dictionary, every update on clones."""

import builtins
import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from runtime.executor import update
from runtime.ir import UNDEF, Block, Operand, Operator, Program, Variable
from runtime.ir.parser import parse_program
from runtime.ops import aten, registry


class Naive:
    def __init__(self, program: Program) -> None:
        self.program = program

    def run(self, inputs: Sequence[Any], params: Sequence[Any] = ()) -> list[Any]:
        self.grad = torch.is_grad_enabled()
        env = dict(zip(self.program.block.args, [*inputs, *params]))
        return self.block(self.program.block, env)

    def value(self, operand: Operand, env: dict[Variable, Any]) -> Any:
        if isinstance(operand, Variable):
            return env[operand]
        if operand is UNDEF:
            return None
        if isinstance(operand, (list, tuple)):
            return type(operand)(self.value(item, env) for item in operand)
        if isinstance(operand, slice):
            return slice(*(self.value(part, env) for part in (operand.start, operand.stop, operand.step)))
        return operand

    def block(self, block: Block, env: dict[Variable, Any]) -> list[Any]:
        for op in block.ops:
            results = self.operator(op, env)
            assert len(results) == len(op.outputs), op.name
            env.update(zip(op.outputs, results))
        return [self.value(one, env) for one in block.yields]

    def operator(self, op: Operator, env: dict[Variable, Any]) -> list[Any]:
        args = [self.value(arg, env) for arg in op.args]
        if op.name == "update":
            with torch.enable_grad():
                bases = [base.clone() for base in args]
            return self.block(op.blocks[0], {**env, **dict(zip(op.blocks[0].args, bases))})
        if op.name == "cond":
            return self.block(op.blocks[0 if args[0] else 1], dict(env))
        if op.name == "switch":
            return self.block(list(op.blocks)[args[0]], dict(env))
        if op.name == "while_loop":
            test, body = op.blocks
            while self.block(test, {**env, **dict(zip(test.args, args))})[0]:
                args = self.block(body, {**env, **dict(zip(body.args, args))})
            return args
        if op.name == "assert":
            if not args[0]:
                raise getattr(builtins, op.attrs["exception"])(op.attrs.get("message"))
            return []
        kwargs = {key: self.value(one, env) for key, one in op.kwargs.items()}
        function = registry.definition(op.name).evaluate
        assert function is not None
        mode = contextlib.nullcontext() if op.grad_mode == "inherit" else torch.set_grad_enabled(op.grad_mode == "on")
        with mode:
            results = function(*args, **kwargs)
        if op.name.startswith("aten."):
            returns = aten.resolve(op.name)._schema.returns
            many = len(returns) > 1 or (
                len(returns) == 1 and str(returns[0].type).startswith("List[") and len(op.outputs) != 1
            )
            return list(results) if many else [results][: len(op.outputs)]
        return list(results) if op.name == "array.pop" else [results][: len(op.outputs)]


@pytest.fixture
def naive() -> Callable[[Program], Naive]:
    """``naive(program).run(inputs, params)``."""
    return Naive


@pytest.fixture
def program() -> Callable[[str], Program]:
    """A verified Program from the lines between the braces."""

    def make(body: str) -> Program:
        from runtime.ir.verify import verify

        made = parse_program('program "p" {\n' + body + "\n}")
        verify(made)
        return made

    return make


@pytest.fixture
def uncounted(monkeypatch):
    """A copy that is written does not count as a write of what was copied: its gradient is that of functions."""
    monkeypatch.setattr(update, "count_write", lambda base, written: None)
