"""Running Blocks for many rows: an interpreter, as torch's batching takes place in each call of an operator anyway."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn, Protocol

import torch

from runtime.batching.joining import MISSING, filled_in, joined
from runtime.batching.rows import Domain, Mask, Rows, each
from runtime.errors import TraceError
from runtime.executor.modes import ModeMap, Modes
from runtime.ir import UNDEF, Block, Input, Operand, Operator, Program, Variable
from runtime.ir.block import captures_within
from runtime.torch_internals import batches

Scope = dict[Variable, Any]
"""The values of Variables."""
Rule = Callable[["Machine", Operator, Scope], Sequence[Any]]
"""Runs an Operator: its results."""



class Executable(Protocol):
    """A Program made runnable."""

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """Its flat results."""
        ...


Steps = list[tuple[Operator, Rule]]

RULES: dict[str, Rule] = {}
FAMILIES: dict[str, Rule] = {}
"""How operators run for many rows, by name and by the first part of their name: ``rules.py`` fills both."""


@dataclass(eq=False)
class Plan:
    """What is known of a Program before it runs."""

    program: Program
    compile: Callable[[Program], Executable]
    """Makes a Program of one row runnable."""

    def __post_init__(self) -> None:
        self.captured = captures_within(self.program.block)
        """By identity of a Block: the Variables from outside that it reads."""
        self.modes = {on: ModeMap(Modes("on" if on else "off")) for on in (True, False)}
        self._regions: dict[tuple[int, bool, Modes], list[tuple[Modes, Steps]]] = {}
        self._own: dict[int, frozenset[Variable]] = {}
        self._alone: dict[int, Executable] = {}
        self.kept: dict[int, Any] = {}
        """By identity of an Operator: what its rule worked out once."""

    def regions(self, block: Block, modes: ModeMap, current: Modes) -> list[tuple[Modes, Steps]]:
        """The Block's Operators with their rules, those of one grad mode and autocast state together."""
        key = (id(block), modes.root.grad == "on", current)
        found = self._regions.get(key)
        if found is None:
            found = self._regions[key] = [
                (region, [(op, rule_for(op.name)) for op in ops]) for region, ops in modes.regions(block.ops, current)
            ]
        return found

    def own(self, block: Block) -> frozenset[Variable]:
        """The Variables that a Block itself assigns."""
        if id(block) not in self._own:
            self._own[id(block)] = frozenset([*block.args, *(out for op in block.ops for out in op.outputs)])
        return self._own[id(block)]

    def alone(self, op: Operator) -> Executable:
        """An Operator without Blocks as a Program of one row."""
        if id(op) not in self._alone:
            inputs = list(dict.fromkeys(op.inputs))
            block = Block(inputs, [op], list(op.outputs))
            program = Program(self.program.name, block, [Input(var, var.name) for var in inputs])
            self._alone[id(op)] = self.compile(program)
        return self._alone[id(op)]


