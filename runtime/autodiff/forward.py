"""The forward half: a Program replayed on fake tensors under torch's autograd, recording what runs below it.

Straight-line runs between structural Operators are *segments*: torch's own derivative formulas are recorded later, when
backward asks autograd for their gradients. The result is the same Program, one level lower, plus a tape.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff.tape import Activity, BranchEntry, CustomEntry, LoopEntry, Segment, Tape
from runtime.ir import ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.ops import aten
from runtime.tracer import scalars, structure
from runtime.tracer.calls import flatten_results
from runtime.tracer.recorder import Recorder
from runtime.tracer.session import Scope, Session


class NotDifferentiable(Exception):
    """The Program has an Operator whose gradient is computed by torch's autograd at run time instead."""


class Forward:
    """Replays Blocks into a session. ``env`` maps the Program's Variables to fakes and staged numbers."""

    def __init__(self, session: Session, recorder: Recorder) -> None:
        self.session = session
        self.recorder = recorder
        self.env: dict[Variable, Any] = {}
        self.activity: dict[Variable, Activity] = {}
        self.sizes: dict[str, Any] = {}
        """The symbol of the replay for each of the Program's own symbols that is known."""
        self._segment: Segment | None = None
        self._live: dict[Variable, Any] = {}

    # -- Blocks --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> Tape:
        """Replay a Block into the current scope."""
        tape = Tape()
        for op in block.ops:
            rule = RULES.get(op.name)
            if rule is None and op.name.startswith("array."):
                raise NotDifferentiable(op.name)
            if rule is None:
                self._in_segment(tape, op)
            else:
                self.close()
                self.session.replaying.location = op.location  # type: ignore[union-attr]
                rule(self, op, tape)
        self.close()
        return tape

    def close(self) -> None:
        """End the current segment: what follows sees its results as values, without their history."""
        segment = self._segment
        if segment is None:
            return
        for var, value in self._live.items():
            if isinstance(value, torch.Tensor):
                if value.requires_grad:
                    segment.results[var] = value
                    value = self.detached(value)
                self.env[var] = value
            else:
                self.env[var] = value
        self._segment = None
        self._live = {}

    def detached(self, fake: torch.Tensor) -> torch.Tensor:
        """The same value as a tensor without history."""
        with torch.no_grad():
            return self.recorder.alias(fake)

    def _in_segment(self, tape: Tape, op: Operator) -> None:
        if self._segment is None:
            self._segment = Segment()
            tape.entries.append(self._segment)
        self._segment.location = op.location
        self.session.replaying.location = op.location  # type: ignore[union-attr]
        with modes(op):
            self._run(op)

    def value(self, operand: Operand) -> Any:
        """An operand's stand-in for use in the current segment: active tensors become its leaves."""
        if isinstance(operand, Variable):
            if operand in self._live:
                return self._live[operand]
            value = self.env[operand]
            segment = self._segment
            if isinstance(value, torch.Tensor) and segment is not None and self.is_active(operand):
                leaf = segment.leaves.get(operand)
                if leaf is None:
                    leaf = self.detached(value).requires_grad_(True)
                    segment.leaves[operand] = leaf
                return leaf
            return self.session.sizes.symbolic(value)
        if isinstance(operand, (list, tuple)):
            return type(operand)(self.value(item) for item in operand)
        if isinstance(operand, slice):
            return slice(self.value(operand.start), self.value(operand.stop), self.value(operand.step))
        if isinstance(operand, dict):
            return {key: self.value(item) for key, item in operand.items()}
        return operand

    def is_active(self, var: Variable) -> bool:
        """Whether a gradient may have to flow to ``var``."""
        return bool(self.activity.get(var, False))

    def _run(self, op: Operator) -> None:
        """One Operator of a segment."""
        if op.name == "update":
            self._update(op)
            return
        if op.name.startswith("scalar.") or op.name in ("assert", "print", "raise", "py_func"):
            self._plain(op)
            return
        overload = aten.resolve(op.name)
        kinds = [type(out.type) for out in op.outputs]
        if any(kind is ScalarType for kind in kinds):
            self._plain(op)
            return
        result = overload(*self.value(op.args), **self.value(op.kwargs))
        flat = flatten_results(result)
        if len(flat) != len(op.outputs):
            raise NotDifferentiable(op.name)
        for var, value in zip(op.outputs, flat):
            self._live[var] = value
        self.note_activity(op)

    def note_activity(self, op: Operator) -> None:
        """Results of an ATen operator are active when what it reads is, and they can carry a gradient."""
        reached = join_activity(
            self.activity.get(var, False)
            for var in [*op.inputs, *(var for block in op.blocks for var in block.captures())]
        )
        for var in op.outputs:
            value = self._live.get(var)
            if isinstance(value, torch.Tensor) and value.requires_grad:
                self.activity[var] = reached if reached else True

    def _plain(self, op: Operator) -> None:
        """A scalar Operator or an effect: recorded as it is."""
        session = self.session
        operands = [session.operand(self.plain(arg)) for arg in op.args]
        kwargs = {key: session.operand(self.plain(value)) for key, value in op.kwargs.items()}
        outputs = session.emit(
            op.name,
            operands,
            kwargs,
            [out.type for out in op.outputs],
            hints=[out.hint for out in op.outputs],
            attrs=op.attrs,
            location=op.location,
        )
        for var, out in zip(op.outputs, outputs):
            if isinstance(out.type, ScalarType):
                staged = scalars.wrap(out)
                self.env[var] = staged
                if op.name.startswith("scalar."):
                    short = op.name.removeprefix("scalar.")
                    if short == "size":
                        staged.sym = self._size_symbol(op)
                    session.sizes.define(staged, short, self.plain(op.args))
            else:
                self.env[var] = out

    def _size_symbol(self, op: Operator) -> Any:
        tensor, dim = self.plain(op.args)
        size = tensor.shape[dim]
        return size if isinstance(size, torch.SymInt) else None

    def plain(self, operand: Operand) -> Any:
        """An operand's stand-in as it is, without becoming a leaf of the segment."""
        if isinstance(operand, Variable):
            return self._live[operand] if operand in self._live else self.env[operand]
        if isinstance(operand, (list, tuple)):
            return type(operand)(self.plain(item) for item in operand)
        if isinstance(operand, dict):
            return {key: self.plain(item) for key, item in operand.items()}
        return operand

    def _update(self, op: Operator) -> None:
        """In-place Operators run on clones of the bases; a base that is not needed again is moved instead."""
        (block,) = op.blocks
        saved = {}
        for arg, base in zip(block.args, op.args):
            fake = self.value(base)
            saved[arg] = torch.ops.aten.clone.default(fake)
        self._live.update(saved)
        for inner in block.ops:
            self.session.replaying.location = inner.location  # type: ignore[union-attr]
            overload = aten.resolve(inner.name)
            result = flatten_results(overload(*self.value(inner.args), **self.value(inner.kwargs)))
            for var, value in zip(inner.outputs, result):
                self._live[var] = value
        for var, operand in zip(op.outputs, block.yields):
            self._live[var] = (
                self._live[operand] if isinstance(operand, Variable) and operand in self._live else self.value(operand)
            )
        self.note_activity(op)
        for inner in block.ops:
            for var in inner.outputs:
                self._live.pop(var, None)
        for arg in block.args:
            self._live.pop(arg, None)

    # -- values that enter and leave structural Operators ----------------------------------------------------------

    def stable(self, fake: Any) -> Any:
        """A tensor as it leaves a Block: contiguous, as what comes after relies on."""
        if isinstance(fake, torch.Tensor) and fake.layout is torch.strided and not torch_internals.contiguity(fake)[0]:
            with torch.no_grad():
                return fake.contiguous()
        return fake

    def lower(self, operand: Operand) -> Operand:
        """The operand of the new Program for one of the old, read in the current Block."""
        if isinstance(operand, Variable):
            return self.session.operand(self.stable(self.plain(operand)))
        return operand

    def lift(self, var: Variable, old: Variable, like: list[Any]) -> Any:
        """The stand-in for a Variable of the new Program that carries what ``old`` did."""
        session = self.session
        if isinstance(old.type, ScalarType):
            return scalars.wrap(var)
        fakes = [fake for fake in like if isinstance(fake, torch.Tensor)]
        if not isinstance(old.type, TensorType) or not fakes:
            return var
        if old.type.dtype is None or old.type.shape is None or len({fake.dtype for fake in fakes}) > 1:
            raise NotDifferentiable("a value whose dtype or rank differs between paths")
        merged: structure.Structure = structure.structure_of(session, fakes[0])
        for fake in fakes[1:]:
            merged = structure.unify(session, merged, structure.structure_of(session, fake))
        if not isinstance(merged, structure.Tensor):
            raise NotDifferentiable("values on different devices")
        shape = tuple(dim if isinstance(dim, int) else self.sizes.get(dim, structure.DYNAMIC) for dim in old.type.shape)
        lifted = structure.lift(
            session, structure.Tensor(shape, None, merged.dtype, merged.device, False, True), iter([var])
        )
        for dim, size in zip(old.type.shape, lifted.shape):
            if isinstance(dim, str):
                self.sizes.setdefault(dim, size)
        return lifted


