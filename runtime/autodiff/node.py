"""One autograd node: to the eager world a whole Program is one function with its own backward.

``Runner.run`` runs a Program. Where a gradient may be asked for, it runs the derived forward half and registers the
backward half as one ``torch.autograd`` node; where that is not possible, the interpreter runs under torch's autograd.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Protocol

import torch

from runtime import torch_internals
from runtime.autodiff.derive import Derivative, derive
from runtime.autodiff.forward import NotDifferentiable
from runtime.autodiff.lower import lower_gradients, targets
from runtime.autodiff.saved import Saved, load, save
from runtime.errors import InternalError, TraceError
from runtime.ir import Program
from runtime.ir.walk import blocks, copy_program
from runtime.ops.registry import definition
from runtime.ops.reporting import SAYING
from runtime.tracer import faults


class Executable(Protocol):
    """A compiled Program."""

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """The flat yields of the main Block."""


class Compile(Protocol):
    """Makes a Program runnable. ``consuming``: ``run`` gets one list with all arguments and empties it."""

    def __call__(self, program: Program, /, *, consuming: bool = False) -> Executable:
        """The compiled Program."""


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


Casting = tuple[tuple[str, bool, str], ...]
"""The part of an autocast state that is switched on."""

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


class Runner:
    """Runs one Program, with gradients."""

    def __init__(self, program: Program, compile: Compile, skip: Sequence[int] = ()) -> None:
        self.program = program
        self.compile = compile
        self.skip = tuple(skip)
        self._plain: Executable | None = None
        self._asks_gradients = bool(targets(program))
        self._halves: dict[Any, _Halves | None] = {}
        self._sized: set[Any] = set()
        """Kinds of arguments whose derivatives are made for each size by itself."""
        self.casting: Casting = ()
        """The autocast state that backward was last called under: what it is made for from then on."""
        self._lowered: dict[Any, Runner | None] = {}
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

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """The flat yields of the main Block; tensors among them carry their gradient history."""
        arguments = [*inputs, *params]
        if _path.name != "program":
            return self.plain.run(inputs, params)
        if self._asks_gradients:
            lowered = self.lowered(arguments)
            return self.plain.run(inputs, params) if lowered is None else lowered.run(inputs, params)
        if not torch.is_grad_enabled() or not any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            return self.plain.run(inputs, params)
        halves = self.halves(arguments)
        if halves is None:
            return self.plain.run(inputs, params)
        return halves.apply(arguments, len(inputs))

    def settled(self, arguments: Sequence[Any], n_inputs: int) -> Callable[[Sequence[Any]], list[Any]]:
        """``run`` for inputs and parameters that look like these, sizes and strides too, in the same modes: how the
        gradient is computed is decided now."""
        plain = self.plain.run
        if self._asks_gradients:
            return lambda arguments: self.run(arguments[:n_inputs], arguments[n_inputs:])
        if not torch.is_grad_enabled() or not any(isinstance(a, torch.Tensor) and a.requires_grad for a in arguments):
            return lambda arguments: plain(arguments, ())
        halves = self.halves(arguments)
        if halves is None:
            return lambda arguments: plain(arguments, ())
        apply, casting = halves.apply, halves.casting

        def run(arguments: Sequence[Any]) -> list[Any]:
            if self.casting != casting:
                return self.run(arguments[:n_inputs], arguments[n_inputs:])
            return apply(arguments, n_inputs) if _path.name == "program" else plain(arguments, ())

        return run

    def halves(self, arguments: Sequence[Any]) -> _Halves | None:
        """The compiled halves for such arguments; None where torch's autograd has to do it."""
        casting = self.casting  # another thread's backward may change it
        key = self._halves_key(arguments, casting)
        found = self._halves.get(key, self)
        if found is not self:
            return found  # type: ignore[return-value]  # mypy takes the sentinel for a value
        with self._lock:
            key = self._halves_key(arguments, casting)
            if key not in self._halves:
                with _preparing():
                    made = self._derive(arguments, casting)
                if isinstance(made, _Halves) and made.derivative.sized:
                    self._sized.add(key)
                    key = self._halves_key(arguments, casting)
                self._halves[key] = made
            return self._halves[key]

    def _halves_key(self, arguments: Sequence[Any], casting: Casting) -> Any:
        key = (_key(arguments), casting)
        return (key, tuple(argument.shape for argument in arguments)) if key in self._sized else key

    def _derive(self, arguments: Sequence[Any], casting: Casting) -> _Halves | None:
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
        return _Halves(self, derivative, casting)

    def lowered(self, arguments: Sequence[Any]) -> Runner | None:
        """The same Program with the gradients it asks for written out; None where torch's autograd has to do it."""
        key = _key(arguments)
        with self._lock:
            if key not in self._lowered:
                with _preparing():
                    self._lowered[key] = self._lower(arguments)
            return self._lowered[key]

    def _lower(self, arguments: Sequence[Any]) -> Runner | None:
        autocast = any(enabled for _, enabled, _ in torch_internals.autocast_state())
        if autocast or not _plain_tensors(arguments) or any(op.autocast for op in self.program.block.walk()):
            return None
        try:
            with torch_internals.undisturbed():
                program = lower_gradients(self.program, arguments)
        except _NO_PROGRAM:
            return None
        return Runner(program, self.compile, self.skip)