class Machine:
    """One run of a Program for many rows."""

    def __init__(self, plan: Plan, domain: Domain) -> None:
        self.plan = plan
        self.domain = domain
        self.modes = plan.modes[torch.is_grad_enabled()]
        self.current = self.modes.root
        self.mask: Mask | None = None
        """The rows that go the way that is being run; None: all."""
        self.failed: list[Operator] = []
        """The Operators that an exception came through, the innermost first."""

    # -- values --------------------------------------------------------------------------------------------------

    def read(self, operand: Operand, scope: Scope) -> Any:
        """The value of an operand."""
        if isinstance(operand, Variable):
            return scope[operand]
        if operand is UNDEF:
            return MISSING
        if isinstance(operand, (list, tuple)):
            return type(operand)(self.read(item, scope) for item in operand)
        if isinstance(operand, dict):
            return {key: self.read(item, scope) for key, item in operand.items()}
        if isinstance(operand, slice):
            return slice(*(self.read(part, scope) for part in (operand.start, operand.stop, operand.step)))
        return operand

    def value(self, values: Sequence[Any]) -> Any:
        """The Python value with which the rows of the way that is being run go on."""
        if self.mask is not None:
            values = self.mask.choose(Rows(list(values)), values[self.mask.first])
        return self.domain.value(list(values))

    def numbers(self, tensor: torch.Tensor) -> Any:
        """The number that a tensor of one element holds."""
        if not self.domain.count:
            raise TraceError("under vmap, nothing can be decided where there are no rows", code="D2S283",
                             hint="Call it with one row at least.")
        return self.value(self.domain.numbers(tensor)) if batches.levels_of(tensor) else tensor.item()

    def flag(self, operand: Operand, scope: Scope) -> bool | Mask:
        """Whether something is true: for all rows, or for which of them."""
        found = self.read(operand, scope)
        if isinstance(found, torch.Tensor) and batches.levels_of(found):
            found = self.numbers(found) if found.numel() == 1 else bool(self.domain.row(found, 0))  # which raises
        if not isinstance(found, Rows):
            return bool(found)
        flags = self.value([bool(one) for one in found.values])
        return self.among(flags.values) if isinstance(flags, Rows) else bool(flags)

    def among(self, flags: Sequence[bool]) -> Mask:
        """Those rows of the way that is being run for which a flag is true."""
        rows = self.mask.rows if self.mask is not None else [True] * self.domain.count
        return Mask(self.domain, [bool(flag and row) for flag, row in zip(flags, rows)])

    def others(self, mask: Mask) -> Mask:
        """The other rows of the way that is being run."""
        return self.among([not flag for flag in mask.rows])

    # -- Blocks --------------------------------------------------------------------------------------------------

    def block(self, block: Block, scope: Scope) -> list[Any]:
        """Run a Block: what it yields."""
        self.operators(block, scope)
        return [self.read(value, scope) for value in block.yields]

    def under(self, mask: Mask, block: Block, scope: Scope) -> list[Any]:
        """Run a Block for some rows: what it yields. What it hands on as it found it is not filled in."""
        inside = self.filled_in(mask, [block], scope)
        with self.only(mask):
            self.operators(block, inside)
        own = self.plan.own(block)
        return [
            self.read(value, scope if isinstance(value, Variable) and value not in own else inside)
            for value in block.yields
        ]

    def filled_in(self, mask: Mask, blocks: Sequence[Block], scope: Scope) -> Scope:
        """A scope for what runs for some rows only."""
        inside = dict(scope)
        for var in dict.fromkeys(var for block in blocks for var in self.plan.captured[id(block)]):
            inside[var] = filled_in(mask, scope[var])
        return inside

    @contextlib.contextmanager
    def only(self, mask: Mask | None) -> Iterator[None]:
        """Run something for some rows."""
        before, self.mask = self.mask, mask
        try:
            yield
        finally:
            self.mask = before

    def operators(self, block: Block, scope: Scope) -> None:
        """Run a Block's Operators."""
        for modes, ops in self.plan.regions(block, self.modes, self.current):
            if modes == self.current:
                self._run(ops, scope)
                continue
            before, self.current = self.current, modes
            try:
                with modes.switch(self.modes.root)():
                    self._run(ops, scope)
            finally:
                self.current = before

    def _run(self, steps: Steps, scope: Scope) -> None:
        op = None
        try:
            for op, rule in steps:
                results = rule(self, op, scope)
                if len(op.outputs) == 1:
                    scope[op.outputs[0]] = results[0]
                else:
                    scope.update(zip(op.outputs, results))
        except BaseException:
            assert op is not None
            self.failed.append(op)
            raise

    # -- ways ----------------------------------------------------------------------------------------------------

    def joined(self, op: Operator, mask: Mask, a: Sequence[Any], b: Sequence[Any]) -> list[Any]:
        """The results of an Operator, from those of two ways."""
        return [
            joined(mask, one, other, lambda what, hint, out=out: refuse(op, out, what, hint))  # type: ignore[misc]
            for out, one, other in zip(op.outputs, a, b)
        ]

    def by_value(
        self, op: Operator, values: Sequence[Any], run: Callable[[Mask | None, list[Any]], Sequence[Any]]
    ) -> Sequence[Any]:
        """The results of an Operator that needs Python values which differ between rows: run once for each."""
        found: dict[tuple[str, ...], list[int]] = {}
        rows = [list(row) for row in zip(*(each(self.domain, value) for value in values))]
        running = self.mask.rows if self.mask is not None else [True] * self.domain.count
        for index, row in enumerate(rows):
            if running[index]:
                found.setdefault(tuple(f"{type(one).__name__} {one!r}" for one in row), []).append(index)
        if len(found) == 1:
            return run(None, rows[next(iter(found.values()))[0]])
        result: Sequence[Any] | None = None
        for indices in found.values():
            chosen = set(indices)
            mask = Mask(self.domain, [index in chosen for index in range(self.domain.count)])
            with self.only(mask):
                given = run(mask, rows[indices[0]])
            result = given if result is None else self.joined(op, mask, given, result)
        assert result is not None
        return result


def rule_for(name: str) -> Rule:
    """How an operator runs for many rows."""
    return RULES.get(name) or FAMILIES.get(name.partition(".")[0]) or FAMILIES[""]


def refuse(op: Operator, out: Variable | None, what: str, hint: str, code: str = "D2S283") -> NoReturn:
    """The located error for what cannot be done for many rows at once."""
    name = f" ('{out.hint}')" if out is not None and out.hint else ""
    raise TraceError(f"under vmap, {what}{name}", hint=hint, code=code, location=op.location)


__all__ = ["FAMILIES", "RULES", "Machine", "Plan", "Rule", "Scope", "refuse", "rule_for"]
