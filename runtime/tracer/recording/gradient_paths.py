"""Which values a gradient reaches, and whether it does on every path: what ``backward()`` asks of the trace so far.

    h = w * x                       from y, a gradient reaches w and v for certain where no path was taken,
    y = h + v if c else h * 2       here w for certain and v on some paths only

The Program is walked back from a value, Operator by Operator. "For certain" is held against what the derivative is
later on: where it is wrong, the run ends with an error. That a value is not reached is never wrong.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from runtime.ir import ArrayType, Block, Operand, Operator, TensorType, Variable
from runtime.ir.definition import About, definition_of
from runtime.ir.flow import Kind
from runtime.ir.operator import leaves
from runtime.ir.ports import flow_of
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.ops.update import is_counted
from runtime.tracer.recording.gradient_sources import LAST_ITERATION, NO_ITERATION, Taken, block_taken

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Scope, Session

_PASSED_ON = frozenset({"grad.required", "grad.contiguous"})
"""Operators that give a gradient as it is."""
_LIKE_ANOTHER = frozenset(f"aten.{name}" for name in (
    "expand_as.default", "reshape_as.default", "type_as.default", "view_as.default", "resize_as_.default",
    "to.other", "to_mkldnn_backward.default"))  # fmt: skip
"""Operators that take the sizes or the dtype of another tensor, through which no gradient goes."""

FORMULA = "formula"
"""The name of what stands for a node of a derivative (``formulas``); it is in no Program."""

Reached = dict[Variable, bool]
"""Values that a gradient reaches; True: on every path."""


@dataclass
class Paths:
    """Where gradients of some values go."""

    found: Reached
    through: set[Operator]
    """The Operators that they go through."""
    earlier: set[Operator]
    """Those of them that they only go through in a loop's first iteration: what came before the loop."""
    met: set[Variable]
    """What they meet on the way, in Blocks too."""
    made_of: dict[Variable, list[Variable]]
    """What each value that they reach was made of, as far as gradients go on; not of what is in a Block."""
    inside: dict[Variable, list[Variable]]
    """The same of what is in Blocks that are closed."""
    alike: dict[Variable, tuple[Variable, Scope]]
    """What open loops carry that they surely go through, where each iteration is taken to be as the first: what it was
    before, and the loop's body."""
    steps: set[tuple[Operator, bool]] = field(default_factory=set)
    """``through``, and whether that is in the last iteration of the closed loops around the Operator. What is only in
    earlier ones there is another node of autograd's graph than what is only in the last."""
    sure: set[Operator] = field(default_factory=set)
    """Those of ``through`` to which a way leads that goes through no closed loop: what is behind one is met in some
    iterations, or where there is none."""
    heard: list[Operator] = field(default_factory=list)
    """The hooks of tensors that they go through on their way to what was asked for."""

    def leading(self, goals: Collection[Variable]) -> set[Variable]:
        """``goals``, and the values that they reach and go on from to one of those."""
        return _users_of(goals, self.made_of)

    def alike_to(self, goals: Collection[Variable]) -> dict[Scope, frozenset[Variable]]:
        """What each open loop carries that leads to one of ``goals``, if each iteration is as the first."""
        leading = _users_of(goals, self.made_of | {var: [first] for var, (first, _) in self.alike.items()})
        found: dict[Scope, set[Variable]] = {}
        for var, (_, scope) in self.alike.items():
            if var in leading:
                found.setdefault(scope, set()).add(var)
        return {scope: frozenset(carried) for scope, carried in found.items()}

    def run(self, leading: set[Variable]) -> list[Operator]:
        """The Operators whose derivative is asked for on the way to ``leading``: what made a goal is not, unless it
        made it of another one."""
        leading = _users_of(leading, self.inside)
        made_of = {**self.inside, **self.made_of}
        goes_on = {var for var, sources in made_of.items() if not leading.isdisjoint(sources)}
        return [op for op in self.through if not goes_on.isdisjoint(op.outputs)]


