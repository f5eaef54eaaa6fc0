"""Loops of which backward keeps a few states, and computes the others again.

    h = while_loop(h0) { f(h) }      ->     h, n, kept = while_loop(h0, 0, []) { keep h; f(h) }
        with checkpoints: 3                 gh = while_loop(n, gh, kept) {
                                              s = the last state that is kept
                                              s = while_loop(s) { keep s; f(s) }     up to iteration n - 1
                                              the backward of f at s; one iteration less
                                            }

The operators of ``runtime.ops.checkpoint`` decide what is kept. A state is what an iteration begins with, and the
states of the random generators if the loop draws from them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import torch

from runtime.autodiff.backward import Backward
from runtime.autodiff.residuals import reads, silence, stem, substitute
from runtime.autodiff.tape import LoopEntry
from runtime.ir import ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable, leaves
from runtime.ir.definition import definition_of
from runtime.ir.walk import copy_block
from runtime.ops.checkpoint import GENERATORS, STEPS
from runtime.ops.host import MadeTorch
from runtime.tracer.recording.session import Scope, Session

Passed = tuple[list[Variable], list[Operand], list[Operand]]
"""What a backward loop carries besides: its Block arguments, what an iteration leaves, and the first values."""


def most_kept(backward: Backward, entry: LoopEntry) -> int | None:
    """How many states the gradient of a loop may keep; None: what each iteration computed is kept.

    So it is where the gradient will be differentiated itself: what ``create_graph`` asks for inside a Program.
    """
    target = backward.forward.target
    return None if target is not None and target.attrs["create_graph"] else asked(entry.op)


def asked(op: Operator) -> int | None:
    """How many states the user lets the gradient of a loop keep."""
    most: int | None = op.attrs.get("checkpoints")
    return most


def keep_states(backward: Backward, entry: LoopEntry, scope: Scope, count: Variable, most: int) -> Passed:
    """Let the forward loop keep states, and each iteration of the backward loop begin with the one it goes back over.

    ``scope`` is the backward loop's body, complete but for what it reads of the forward one; ``count`` says there how
    many iterations are left.
    """
    session, body = backward.session, entry.body_scope.block
    wanted = [var for var in scope.block.captures() if var in entry.body_scope.names]
    if not wanted:
        return [], [], []
    assert session.replaying is not None
    session.replaying.location = entry.op.location
    repeated = _Repeated(session, entry, wanted)
    lists: list[Type] = [STEPS, *(ArrayType(type_) for type_ in repeated.types)]
    types: list[Type] = [STEPS, *lists]  # the levels first, which backward does not ask for

    kept = [session.new_variable(type_, "", entry.body_scope) for type_ in types]
    step = body.args[len(entry.op.args)]
    with _at_the_beginning(session, entry.body_scope):
        levels, steps, *states = kept
        steps, levels, place = session.emit("checkpoint.keep", [steps, levels, step, most])
        state = [_own(backward, arg, step) for arg in repeated.state]
        left = [levels, steps, *repeated.put(states, place, state)]
    body.args.extend(kept)
    body.yields.extend(left)
    entry.recorded.blocks[0].args.extend(session.new_variable(type_) for type_ in types)
    with session.reopen(entry.scope, before=entry.recorded):
        firsts = [session.emit("array.new", [[]], types=[type_])[0] for type_ in types]
    starts = [session.new_variable(type_, "", entry.scope) for type_ in types]
    entry.recorded.args = (*entry.recorded.args, *firsts)
    entry.recorded.outputs = (*entry.recorded.outputs, *starts)

    args = [session.new_variable(type_, "", scope) for type_ in lists]
    mapping: dict[Variable, Variable] = {}
    with _at_the_beginning(session, scope):
        nexts = repeated.forward_again(args, count, most, mapping)
    substitute(scope.block, mapping)
    return args, nexts, list(starts[1:])


def _own(backward: Backward, arg: Variable, step: Variable) -> Variable:
    """The Variable to be kept for a part of the state: a copy, where it may be memory that the call writes."""
    type_ = arg.type
    if isinstance(type_, TensorType) and any(_may_be(type_, written) for written in backward.forward.written):
        (arg,) = backward.session.emit("checkpoint.own", [arg, step])
    return arg


def _may_be(type_: TensorType, other: TensorType) -> bool:
    """Whether a value of one type may be one of another."""
    if None in (type_.dtype, other.dtype) or type_.shape is None or other.shape is None:
        return True
    return type_.dtype == other.dtype and len(type_.shape) == len(other.shape)


@contextlib.contextmanager
def _at_the_beginning(session: Session, scope: Scope) -> Iterator[None]:
    """Record what comes before everything else in a Block that is closed."""
    ops = scope.block.ops
    count = len(ops)
    with session.reopen(scope):
        yield
    ops[:] = [*ops[count:], *ops[:count]]


class _Repeated:
    """What of a loop's iteration is computed again: what backward reads, and what the next iteration begins with."""

    def __init__(self, session: Session, entry: LoopEntry, wanted: Sequence[Variable]) -> None:
        self.session = session
        self.wanted = wanted
        body, test = entry.body_scope.block, entry.recorded.blocks[0]
        self.body = body
        self.test = Block(test.args, test.ops if _draws(test.ops) else [])
        self.random = _draws(self.body.ops) or _draws(self.test.ops)
        self.generators = _generators([*self.body.ops, *self.test.ops])
        following = dict(zip(body.args, body.yields))
        needed = self._sources(wanted)
        self.state: list[Variable] = []
        while len(self.state) < len(found := [arg for arg in body.args if arg in needed]):
            self.state = found
            needed = self._sources([*wanted, *leaves([following[arg] for arg in found])])
        self.following = [following[arg] for arg in self.state]
        self.types: list[Type] = [arg.type for arg in self.state] + [GENERATORS] * self.random

    def _sources(self, wanted: Iterable[Variable]) -> set[Variable]:
        """Everything inside that some values are computed from; random Operators are always computed."""
        producers = {out: op for op in self.body.ops for out in op.outputs}
        own = {*producers, *self.body.args}
        after = dict(zip(self.test.args, self.body.yields))
        drawing = [op for op in self.body.ops if _draws([op])]
        todo = [*wanted, *(var for op in drawing for var in (*op.outputs, *reads(op)))]
        todo += [var for op in self.test.ops for old in reads(op) for var in leaves(after.get(old, old))]
        found: set[Variable] = set()
        while todo:
            var = todo.pop()
            if var in own and var not in found:
                found.add(var)
                todo += reads(producers[var]) if var in producers else []
        return found

    def put(self, lists: Sequence[Variable], place: Variable, state: Sequence[Variable]) -> list[Variable]:
        """Record that the state of an iteration is kept, if it has a place: the lists of what is kept then."""
        emit = self.session.emit
        values = [*state, *(emit("checkpoint.generators", [self.generators]) if self.random else ())]
        return [emit("checkpoint.put", [states, place, value])[0] for states, value in zip(lists, values)]

    def forward_again(
        self, kept: Sequence[Variable], count: Variable, most: int, mapping: dict[Variable, Variable]
    ) -> list[Operand]:
        """Record the way from the last kept state to the iteration before number ``count``, and that iteration.

        ``mapping``: what the iteration computed -> its copy. What is kept after that.
        """
        emit = self.session.emit
        (last,) = emit("scalar.sub", [count, 1])
        steps, step = emit("checkpoint.back", [kept[0], last])
        pairs = [emit("checkpoint.top", [states, steps]) for states in kept[1:]]
        tops: list[Variable] = [value for _, value in pairs]
        present = emit("checkpoint.generators", [self.generators]) if self.random else ()
        if self.random:
            emit("checkpoint.restore", [tops.pop(), self.generators])
        firsts: list[Operand] = [step, *tops, steps, *(states for states, _ in pairs)]
        types: list[Type] = [ScalarType("int"), *(arg.type for arg in self.state), *(var.type for var in kept)]
        with self.session.open("while_loop") as test:
            test.block.args = [self.session.new_variable(type_) for type_ in types]
            test.block.yields = [*emit("scalar.lt", [test.block.args[0], last])]
        with self.session.open("while_loop") as scope:
            scope.block.args = [self.session.new_variable(type_) for type_ in types]
            now, *rest = scope.block.args
            state, (steps, *lists) = rest[: len(self.state)], rest[len(self.state) :]
            steps, place = emit("checkpoint.keep_again", [steps, now, last, most])
            put = self.put(lists, place, state)
            following = self._copy(state, self.following, {})
            (then,) = emit("scalar.add", [now, 1])
            scope.block.yields = [then, *following, steps, *put]
        out = emit(
            "while_loop", firsts, None, types, blocks=[test.block, scope.block],
            attrs={"backward": True, "checkpoints": most},
        )  # fmt: skip
        state = list(out[1 : 1 + len(self.state)])
        self._copy(state, self.wanted, mapping)
        if self.random:
            emit("checkpoint.restore", [*present, self.generators])
        return list(out[1 + len(self.state) :])

    def _copy(
        self, state: Sequence[Variable], wanted: Sequence[Operand], mapping: dict[Variable, Variable]
    ) -> list[Operand]:
        """Record an iteration once more, as far as some of its values need it."""
        made: dict[Variable, Operand] = dict(zip(self.state, state))
        needed = self._sources(leaves(list(wanted)))
        ops = [op for op in self.body.ops if any(out in needed for out in op.outputs) or _draws([op])]
        copy = copy_block(Block([], ops, list(wanted)), made, lambda name: self.session.new_name(stem(name)))
        if self.test.ops:
            made.update((arg, made.get(value, value) if isinstance(value, Variable) else value)
                        for arg, value in zip(self.test.args, self.body.yields))  # fmt: skip
            copy.ops += copy_block(self.test, made, lambda name: self.session.new_name(stem(name))).ops
        silence(copy)
        self.session.scope.block.ops += copy.ops
        replaying = self.session.replaying
        if replaying is not None and replaying.deriving:
            replaying.derived.update(copy.walk())
        mapping.update((var, new) for var, new in made.items() if isinstance(new, Variable))
        return copy.yields


def _generators(ops: Iterable[Operator]) -> list[Operand]:
    """The generators that some Operators, or those in their Blocks, draw from: the user's or the function's own."""
    found: list[Operand] = []
    todo: list[Operand] = [value for op in _within(ops) for value in (*op.args, *op.kwargs.values())]
    for value in todo:
        if isinstance(value, (list, tuple)):
            todo.extend(value)
        elif isinstance(value, (torch.Generator, MadeTorch)) and not any(value is one for one in found):
            found.append(value)
    return found


def _draws(ops: Iterable[Operator]) -> bool:
    """Whether some Operators, or those in their Blocks, draw random numbers."""
    return any(definition_of(one.name).random for one in _within(ops))


def _within(ops: Iterable[Operator]) -> Iterator[Operator]:
    """Operators, and those in their Blocks."""
    for op in ops:
        yield op
        for block in op.blocks:
            yield from block.walk()
