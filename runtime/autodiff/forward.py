"""The forward half: a Program replayed on fake tensors under torch's autograd, recording what runs below it.

Straight-line runs between structural Operators are *segments*: torch's own derivative formulas are recorded later, when
backward asks autograd for their gradients. The result is the same Program, one level lower, plus a tape.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff import wholes
from runtime.autodiff.activity import can_carry, is_never, join_activity
from runtime.autodiff.failures import NotDifferentiable
from runtime.autodiff.kept import Keeping
from runtime.autodiff.replay_recorder import ReplayRecorder
from runtime.autodiff.tape import Activity, Segment, Tape
from runtime.autodiff.versions import Versions
from runtime.errors import TraceError
from runtime.ir import ArrayType, Block, Operand, Operator, ScalarType, TensorType, Type, Variable
from runtime.ir.definition import About, definition_of
from runtime.ir.operator import leaves
from runtime.ir.walk import map_operand
from runtime.ops import aten
from runtime.ops.update import is_counted, is_unnoticed, overloads
from runtime.tracer.ambient.calls import flatten_results, tensors_in
from runtime.tracer.memory.conditions import ALWAYS, NEVER
from runtime.tracer.numbers import number_operands, scalars
from runtime.tracer.recording import faults, sampled_shapes
from runtime.tracer.recording.session import Session
from runtime.tracer.values import flattening, structure, unification

Rule = Callable[["Forward", Operator, Tape], None]


_WHEN_TAKEN_APART: tuple[type[BaseException], ...] = (RuntimeError, TypeError)
"""What an operator given symbols for numbers may raise under autograd, where composite ones are taken apart."""
_ONLY_UNDER_AUTOGRAD = frozenset({"aten.mkldnn_rnn_layer.default"})
"""Kernels that keep what their backward needs only while gradients are recorded; the forward half runs without."""

_UNKNOWN_SHAPE = "D2S235"


class Forward:
    """Replays Blocks into a session. ``env``: a Variable of the Program -> fake, staged number or new Variable."""

    def __init__(self, session: Session, recorder: ReplayRecorder) -> None:
        self.session = session
        self.recorder = recorder
        self.env: dict[Variable, Any] = {}
        self.activity: dict[Variable, Activity] = {}
        self.sizes: dict[str, Any] = {}
        """The symbol of the replay for each of the Program's own symbols that is known."""
        self.devices: dict[torch.device, torch.device] = {}
        """Where tensors are now that the Program's types say are elsewhere: a saved one may run on another device."""
        self.items: dict[Variable, torch.Tensor] = {}
        """For a list's new Variable: a tensor like those in it, once one was met."""
        self.empty: set[Variable] = set()
        """Lists without items: what is said of all their items holds."""
        self.wanted: frozenset[Variable] = frozenset()
        """Values that need a gradient although nothing they are made of does (``gradients`` asks for theirs)."""
        self.blocked: frozenset[Variable] = frozenset()
        """Values that no gradient is to flow through."""
        self.may_need: frozenset[Variable] = frozenset()
        """What may need a gradient in eager although none is asked for here: eager keeps more for its backward then."""
        self.idle: frozenset[Operator] = frozenset()
        """Operators that no gradient has to flow through."""
        self._idle = False
        self.written: frozenset[TensorType] = frozenset()
        """The types of arguments into which the call writes once the forward half has run."""
        self.target: Operator | None = None
        """The ``gradients`` Operator that is being written out."""
        self.cuts: frozenset[Variable] = frozenset()
        """Results that other results are computed from: what reads one in the main Block starts another stage."""
        self.stage: dict[Variable, int] = {}
        """The stage in which the main Block computes each of its values."""
        self._seen = 0
        self.recursions: dict[str, Any] = {}
        """By name, what is known of the calls of the functions that call themselves and are being replayed."""
        self.loop_args: set[Variable] = set()
        """What the loops that are being replayed carry."""
        self.versions = Versions(session)
        self.tapes: list[Tape] = []
        """The tapes of the Block at hand and those around it, outer first."""
        self._segment: Segment | None = None
        self._live: dict[Variable, Any] = {}

    # -- Blocks --------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> Tape:
        """Replay a Block into the current scope."""
        tape = Tape()
        if not self.tapes:
            self.versions.counting = any(op.name == "update" for op in block.walk())
        self.tapes.append(tape)
        replaying = self.session.replaying
        assert replaying is not None
        inherited, mode = replaying.checkpoint, replaying.grad_mode
        for op in block.ops:
            replaying.checkpoint = inherited or int(op.attrs.get("checkpoint", 0))
            if replaying.lowering:
                replaying.grad_mode = "off" if replaying.without_gradients else op.grad_mode
            idle = self._idle
            if op in self.idle and not idle:
                self.close()
                self._idle = True
            if self.cuts and len(self.tapes) == 1:
                self._cut(tape, op)
            rule = rule_for(op, replaying.lowering)
            if rule is None:
                self._in_segment(tape, op)
            else:
                self.close()
                replaying.location = op.location
                if op.blocks and self.versions.counting:
                    self._know(op)
                rule(self, op, tape)
            if not self.wanted.isdisjoint(op.outputs):
                self.close()
                self.activity.update((out, ALWAYS) for out in op.outputs if out in self.wanted)
            if not self.blocked.isdisjoint(op.outputs):
                self.close()
                self.activity.update((out, NEVER) for out in op.outputs if out in self.blocked)
            if idle != self._idle:
                self.close()
                self._idle = idle
        replaying.checkpoint, replaying.grad_mode = inherited, mode
        self.close()
        self.tapes.pop()
        return tape

    def _know(self, op: Operator) -> None:
        """What an Operator's Blocks read from outside is older than they are."""
        for var in _read(op):
            value = self.env.get(var)
            if isinstance(value, torch.Tensor):
                self.versions.memory(value)

    def _cut(self, tape: Tape, op: Operator) -> None:
        """Begin another stage before an Operator that reads a result of this one."""
        now = len(tape.cuts)
        if any(
            var in self.cuts and self.stage.get(var) == now and self.is_active(var)
            for var in _read(op)
        ):
            self.close()
            tape.cuts.append((len(tape.entries), self._seen))
            now += 1
        self._seen += 1
        self.stage.update(dict.fromkeys(op.outputs, now))

    def close(self) -> None:
        """End the current segment: what follows sees its results as values, without their history."""
        segment = self._segment
        if segment is None:
            return
        leaves = {id(leaf) for leaf in segment.leaves.values()}
        for var, value in self._live.items():
            if isinstance(value, torch.Tensor):
                # A view made without gradients says that it needs one where its base does, and passes none on.
                if value.requires_grad and (not value.is_leaf or id(value) in leaves):
                    segment.results[var] = value
                    value = self.detached(value)
                self.env[var] = value
            else:
                self.env[var] = value
        self._segment = None
        self._live = {}

    def detached(self, fake: torch.Tensor) -> torch.Tensor:
        """The same value as a tensor without history.

        Errors raised: NotDifferentiable for a sparse tensor, of which there is no second one with the same memory.
        """
        if fake.layout is not torch.strided:
            raise NotDifferentiable("a sparse tensor that needs a gradient")
        with torch.no_grad():
            return self.recorder.alias(fake)

    def _in_segment(self, tape: Tape, op: Operator) -> None:
        if self._segment is None:
            self._segment = Segment()
            tape.entries.append(self._segment)
        self._segment.location = op.location
        self.session.replaying.location = op.location  # type: ignore[union-attr]
        with modes(op):
            self.session.autocast = torch_internals.autocast_now(self.session.outside.autocast)
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

    def activity_of(self, operand: Operand) -> Activity:
        """When a gradient may have to flow to an operand."""
        if self._idle or not isinstance(operand, Variable):
            return NEVER
        return self.activity.get(operand, NEVER)

    def is_empty(self, operand: Operand) -> bool:
        """Whether an operand is a list without items."""
        return isinstance(operand, Variable) and operand in self.empty

    def is_active(self, var: Variable) -> bool:
        """Whether a gradient may have to flow to ``var``."""
        return not self._idle and not is_never(self.activity.get(var, NEVER))

    def _run(self, op: Operator) -> None:
        """One Operator of a segment.

        Raises:
            NotDifferentiable: Its parts have shapes that are not known, though it has; or it raises, with autograd only
                (``out=``) or for sizes that are settled by now: at run time it says so at the user's line.
        """
        try:
            self._replay(op)
        except TraceError as error:
            if error.code == _UNKNOWN_SHAPE:
                raise NotDifferentiable(op.name) from error
            raise
        except (RuntimeError, IndexError, ValueError, TypeError) as error:
            if faults.is_torchs(error):
                raise NotDifferentiable(op.name) from error
            raise

    def _replay(self, op: Operator) -> None:
        if op.name == "update":
            self._update(op)
            return
        if not definition_of(op.name).passes_gradient:
            self._plain(op)
            return
        if op.name == "aten.detach.default":
            self._detach(op)
            return
        overload = aten.resolve(op.name)
        for_exception = not op.outputs and overload._schema.returns
        if for_exception or any(isinstance(out.type, ScalarType) for out in op.outputs):
            self._plain(op)
            return
        self._require_formula(op, overload)
        if torch_internals.reads_lengths(overload):
            raise NotDifferentiable(op.name)
        ops = self.session.scope.block.ops
        before = len(ops)
        with self._handlers_of(op):
            flat = flatten_results(wholes.recorded(self, overload, op))
        if any(one.name in _ONLY_UNDER_AUTOGRAD for one in ops[before:]):
            raise NotDifferentiable(op.name)
        for one in ops[before:] if "subscript" in op.attrs else ():
            one.attrs.update({"subscript": op.attrs["subscript"]} if one.name == op.name else {})
        if len(flat) != len(op.outputs):
            raise NotDifferentiable(op.name)
        for var, value in zip(op.outputs, flat):
            self._live[var] = value
        self._note_saved(op, op.inputs, flat)
        self.note_activity(op)

    @contextlib.contextmanager
    def _handlers_of(self, op: Operator) -> Iterator[None]:
        """What is recorded for an Operator is in the same ``try`` statements."""
        replaying = self.session.replaying
        assert replaying is not None
        before, replaying.caught = replaying.caught, op.attrs.get("caught", "")
        try:
            yield
        finally:
            replaying.caught = before

    def call(self, overload: Any, op: Operator) -> Any:
        """The Operator on stand-ins; a number that its kernel reads gets one, too, and has no derivative formula."""
        read = [arg for arg in torch_internals.kernel_numbers(overload, op.args, op.kwargs) if list(leaves(arg))]
        if not read:
            args, kwargs = self.value(op.args), self.value(op.kwargs)
            if not torch_internals.has_numbers((*args, *kwargs.values())):
                return overload(*args, **kwargs)
            try:  # under autograd it may be taken apart, by code that asks for the number
                return overload(*args, **kwargs)
            except _WHEN_TAKEN_APART as error:
                raise NotDifferentiable(op.name) from error
        places = dict.fromkeys(one for arg in read for one in leaves(arg))
        numbers = {var: self._stand_in(var) for var in places}
        args = self.value(map_operand(op.args, lambda var: numbers.get(var, var)))
        kwargs = self.value(map_operand(op.kwargs, lambda var: numbers.get(var, var)))
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors_in(args, kwargs)):
            if any(isinstance(out.type, TensorType) and _has_gradient(out.type) for out in op.outputs):
                raise NotDifferentiable(op.name)
        special = self.session.values.special_numbers
        while True:
            try:
                with torch_internals.below_autograd():  # what it is made of would be given numbers computed from these
                    return overload(*args, **kwargs)
            except sampled_shapes.Unlike as unlike:  # that value has a path of its own
                special[unlike.stand_in] = special.get(unlike.stand_in, frozenset()) | {unlike.value}
            except (RuntimeError, ValueError) as error:
                raise NotDifferentiable(op.name) from error

    def _stand_in(self, var: Variable) -> int | float:
        number = self.plain(var)
        if var.type == ScalarType("int"):
            return number_operands.int_stand_in(self.session, number)
        return number_operands.stand_in(self.session, number, 0.5)

    def _note_saved(
        self, op: Operator, inputs: Iterable[Variable], results: Sequence[Any],
        before: Mapping[int, int] | None = None,
    ) -> None:  # fmt: skip
        assert self._segment is not None
        operands = {var: self.plain(var) for var in inputs}
        for value in [*operands.values(), *results]:
            if isinstance(value, torch.Tensor):
                self.versions.memory(value)
        self.versions.note(self._segment, results, Keeping(self, op, operands, results), before)

    def trial(self, op: Operator, operands: dict[Variable, Any]) -> list[Any]:
        """What an Operator of a segment gives for other stand-ins; nothing of it is kept."""
        before, self._live = self._live, dict(operands)
        try:
            with self.session.open("trial"), modes(op):
                if op.name == "update":
                    self._run_update(op)
                    return [self._live[out] for out in op.outputs]
                return flatten_results(self.call(aten.resolve(op.name), op))
        finally:
            self._live = before

    def _require_formula(self, op: Operator, overload: Any) -> None:
        """Errors raised: NotDifferentiable if autograd has to look inside an operator's kernel."""
        if torch_internals.without_formula(overload) and any(map(self.is_active, op.inputs)):
            raise NotDifferentiable(op.name)

    def note_activity(self, op: Operator) -> None:
        """Results of an ATen operator are active when what it reads is, and they can carry a gradient."""
        read = _written_from(op) if op.name == "update" else _read(op)
        reached = join_activity(map(self.activity_of, read))
        for var in op.outputs:
            value = self._live.get(var)
            if isinstance(value, torch.Tensor) and value.requires_grad:
                self.activity[var] = ALWAYS if reached.never else reached

    def _detach(self, op: Operator) -> None:
        """Recorded as it is: what it gives is an object of its own, which the caller may see."""
        given = self.plain(op.args[0])
        fake = self.recorder.settle(given)  # of the copy itself, where it is one
        if fake.layout is not torch.strided:
            raise NotDifferentiable("a sparse tensor that needs a gradient")
        (new,) = self.session.emit(
            op.name, [self.session.read(fake)], types=[op.outputs[0].type], hints=[op.outputs[0].hint]
        )
        with torch.no_grad():
            made = self.session.fresh(self.session.clone_meta(self.session.fake(fake)), new)
        self.versions.continues(made, given)  # autograd counts the writes of both together
        self._live[op.outputs[0]] = made

    def _plain(self, op: Operator) -> None:
        """A scalar Operator or an effect: recorded as it is."""
        session = self.session
        outputs = session.emit(
            op.name,
            [session.operand(self.plain(arg)) for arg in op.args],
            {key: session.operand(self.plain(value)) for key, value in op.kwargs.items()},
            [out.type for out in op.outputs],
            hints=[out.hint for out in op.outputs],
            attrs={key: value for key, value in op.attrs.items() if key != "checkpoint"},
            location=op.location,
        )
        for var, out in zip(op.outputs, outputs):
            if isinstance(out.type, ScalarType):
                staged = scalars.wrap(out)
                self.env[var] = staged
                if definition_of(op.name).about is About.NUMBERS:
                    short = op.name.removeprefix("scalar.")
                    if short == "size":
                        staged.sym = self._size_symbol(op)
                    session.sizes.define(staged, short, self.plain(op.args))
            elif isinstance(var.type, TensorType) and var.type.shape is not None and var.type.dtype is not None:
                self.env[var] = self.lift_tensor(out, var, None)  # of a function that is called as it is
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
        if isinstance(operand, slice):
            return slice(self.plain(operand.start), self.plain(operand.stop), self.plain(operand.step))
        if isinstance(operand, dict):
            return {key: self.plain(item) for key, item in operand.items()}
        return operand

    def _update(self, op: Operator) -> None:
        """In-place Operators run on clones of the bases; a base that is not needed again is moved instead."""
        (block,) = op.blocks
        if "refused" in op.attrs and torch.is_grad_enabled() and any(map(self.is_active, _read(op))):
            raise NotDifferentiable("a write that PyTorch's autograd refuses")
        ops = self.session.scope.block.ops
        before = len(ops)
        self._run_update(op)
        for one in ops[before:]:  # what is differentiated again asks for the same of them
            one.attrs.update(op.attrs if one.name == "update" else {})
        self._note_write(op, block)
        if op.grad_mode == "off":
            for base, out in zip(op.args, op.outputs):
                self.activity[out] = self.activity_of(base)
        else:
            self.note_activity(op)
        for inner in block.ops:
            for var in inner.outputs:
                self._live.pop(var, None)
        for arg in block.args:
            self._live.pop(arg, None)

    def _run_update(self, op: Operator) -> None:
        """Leaves what the bases are afterwards, and all on the way there, among the segment's values."""
        (block,) = op.blocks
        saved = {}
        for arg, base in zip(block.args, op.args):
            fake = self.value(base)
            with self._history_goes_on() if op.grad_mode == "off" else contextlib.nullcontext():
                saved[arg] = self.recorder.copy_for_update(fake)
        self._live.update(saved)
        with torch.no_grad() if is_unnoticed(op) else contextlib.nullcontext():
            self._run_writes(block)
        for var, operand in zip(op.outputs, block.yields):
            self._live[var] = (
                self._live[operand] if isinstance(operand, Variable) and operand in self._live else self.value(operand)
            )

    @contextlib.contextmanager
    def _history_goes_on(self) -> Iterator[None]:
        """For a copy of what is written without gradients: what is recorded for it, if anything, has a history."""
        replaying = self.session.replaying
        assert replaying is not None
        mode = replaying.grad_mode
        replaying.grad_mode = "off" if replaying.without_gradients else "inherit"
        try:
            with torch.enable_grad():
                yield
        finally:
            replaying.grad_mode = mode

    def _run_writes(self, block: Block) -> None:
        for inner in block.ops:
            self.session.replaying.location = inner.location  # type: ignore[union-attr]
            if definition_of(inner.name).about is About.NUMBERS:
                self._plain(inner)
                continue
            overload = aten.resolve(inner.name)
            if torch_internals.without_formula(overload):
                raise NotDifferentiable(inner.name)
            with self._handlers_of(inner):
                result = flatten_results(self.call(overload, inner))
            for var, value in zip(inner.outputs, result):
                self._live[var] = value

    def _note_write(self, op: Operator, block: Block) -> None:
        """The bases are the same memory with another content: eager's backward asks whether that was counted."""
        counted = is_counted(block)
        counts = self.versions.counts(self.plain(one) for one in block.captures())
        for base, out in zip(op.args, op.outputs):
            before = self.plain(base)
            if is_unnoticed(op):
                self.versions.overwrote(before, self._live[out])
            elif counted and not op.attrs.get("repeats"):
                self.versions.wrote(before, op)
                self.versions.left(before, self._live[out])
            self.versions.continues(self._live[out], before)
        self._note_saved(op, [*block.captures(), *op.inputs], [self._live[out] for out in op.outputs], counts)

    # -- values that enter and leave structural Operators ----------------------------------------------------------

    def stable(self, fake: Any) -> Any:
        """A tensor as it leaves or enters a Block: contiguous, as what comes after relies on; a copy if it is one."""
        fake = self.recorder.settle(fake)
        if isinstance(fake, torch.Tensor) and fake.layout is torch.strided and not torch_internals.contiguity(fake)[0]:
            with torch.no_grad():
                return fake.contiguous()
        return fake

    def lower(self, operand: Operand) -> Operand:
        """The operand of the new Program for one of the old, read in the current Block."""
        return map_operand(operand, lambda var: self.session.operand(self.stable(self.plain(var))))

    def result(self, operand: Operand) -> Operand:
        """The same for a value that leaves its Block, or the Program."""
        return map_operand(operand, lambda var: self.session.operand(self.recorder.settle(self.plain(var))))

    def lift(self, var: Variable, old: Variable, like: list[Any]) -> Any:
        """The stand-in for a Variable of the new Program that carries what ``old`` did.

        ``like`` are the stand-ins of what may flow into it.
        """
        session = self.session
        if isinstance(old.type, ScalarType):
            return scalars.wrap(var)
        if isinstance(old.type, ArrayType):
            for one in like:
                if isinstance(one, Variable) and one in self.items:
                    self.items.setdefault(var, self.items[one])
            return var
        fakes = [fake for fake in like if isinstance(fake, torch.Tensor)]
        if not isinstance(old.type, TensorType) or not fakes:
            return var
        if old.type.dtype is None or old.type.shape is None or len({fake.dtype for fake in fakes}) > 1:
            raise NotDifferentiable("a value whose dtype or rank differs between paths")
        merged: structure.Structure = unification.structure_of(session, fakes[0], structure.PLAIN)
        for fake in fakes[1:]:
            merged = unification.unify(
                session, merged, unification.structure_of(session, fake, structure.PLAIN), structure.PLAIN
            )
        if not isinstance(merged, structure.Tensor):
            raise NotDifferentiable("values on different devices")
        return self.lift_tensor(var, old, merged.device)

    def lift_tensor(self, var: Variable, old: Variable, device: torch.device | None) -> torch.Tensor:
        """A stand-in made of the type alone; ``device`` None: where the type says, else that of the first tensor."""
        if not isinstance(old.type, TensorType) or old.type.dtype is None or old.type.shape is None:
            raise NotDifferentiable("a value whose dtype or rank differs between paths")
        if device is None and old.type.device is not None:
            device = self.devices.get(old.type.device, old.type.device)
        if device is None:
            device = next(value.device for value in self.env.values() if isinstance(value, torch.Tensor))
        shape = tuple(dim if isinstance(dim, int) else self.sizes.get(dim, structure.DYNAMIC) for dim in old.type.shape)
        pictured = structure.Tensor(shape, None, old.type.dtype, device, False, True)
        lifted: torch.Tensor = flattening.lift(self.session, pictured, iter([var]), structure.PLAIN)
        for dim, size in zip(old.type.shape, lifted.shape):
            if isinstance(dim, str):
                self.sizes.setdefault(dim, size)
        return lifted

    def can_carry(self, var: Variable) -> bool:
        """Whether the value of a Variable, or the items of a list, can have a gradient at all."""
        if isinstance(var.type, ArrayType):
            element = var.type.element
            return isinstance(element, TensorType) and (
                element.dtype is None or element.dtype.is_floating_point or element.dtype.is_complex
            )
        return can_carry(self.env[var])