def _users_of(goals: Collection[Variable], made_of: dict[Variable, list[Variable]]) -> set[Variable]:
    users: dict[Variable, list[Variable]] = {}
    for var, sources in made_of.items():
        for source in sources:
            users.setdefault(source, []).append(var)
    found, todo = set(goals), list(goals)
    while todo:
        new = [var for var in users.get(todo.pop(), ()) if var not in found]
        found.update(new)
        todo += new
    return found


def reached(
    session: Session, roots: Iterable[Variable], stops: Collection[Variable], taken: Taken | None = None,
    alike: bool = True, scopes: Sequence[Scope] | None = None,
) -> Paths:  # fmt: skip
    """What the gradients of ``roots`` reach; none goes beyond ``stops``. ``taken``: on this path only. ``scopes``: the
    Blocks where they were asked for, inner first, if not here.

    What a loop carries comes from what it began with in the first iteration; what iterations leave to each other is not
    known yet. ``alike``: it is taken to reach the same leaves, unless the loop has found that it does not
    (``Scope.alike``); the end of the iteration tells.
    """
    scopes = list(session.scope.chain()) if scopes is None else scopes
    makers = makers_in(session, (op for scope in scopes for op in scope.block.ops))
    begins = {var: (first, scope) for scope in scopes for var, first in scope.begins.items()}
    earlier = {var: before_loops(session, var) for var in stops}
    walk = _Walk(session, frozenset(stops).union(*earlier.values()), taken or {})
    made_of: dict[Variable, list[Variable]] = {}
    found = walk.back(makers, dict.fromkeys(roots, True), made_of)
    direct = set(walk.through)
    todo = dict(found)
    used: dict[Variable, tuple[Variable, Scope]] = {}
    while begun := [var for var in todo if var in begins and var not in walk.stops]:
        firsts: Reached = {}
        for var in begun:
            first, scope = begins[var]
            sure = todo[var] and alike and scope.alike
            firsts[first] = sure or firsts.get(first, False)
            if sure:
                used[var] = begins[var]
        todo = {var: sure for var, sure in walk.back(makers, firsts, made_of).items() if var not in found}
        found.update(todo)
    for var, firsts_of_it in earlier.items():
        for first in firsts_of_it:
            if first in found:
                found[var] = found[first] and found.get(var, True)
    return Paths(found, walk.through, walk.through - direct, walk.met, made_of, walk.inside, used,
                 walk.steps, walk.sure)


def makers_in(session: Session, ops: Iterable[Operator]) -> dict[Variable, Operator]:
    """Which Operator made each value; of gradients the nodes that they are made of, where these are known."""
    makers: dict[Variable, Operator] = {}
    for op in ops:
        expanded = session.graph.formulas.get(op)
        makers.update(dict.fromkeys(op.outputs, op) if expanded is None else expanded())
    return makers


def before_loops(session: Session, var: Variable) -> list[Variable]:
    """What a value that open loops carry was before each of them."""
    begins = {one: first for scope in session.scope.chain() for one, first in scope.begins.items()}
    found = []
    while var in begins:
        var = begins[var]
        found.append(var)
    return found


