"""When the hooks of tensors are called: where the function asks for a gradient, in autograd's order.

What a hook makes of a gradient stands in its Operator's Block, which was traced when the hook was registered. Python
looks things up when the hook is called: so it is traced once more where a gradient goes through it, and at the end of
the function, and has to compute the same. A hook that changes something is called where a gradient is asked for, for
what it changes.

Autograd runs its nodes from the youngest to the oldest, and adds a gradient to a leaf as soon as all are done that the
leaf gets a share from.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Block, Location, Operand, Operator, Variable
from runtime.ir.definition import definition_of
from runtime.ir.walk import map_operand
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.tracer.ambient import state
from runtime.tracer.python_state.journal import Place
from runtime.tracer.recording import histories
from runtime.tracer.recording.gradient_paths import Paths, reached

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


@dataclass(frozen=True, eq=False)
class HookRecord:
    """A hook of a tensor that is no leaf."""

    tensor: torch.Tensor | None
    """The tensor that it was registered on; None: it is the backward of an ``autograd.Function``."""
    var: Variable | None
    """What that held: it is behind the hook."""
    changes: str
    """What it changes, for errors; empty if it only computes."""
    looks_up: bool
    """Whether it may find something else by the time backward calls it."""
    where: Location | None
    verify: Callable[[Operator], None]
    """Raises if the hook would compute something else by now."""
    call: Callable[[Any], None] | None
    """Call it with a gradient, for what it changes."""
    lists: list[list[Any]]
    """Lists that it changes."""
    lasting: Callable[[torch.Tensor], torch.Tensor] | None
    """The hook as each run may call it, with a gradient of its own: all that it refers to is older than the trace."""
    settle: Callable[[Operator], None] | None = None
    """What is done at the end of the function in place of ``verify``, which is about a gradient asked for inside."""


@dataclass(frozen=True)
class Arrival:
    """What is done when a gradient arrives at a tensor that it was asked by."""

    var: Variable
    is_leaf: bool
    done: Callable[[], None]


def heard(session: Session, paths: Paths, leading: set[Variable]) -> list[Operator]:
    """The Operators of hooks that gradients go through on their way to what was asked for; of those in the Blocks of
    branches and loops all that they may go through."""
    if not session.graph.hook_records:
        return []
    open_ones = {op for scope in session.scope.chain() for op in scope.block.ops}
    run = set(paths.run(leading))
    found = [op for op in paths.through if op in session.graph.hook_records and (op in run or op not in open_ones)]
    session.graph.hooks_heard.update(found)
    return found


def changing(session: Session, ops: Iterable[Operator]) -> list[Operator]:
    """Those of some hooks that change something, which are called now.

    Raises:
        TraceError: D2S275, one was registered in a branch or loop that is over.
    """
    found = [op for op in ops if session.graph.hook_records[op].changes]
    for op in found:
        record = session.graph.hook_records[op]
        if any(map(_draws_or_says, op.blocks[1].walk())):
            raise session.error(
                f"a hook of a tensor {record.changes}, and prints, logs or draws random numbers, too", code="D2S275",
                hint="Make two hooks of it, one for each.", location=record.where)
        if not session.visible(op.outputs[0]):
            raise session.error(
                f"a hook of a tensor that a branch or loop made {record.changes}, and is called after it",
                hint="Ask for the gradient in the branch or loop, or let the hook only compute.",
                code="D2S275", location=record.where)
    return found


def _draws_or_says(op: Operator) -> bool:
    definition = definition_of(op.name)
    return definition.says or definition.random or op.name.startswith("host.") or (
        op.name.startswith("aten.") and aten.is_random(aten.resolve(op.name), op.args, op.kwargs))


def call_in_order(
    session: Session, paths: Paths, arrivals: Iterable[Arrival], ops: Iterable[Operator], given: dict[Operator, Any]
) -> None:
    """Do what ``arrivals`` say, and call hooks; ``ops``: the hooks that the gradient goes through, ``given``: what
    those get that are called now."""
    number = {op: index for index, op in enumerate(
        op for scope in reversed([*session.scope.chain()]) for op in scope.block.walk())}  # fmt: skip
    made = {out: index for op, index in number.items() for out in op.outputs}
    readers: dict[Variable, Operator] = {}
    for op in sorted((op for op in paths.through if op in number), key=number.__getitem__):
        for var in op.inputs:
            readers.setdefault(var, op)
    events: list[tuple[int, int, Variable | None, Callable[[], None]]] = []
    for op in ops:
        held = session.graph.hook_records[op].var
        of_tensor = None if held is None else session.graph.hooked.get(held)
        order = 0 if of_tensor is None or op not in of_tensor.ops else of_tensor.ops.index(op)
        start = op.outputs[0] if of_tensor is None else of_tensor.source
        events.append((made.get(start, number.get(op, 0)), 1000 - order, None,
                       functools.partial(_hear, session, op, given)))
    for one in arrivals:
        if one.is_leaf:
            reader = readers.get(one.var)
            events.append((-1 if reader is None else number[reader], -1, one.var, one.done))
        else:
            events.append((made.get(one.var, -1), 0, None, one.done))

    def later(a: tuple[Any, ...], b: tuple[Any, ...]) -> int:
        if a[:2] != b[:2]:
            return -1 if a[:2] > b[:2] else 1
        reader = None if a[2] is None or b[2] is None or a[2] is b[2] else readers.get(a[2])
        if reader is None:
            return 0
        answer = histories.on_stand_ins(session, reader, a[2], functools.partial(_is_first, a[2], b[2]))
        return 0 if answer is None else -1 if answer else 1

    for *_, done in sorted(events, key=functools.cmp_to_key(later)):
        done()


def _hear(session: Session, op: Operator, given: dict[Operator, Any]) -> None:
    record = session.graph.hook_records[op]
    record.verify(op)
    if op in given and record.call is not None:
        record.call(given[op])


def _is_first(one: Variable, other: Variable, results: list[Any], stand_ins: dict[Variable, Any]) -> bool:
    """Whether the gradient of one leaf arrives before another's, of an Operator that reads both."""
    order: list[Variable] = []
    for var in (one, other):
        stand_ins[var].requires_grad_().register_hook(functools.partial(_note, order, var))
    roots = [result for result in results if is_a(result, torch.Tensor) and result.requires_grad]
    with state.away():
        torch.autograd.backward(roots, [torch.ones_like(root) for root in roots])
    return order[0] is one