def _written_from(op: Operator) -> list[Variable]:
    """What the results of an ``update`` have a history of: its bases, and what the writes in it read of others, unless
    it was detached, or a write is to what was detached."""
    flows: dict[Variable, dict[Variable, None]] = {}
    apart: set[Variable] = set()
    found = {base: None for base in op.args if isinstance(base, Variable)}
    inside = {*op.blocks[0].args}
    for inner, overload in overloads(op.blocks[0]):
        detaches = inner.name == "aten.detach.default"
        read: dict[Variable, None] = {}
        for var in () if detaches or inner.grad_mode == "off" else _read(inner):
            read.update(flows.get(var, {} if var in inside else {var: None}))
        target = next(leaves(inner.args), None)
        if detaches or target in apart:
            apart.update(inner.outputs)
        elif overload._schema.is_mutable:
            found.update(read)
        flows.update(dict.fromkeys(inner.outputs, read))
        inside.update(inner.outputs)
    return list(found)


def _read(op: Operator) -> list[Variable]:
    """What an Operator and its Blocks read."""
    return [*op.inputs, *(var for block in op.blocks for var in block.captures())]


def _has_gradient(type_: TensorType) -> bool:
    return type_.dtype is None or type_.dtype.is_floating_point or type_.dtype.is_complex


def types_of(variables: Any) -> list[Type]:
    """The types of some Variables."""
    return [var.type for var in variables]


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
        if settings := op.attrs.get("settings"):
            stack.enter_context(torch_internals.under_settings(settings))
        yield


RULES: dict[str, Rule] = {}
FAMILIES: dict[str, Rule] = {}
"""How forward halves are recorded, by operator and by the first part of its name: ``rules.py`` fills both."""


def rule_for(op: Operator, lowering: bool) -> Rule | None:
    """The rule of an Operator's forward half; None for those of straight-line runs."""
    if lowering and op.name == "aten.detach.default":
        return RULES["grad.leaf"]
    found = RULES.get(op.name) or FAMILIES.get(op.name.partition(".")[0])
    if found is None and op.name.startswith("aten.") and _has_list(op):
        return FAMILIES["array"]
    return found


def _has_list(op: Operator) -> bool:
    return any(isinstance(var.type, ArrayType) for var in [*leaves(op.args), *op.outputs])


__all__ = ["Forward", "NotDifferentiable", "modes", "types_of"]