def _key(arguments: Sequence[Any]) -> Any:
    """What a derivative depends on beside the Program itself."""
    return (
        tuple(a.requires_grad for a in arguments),
        tuple(
            (a.dtype, a.device, a.is_contiguous() or tuple(a.stride())) if a.layout is torch.strided else id(a)
            for a in arguments
        ),
        torch_internals.autocast_state(),
    )


def _plain_tensors(arguments: Sequence[Any]) -> bool:
    kinds = (torch.Tensor, torch.nn.Parameter, torch.nn.Buffer)
    return all(type(a) in kinds and a.layout is torch.strided for a in arguments)


class _Halves:
    """The compiled halves of one derivative."""

    def __init__(self, runner: Runner, derivative: Derivative, casting: Casting) -> None:
        self.runner = runner
        self.casting = casting
        """The autocast state that the backward half was made for."""
        self.derivative = derivative
        with torch.no_grad():  # as they are run
            self.forward = runner.compile(derivative.forward)
            self.backward = runner.compile(derivative.backward, consuming=True)
        program = runner.program
        self.random = any(definition(op.name).random for op in program.block.walk())
        self.may_be_stale = any(op.name == "raise" for op in derivative.backward.block.walk())
        targets = {write.target for write in program.writes}
        self.write_positions = frozenset(write.index for write in program.writes)
        self.written = [index for index, arg in enumerate(program.block.args) if arg in targets]
        self._silent: Executable | None = None

    @property
    def silent(self) -> Executable:
        """The Program without what it prints and reports, for running it again."""
        if self._silent is None:
            program = copy_program(self.runner.program)
            for block in blocks(program):
                block.ops[:] = [op for op in block.ops if op.name not in SAYING]
            self._silent = self.runner.compile(program)
        return self._silent

    def apply(self, arguments: Sequence[Any], n_inputs: int) -> list[Any]:
        """Run the forward half; its differentiable results get one node."""
        call = _Call(self, n_inputs)
        results = iter(ProgramNode.apply(call, *arguments))
        values, call.values = call.values, []  # the node may not hold its own results
        own = {id(argument) for argument in arguments}
        for position in self.derivative.differentiable:
            value = values[position]
            result = [next(results) for _ in value] if isinstance(value, list) else next(results)
            if id(value) not in own:  # a path that gives an argument back gives that very tensor
                values[position] = result
        return values


class _Call:
    """One run: what the node's forward leaves for its caller and for its backward."""

    def __init__(self, halves: _Halves, n_inputs: int) -> None:
        self.halves = halves
        self.n_inputs = n_inputs
        self.values: list[Any] = []
        self.lengths: list[int | None] = []
        """For each differentiable result: how many items, if it is a list."""
        self.saved = Saved()
        self.rng = torch_internals.rng_state() if halves.random else None
        self.autocast = torch_internals.autocast_state()
        self.arguments: list[torch.Tensor] = []
        self.versions: list[int] = []

    def keep_arguments(self, arguments: Sequence[torch.Tensor]) -> None:
        """For running the Program again; what it writes is kept as it was."""
        self.arguments = list(arguments)
        for index in self.halves.written:
            self.arguments[index] = arguments[index].detach().clone().requires_grad_(arguments[index].requires_grad)
        self.versions = [argument._version for argument in self.arguments]


