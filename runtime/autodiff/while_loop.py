"""``while_loop``: the gradient is a ``while_loop`` that goes back over the same iterations.

    h = while_loop(h0) { ... f(h, W) }   ->   h, n, stack = while_loop(h0, 0, []) { ... push(stack, residuals) }
                                              gh, gW = while_loop(n, gh, None, stack) { ... pop(stack) }

The gradient of a tensor from outside (W) is an accumulator that the loop carries.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch

from runtime.autodiff import checkpoints
from runtime.autodiff.activity import as_operand, is_always, join_activity
from runtime.autodiff.array import FLAGS, list_flags
from runtime.autodiff.backward import Backward
from runtime.autodiff.forward import Forward, NotDifferentiable, types_of
from runtime.autodiff.moving import Moving
from runtime.autodiff.residuals import inner_variables, reads, rebuild, substitute
from runtime.autodiff.stale import condition
from runtime.autodiff.tape import Activity, Grad, Grads, ListGrad, LoopEntry, Tape
from runtime.autodiff.versions import Inside, Memory
from runtime.ir import ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.tracer.memory.conditions import ALWAYS, PathCondition, known, when
from runtime.tracer.recording.session import Scope, Session

_KEPT_ATTRS = ("max_iterations", "already", "backward", "checkpoints")


def forward(forward: Forward, op: Operator, tape: Tape) -> None:
    """The body once, with a counter carried besides; stacks of residuals are added later."""
    session = forward.session
    test, body = op.blocks
    inits = [forward.plain(arg) if isinstance(arg, Variable) else arg for arg in op.args]
    operands = [forward.lower(arg) for arg in op.args]
    active = {
        i
        for i, (arg, inner) in enumerate(zip(op.args, body.args))
        if (isinstance(arg, Variable) and forward.is_active(arg) and forward.can_carry(arg)) or inner in forward.wanted
    }
    before = {i: forward.activity_of(op.args[i]) for i in range(len(inits))}
    # Carried values that need a gradient in every iteration, if at all; the others carry a flag.
    settled = {
        i for i, arg in enumerate(op.args)
        if is_always(before[i]) or forward.is_empty(arg) or body.args[i] in forward.wanted
    }  # fmt: skip
    unnoticed = forward.versions.unnoticed()
    with session.open("while_loop") as test_scope:
        _enter(forward, test, inits, set(), settled)
        forward.block(test)
        test_scope.block.yields.extend(forward.lower(operand) for operand in test.yields)
    moving = Moving(session, forward.versions, inits)
    mark = forward.versions.mark()
    while True:
        forward.versions.back_to(mark)
        with session.open("while_loop") as scope, forward.versions.inside() as inside:
            carried, flag_args = _enter(forward, body, inits, active, settled)
            moving.enter(inside, carried)
            forward.loop_args.update(body.args)
            inner = forward.block(body)
            forward.loop_args.difference_update(body.args)
            reached = {
                i
                for i, o in enumerate(body.yields)
                if isinstance(o, Variable) and forward.is_active(o) and forward.can_carry(body.args[i])
            }
            if not reached <= active:
                active |= reached
                continue
            after = {i: forward.activity_of(body.yields[i]) for i in active}
            unsettled = {
                i
                for i in active & settled
                if not (is_always(after[i]) or body.args[i] in forward.wanted or forward.is_empty(body.yields[i]))
            }
            if unsettled:
                settled -= unsettled
                continue
            rows = [forward.lower(operand) for operand in body.yields]
            ends = [forward.plain(o) if isinstance(o, Variable) else o for o in body.yields]
            if _learned_items(forward, inits, ends) or moving.learned(ends):
                continue
            _check_devices(carried, ends)
            count_in = session.new_variable(ScalarType("int"))
            scope.block.args.append(count_in)
            (count_next,) = session.emit("scalar.add", [count_in, 1])
            flags_next = [_flag(session, after[i], rows[i]) for i in flag_args]
            scope.block.args.extend(flag_args.values())
            scope.block.yields.extend([*rows, count_next, *flags_next])
        break
    counters = _count_writes(session, scope, test_scope, inside)
    flag_types: list[Type] = [flag.type for flag in flag_args.values()]
    test_scope.block.args.extend(
        session.new_variable(type_, "", test_scope) for type_ in [ScalarType("int"), *flag_types]
    )
    test_scope.block.args.extend(session.new_variable(ScalarType("int"), "", test_scope) for _ in counters)
    scope.block.args.extend(before for before, _ in counters.values())
    scope.block.yields.extend(after for _, after in counters.values())
    flags_before = [_flag(session, before[i], operands[i]) for i in flag_args]
    recorded = session.emit_operator(
        "while_loop",
        [*operands, 0, *flags_before, *(0 for _ in counters)],
        None,
        [*types_of(op.outputs), ScalarType("int"), *flag_types, *(ScalarType("int") for _ in counters)],
        hints=[out.hint for out in op.outputs],
        blocks=[test_scope.block, scope.block],
        attrs={key: value for key, value in op.attrs.items() if key in _KEPT_ATTRS},
        location=op.location,
    )
    outputs = recorded.outputs
    for position, (old, new) in enumerate(zip(op.outputs, outputs)):
        forward.env[old] = forward.lift(new, old, [inits[position], ends[position]])
        forward.versions.joined(forward.env[old], [inits[position], ends[position]], unnoticed)
    moving.leave(recorded, [forward.env[old] for old in op.outputs])
    count = outputs[len(op.outputs)]
    flags_after = dict(zip(flag_args, outputs[len(op.outputs) + 1 :]))
    _activity_after(forward, op, active, count, flags_after, after)
    ends_of = zip(counters.items(), outputs[len(outputs) - len(counters) :])
    later = _note_writes(forward, inside, count, {memory: (now, end) for (memory, (_, now)), end in ends_of})
    tape.entries.append(
        LoopEntry(op, recorded, session.scope, scope, inner, sorted(active), count, carried, later, moving.again)
    )


Counted = dict[Memory, tuple[Variable, Variable]]


def _count_writes(session: Session, scope: Scope, test_scope: Scope, inside: Inside) -> Counted:
    """For memory that only some iterations write: how many did before an iteration, and with it."""
    counted: Counted = {}
    for memory, written in inside.written.items():
        if not written.always:
            before = session.new_variable(ScalarType("int"), "", scope)
            with session.reopen(scope):
                (one,) = session.emit("scalar.int", [written.operand(session)])
                (after,) = session.emit("scalar.add", [before, one])
            counted[memory] = (before, after)
    return counted


def _note_writes(
    forward: Forward, inside: Inside, count: Variable, counted: Counted
) -> dict[Variable, tuple[Variable | None, Variable]]:
    """Memory that iterations write is written if there was one that did; what one saved, if there was one after it."""
    session = forward.session
    later: dict[Variable, tuple[Variable | None, Variable]] = {}
    happened: dict[Memory, PathCondition] = {}
    for memory in inside.written:
        now, end = counted.get(memory, (None, count))
        (flag,) = session.emit("scalar.gt", [end, 0])
        happened[memory] = when(flag)
        again = session.new_variable(ScalarType("bool"))
        later[again] = (now, end)
        for watch in inside.watches:
            for one in watch.shown:
                for other, holds in forward.versions.older(one.memory, inside):
                    if other is memory:
                        watch.cases.append((when(again), *one.way, holds))
    forward.versions.after([inside], happened)
    return later


def _learned_items(forward: Forward, inits: list[Any], ends: list[Any]) -> bool:
    """Whether the body told what a list that was empty before the loop holds."""
    learned = False
    for init, end in zip(inits, ends):
        if isinstance(init, Variable) and isinstance(end, Variable) and init not in forward.items:
            if end in forward.items:
                forward.items[init] = forward.items[end]
                learned = True
    return learned


def _check_devices(carried: list[Any], ends: list[Any]) -> None:
    """The device of a value that does not exist before the loop was a guess."""
    for guess, end in zip(carried, ends):
        if isinstance(guess, torch.Tensor) and isinstance(end, torch.Tensor) and guess.device != end.device:
            raise NotDifferentiable("a value made in a loop, on another device")


def _flag(session: Session, activity: Activity, value: Operand) -> Operand:
    """Whether a carried value needs a gradient, as the loop carries it; for a list, whether each item does."""
    if isinstance(value, Variable) and isinstance(value.type, ArrayType):
        return list_flags(session, activity, value)
    return as_operand(session, activity)


def _enter(
    forward: Forward, block: Block, inits: list[Any], active: set[int], settled: set[int]
) -> tuple[list[Any], dict[int, Variable]]:
    """Block arguments and stand-ins for what a loop carries; flags for what may need a gradient or not."""
    session = forward.session
    stand_ins = []
    flags: dict[int, Variable] = {}
    for position, arg in enumerate(block.args):
        new = session.new_variable(arg.type, arg.hint)
        session.scope.block.args.append(new)
        exists = isinstance(inits[position], torch.Tensor) or not isinstance(arg.type, TensorType)
        forward.env[arg] = (
            forward.lift(new, arg, [inits[position]]) if exists else forward.lift_tensor(new, arg, None)
        )
        forward.activity[arg] = known(position in active)
        if position in active and position not in settled:
            array = isinstance(arg.type, ArrayType)
            flags[position] = flag = session.new_variable(FLAGS if array else ScalarType("bool"))
            forward.activity[arg] = flag if array else when(flag)
        stand_ins.append(forward.env[arg])
    return stand_ins, flags


def _activity_after(
    forward: Forward,
    op: Operator,
    active: set[int],
    count: Variable,
    flags: dict[int, Variable],
    after: dict[int, Activity],
) -> None:
    """After the loop: active always, if there was an iteration, or as the flag says that went through the loop."""
    session = forward.session
    again: Variable | None = None
    for position in active:
        out, flag = op.outputs[position], flags.get(position)
        if not forward.can_carry(out):
            continue
        before = forward.activity_of(op.args[position])
        if isinstance(out.type, ArrayType):
            forward.activity[out] = ALWAYS if flag is None else flag
        elif is_always(before) and flag is None:
            forward.activity[out] = ALWAYS
        elif flag is not None and not is_always(after[position]):
            forward.activity[out] = when(flag)
        else:
            if again is None:
                (again,) = session.emit("scalar.gt", [count, 0])
            forward.activity[out] = join_activity([before, when(again)])


def backward(backward: Backward, entry: LoopEntry, grads: Grads) -> None:
    """The loop over the same iterations, last to first. A gradient that is not there stays None all the way."""
    given = {p: grads.pop(entry.op.outputs[p]) for p in entry.active if entry.op.outputs[p] in grads}
    for out in entry.op.outputs:
        grads.pop(out, None)
    if not given:
        return
    maybe = {p for p in entry.active if p not in given or (isinstance(given[p], Grad) and given[p].maybe)}
    while True:
        backward.session.replaying.location = entry.op.location  # type: ignore[union-attr]
        body = _Body(backward, entry, maybe)
        if body.maybe <= maybe:
            break
        maybe |= body.maybe
    _emit(backward, entry, body, given, grads)


class _Body:
    """One recording of the backward body, under a guess of which carried gradients can be None."""

    def __init__(self, backward: Backward, entry: LoopEntry, maybe: set[int]) -> None:
        session = backward.session
        inside = inner_variables(entry.op.blocks[1])
        self.lists = _outer_lists(backward.forward, entry.op.blocks[1])
        with session.open("while_loop") as scope:
            scope.forward = entry.body_scope
            self.scope = scope
            self.count = session.new_variable(ScalarType("int"))
            for flag, (now, end) in entry.later.items():
                (known,) = session.emit("scalar.lt", [now or self.count, end])
                backward.known[flag] = known
            self.again = {flag: session.new_variable(ScalarType("bool")) for flag in _written_again(backward, entry)}
            backward.known.update((flag, self.again.get(flag, False)) for flag in entry.again)
            list_args = [session.new_variable(var.type) for var in self.lists]
            mine: Grads = {var: ListGrad(arg) for var, arg in zip(self.lists, list_args)}
            self.args = [_arrive(backward, entry, position, mine, position in maybe) for position in entry.active]
            backward.block(entry.tape, mine)
            self.nexts: list[Operand] = []
            self.maybe: set[int] = set()
            for position in entry.active:
                grad = mine.pop(entry.op.blocks[1].args[position], None)
                self.nexts.append(None if grad is None else backward.contiguous(grad))
                if grad is None or (isinstance(grad, Grad) and grad.maybe):
                    self.maybe.add(position)
            self.outer = {var: grad for var, grad in mine.items() if var not in inside}
            self.acc_args: list[Variable] = []
            self.acc_next: list[Operand] = []
            for var, grad in self.outer.items():
                if isinstance(grad, ListGrad):
                    self.acc_args.append(list_args[self.lists.index(var)])
                    self.acc_next.append(grad.var)
                    continue
                type_ = backward.type_like(var)
                acc = session.new_variable(type_)
                self.acc_args.append(acc)
                self.acc_next += accumulate(session, acc, session.read(grad.tensor), type_)
            written = [condition(backward, entry.again[flag][0].stale()) for flag in self.again]
            self.again_next = [one.operand(session) for one in written]
            (self.left,) = session.emit("scalar.sub", [self.count, 1])


def _is_dead(condition: PathCondition, dead: Collection[Variable]) -> bool:
    """Whether some flags are never true, and it then is not."""
    return condition.replaced(lambda flag: False if flag in dead else flag).never


def _written_again(backward: Backward, entry: LoopEntry) -> list[Variable]:
    """Which of what a loop carries may be written after the iteration that it leaves, by a later one or after all."""
    dead = {flag for flag, known in backward.known.items() if known is False} | set(entry.again)
    while True:
        found = {
            flag
            for flag in dead & set(entry.again)
            if any(
                not any(not callable(part) and _is_dead(part, dead) for part in case)
                for watch in entry.again[flag]
                for case in watch.stale()
            )
        }
        if not found:
            return [flag for flag in entry.again if flag not in dead]
        dead -= found


def accumulate(session: Session, total: Variable, grad: Variable, type_: Type) -> tuple[Variable, ...]:
    """The total with one more gradient; a matrix product is added without being made."""
    product = _product(session.scope.block.ops, grad)
    if product is not None:
        return session.emit("grad.accumulate_product", [total, *product.args], None, [type_])
    return session.emit("grad.accumulate", [total, grad], None, [type_])


def _product(ops: Sequence[Operator], grad: Variable) -> Operator | None:
    """The matrix product that a gradient is, or of which it is the transposed transposed, if nothing else reads it."""
    makers = {out: op for op in ops for out in op.outputs}
    reader: Operator | None = None
    turned = False
    while not any(grad in reads(other) for other in ops if other is not reader):
        op = makers.get(grad)
        if op is not None and op.name == "aten.mm.default":
            return None if turned else op
        if op is None or op.name != "aten.t.default":
            return None
        reader, turned = op, not turned
        (grad,) = op.inputs
    return None


def _emit(backward: Backward, entry: LoopEntry, body: _Body, given: dict[int, Any], grads: Grads) -> None:
    session, forward, op = backward.session, backward.forward, entry.op
    block = body.scope.block
    starts = [backward.contiguous(given[position]) if position in given else None for position in entry.active]
    block.yields = [body.left, *body.nexts, *body.acc_next, *body.again_next]  # what those read of the forward is kept
    most = checkpoints.most_kept(backward, entry)
    stack_args, stack_next, stack_starts = (
        _stacks(backward, entry, body.scope)
        if most is None
        else checkpoints.keep_states(backward, entry, body.scope, body.count, most)
    )
    again = [condition(backward, entry.again[flag][1].stale()).operand(session) for flag in body.again]
    block.args = [body.count, *body.args, *body.acc_args, *stack_args, *body.again.values()]
    place = len(block.yields) - len(body.again_next)
    block.yields = [*block.yields[:place], *stack_next, *block.yields[place:]]
    with session.open("while_loop") as test_scope:
        test_scope.block.args = [session.new_variable(arg.type) for arg in block.args]
        (going,) = session.emit("scalar.gt", [test_scope.block.args[0], 0])
        test_scope.block.yields = [going]
    before = [grads[var].var if isinstance(grads.get(var), ListGrad) else None for var in body.outer]
    outputs = session.emit(
        "while_loop",
        [entry.count, *starts, *before, *stack_starts, *again],
        None,
        [arg.type for arg in block.args],
        blocks=[test_scope.block, block],
        attrs={"backward": True} if most is None else {"backward": True, "checkpoints": most},
    )
    added_up = outputs[1 + len(entry.active) :]
    for var, out in zip(body.outer, added_up):
        if isinstance(body.outer[var], ListGrad):  # in the place of what was there before: first, as more may be added
            grads[var] = ListGrad(out)
    for position, out in zip(entry.active, outputs[1:]):
        arg = op.args[position]
        if isinstance(arg, Variable) and forward.is_active(arg):
            maybe = position not in given or position in body.maybe or getattr(given[position], "maybe", True)
            backward.add(grads, arg, backward.grad_of(arg, out, maybe))
    for var, out in zip(body.outer, added_up):
        if not isinstance(body.outer[var], ListGrad):
            backward.add(grads, var, backward.grad_of(var, out, True))


def _outer_lists(forward: Forward, body: Block) -> list[Variable]:
    """Lists from outside that the body reads items of: their gradients are lists that the loop carries."""
    return [var for var in body.captures() if isinstance(var.type, ArrayType) and forward.is_active(var)]


def _arrive(backward: Backward, entry: LoopEntry, position: int, mine: Grads, maybe: bool) -> Variable:
    """The Block argument for the gradient of what an iteration left at ``position``."""
    left, out = entry.op.blocks[1].yields[position], entry.op.outputs[position]
    if not isinstance(out.type, ArrayType):
        return arriving(backward, left, entry.carried[position], mine, maybe)
    arg = backward.session.new_variable(out.type)
    if isinstance(left, Variable) and backward.forward.is_active(left):
        backward.add(mine, left, ListGrad(arg))
    return arg


def arriving(backward: Backward, left: Operand, carried: Any, mine: Grads, maybe: bool) -> Variable:
    """The Block argument for the gradient of what an iteration ``left``; ``carried``: what it began with."""
    session, forward = backward.session, backward.forward
    end = forward.env.get(left) if isinstance(left, Variable) else None
    like = end if isinstance(end, torch.Tensor) else carried
    arg = session.new_variable(session.type_of(like))
    if isinstance(left, Variable) and forward.is_active(left):
        backward.add(mine, left, Grad(backward.like(like, arg), maybe))
    return arg


def _stacks(
    backward: Backward, entry: LoopEntry, scope: Scope
) -> tuple[list[Variable], list[Operand], list[Operand]]:
    """What a body's backward reads of its forward is pushed by each iteration and popped by its backward."""
    session = backward.session
    forward_block = entry.body_scope.block
    wanted = [var for var in scope.block.captures() if var in entry.body_scope.names]
    whole = bool(entry.op.attrs.get("recompute"))
    args: list[Variable] = []
    nexts: list[Operand] = []
    starts: list[Operand] = []
    test_block = entry.recorded.blocks[0]
    mapping: dict[Variable, Variable] = {}
    pops: list[Operator] = []
    empty: list[Operator] = []
    for var in rebuild(forward_block, scope.block, wanted, backward.rebuilds(whole), session.new_name):
        type_: Type = ArrayType(var.type)
        with session.reopen(entry.scope):
            new = session.new_variable(type_)
        empty.append(Operator("array.new", ([],), {}, (new,), location=entry.op.location))
        pushed_arg = session.new_variable(type_, "", entry.body_scope)
        forward_block.args.append(pushed_arg)
        test_block.args.append(session.new_variable(type_))
        pushed = session.new_variable(type_, "", entry.body_scope)
        forward_block.ops.append(Operator("array.append", (pushed_arg, var), {}, (pushed,), location=entry.op.location))
        forward_block.yields.append(pushed)
        out = session.new_variable(type_, "", entry.scope)
        arg = session.new_variable(type_, "", scope)
        rest = session.new_variable(type_, "", scope)
        item = session.new_variable(var.type, var.hint, scope)
        pops.append(Operator("array.pop", (arg, -1), {}, (rest, item), location=entry.op.location))
        mapping[var] = item
        args.append(arg)
        nexts.append(rest)
        starts.append(out)
    entry.recorded.args = (*entry.recorded.args, *(op.outputs[0] for op in empty))
    entry.recorded.outputs = (*entry.recorded.outputs, *starts)
    place = entry.scope.block.ops.index(entry.recorded)
    entry.scope.block.ops[place:place] = empty
    substitute(scope.block, mapping)
    scope.block.ops[:0] = pops
    return args, nexts, starts
