"""The verifier: is a Program well formed?

``verify(program)`` returns nothing or raises ProgramError with the rule's name, what is wrong, and the Operator with
its neighbours. What an Operator alone must satisfy hangs on its definition (``runtime.ops``); here are the rules about
Variables, Blocks and the Program as a whole.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, NoReturn

import torch

from runtime.errors import ProgramError
from runtime.ir.assume import symbols_of
from runtime.ir.block import Block
from runtime.ir.constants import MadeByRuns, spell_constant
from runtime.ir.definition import OpDefinition, definition_of
from runtime.ir.flow import Kind
from runtime.ir.inference import check_flow, check_types, fits
from runtime.ir.location import Location
from runtime.ir.operator import Operator, leaves
from runtime.ir.printer import print_operand, print_operator, print_type
from runtime.ir.program import Program
from runtime.ir.tree import tree_leaves
from runtime.ir.types import TensorType
from runtime.ir.variable import UNDEF, Variable

_NEIGHBOURS = 2


def verify(program: Program, results_used: Collection[int] | None = None, *, live: bool = False) -> None:
    """Check a Program. Errors raised: ProgramError naming the rule that is broken, and where.

    ``results_used`` are results that the caller needs though they are neither in the output nor written: with it, every
    result must be needed. A Program alone does not know what else its caller does with them. ``live``: operands may be
    objects of this process, such as the caller's random generators, which no file holds.
    """
    _Verifier(program, results_used, live).run()


class _Verifier:
    def __init__(self, program: Program, results_used: Collection[int] | None, live: bool) -> None:
        self.program = program
        self.live = live
        self.results_used = results_used
        self.names: dict[str, Variable] = {}
        self.visible: set[int] = set()
        self.assigned: set[int] = set()
        self.path: list[str] = []
        self.named: dict[str, Operator] = {}
        """The Operators around whose Blocks may be run again, by name."""

    def fail(self, rule: str, message: str, around: str = "", location: Location | None = None) -> NoReturn:
        where = " / ".join([f"program {self.program.name!r}", *self.path])
        text = f"rule {rule!r}: {message}\n  in {where}"
        raise ProgramError(text + (f":\n{around}" if around else ""), location=location)

    def run(self) -> None:
        program = self.program
        args = [item.var for item in program.inputs] + [param.var for param in program.params]
        if [id(arg) for arg in args] != [id(arg) for arg in program.block.args]:
            self.fail("program-args", "the main block's arguments must be the inputs, then the parameters")
        self.check_names()
        self.check_assumes()
        self.block(program.block, writable=None, undef=False)
        self.check_results()

    # --- the Program

    def check_names(self) -> None:
        names: set[str] = set()
        for item in self.program.inputs:
            if item.name in names:
                self.fail("input-name", f"two inputs are called {item.name!r}")
            names.add(item.name)
        names = set()
        for param in self.program.params:
            if param.name in names:
                self.fail("param-name", f"two parameters are called {param.name!r}")
            names.add(param.name)
            if param.kind not in ("parameter", "buffer", "constant"):
                self.fail("param-kind", f"{param.name!r} must be a parameter, buffer or constant, not {param.kind!r}")

    def check_assumes(self) -> None:
        ranks = {item.name: item.var.type for item in self.program.inputs}
        for assume in self.program.assumes:
            try:
                read = symbols_of(assume.expr)
            except ProgramError as error:
                self.fail("assume", error.summary, location=assume.location)
            for symbol in sorted(read - assume.symbols.keys()):
                self.fail("assume", f"{assume.expr!r} reads {symbol}, and nothing says where it comes from",
                          location=assume.location)  # fmt: skip
            for symbol, (name, dim) in assume.symbols.items():
                type_ = ranks.get(name)
                if type_ is None:
                    self.fail("assume", f"{symbol} is a size of {name!r}, which is no input", location=assume.location)
                if not isinstance(type_, TensorType) or (type_.shape is not None and not 0 <= dim < len(type_.shape)):
                    self.fail("assume", f"{symbol} is dimension {dim} of {name!r}, which has no such dimension",
                              location=assume.location)  # fmt: skip

    def check_results(self) -> None:
        program, count = self.program, len(self.program.block.yields)
        used = set(self.results_used or ())
        for leaf in tree_leaves(program.output):
            if not 0 <= leaf.index < count:
                self.fail("output", f"the output refers to result ${leaf.index}, but there are {count} results")
            used.add(leaf.index)
        targets = {id(var): var for var in program.block.args}
        written: set[int] = set()
        for write in program.writes:
            if id(write.target) not in targets:
                self.fail("writes", f"%{write.target.name} is written, but is no input or parameter")
            if id(write.target) in written:
                self.fail("writes", f"%{write.target.name} is written twice")
            if not 0 <= write.index < count:
                self.fail("writes", f"%{write.target.name} is written with result {write.index} of {count}")
            if not isinstance(program.block.yields[write.index], Variable):
                self.fail("writes", f"%{write.target.name} is written with a constant")
            written.add(id(write.target))
            used.add(write.index)
        for index in range(count if self.results_used is not None else 0):
            if index not in used:
                self.fail("output", f"result {index} is neither in the output nor written")

    # --- Blocks

    def block(self, block: Block, writable: set[int] | None, undef: bool) -> None:
        """Check a Block. ``writable``: in an update's Block, the Variables whose memory may be written."""
        before = set(self.visible)
        for arg in block.args:
            self.assign(arg, _Site(self, block, None))
        for op in block.ops:
            self.operator(op, _Site(self, block, op), writable)
        site = _Site(self, block, None)
        for value in block.yields:
            if value is UNDEF:
                if not undef:
                    site.fail("undef", "undef is yielded where a value is needed")
            elif isinstance(value, (list, tuple, dict)):
                site.fail("yield", f"a yield must be a Variable or a constant, not {print_operand(value)}")
            else:
                self.operand(value, site, "yields")
        self.visible = before

    def assign(self, var: Variable, site: _Site) -> None:
        if id(var) in self.assigned:
            site.fail("assigned-once", f"%{var.name} is assigned twice")
        other = self.names.setdefault(var.name, var)
        if other is not var:
            site.fail("unique-name", f"two Variables are called %{var.name}")
        if isinstance(var.type, TensorType) and var.type.device is not None and var.type.device.type == "cpu":
            site.fail("device", f"%{var.name} is on the CPU, of which types say nothing")
        self.assigned.add(id(var))
        self.visible.add(id(var))

    def operand(self, value: Any, site: _Site, verb: str = "reads") -> None:
        for var in leaves(value):
            if id(var) not in self.visible:
                reason = "outside the block that assigns it" if id(var) in self.assigned else "before it is assigned"
                site.fail("dominance", f"{verb} %{var.name} {reason}")
        for leaf in _constants(value):
            if leaf is UNDEF:
                site.fail("undef", "undef may only be yielded")
            if not self.live and spell_constant(leaf) is None and not isinstance(leaf, MadeByRuns):
                kind = type(leaf)
                site.fail("operand", f"an object of type {kind.__module__}.{kind.__qualname__} is no operand")

    # --- Operators

    def operator(self, op: Operator, site: _Site, writable: set[int] | None) -> None:
        for value in (*op.args, *op.kwargs.values()):
            if value is not UNDEF:
                self.operand(value, site)
        for value in op.attrs.values():
            if any(True for _ in leaves(value)):
                site.fail("attrs", "an attribute holds a Variable")
            self.operand(value, site)
        self.check_modes(op, site)
        try:
            definition = definition_of(op.name)
        except ProgramError as error:
            site.fail("operator", error.summary)
        if not definition.undef_args and any(value is UNDEF for value in (*op.args, *op.kwargs.values())):
            site.fail("undef", "undef may only be yielded")
        definition.verify(op, site.fail)
        check_types(op, site.fail)
        self.check_writes(op, definition, site, writable)
        self.check_again(op, definition, site)
        name = definition.flow.named(op)
        if name is not None:
            self.named[name] = op
        for position, block in enumerate(op.blocks):
            self.path.append(_block_name(op, position))
            inner = {id(arg) for arg in block.args} if definition.flow.kind is Kind.INLINE else None
            self.block(block, inner, definition.undef_yields)
            self.path.pop()
        if name is not None:
            del self.named[name]
        for out in op.outputs:
            self.assign(out, site)

    def check_again(self, op: Operator, definition: OpDefinition, site: _Site) -> None:
        """What runs a Block again stands inside it, gives it what it takes, and has what it gives."""
        own, name = definition.flow.named(op), definition.again(op)
        if own is not None and own in self.named:
            site.fail("recursion", f"a {op.name} called {own!r} is inside another one of that name")
        if name is None:
            return
        target = self.named.get(name)
        if target is None:
            site.fail("recursion", f"{op.name} is in no recursion called {name!r}")
        args = target.blocks[0].args
        for what, got, wanted in (("argument", op.args, args), ("result", op.outputs, target.outputs)):
            if len(got) != len(wanted):
                site.fail("recursion", f"{op.name} has {len(got)} {what}s, and {name!r} has {len(wanted)}")
        check_flow(op, site.fail, "goes on with", op.args, args)
        for out, theirs in zip(op.outputs, target.outputs):
            if not fits(out.type, theirs.type):
                site.fail("type", f"{op.name} gives %{out.name} as {print_type(out.type)}, and {name!r} gives "
                          f"{print_type(theirs.type)}")  # fmt: skip

    def check_modes(self, op: Operator, site: _Site) -> None:
        if op.grad_mode not in ("inherit", "on", "off"):
            site.fail("grad-mode", f"the grad mode must be inherit, on or off, not {op.grad_mode!r}")
        for state in op.autocast or ():
            well = isinstance(state, tuple) and [type(part) for part in state] == [str, bool, str]
            if not well or not isinstance(getattr(torch, state[2].removeprefix("torch."), None), torch.dtype):
                site.fail("autocast", f"an autocast state must be (device type, enabled, dtype), not {state!r}")

    def check_writes(self, op: Operator, definition: OpDefinition, site: _Site, writable: set[int] | None) -> None:
        for var in definition.writes(op):
            if writable is None:
                site.fail("in-place", f"{op.name} writes %{var.name} outside an update block")
            if id(var) not in writable:
                site.fail("in-place", f"{op.name} writes %{var.name}, which is no argument of this update block, "
                          "nor a view of one")  # fmt: skip
        viewed = definition.views(op)
        if writable is not None and viewed and all(id(var) in writable for var in viewed):
            writable.update(id(out) for out in op.outputs)