def types_of(variables: Any) -> list[Type]:
    """The types of some Variables."""
    return [var.type for var in variables]


def join_activity(parts: Iterator[Activity] | Any) -> Activity:
    """True if any part is; else all their flags together."""
    flags: frozenset[Variable] = frozenset()
    for part in parts:
        if part is True:
            return True
        if part:
            flags |= part
    return flags or False


@contextlib.contextmanager
def modes(op: Operator) -> Iterator[None]:
    """The grad mode and autocast state an Operator runs in."""
    with contextlib.ExitStack() as stack:
        if op.grad_mode != "inherit":
            stack.enter_context(torch.set_grad_enabled(op.grad_mode == "on"))
        for device, enabled, dtype in op.autocast or ():
            stack.enter_context(
                torch.autocast(device, dtype=getattr(torch, dtype.removeprefix("torch.")), enabled=enabled)
            )
        yield


# -- structural Operators ------------------------------------------------------------------------------------------


def _branch(forward: Forward, op: Operator, tape: Tape) -> None:
    """``cond`` and ``switch``: every path into its own Block; residuals are added to the yields later."""
    session = forward.session
    paths: list[tuple[Scope, Tape]] = []
    rows: list[list[Operand]] = []
    likes: list[list[Any]] = []
    reached: list[list[Activity]] = []
    for block in op.blocks:
        with session.open(op.name) as scope:
            inner = forward.block(block)
            rows.append([forward.lower(operand) for operand in block.yields])
            likes.append([forward.stable(forward.plain(o)) if isinstance(o, Variable) else o for o in block.yields])
            reached.append([forward.activity.get(o, False) if isinstance(o, Variable) else False for o in block.yields])
            scope.block.yields.extend(rows[-1])
        paths.append((scope, inner))
    outputs = session.emit(
        op.name,
        [forward.lower(op.args[0])],
        None,
        types_of(op.outputs),
        hints=[out.hint for out in op.outputs],
        blocks=[scope.block for scope, _ in paths],
        attrs=op.attrs,
        location=op.location,
    )
    recorded = session.scope.block.ops[-1]
    for position, (old, new) in enumerate(zip(op.outputs, outputs)):
        forward.env[old] = forward.lift(new, old, [row[position] for row in likes])
        per_path = [row[position] for row in reached]
        if not can_carry(forward.env[old]) or not any(per_path):
            continue
        forward.activity[old] = (
            True if all(part is True for part in per_path) else _path_flag(forward, recorded, paths, per_path)
        )
    tape.entries.append(BranchEntry(op, recorded, session.scope, paths))