def _note(order: list[Variable], var: Variable, grad: torch.Tensor) -> None:
    order.append(var)


def require_settled(session: Session, results: Iterable[Operand]) -> None:
    """At the end of the function: hooks that a gradient of its results goes through only compute, and would compute the
    same; one that changes what is older than the trace, or looks something up, is called by each backward itself.

    Raises:
        TraceError: D2S275, D2S213.
    """
    if not session.graph.hook_records:
        return
    looks = session.looks.of
    roots = [one for one in results if is_a(one, Variable) and one in looks and looks[one].requires_grad]
    through = reached(session, roots, ()).through
    for op, record in session.graph.hook_records.items():
        if op not in through or any(op in used.ops and used.when.always for used in session.graph.used_up):
            continue
        later = record.changes or (record.looks_up and not session.call.ahead.in_file)
        if later and record.lasting is not None and op not in session.graph.hooks_heard:
            _call_at_run_time(session, op, record.lasting)
            session.call.adding += [(Place("added", one), len(one)) for one in record.lists]
            continue
        if record.changes:
            raise session.error(
                f"a hook of a tensor {record.changes}, and is called by whoever asks for a gradient outside of the "
                "converted function: a Program's backward only gives gradients", code="D2S275", location=record.where,
                hint="Let it change what there is before the call (an attribute of the module, a global list), or "
                     "return the tensor and register the hook outside.")
        (record.settle or record.verify)(op)


def _call_at_run_time(session: Session, op: Operator, hook: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Let the gradient of an Operator be what a Python function makes of it."""
    key = f"hook {len(session.graph.hook_functions)}"
    session.graph.hook_functions[key] = hook
    (out,) = op.outputs
    given, made = (Variable(session.new_name(), out.type) for _ in range(2))
    called = Operator("py_func", (given,), outputs=(made,), attrs={"function": key}, location=op.location)
    op.blocks = (op.blocks[0], Block([given], [called], [made]))
    op.attrs["once"] = True


def alike(one: Block, other: Block, known: dict[Variable, Variable]) -> bool:
    """Whether two Blocks compute the same, whatever they test of Python; ``known``: what the Variables of the second
    are called in the first."""
    ops, its_ops = ([op for op in block.ops if op.name != "unchanged"] for block in (one, other))
    if len(one.args) != len(other.args) or len(ops) != len(its_ops):
        return False
    known.update(zip(other.args, one.args))

    def read(operand: Any) -> Any:
        return map_operand(operand, lambda var: known.get(var, var))

    for mine, its in zip(ops, its_ops):
        same = (mine.name, mine.grad_mode, mine.autocast, len(mine.outputs), len(mine.blocks)) == (
            its.name, its.grad_mode, its.autocast, len(its.outputs), len(its.blocks))
        its_operands = read(its.args), read(its.kwargs), _attrs(its)
        if not same or not _equal((mine.args, mine.kwargs, _attrs(mine)), its_operands):
            return False
        if not all(alike(a, b, known) for a, b in zip(mine.blocks, its.blocks)):
            return False
        known.update(zip(its.outputs, mine.outputs))
    return _equal(list(one.yields), [read(value) for value in other.yields])


def _attrs(op: Operator) -> dict[str, Any]:
    """What an Operator says of itself, without the region of ``recompute`` that it stands in."""
    return {name: value for name, value in op.attrs.items() if name != "checkpoint"}


def _equal(one: Any, other: Any) -> bool:
    if is_a(one, Variable) or is_a(other, Variable) or type(one) is not type(other):
        return one is other
    if is_a(one, (list, tuple)):
        return len(one) == len(other) and all(map(_equal, one, other))
    if is_a(one, dict):
        return one.keys() == other.keys() and all(_equal(one[key], other[key]) for key in one)
    if is_a(one, slice):
        return _equal((one.start, one.stop, one.step), (other.start, other.stop, other.step))
    return one is other or bool(one == other) or one != one and other != other


__all__ = ["Arrival", "HookRecord", "alike", "call_in_order", "changing", "heard", "require_settled"]
