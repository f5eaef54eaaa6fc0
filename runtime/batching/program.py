"""A Program made ready to run for many rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from runtime.batching import rules
from runtime.batching.joining import MISSING
from runtime.batching.machine import Executable, Machine, Plan
from runtime.batching.rows import Domain
from runtime.errors import TraceError
from runtime.executor import traceback
from runtime.ir import Program
from runtime.ir.definition import definition_of

assert rules, "imported for the rules that it names"


class BatchedProgram:
    """Runs a Program of one row under ``torch.vmap``. Any number of threads may run it at once."""

    def __init__(self, program: Program, compile: Callable[[Program], Executable]) -> None:
        self.plan = Plan(program, compile)
        self._draws = any(definition_of(op.name).random for op in program.block.walk())

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> tuple[list[Any], Domain]:
        """The flat results, some of them ``Rows``, and which rows there are.

        Raises:
            TraceError: What has no meaning for many rows at once; else whatever the operators raise.
        """
        arguments = [*inputs, *params]
        domain = Domain.of(arguments, random=self._draws)
        machine = Machine(self.plan, domain)
        block = self.plan.program.block
        try:
            values = machine.block(block, dict(zip(block.args, arguments)))
        except BaseException as error:
            if isinstance(error, TraceError) and machine.failed:
                error.locate(machine.failed[0].location)
            raise traceback.locate_at(error, machine.failed)  # noqa: B904  # the same exception
        return [None if value is MISSING else value for value in values], domain


__all__ = ["BatchedProgram"]