def _path_flag(
    forward: Forward, recorded: Operator, paths: list[tuple[Scope, Tape]], parts: list[Activity]
) -> Activity:
    """A new boolean result of the branch that says whether the path taken needs a gradient."""
    session = forward.session
    for (scope, _), part in zip(paths, parts):
        flag: Operand = part
        if not isinstance(part, bool):
            with session.reopen(scope):
                flag = any_of(session, part)
        scope.block.yields.append(flag)
    out = session.new_variable(ScalarType("bool"))
    recorded.outputs = (*recorded.outputs, out)
    return frozenset({out})


def any_of(session: Session, flags: frozenset[Variable]) -> Operand:
    """A boolean Variable that is true if one of the flags is."""
    ordered = sorted(flags, key=lambda var: var.name)
    result: Operand = ordered[0]
    for flag in ordered[1:]:
        (result,) = session.emit("scalar.or_", [result, flag], types=[ScalarType("bool")])
    return result


def can_carry(value: Any) -> bool:
    """Whether a value can have a gradient at all."""
    return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())


def _while(forward: Forward, op: Operator, tape: Tape) -> None:
    """``while_loop``: the body once, with a counter carried besides; stacks of residuals are added later."""
    session = forward.session
    test, body = op.blocks
    inits = [forward.plain(arg) if isinstance(arg, Variable) else arg for arg in op.args]
    operands = [forward.lower(arg) for arg in op.args]
    active = {
        i
        for i, arg in enumerate(op.args)
        if isinstance(arg, Variable) and forward.is_active(arg) and can_carry(inits[i])
    }
    with session.open("while_loop") as test_scope:
        _enter(forward, test, op, inits, set())
        forward.block(test)
        test_scope.block.yields.extend(forward.lower(operand) for operand in test.yields)
    while True:
        with session.open("while_loop") as scope:
            carried = _enter(forward, body, op, inits, active)
            inner = forward.block(body)
            reached = {
                i
                for i, o in enumerate(body.yields)
                if isinstance(o, Variable) and forward.is_active(o) and can_carry(inits[i])
            }
            if not reached <= active:
                active |= reached
                continue
            rows = [forward.lower(operand) for operand in body.yields]
            ends = [forward.plain(o) if isinstance(o, Variable) else o for o in body.yields]
            count_in = session.new_variable(ScalarType("int"))
            scope.block.args.append(count_in)
            (count_next,) = session.emit("scalar.add", [count_in, 1], types=[ScalarType("int")])
            scope.block.yields.extend([*rows, count_next])
        break
    test_scope.block.args.append(session.new_variable(ScalarType("int"), "", test_scope))
    outputs = session.emit(
        "while_loop",
        [*operands, 0],
        None,
        [*types_of(op.outputs), ScalarType("int")],
        hints=[out.hint for out in op.outputs],
        blocks=[test_scope.block, scope.block],
        attrs=op.attrs,
        location=op.location,
    )
    recorded = session.scope.block.ops[-1]
    for position, (old, new) in enumerate(zip(op.outputs, outputs)):
        forward.env[old] = forward.lift(new, old, [inits[position], ends[position]])
    _settle_loop_activity(forward, op, active, outputs[-1])
    tape.entries.append(LoopEntry(op, recorded, session.scope, scope, inner, sorted(active), outputs[-1], carried))


