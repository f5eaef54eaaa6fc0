"""From Blocks to Python source: one local per Variable, one line per Operator, Python's own ``if`` and ``while``.

    %h : f32[3] = aten.tanh.default(%x)      ->      v1 = f0(v0)

Only numbers and generated names are written into the source. Everything else (operators, strings, dtypes) is bound in
the globals of the generated code under a name of our own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from runtime.executor.liveness import Liveness
from runtime.executor.modes import ModeMap, Modes
from runtime.executor.ownership import Owner, Ownership
from runtime.ir import UNDEF, Block, Operand, Operator, Program, Variable
from runtime.ops.host import MadeTorch

Rule = Callable[["Emitter", Operator], None]

MAX_NESTING = 14
"""CPython allows 20 loops and ``with`` statements inside each other in one function; deeper ones move to another."""


@dataclass
class Scope:
    """A generated function being written: its lines, the Operator behind each, how deep in blocks and loops it is."""

    header: str
    lines: list[str] = field(default_factory=list)
    operators: list[Operator | None] = field(default_factory=list)
    indent: int = 1
    nesting: int = 0
    current: Modes = Modes()
    modes: ModeMap = field(default_factory=lambda: ModeMap(Modes()))


@dataclass(frozen=True)
class Outline:
    """A function that runs some Operators: the line that calls it, the Variables that get its results, and those that
    are dead after it."""

    text: str
    results: list[Variable]
    dying: list[Variable]


@dataclass
class Emitter:
    """Writes the source of one Program. Rules of the constructs live beside, one file each, and are found by name."""

    program: Program
    live: Liveness
    own: Ownership
    functions: Mapping[str, Callable[..., Any]]
    exceptions: Mapping[str, type[BaseException]]
    root: Modes
    coverage: dict[int, int] | None
    """Block identity -> counter index, or None when Blocks are not counted."""
    tested: frozenset[Variable] = frozenset()
    """Results of comparisons that may be bools of Python's (``runtime.executor.tested``)."""
    consuming: bool = False
    """Whether the Program's arguments come in a list that it empties."""
    namespace: dict[str, Any] = field(default_factory=dict)
    names: dict[Variable, str] = field(default_factory=dict)
    bound: dict[Any, str] = field(default_factory=dict)
    flagged: set[str] = field(default_factory=set)
    repeated: dict[str, tuple[str, list[Variable]]] = field(default_factory=dict)
    """By the name of a recursion: the function that its Block is, and what that is given besides its arguments."""
    done: list[Scope] = field(default_factory=list)
    open: list[Scope] = field(default_factory=list)
    operator: Operator | None = None
    count: int = 0
    links: bool | None = None
    """Whether some ``update`` repeats a write of what has another name; None before anybody asked (see ``update``)."""
    for_ordinary_calls: bool = False
    """Whether something was written that holds only where types are those of the trace (``reuse.ordinary``)."""

    # -- names and operands --------------------------------------------------------------------------------------

    def fresh(self, stem: str) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{stem}{self.count}"

    def name(self, var: Variable) -> str:
        """The local that holds a Variable."""
        found = self.names.get(var)
        if found is None:
            found = self.names[var] = self.fresh("v")
        return found

    def flag(self, var: Variable) -> str:
        """The local that says whether a Variable's value is owned."""
        return "own_" + self.name(var)

    def bind(self, value: Any, stem: str = "k") -> str:
        """The global that holds a value: the same object gets the same name."""
        key = (stem, id(value))
        found = self.bound.get(key)
        if found is None:
            found = self.bound[key] = self.fresh(stem)
            self.namespace[found] = value
        return found

    def operand(self, value: Operand) -> str:
        """An operand as an expression."""
        if isinstance(value, Variable):
            return self.name(value)
        if value is None or value is UNDEF:
            return "None"
        if type(value) is bool or (type(value) is int and abs(value) < 1 << 63):
            return f"({value})" if value < 0 else str(value)
        if type(value) is float and math.isfinite(value):
            return f"({value!r})"
        if type(value) is list:
            return "[" + ", ".join(map(self.operand, value)) + "]"
        if isinstance(value, tuple):
            return "(" + "".join(self.operand(item) + ", " for item in value) + ")"
        if type(value) is dict:
            return "{" + ", ".join(f"{self.bind(key)}: {self.operand(item)}" for key, item in value.items()) + "}"
        if isinstance(value, slice):
            parts = (value.start, value.stop, value.step)
            return f"{self.bind(slice)}({', '.join(map(self.operand, parts))})"
        if isinstance(value, MadeTorch):
            return f"{self.bind(value)}.here()"
        return self.bind(value)

    # -- lines ---------------------------------------------------------------------------------------------------

    def line(self, text: str) -> None:
        """Append a line to the function being written."""
        scope = self.open[-1]
        scope.lines.append(" " * scope.indent + text)
        scope.operators.append(self.operator)

    @contextmanager
    def indented(self, header: str, *, nests: bool = False) -> Iterator[None]:
        """Write ``header`` and indent what follows; ``nests``: a loop or ``with``, of which CPython allows 20."""
        self.line(header)
        scope = self.open[-1]
        scope.indent += 1
        scope.nesting += nests
        yield
        scope.indent -= 1
        scope.nesting -= nests

    @contextmanager
    def function(self, parameters: Iterable[str], root: Modes | None = None) -> Iterator[str]:
        """Write another function of the same source; its name is a global that the others can call.

        ``root`` are the modes it is called in; None: those that hold where it is called from.
        """
        name = self.fresh("g")
        header = f"def {name}({', '.join(parameters)}):"
        if root is None:
            self.open.append(Scope(header, current=self.open[-1].current, modes=self.open[-1].modes))
        else:
            self.open.append(Scope(header, current=root, modes=ModeMap(root)))
        operator, self.operator = self.operator, None
        yield name
        self.operator = operator
        self.done.append(self.open.pop())

    def drop(self, variables: Iterable[Variable]) -> None:
        """Delete locals whose values are dead."""
        names = dict.fromkeys(self.name(var) for var in variables if var not in self.live.pinned)
        if names:
            self.line("del " + ", ".join(names))

    def assign(self, outputs: Sequence[Variable], expression: str, *, unpack: bool) -> None:
        """``a, b = expression``, or ``a = expression``; without outputs just the expression."""
        if not outputs:
            self.line(expression)
            return
        targets = ", ".join(map(self.name, outputs))
        self.line(f"{targets}{',' if unpack and len(outputs) == 1 else ''} = {expression}")

    # -- Blocks --------------------------------------------------------------------------------------------------

    def enter(self, block: Block) -> None:
        """What every Block starts with: its counter, and the end of values that only its siblings need."""
        if self.coverage is not None and id(block) in self.coverage:
            self.line(f"hits[{self.coverage[id(block)]}] += 1")
        self.drop(self.live.at_entry.get(id(block), ()))

    def iteration(self) -> None:
        """What every iteration of a loop begins with: nothing, unless iterations are counted (``limits``)."""

    def operators(self, block: Block) -> None:
        """Write a Block's Operators, those of one grad mode and autocast state under one switch."""
        self.regions(block.ops)

    def regions(self, ops: Sequence[Operator]) -> None:
        """Write consecutive Operators."""
        scope = self.open[-1]
        for modes, region in scope.modes.regions(ops, scope.current):
            if modes == scope.current:
                for op in region:
                    self.emit(op)
            elif scope.nesting >= MAX_NESTING:
                self.outlined(region)
            else:
                self.operator = region[0]
                with self.indented(f"with {self.bind(modes.switch(scope.modes.root), 'm')}():", nests=True):
                    before, scope.current = scope.current, modes
                    for op in region:
                        self.emit(op)
                    scope.current = before

    def emit(self, op: Operator) -> None:
        """Write one Operator, and the end of the values it was the last to read."""
        if op.blocks and self.open[-1].nesting >= MAX_NESTING:
            self.outlined([op])
            return
        before, self.operator = self.operator, op
        rule_for(op.name)(self, op)
        if not op.blocks:
            self.drop([*self.live.dying[id(op)], *self.live.unread[id(op)]])
        self.operator = before

    def outlined(self, ops: Sequence[Operator]) -> None:
        """Write Operators in a function of their own, because the current one is nested as deeply as Python allows."""
        outline = self.outline(ops)
        self.line(outline.text)
        self.drop(outline.dying)

    def outline(self, ops: Sequence[Operator], through: str = "") -> Outline:
        """Write a function that runs some Operators. ``through``: what is called in its place, with it before its
        arguments."""
        made: set[Variable] = set()
        reads: dict[Variable, None] = {}
        for op in ops:
            reads.update(dict.fromkeys(var for var in self.live.uses(op) if var not in made))
            made.update(op.outputs)
        dying = {var for op in ops for var in self.live.dying[id(op)]}
        dead = dying.union(*(self.live.unread[id(op)] for op in ops))
        results = [var for op in ops for var in op.outputs if var not in dead]
        parameters = self.with_flags(reads)
        with self.function(parameters) as function:
            self.regions(ops)
            returned = self.with_flags(results)
            self.line(f"return ({''.join(name + ', ' for name in returned)})")
        call = f"{function}({', '.join(parameters)})"
        if through:
            call = f"{through}({', '.join([function, *parameters])})"
        text = f"({''.join(name + ', ' for name in returned)}) = {call}" if returned else call
        gone = [var for var in reads if var in dying and self.name(var) not in returned]
        return Outline(text, results, gone)

    def with_flags(self, variables: Iterable[Variable]) -> list[str]:
        """The locals of some Variables, then those of their owner flags."""
        variables = list(variables)
        flags = [self.flag(var) for var in variables if self.flag(var) in self.flagged]
        return list(dict.fromkeys([*map(self.name, variables), *flags]))

    def set_flag(self, target: Variable, owner: str) -> None:
        """Write down whether a value that has just flowed into ``target`` is owned."""
        self.flagged.add(self.flag(target))
        self.line(f"{self.flag(target)} = {owner}")

    def read_yields(self, block: Block, targets: Sequence[Variable], unread: Iterable[Variable]) -> None:
        """Give a branch's yields to the outputs they join, owner flags included, and drop what dies here."""
        skipped = set(unread)
        for position, (value, target) in enumerate(zip(block.yields, targets)):
            if target in skipped:
                continue
            self.line(f"{self.name(target)} = {self.operand(value)}")
            if target in self.own.flags:
                self.set_flag(target, self.owner(id(block), position, value))
        self.drop(self.live.at_exit[id(block)])

    def owner(self, key: int, position: int, value: Operand) -> str:
        """Whether the value that flows here is owned, as an expression."""
        owner = self.own.flow.get((key, position), Owner.NO)
        if owner is Owner.DYNAMIC and isinstance(value, Variable):
            return self.flag(value)
        return str(owner is Owner.YES)

    # -- the whole -----------------------------------------------------------------------------------------------

    def write(self) -> tuple[str, list[Operator | None], str]:
        """The source, the Operator behind each of its lines, and the name of the function that runs the Program."""
        block = self.program.block
        arguments = list(map(self.name, block.args))
        with self.function(["given"] if self.consuming else arguments, self.root) as main:
            if self.consuming:
                self.line(f"[{', '.join(arguments)}] = given")
                self.line("given.clear()")
            self.enter(block)
            self.operators(block)
            self.line("return [" + ", ".join(map(self.operand, block.yields)) + "]")
        lines: list[str] = []
        operators: list[Operator | None] = []
        for scope in self.done:
            lines += [scope.header, *scope.lines]
            operators += [None, *scope.operators]
        return "\n".join(lines) + "\n", operators, main


RULES: dict[str, Rule] = {}
FAMILIES: dict[str, Rule] = {}
"""How operators are written, by name and by the first part of their name: ``rules.py`` fills both."""


def rule_for(name: str) -> Rule:
    """How an operator is written: by its own name, by its family, or as a call of its ATen overload."""
    return RULES.get(name) or FAMILIES.get(name.partition(".")[0]) or FAMILIES[""]