class ProgramNode(torch.autograd.Function):
    """The node of one run: forward half now, backward half when autograd asks."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *arguments: torch.Tensor) -> tuple[Any, ...]:
        """Run the forward half; a list among the results counts as its items."""
        derivative = call.halves.derivative
        call.keep_arguments(arguments)
        with torch_internals.autocast_off(call.autocast):
            values = call.halves.forward.run(arguments, [])
        call.values = values[: derivative.results]
        results, not_needed = _results(call, values, {id(argument) for argument in arguments})
        ctx.call = call
        ctx.set_materialize_grads(False)
        if not_needed:
            ctx.mark_non_differentiable(*not_needed)
        call.saved = save(ctx, values[derivative.results + len(derivative.flags) :], results)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        """Run the backward half.

        With ``create_graph``, or under another autocast state than it was made for, everything is run again under
        torch's autograd; the next call's backward half is made for that state.
        """
        call: _Call = ctx.call
        derivative = call.halves.derivative
        casting = torch_internals.autocast_on()
        call.halves.runner.casting = casting
        if torch.is_grad_enabled() and call.halves.may_be_stale:
            _require_unwritten(call, load(ctx, call.saved, keep=True), grads)
        if torch.is_grad_enabled() or casting != call.halves.casting:
            return (None, *_again(call, grads))
        residuals = load(ctx, call.saved, keep=torch_internals.graph_is_kept())
        result: list[Any] = [None] * len(call.arguments)
        if any(grad is not None for grad in grads):
            given = _per_result(call, [grad if grad is None else grad.contiguous() for grad in grads])
            with torch_internals.autocast_off(call.autocast):
                residuals += given
                del given, grads
                found = call.halves.backward.run(residuals, [])
            for position, grad in zip(derivative.needs, found):
                result[position] = grad
        return (None, *result)


def _require_unwritten(call: _Call, residuals: list[Any], grads: Sequence[torch.Tensor | None]) -> None:
    """Raise what eager's backward raises for values that were overwritten: the backward half tells.

    Errors raised: RuntimeError.
    """
    if any(grad is not None for grad in grads):
        given = _per_result(call, [grad if grad is None else grad.contiguous() for grad in grads])
        with torch.no_grad(), torch_internals.autocast_off(call.autocast):
            call.halves.backward.run([*residuals, *given], [])


def _results(call: _Call, values: list[Any], own: set[int]) -> tuple[list[Any], list[torch.Tensor]]:
    """The differentiable results, each an object of its own, and those of them that need no gradient this time."""
    derivative = call.halves.derivative
    seen: set[int] = set()
    results: list[Any] = []
    not_needed: list[torch.Tensor] = []

    def distinct(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in seen:
            value = value.detach()
        seen.add(id(value))
        return value

    for position in derivative.differentiable:
        value = call.values[position]
        items = value if isinstance(value, list) else [value]
        needed = values[derivative.flags[position]] if position in derivative.flags else True
        flags = needed if isinstance(needed, list) else [needed] * len(items)
        for item, flag in zip(items, flags):
            if not flag and id(item) in own:  # an argument without its history is another object
                item = item.detach()
                if value is not items:
                    call.values[position] = item
            item = distinct(item)
            results.append(item)
            if not flag and isinstance(item, torch.Tensor):
                not_needed.append(item)
        call.lengths.append(len(items) if isinstance(value, list) else None)
    for position, value in enumerate(call.values):
        if position not in derivative.differentiable:
            kept = own if position in call.halves.write_positions else frozenset()
            call.values[position] = _apart(value, seen, kept)
    return results, not_needed


def _apart(value: Any, seen: set[int], kept: AbstractSet[int]) -> Any:
    """A result without gradient as an object without history; ``kept``: arguments that stand for "not written"."""
    if isinstance(value, torch.Tensor):
        historic = value.requires_grad and id(value) not in kept
        # A view of a result would say that it needs a gradient, as that will; what was detached does not.
        detached = value._is_view() and id(value._base) in seen
        return value.detach() if historic or detached or id(value) in seen else value
    return [_apart(item, seen, kept) for item in value] if type(value) is list else value


def _per_result(call: _Call, grads: list[torch.Tensor | None]) -> list[Any]:
    """The gradients by result: those of a list's items as a list."""
    following = iter(grads)
    return [
        next(following) if length is None else [next(following) for _ in range(length)] for length in call.lengths
    ]


def _again(call: _Call, grads: Sequence[torch.Tensor | None]) -> list[Any]:
    """Gradients from the Program run once more by the interpreter under autograd: those of ``create_graph`` can be
    differentiated again.

    Errors raised: RuntimeError if an argument was modified in place since the first run.
    """
    halves = call.halves
    if [argument._version for argument in call.arguments] != call.versions:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"an argument of {halves.runner.program.name!r}, which create_graph=True runs again, and backward under "
            "another autocast state than before"
        )
    with torch_internals.autocast_as(call.autocast), torch_internals.rng_restored(call.rng), torch.enable_grad():
        views = [a.view_as(a) if a.requires_grad else a for a in call.arguments]
        needed = [view for view, a in zip(views, call.arguments) if a.requires_grad]
        values = halves.silent.run(views[: call.n_inputs], views[call.n_inputs :])
    flat: list[Any] = []
    for position in halves.derivative.differentiable:
        value = values[position]
        flat += value if isinstance(value, list) else [value]
    pairs = [(v, grad) for v, grad in zip(flat, grads) if grad is not None and v is not None and v.requires_grad]
    if not pairs:
        return [None] * len(views)
    found = iter(
        torch.autograd.grad(
            [v for v, _ in pairs], needed, [g for _, g in pairs],
            create_graph=torch.is_grad_enabled(), allow_unused=True,
        )
    )  # fmt: skip
    return [next(found) if a.requires_grad else None for a in call.arguments]