def _enter(forward: Forward, block: Block, op: Operator, inits: list[Any], active: set[int]) -> list[Any]:
    """Block arguments and stand-ins for what a loop carries."""
    session = forward.session
    stand_ins = []
    for position, arg in enumerate(block.args):
        new = session.new_variable(arg.type, arg.hint)
        session.scope.block.args.append(new)
        like = inits[position]
        if isinstance(arg.type, ArrayType):
            raise NotDifferentiable("a list that grows")
        forward.env[arg] = forward.lift(new, arg, [like])
        if isinstance(arg.type, TensorType) and not isinstance(forward.env[arg], torch.Tensor):
            raise NotDifferentiable("a value that does not exist before the loop")
        forward.activity[arg] = position in active
        stand_ins.append(forward.env[arg])
    return stand_ins


def _settle_loop_activity(forward: Forward, op: Operator, active: set[int], count: Variable) -> None:
    """After the loop: active from the start, or only if there was an iteration."""
    session = forward.session
    flag: Variable | None = None
    for position in active:
        out = op.outputs[position]
        if not can_carry(forward.env[out]):
            continue
        arg = op.args[position]
        before = forward.activity.get(arg, False) if isinstance(arg, Variable) else False
        if before is True:
            forward.activity[out] = True
            continue
        if flag is None:
            (flag,) = session.emit("scalar.gt", [count, 0], types=[ScalarType("bool")])
        forward.activity[out] = join_activity([before, frozenset({flag})])


def _custom(forward: Forward, op: Operator, tape: Tape) -> None:
    """``custom_grad``: its forward Block in line, without autograd; its backward Block is put in line later."""
    inner = op.blocks[0]
    values = [forward.plain(arg) if isinstance(arg, Variable) else arg for arg in op.args]
    for arg, value in zip(inner.args, values):
        forward.env[arg] = value
        forward.activity[arg] = False
    for var in inner.captures():
        if forward.is_active(var):
            raise NotDifferentiable("custom_grad that closes over a tensor that needs a gradient")
    with torch.no_grad():
        forward.block(inner)
    results = [forward.plain(o) if isinstance(o, Variable) else o for o in inner.yields]
    count = op.attrs["n_outputs"]
    reached = join_activity(forward.activity.get(arg, False) for arg in op.args if isinstance(arg, Variable))
    for out, value in zip(op.outputs, results[:count]):
        forward.env[out] = forward.recorder.alias(value) if isinstance(value, torch.Tensor) else value
        if reached and can_carry(value) and op.grad_mode != "off":
            forward.activity[out] = reached
    tape.entries.append(CustomEntry(op, results[count:], results[:count]))


def _refuse(forward: Forward, op: Operator, tape: Tape) -> None:
    raise NotDifferentiable(op.name)


RULES: dict[str, Callable[[Forward, Operator, Tape], None]] = {
    "cond": _branch,
    "switch": _branch,
    "while_loop": _while,
    "custom_grad": _custom,
    "gradients": _refuse,
}
"""How each structural Operator's forward half is recorded."""