class _Site:
    """An Operator (or, with None, the end) of a Block: where a rule is broken."""

    def __init__(self, verifier: _Verifier, block: Block, op: Operator | None) -> None:
        self.verifier = verifier
        self.block = block
        self.op = op

    def fail(self, rule: str, message: str) -> NoReturn:
        location = self.op.location if self.op is not None else None
        self.verifier.fail(rule, message, self.neighbourhood(), location)

    def neighbourhood(self) -> str:
        """The Operator marked with ``>``, and two on each side of it, one line each."""
        ops = self.block.ops
        at = next((index for index, op in enumerate(ops) if op is self.op), len(ops))
        lines = []
        for index in range(max(0, at - _NEIGHBOURS), min(len(ops), at + _NEIGHBOURS + 1)):
            text = print_operator(ops[index])
            first = text.partition("\n")[0] + (" ... }" if "\n" in text else "")
            lines.append(f"  {'>' if index == at else ' '} {first}")
        if at + _NEIGHBOURS >= len(ops):
            yields = ", ".join(map(print_operand, self.block.yields))
            lines.append(f"  {'>' if at == len(ops) else ' '} yield {yields}".rstrip())
        return "\n".join(lines)


def _constants(value: Any) -> Iterator[Any]:
    """The leaves of an operand that are not Variables."""
    if type(value) in (list, tuple):
        for item in value:
            yield from _constants(item)
    elif type(value) is dict:
        yield from _constants(list(value))
        yield from _constants(list(value.values()))
    elif isinstance(value, slice):
        yield from _constants([value.start, value.stop, value.step])
    elif not isinstance(value, Variable):
        yield value


def _block_name(op: Operator, position: int) -> str:
    outputs = ", ".join(f"%{out.name}" for out in op.outputs)
    return f"block {position} of {op.name}" + (f" ({outputs})" if outputs else "")


