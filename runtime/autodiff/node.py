"""How a Program is run so that its results have gradients.

``Runner.run`` runs a Program. Where a gradient may be asked for, it runs the derived forward half and registers the
backward half as a ``torch.autograd`` node (``halves``); where that is not possible, the interpreter runs under torch's
autograd.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.autodiff.assumed import Assumed, OfSizes
from runtime.autodiff.derive import derive
from runtime.autodiff.forward import NotDifferentiable
from runtime.autodiff.halves import Casting, Compile, Executable, Halves, Runs, Takeover
from runtime.autodiff.lower import lower_gradients, targets
from runtime.errors import InternalError, TraceError
from runtime.ir import Operator, Program, TensorType, Variable
from runtime.ir.flow import Kind
from runtime.ir.ports import flow_of
from runtime.ir.walk import copy_program
from runtime.passes.manager import PassManager
from runtime.tracer.recording import faults


class _Path(threading.local):
    name = "program"


_path = _Path()


@contextlib.contextmanager
def gradient_path(name: str) -> Iterator[None]:
    """Choose how gradients are computed in this thread: ``"program"`` (backward Programs) or ``"autograd"`` (the
    interpreter under torch's autograd, the oracle).

    Raises:
        ValueError: Another name.
    """
    if name not in ("program", "autograd"):
        raise ValueError(f"the gradient path is 'program' or 'autograd', not {name!r}")
    before, _path.name = _path.name, name
    try:
        yield
    finally:
        _path.name = before


_CHOOSES = ("aten.scaled_dot_product_attention.default",)
"""Composite operators that choose a kernel by settings of the process: so does their derivative when it is made."""

_WITH_HISTORY = ("grad.leaf", "grad.named")
"""Operators whose results have a history under autograd although no argument has one."""

BIG = 65_536
"""Elements of an argument from which on a backward Program is faster than torch's autograd in straight lines."""

_NORMS = frozenset({"aten.batch_norm.default", "aten.instance_norm.default", "aten.native_batch_norm.default"})

_OF_COUNTS = frozenset({torch.int64, torch.int32, torch.bool})

_NO_PROGRAM = (NotDifferentiable, TraceError)
"""What a replay raises where the gradient has no static form: torch's autograd does it at run time."""

_ON_A_PATH = ("modified by an inplace operation", "a view and is being modified inplace")
"""What autograd says of a write that spoils a backward: at run time it says so only on the path that has the write."""


@contextlib.contextmanager
def _preparing() -> Iterator[None]:
    """Around what is done before a Program runs: a fault of ours is a located error."""
    try:
        with faults.guarded():
            yield
    except InternalError as error:
        error.before_run = True
        raise


def choose_autograd(name: Any) -> str:
    """The option ``autograd`` of ``to_static`` and ``load``. Errors raised: ValueError for anything it cannot be."""
    if name not in ("program", "eager"):
        raise ValueError(f"autograd is 'program' or 'eager', not {name!r}")
    return str(name)


class Runner:
    """Runs one Program, with gradients. ``eager``: always under torch's autograd, operator by operator. ``takeover``:
    another executor runs what needs no such autograd, after some calls. ``unwatched``: the passes for that.
    ``interpreted``: whether ``compile`` calls operators one by one: torch's autograd, written in C++, is then the
    faster one for small tensors where no loop is."""

    def __init__(
        self, program: Program, compile: Compile, skip: Sequence[int] = (), *, eager: bool = False,
        takeover: Takeover | None = None, unwatched: PassManager | None = None, interpreted: bool = False,
    ) -> None:
        self.eager = eager
        self.straight = interpreted and _is_straight(program)
        self.takeover = takeover
        self.unwatched = unwatched or PassManager(())
        self.program = program
        self.compile = compile
        self.skip = tuple(skip)
        self._plain: Executable | None = None
        self._ungraded: Executable | None = None
        self._asks_gradients = bool(targets(program))
        self._chooses_kernels = any(op.name in _CHOOSES for op in program.block.walk())
        self._halves: dict[Any, Runs | None] = {}
        self._sized = OfSizes()
        """Which of the halves serve which sizes."""
        self.casting: Casting = ()
        """The autocast state that backward was last called under: what it is made for from then on."""
        self._lowered: dict[Any, Runner | None] = {}
        self._lowered_sized = OfSizes()
        """Which of the lowered Programs serve which sizes."""
        self._used: dict[Any, bool] = {}
        """Whether every result depends on a state with a history, on every path: by kind of arguments and position."""
        self._lock = threading.RLock()

    @property
    def plain(self) -> Executable:
        """The Program itself, compiled when it is first run: for runs without gradients, and the oracle."""
        found = self._plain
        if found is None:
            with self._lock:
                with _preparing():
                    found = self._plain = self._plain or self.compile(self.program)
        return found

    @property
    def ungraded(self) -> Executable:
        """What runs the Program where no gradient is asked for."""
        found = self._ungraded
        if found is None:
            with self._lock:
                if self._ungraded is None:
                    with _preparing():
                        self._ungraded = self._without_gradients()
                found = self._ungraded
        return found

    def _without_gradients(self) -> Executable:
        program = self.program
        if self.unwatched.passes and not any(op.name in _WITH_HISTORY for op in program.block.walk()):
            program = copy_program(self.program)
            if not self.unwatched.run(program).changes:
                program = self.program
        plain = self.plain if program is self.program else self.compile(program)
        return plain if self.takeover is None else self.takeover.plain(plain, program)

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """The flat yields of the main Block; tensors among them carry their gradient history.

        Transforms of torch.func and torch.jit.trace see each operator.
        """
        arguments = [*inputs, *params]
        if self.eager or _path.name != "program" or torch_internals.others_trace():
            return self._run_under_autograd(inputs, params)
        if self._asks_gradients:
            lowered = self.lowered(arguments)
            return self._run_under_autograd(inputs, params) if lowered is None else lowered.run(inputs, params)
        if not torch.is_grad_enabled() or not any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            return self.ungraded.run(inputs, params)
        halves = self.halves(arguments)
        if halves is None:
            return self.plain.run(inputs, params)
        return halves.apply(arguments, len(inputs))

    def _run_under_autograd(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """Run it operator by operator. Gradients that it asks for itself are those before hooks: it calls these on its
        own, and autograd would call them as well."""
        if not self._asks_gradients:
            return self.plain.run(inputs, params)
        arguments = [*inputs, *params]
        with torch.enable_grad():
            aliases = {index: one.view_as(one) for index, one in enumerate(arguments)
                       if isinstance(one, torch.Tensor) and one.requires_grad and one._backward_hooks}  # fmt: skip
        if not aliases:
            return self.plain.run(inputs, params)
        own = {id(alias): arguments[index] for index, alias in aliases.items()}
        given = [aliases.get(index, one) for index, one in enumerate(arguments)]
        results = self.plain.run(given[: len(inputs)], given[len(inputs) :])
        return [own.get(id(one), one) for one in results]

    def settled(
        self, arguments: Sequence[Any], n_inputs: int, *, exact: bool = True
    ) -> Callable[[Sequence[Any]], list[Any]]:
        """``run`` for inputs and parameters that look like these in the same modes: how the gradient is computed is
        decided now. ``exact``: their sizes and strides are the same, too; else they lie row after row."""
        plain = self.plain.run
        if self._asks_gradients:
            return lambda arguments: self.run(arguments[:n_inputs], arguments[n_inputs:])
        if self.eager:
            return lambda arguments: plain(arguments, ())
        if not torch.is_grad_enabled() or not any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            ungraded = self.ungraded
            return lambda arguments: ungraded.run(arguments, ())
        halves = self.halves(arguments)
        if not exact and (self.straight or halves is None or halves.derivative.assumed is not None):
            return lambda arguments: self.run(arguments[:n_inputs], arguments[n_inputs:])  # sizes decide
        if halves is None:
            return lambda arguments: plain(arguments, ())
        apply, casting, unsure = halves.apply, halves.casting, halves.derivative.unsure
        state = [(index, arguments[index].grad_fn is None) for index in self._state(arguments)]

        def run(arguments: Sequence[Any]) -> list[Any]:
            moved = state and any((arguments[index].grad_fn is None) is not bare for index, bare in state)
            if self.casting != casting or moved:
                return self.run(arguments[:n_inputs], arguments[n_inputs:])
            if _path.name != "program" or (unsure and _has_hooks(arguments, unsure)):
                return plain(arguments, ())
            return apply(arguments, n_inputs)

        return run

    def running(self) -> Iterator[tuple[str, Executable | Runs]]:
        """What has run so far, for looking at, and which calls each runs."""
        with self._lock:
            ungraded = self._ungraded or self._plain
            halves = [one for one in self._halves.values() if one is not None]
            lowered = [one for one in self._lowered.values() if one is not None]
        if ungraded is not None and not (halves and self._ungraded is None):
            yield "without gradients", ungraded
        for one in halves:
            yield "with gradients", one
        for runner in lowered:
            yield from runner.running()

    def halves(self, arguments: Sequence[Any]) -> Runs | None:
        """The compiled halves for such arguments; None where torch's autograd has to do it, or is faster."""
        if self.straight and not self._is_big(arguments):
            return None
        casting = self.casting  # another thread's backward may change it
        key = self._halves_key(arguments, casting)
        if not all(self._is_used(arguments, index, key) for index in self._state(arguments)):
            return None
        found = self._halves.get(key, _MISSING)
        if isinstance(found, _Missing):
            found = self._made_halves(arguments, casting)
        if found is not None and found.derivative.unsure and _has_hooks(arguments, found.derivative.unsure):
            return None  # autograd calls hooks where a node gives None; eager's graph does not lead there
        return found

    def _is_big(self, arguments: Sequence[Any]) -> bool:
        """Whether the call has so much data that writing over what is dead pays (``benchmarks/straight.py``)."""
        inputs = arguments[: len(arguments) - len(self.program.params)]
        return any(isinstance(one, torch.Tensor) and one.numel() >= BIG for one in inputs)

    def _made_halves(self, arguments: Sequence[Any], casting: Casting) -> Runs | None:
        with self._lock:
            key = self._halves_key(arguments, casting)
            if key not in self._halves:
                base = self._base_key(arguments, casting)
                if self._sized.is_full(base):
                    return None
                with _preparing():
                    made = self._derive(arguments, casting)
                if made is not None and made.derivative.assumed is not None:
                    key = self._sized.add(base, [made.derivative.assumed], arguments)
                self._halves[key] = made
            return self._halves[key]

    def _state(self, arguments: Sequence[Any]) -> list[int]:
        """Positions of tensors that are neither arguments of the call nor parameters and need gradients."""
        first = len(arguments) - len(self.program.params)
        return [
            index for index in range(first, len(arguments))
            if arguments[index].requires_grad and not isinstance(arguments[index], torch.nn.Parameter)
        ]

    def _is_used(self, arguments: Sequence[Any], index: int, key: Any) -> bool:
        """Whether the graph of what a call gives leads to this state in any case, if it has a history.

        A node of ours has all of its tensors behind it. So ``backward`` walks through the history of each, which the
        ``backward`` of a call before may have freed; eager's does so only where the path has read it.
        """
        if arguments[index].grad_fn is None:
            return True
        known = self._used.get((key, index))
        if known is None:
            with self._lock, _preparing():
                known = self._used[key, index] = self._always_reaches(arguments, index)
        return known

    def _always_reaches(self, arguments: Sequence[Any], index: int) -> bool:
        every = [one.requires_grad for one in arguments]
        alone = [place == index for place in range(len(arguments))]
        try:
            with torch_internals.undisturbed():
                results, own = (derive(self.program, arguments, needs, self.skip) for needs in (every, alone))
        except (*_NO_PROGRAM, RuntimeError):  # torch's autograd does it anyway, or says why not
            return True
        return not own.differentiable or (own.differentiable == results.differentiable and not own.flags)

    def _base_key(self, arguments: Sequence[Any], casting: Casting) -> Any:
        key: Any = (_key(arguments), casting)
        return (key, repr(torch_internals.settings())) if self._chooses_kernels else key

    def _halves_key(self, arguments: Sequence[Any], casting: Casting) -> Any:
        """What calls have in common that one derivative serves."""
        return self._sized.find(self._base_key(arguments, casting), arguments)

    def _derive(self, arguments: Sequence[Any], casting: Casting) -> Runs | None:
        if not _plain_tensors(arguments):
            return None
        try:
            with torch_internals.undisturbed():
                derivative = derive(self.program, arguments, [a.requires_grad for a in arguments], self.skip, casting)
        except _NO_PROGRAM:
            return None
        except RuntimeError as error:
            if any(message in str(error) for message in _ON_A_PATH):
                return None
            if not torch_internals.is_shape_error(error):  # a kernel that cannot be replayed while sizes are not known
                raise
            return None
        for half in derivative.programs():
            self.unwatched.run(half)
        made = Halves(self, derivative, casting)
        if self.takeover is None:
            return made
        return self.takeover.halves(made, self.program, lambda compile: Halves(self, derivative, casting, compile))

    def lowered(self, arguments: Sequence[Any]) -> Runner | None:
        """The same Program with the gradients it asks for written out; None where torch's autograd has to do it."""
        base = _key(arguments)
        with self._lock:
            key = self._lowered_sized.find(base, arguments)
            if key not in self._lowered:
                if self._lowered_sized.is_full(base):
                    return None
                with _preparing():
                    made, limits = self._lower(arguments)
                if limits:
                    key = self._lowered_sized.add(base, limits, arguments)
                self._lowered[key] = made
            return self._lowered[key]

    def _lower(self, arguments: Sequence[Any]) -> tuple[Runner | None, list[Assumed]]:
        autocast = any(enabled for _, enabled, _ in torch_internals.autocast_state())
        tensors = [one for one in arguments if isinstance(one, torch.Tensor)]
        if autocast or not _plain_tensors(tensors) or any(op.autocast for op in self.program.block.walk()):
            return None, []
        try:
            with torch_internals.undisturbed():
                program, limits = lower_gradients(self.program, arguments, self.skip)
        except _NO_PROGRAM:
            return None, []
        if _spoiled(program) > _spoiled(self.program):  # a kernel of many parts may write what it does not read again
            return None, []
        return Runner(program, self.compile, self.skip, takeover=self.takeover, unwatched=self.unwatched), limits


def _spoiled(program: Program) -> int:
    """How many Operators raise that a write has spoiled a backward."""
    return sum(op.name == "raise" and "overwritten" in op.attrs for op in program.block.walk())


def _is_straight(program: Program) -> bool:
    """Whether no operator is a loop, and none writes in place but to statistics. A branch is one straight line or the
    other.

    A written argument is no ancestor of what is computed from it under torch's autograd, as its memory is the caller's;
    and a backward Program names the line that overwrote what it needs. Neither matters for what norms keep of a batch:
    it has no gradient, whoever computes it.
    """
    kept = {one.var for one in program.params if not one.requires_grad}
    for op in program.block.ops:
        if not op.blocks or _only_branches(op):
            continue
        if not _keeps_statistics(op, kept):
            return False
        kept.update(op.outputs[: len(op.args)])
    return all(write.target in kept for write in program.writes)


def _only_branches(op: Operator) -> bool:
    """Whether it is a branch whose Blocks have nothing but plain operators and such branches."""
    return flow_of(op).kind is Kind.BRANCH and all(
        not inner.blocks or _only_branches(inner) for block in op.blocks for inner in block.ops
    )


def _keeps_statistics(op: Operator, kept: Collection[Variable]) -> bool:
    """Whether it writes but counts and what a norm keeps of a batch, and only ``kept``."""
    if op.name != "update" or op.attrs or not all(arg in kept for arg in op.args):
        return False
    counts = all(isinstance(one.type, TensorType) and one.type.dtype in _OF_COUNTS for one in op.blocks[0].args)
    return counts or all(inner.name in _NORMS for inner in op.blocks[0].ops)


class _Missing:
    """Says that nothing is known yet."""


_MISSING = _Missing()


def _has_hooks(arguments: Sequence[Any], positions: Collection[int]) -> bool:
    """Whether somebody is told of the gradients of one of some arguments."""
    return any(
        arguments[index]._backward_hooks or arguments[index]._post_accumulate_grad_hooks for index in positions
    )


def _key(arguments: Sequence[Any]) -> Any:
    """What a derivative depends on beside the Program itself. What is no tensor is a number, and does not matter."""
    tensors = [a for a in arguments if isinstance(a, torch.Tensor)]
    return (
        tuple(a.requires_grad for a in tensors),
        tuple(
            (a.dtype, a.device, a.is_contiguous() or tuple(a.stride())) if a.layout is torch.strided else id(a)
            for a in tensors
        ),
        torch_internals.autocast_state(),
    )


def _plain_tensors(arguments: Sequence[Any]) -> bool:
    kinds = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return all(type(a) in kinds and a.layout is torch.strided for a in arguments)