class _Walk:
    def __init__(self, session: Session, stops: frozenset[Variable], taken: Taken) -> None:
        self.session, self.stops, self.taken = session, stops, taken
        self.through: set[Operator] = set()
        self.steps: set[tuple[Operator, bool]] = set()
        self.sure: set[Operator] = set()
        self.behind_loop = False
        """Whether the walk has gone through a closed loop."""
        self.behind: set[Variable] = set()
        """The values to which it has come through one."""
        self.last = True
        """Whether the walk is in the last iteration of the closed loops that it has gone into."""
        self.met: set[Variable] = set()
        self.inside: dict[Variable, list[Variable]] = {}

    def back(
        self, makers: dict[Variable, Operator], roots: Reached, made_of: dict[Variable, list[Variable]] | None = None
    ) -> Reached:
        """From ``roots`` to everything that Operators among ``makers`` made them of, which is noted in ``made_of``."""
        noted = self.inside if made_of is None else made_of
        found: Reached = {}
        todo = list(roots.items())
        while todo:
            var, certain = todo.pop()
            if found.get(var, False) or (var in found and not certain):
                continue
            found[var] = certain
            op = makers.get(var)
            if op is not None and var not in self.stops:
                before, loop = self.behind_loop, flow_of(op).kind is Kind.LOOP
                self.behind_loop = before or loop or var in self.behind
                sources = list(self._made_of(op, op.outputs.index(var)))
                if self.behind_loop:
                    self.behind.update(one for one, _ in sources)
                self.behind_loop = before
                todo += [(one, certain and sure) for one, sure in sources]
                noted[var] = [one for one, _ in sources]
        self.met.update(found)
        return found

    def _inside(self, block: Block, value: Operand) -> Reached:
        """What a Block makes a value of that it yields: values from outside, and its own arguments."""
        if not is_a(value, Variable):
            return {}
        makers = makers_in(self.session, block.ops)
        found = self.back(makers, {value: True})
        return {var: certain for var, certain in found.items() if var not in makers}

    def _made_of(self, op: Operator, place: int) -> Iterator[tuple[Variable, bool]]:
        """What one Operator made an output of, as far as gradients go."""
        if not _carries(op.outputs[place]):
            return
        if op.name == FORMULA:
            self._go_through(op)
            yield from ((var, False) for var in op.args if is_a(var, Variable))
            return
        kind, own_gradient = flow_of(op).kind, definition_of(op.name).own_gradient
        if op.name == "update":
            yield from self._update(op, place)
        elif kind is Kind.BRANCH:
            yield from self._branch(op, place)
        elif kind is Kind.LOOP and op in self.taken:
            yield from self._iteration(op, place)
        elif kind is Kind.LOOP:
            yield from self._loop(op, place)
        elif own_gradient is not None:
            self._go_through(op)
            for arg, sure in zip(op.args, own_gradient(op)):
                yield from ((var, sure) for var in _tensors(arg))
        elif op.name == "gradients":
            if op.attrs["create_graph"]:
                yield from ((var, False) for var in _tensors(op.args))
        elif op.name in _PASSED_ON:
            yield from ((var, True) for var in _tensors(op.args[:1]))
        elif kind is Kind.FUNCTION or definition_of(op.name).again(op) is not None:
            self._go_through(op)
            inside = [var for block in op.blocks for var in block.captures()]
            yield from ((var, False) for var in _tensors((op.args, inside)))
        elif self._has_history(op):
            self._go_through(op)
            sure = definition_of(op.name).about is not About.LISTS and op.name != "py_func"
            args = op.args[:1] if op.name in _LIKE_ANOTHER else op.args
            yield from ((var, sure) for var in _tensors((args, tuple(op.kwargs.values()))))

    def _go_through(self, op: Operator) -> None:
        self.through.add(op)
        self.steps.add((op, self.last))
        if not self.behind_loop:
            self.sure.add(op)

    def _has_history(self, op: Operator) -> bool:
        if op.name.startswith("aten.") and (op.name == "aten.detach.default" or aten.is_factory(aten.resolve(op.name))):
            return False
        return not op.name.startswith("grad.") and self._recorded(op)

    def _recorded(self, op: Operator) -> bool:
        return op.grad_mode == "on" or (op.grad_mode == "inherit" and self.session.outside.grad)

    def _update(self, op: Operator, place: int) -> Iterator[tuple[Variable, bool]]:
        """A write: what was written is still in the history, and so is what was written to it, while one is kept."""
        (block,) = op.blocks
        bases = [base for base in op.args if is_a(base, Variable)]
        if place < len(bases):
            yield bases[place], True
        if not self._recorded(op):
            return
        outer = dict(zip(block.args, bases))
        self.inside.update((arg, [base]) for arg, base in outer.items())
        if place >= len(bases) and block.yields[place] not in block.args:  # as of batch normalisation
            self._go_through(op)
            yield from ((outer.get(var, var), sure) for var, sure in self._inside(block, block.yields[place]).items())
        elif is_counted(block):
            self._go_through(op)
            inside = {out for inner in block.ops for out in inner.outputs}
            for inner in block.ops:
                for var in _tensors((inner.args, tuple(inner.kwargs.values()))):
                    if var not in inside:
                        yield outer.get(var, var), len(bases) == 1

    def _branch(self, op: Operator, place: int) -> Iterator[tuple[Variable, bool]]:
        """What every path makes it of is certain."""
        paths = []
        for number, block in enumerate(op.blocks):
            if block_taken(op, self.taken) not in (None, number):
                continue
            outer = {
                block.args[inner]: arg for port in flow_of(op).ports(op) if port.inner and port.arg is not None
                if (inner := port.inner[number]) is not None and is_a(arg := op.args[port.arg], Variable)
            }  # fmt: skip
            self.inside.update((arg, [var]) for arg, var in outer.items())
            yields = [port.yields[number] for port in flow_of(op).ports(op) if port.output == place and port.yields]
            path: Reached = {}
            for position in yields:
                if position is not None:
                    for var, sure in self._inside(block, block.yields[position]).items():
                        path[outer.get(var, var)] = path.get(outer.get(var, var), False) or sure
            paths.append(path)
        for var in {var: None for path in paths for var in path}:
            yield var, all(path.get(var, False) for path in paths)

    def _loop(self, op: Operator, place: int) -> Iterator[tuple[Variable, bool]]:
        """What it began with is certain where each iteration hands it on; the rest where one runs for certain."""
        ports = list(flow_of(op).ports(op))
        first = flow_of(op).first(op)
        once = first is not None and first.value is True
        own = {block.args[inner]: port for port in ports for block, inner in zip(op.blocks, port.inner)
               if inner is not None}  # fmt: skip
        for var, port in own.items():
            before = [] if port.arg is None else [*_tensors(op.args[port.arg])]
            after = [block.yields[place] for block, place in zip(op.blocks, port.yields) if place is not None]
            self.inside[var] = [one for one in (*before, *after) if is_a(one, Variable)]
        todo, seen = [(port, True) for port in ports if port.output == place], set()
        around = self.last
        while todo:
            port, last = todo.pop()
            if (port, last) in seen:
                continue
            seen.add((port, last))
            for block, position in zip(op.blocks, port.yields):
                self.last = around and last
                found = {} if position is None else self._inside(block, block.yields[position])
                self.last = around
                handed_on = any(sure and own.get(var) is port for var, sure in found.items())
                if position is not None and port.arg is not None:
                    yield from ((var, last and handed_on) for var in _tensors(op.args[port.arg]))
                for var, sure in found.items():
                    if var in own:
                        todo.append((own[var], False))
                    else:
                        yield var, once and last and sure


    def _iteration(self, op: Operator, place: int) -> Iterator[tuple[Variable, bool]]:
        """What it began with, where it had no iteration; else what the last one made of values from outside."""
        own = {arg for block in op.blocks for arg in block.args}
        for port in flow_of(op).ports(op):
            if port.output == place and self.taken[op] == NO_ITERATION and port.arg is not None:
                yield from ((var, False) for var in _tensors(op.args[port.arg]))
            for block, position in zip(op.blocks, port.yields):
                if port.output == place and self.taken[op] == LAST_ITERATION and position is not None:
                    found = self._inside(block, block.yields[position])
                    yield from ((var, False) for var in found if var not in own)


def _carries(var: Variable) -> bool:
    """Whether a gradient may flow to a value."""
    if is_a(var.type, TensorType):
        return var.type.dtype is None or var.type.dtype.is_floating_point or var.type.dtype.is_complex
    return is_a(var.type, ArrayType)


def _tensors(operand: Operand) -> Iterator[Variable]:
    return (var for var in leaves(operand) if is_a(var, Variable) and _carries(var))


__all__ = ["Paths", "Reached", "before_loops", "reached"]
