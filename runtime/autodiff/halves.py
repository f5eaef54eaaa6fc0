"""The autograd nodes of a run: to the eager world a Program is one function with its own backward, or a few of them.

The forward half runs once. Each stage of the derivative becomes a ``ProgramNode``: the first has the arguments as its
inputs, the others also what they read of earlier stages (``runtime.autodiff.stages``).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch

from runtime import torch_internals
from runtime.autodiff.derive import Derivative
from runtime.autodiff.saved import Saved, load, save
from runtime.autodiff.stages import Stage, stage_program
from runtime.autodiff.unheard import Unheard, call_unheard, hears
from runtime.ir import Program
from runtime.ops import drawn, host
from runtime.ops.registry import definition
from runtime.tracer.memory.write_back import write_back


class Executable(Protocol):
    """A compiled Program."""

    def run(self, inputs: Sequence[Any], params: Sequence[Any]) -> list[Any]:
        """The flat yields of the main Block."""


class Compile(Protocol):
    """Makes a Program runnable. ``consuming``: ``run`` gets one list with all arguments and empties it; ``kept``:
    positions of yields that only Programs made runnable by the same one read."""

    def __call__(self, program: Program, /, *, consuming: bool = False, kept: Collection[int] = ()) -> Executable:
        """The compiled Program."""


Casting = tuple[tuple[str, bool, str], ...]
"""The part of an autocast state that is switched on."""


class Owner(Protocol):
    """Whose halves they are: it learns which autocast state backward is called under."""

    program: Program
    compile: Compile
    casting: Casting


class Halves:
    """The compiled halves of one derivative."""

    def __init__(
        self, runner: Owner, derivative: Derivative, casting: Casting, compile: Compile | None = None
    ) -> None:
        """``compile``: what makes the halves runnable, where it is not what their owner uses."""
        self.runner = runner
        self.program = program = runner.program
        self.compile = compile = compile or runner.compile
        self.casting = casting
        """The autocast state that the backward halves were made for."""
        self.derivative = derivative
        with torch.no_grad():  # as they are run
            self.forward = compile(derivative.forward, kept=derivative.kept)
            self.stages = [_Compiled(self, stage) for stage in derivative.stages]
        self.views = {position: (view, compile(view.program)) for position, view in derivative.views.items()}
        self.random = any(definition(op.name).random or host.sets_torch(op) for op in program.block.walk())
        self.draws = any(op.name.startswith(host.FAMILY) for op in program.block.walk())
        targets = {write.target for write in program.writes}
        self.write_positions = frozenset(write.index for write in program.writes)
        read = {leaf for stage in derivative.stages for leaf in stage.leaves}
        places = {arg: index for index, arg in enumerate(program.block.args)}
        self.early = {write.index: places[write.target] for write in program.writes if write.index in read}
        """Position of a result -> the argument it is written to, where later stages read it."""
        self.written = [index for index, arg in enumerate(program.block.args) if arg in targets]
        self.writes = [(write.index, places[write.target]) for write in program.writes]
        """Positions of results, and of the arguments that they are written to."""
        self.apart = [index for index in range(derivative.results) if index not in derivative.differentiable]
        """Positions of results that never have a gradient."""

    def apply(self, arguments: Sequence[Any], n_inputs: int) -> list[Any]:
        """Run the forward half; its differentiable results get their nodes."""
        run = _Run(self, arguments)
        if run.drawn is None:
            return self._apply(run, arguments)
        with drawn.keeping(run.drawn):
            return self._apply(run, arguments)

    def _apply(self, run: _Run, arguments: Sequence[Any]) -> list[Any]:
        if len(self.stages) == 1:
            (stage,) = self.stages
            stage.apply(_Call(run, stage, []), [arguments[index] for index in stage.plan.needs])
            if self.views:
                self._take_views(0, run)
        else:
            with torch.no_grad(), torch_internals.autocast_off(run.autocast):
                run.values = self.forward.run(arguments, [])
            for number, stage in enumerate(self.stages):
                if not stage.plan.results:
                    self._take_views(number, run)
                    continue
                given = [arguments[index] for index in stage.plan.needs]
                leaves = [_copied(run.values[index]) for index in stage.plan.leaves]
                call = _Call(run, stage, leaves, versions=_versions(leaves))
                stage.apply(call, [*given, *_flat(leaves)])
                self._write_back(stage.plan, run, arguments)
                self._take_views(number, run)
        run.keep_apart()
        values, run.values = run.values[: self.derivative.results], []  # the nodes may not hold their own results
        run.passed.clear()
        run.objects.clear()
        run.given = []
        return values

    def _take_views(self, stage: int, run: _Run) -> None:
        """Results that are views of what a stage gives."""
        for position, (view, take) in self.views.items():
            if view.stage == stage:
                given = [run.values[index] for index in (view.base, *view.others)]
                run.passed[position] = run.values[position]
                (run.values[position],) = take.run(given, [])

    def _write_back(self, plan: Stage, run: _Run, arguments: Sequence[Any]) -> None:
        """Written arguments that later stages read: from here on the caller's tensor is what they read."""
        for position in plan.results:
            target = self.early.get(position)
            if target is None:
                continue
            tensor, value = arguments[target], run.values[position]
            if not (tensor.is_leaf and tensor.requires_grad) and value.requires_grad:
                write_back(tensor, value)
                run.values[position] = tensor


class _Compiled:
    """A stage with its backward half made runnable."""

    def __init__(self, halves: Halves, plan: Stage) -> None:
        self.halves = halves
        self.plan = plan
        self.backward = halves.compile(plan.backward, consuming=True)
        self.whole = self.backward if plan.whole is None else halves.compile(plan.whole, consuming=True)
        self.may_be_stale = any(op.name == "raise" for op in plan.backward.block.walk())
        self._again: Executable | None = None

    @property
    def again(self) -> Executable:
        """The Program without what it prints and reports, for running the stage again."""
        if self._again is None:
            self._again = self.halves.runner.compile(stage_program(self.halves.program, self.plan))
        return self._again

    def apply(self, call: _Call, tensors: Sequence[Any]) -> None:
        """Put one node behind the results of this stage."""
        run = call.run
        made = ProgramNode.apply(call, *tensors)
        if run.failure is not None:
            failure, run.failure = run.failure, None
            raise failure
        results = iter(made)
        for position in self.plan.results:
            value = run.values[position]
            if isinstance(value, list):
                run.values[position] = [run.given_out(item, result) for item, result in zip(value, results)]
            else:
                run.values[position] = run.given_out(value, next(results))


class _Run:
    """One run: what its nodes share."""

    def __init__(self, halves: Halves, arguments: Sequence[torch.Tensor]) -> None:
        self.halves = halves
        self.values: list[Any] = []
        """What the forward half yielded, while the nodes are made."""
        self.given = list(arguments)
        """The caller's tensors, while the nodes are made."""
        self.failure: Exception | None = None
        """What the forward half raised."""
        self.own = {id(argument) for argument in arguments}
        self._memory: Counter[Any] | None = None
        self.seen: set[int] = set()
        """Results so far."""
        self.listed: set[tuple[int, bool]] = set()
        """Those results, by identity, and whether they need a gradient."""
        self.objects: dict[int, tuple[Any, Any]] = {}
        """By identity of what the forward half yielded: that (so that nothing else gets its id), and the object that
        the caller gets for it."""
        self.passed: dict[int, Any] = {}
        """Results that are views of others -> the tensors that the forward half computed for them."""
        self.rng = torch_internals.rng_state() if halves.random else None
        self.drawn: list[Any] | None = [] if halves.draws else None
        """What the process drew for it: random numbers of Python's and NumPy's, times."""
        self.autocast = torch_internals.autocast_state()
        self.casts = any(enabled for _, enabled, _ in self.autocast)
        # For running the Program again; what it writes is kept as it was.
        self.arguments = list(arguments)
        for index in halves.written:
            self.arguments[index] = arguments[index].detach().clone().requires_grad_(arguments[index].requires_grad)
        self.versions = _versions(self.arguments)

    def is_alone(self, value: torch.Tensor) -> bool:
        """Whether no argument and no other result shares memory with a result, which has all of its own in order."""
        if self.halves.views or not value.is_contiguous():  # views are taken anew of what a stage gives
            return False
        if self._memory is None:
            tensors = [*self.given, *_flat(self.values[: self.halves.derivative.results])]
            self._memory = Counter(torch_internals.storage_identity(one) for one in {id(one): one for one in tensors
                                   if isinstance(one, torch.Tensor) and one.layout is torch.strided}.values())
        return self._memory[torch_internals.storage_identity(value)] == 1

    def given_out(self, value: Any, result: Any) -> Any:
        """The object that the caller gets for a value: ``result`` is what autograd made of it, None if nothing.

        A path that gives an argument gives that very tensor, and what is yielded twice is one object.
        """
        if id(value) in self.own or not isinstance(value, torch.Tensor):
            return value
        if result is None:  # it is a result already
            return self.objects.get(id(value), (value, value))[1]
        _, known = self.objects.setdefault(id(value), (value, result))
        return known if known.requires_grad == result.requires_grad else result

    def residuals(self, positions: Sequence[int]) -> list[Any]:
        """What a stage keeps; of an argument that is written once the Program has run, the content from before.

        Backward says on its own where eager's would refuse to read it.
        """
        kept = [self.values[position] for position in positions]
        written = [place for position, place in self.halves.writes if self.values[position] is not self.given[place]]
        for place in written if kept else ():
            given = self.given[place]
            memory = torch_internals.storage_identity(given)
            for number, value in enumerate(kept):
                if value is given:
                    kept[number] = self.arguments[place].detach()
                elif isinstance(value, torch.Tensor) and torch_internals.storage_identity(value) == memory:
                    kept[number] = value.detach().clone()
        return kept

    def keep_apart(self) -> None:
        """Results without gradient become objects without history."""
        for position in self.halves.apart:
            kept = self.own if position in self.halves.write_positions else frozenset()
            self.values[position] = _apart(self.values[position], self.seen, kept, self.objects)


@dataclass(eq=False)
class _Call:
    """One node of a run: what its forward leaves for its backward."""

    run: _Run
    stage: _Compiled
    leaves: list[Any]
    """What the stage reads of earlier ones."""
    lengths: list[int | None] = field(default_factory=list)
    """For each result: how many items, if it is a list."""
    saved: Saved = field(default_factory=Saved)
    versions: list[Any] = field(default_factory=list)
    unheard: list[Unheard] = field(default_factory=list)


@torch_internals.hooks_hear_gradients_only
class ProgramNode(torch.autograd.Function):
    """The node of one stage: its part of the forward half now, its backward half when autograd asks."""

    @staticmethod
    def forward(ctx: Any, call: _Call, *tensors: torch.Tensor) -> tuple[Any, ...]:
        """The results of the stage; a list among them counts as its items. A single stage runs the forward half.

        ``tensors`` are those that the backward half gives gradients for. Of others autograd hears nothing, so that
        asking for their gradients runs nothing, as in eager.
        """
        run, plan = call.run, call.stage.plan
        if len(run.halves.stages) == 1:
            try:
                if run.casts:
                    with torch_internals.autocast_off(run.autocast):
                        run.values = run.halves.forward.run(run.given, [])
                else:
                    run.values = run.halves.forward.run(run.given, [])
            except Exception as error:  # apply loses it where the operators warned, too: it is raised after
                run.failure = error
                return ()
        results, not_needed = _results(call, {id(tensor) for tensor in tensors})
        ctx.call = call
        if plan.together:
            ctx.hears = functools.partial(hears, call)
        ctx.set_materialize_grads(False)
        if not_needed:
            ctx.mark_non_differentiable(*not_needed)
        call.saved = save(ctx, run.residuals(plan.residuals), results)
        return tuple(results)

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> Any:
        """Run the backward half.

        With ``create_graph``, or under another autocast state than it was made for, everything is run again under
        torch's autograd; the next call's backward half is made for that state.
        """
        call: _Call = ctx.call
        run, plan = call.run, call.stage.plan
        casting = torch_internals.autocast_on()
        run.halves.runner.casting = casting
        if call.unheard:
            call_unheard(call, [grad is not None for grad in grads])
        if all(grad is None for grad in grads):  # what was saved may be gone: another path took another value
            return (None, *_in_order(call, [None] * (len(plan.needs) + len(plan.leaves))))
        if torch.is_grad_enabled() and call.stage.may_be_stale:
            _require_unwritten(call, load(ctx, call.saved, keep=True), grads)
        if torch.is_grad_enabled() or casting != run.halves.casting:
            return (None, *_again(call, grads))
        residuals = load(ctx, call.saved, keep=torch_internals.graph_is_kept())
        half = call.stage.backward if any(grad is None for grad in grads) else call.stage.whole
        residuals += _per_result(call, [grad if grad is None else grad.contiguous() for grad in grads])
        del grads
        with torch_internals.autocast_off(run.autocast):
            found = half.run(residuals, [])
        return (None, *_in_order(call, found))


def _require_unwritten(call: _Call, residuals: list[Any], grads: Sequence[torch.Tensor | None]) -> None:
    """Raise what eager's backward raises for values that were overwritten: the backward half tells.

    Errors raised: RuntimeError.
    """
    given = _per_result(call, [grad if grad is None else grad.contiguous() for grad in grads])
    with torch.no_grad(), torch_internals.autocast_off(call.run.autocast):
        call.stage.backward.run([*residuals, *given], [])


def _in_order(call: _Call, found: list[Any]) -> list[Any]:
    """Gradients of what the node was given, from those that a backward half yields."""
    needs = call.stage.plan.needs
    result = found[: len(needs)]
    for leaf, grad in zip(call.leaves, found[len(needs) :]):
        if isinstance(leaf, list):
            result += [None] * len(leaf) if grad is None else grad
        else:  # a path that has no such value is given none
            result.append(grad if isinstance(leaf, torch.Tensor) else None)
    return result


def _versions(values: Sequence[Any]) -> list[Any]:
    if list in map(type, values):
        values = list(_flat(values))
    return [one._version for one in values if isinstance(one, torch.Tensor)]


def _copied(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value


def _flat(values: Sequence[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from value
        else:
            yield value


def _results(call: _Call, given: set[int]) -> tuple[list[Any], list[torch.Tensor]]:
    """The results of a stage, each an object of its own, and those of them that need no gradient this time."""
    run, derivative = call.run, call.run.halves.derivative
    results: list[Any] = []
    not_needed: list[torch.Tensor] = []

    def distinct(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        if id(value) in run.seen or (id(value) in run.own and id(value) not in given):
            value = value.detach()
        elif value._is_view() and run.is_alone(value):  # of what nobody sees; autograd lets nobody write to a view
            value = value.clone()
        run.seen.add(id(value))
        return value

    for position in call.stage.plan.results:
        value = run.values[position]
        if isinstance(value, torch.Tensor) and position not in derivative.flags and position not in derivative.same:
            results.append(distinct(value))
            call.lengths.append(None)
            continue
        items = value if isinstance(value, list) else [value]
        needed = run.values[derivative.flags[position]] if position in derivative.flags else True
        flags = needed if isinstance(needed, list) else [needed] * len(items)
        for index, (item, flag) in enumerate(zip(items, flags)):
            if not flag and id(item) in run.own:
                if not item.requires_grad:  # the very tensor: autograd has nothing to say of it
                    results.append(None)
                    continue
                item = item.detach()  # an argument without its history is another object
                if value is items:
                    value[index] = item
                else:
                    run.values[position] = item
            same = [
                place for place in derivative.same.get(position, ())
                if flag and (item is run.values[place] or item is run.passed.get(place, run))
            ]  # fmt: skip
            if same:
                if value is items:
                    value[index] = run.values[same[0]]
                else:
                    run.values[position] = run.values[same[0]]
                results.append(None)
                continue
            if isinstance(item, torch.Tensor):  # what is given twice is one object for the caller, too
                if (id(item), flag) in run.listed:
                    results.append(None)
                    continue
                run.listed.add((id(item), flag))
            item = distinct(item)
            if not flag and isinstance(item, torch.Tensor) and item._is_view():
                # A view of a result would say that it needs a gradient, as that will.
                item = item.detach()
            results.append(item)
            if not flag and isinstance(item, torch.Tensor):
                not_needed.append(item)
        call.lengths.append(len(items) if isinstance(value, list) else None)
    return results, not_needed


def _apart(value: Any, seen: set[int], kept: AbstractSet[int], objects: dict[int, tuple[Any, Any]]) -> Any:
    """A result without gradient as an object without history; ``kept``: arguments that stand for "not written"."""
    if isinstance(value, torch.Tensor):
        _, known = objects.get(id(value), (value, None))
        if known is not None and not known.requires_grad:  # another result, which needs no gradient this time
            return known
        historic = value.requires_grad and id(value) not in kept
        # A view of a result would say that it needs a gradient, as that will; what was detached does not.
        detached = value._is_view() and id(value._base) in seen
        return value.detach() if historic or detached or id(value) in seen else value
    return [_apart(item, seen, kept, objects) for item in value] if type(value) is list else value


def _per_result(call: _Call, grads: list[torch.Tensor | None]) -> list[Any]:
    """The gradients by result: those of a list's items as a list."""
    following = iter(grads)
    return [
        next(following) if length is None else [next(following) for _ in range(length)] for length in call.lengths
    ]


def _again(call: _Call, grads: Sequence[torch.Tensor | None]) -> list[Any]:
    """Gradients that can be differentiated again: the Program is run once more by the interpreter under autograd.

    Errors raised: RuntimeError if an argument was modified in place since the first run.
    """
    run, plan = call.run, call.stage.plan
    if _versions(run.arguments) != run.versions or _versions(call.leaves) != call.versions:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: "
            f"an argument or result of {run.halves.program.name!r}, which create_graph=True runs again, and backward "
            "under another autocast state than before"
        )
    with torch_internals.autocast_as(run.autocast), torch_internals.rng_restored(run.rng), torch.enable_grad(), (
            drawn.giving_again(run.drawn)):
        views = [_view(argument) for argument in run.arguments]
        for index in run.halves.written:  # this run writes them, too, and others of the same call may follow
            if views[index] is run.arguments[index]:
                views[index] = views[index].clone()
        leaves = [_view(leaf) for leaf in call.leaves]
        values = call.stage.again.run([*views, *leaves], [])
    pairs = [
        (value, grad) for value, grad in zip(_flat(values), grads)
        if grad is not None and value is not None and value.requires_grad
    ]  # fmt: skip
    inputs = [*(views[index] for index in plan.needs), *_flat(leaves)]
    needed = [one for one in inputs if isinstance(one, torch.Tensor) and one.requires_grad]
    if not pairs or not needed:
        return [None] * len(inputs)
    found = iter(
        torch.autograd.grad(
            [v for v, _ in pairs], needed, [g for _, g in pairs],
            create_graph=torch.is_grad_enabled(), allow_unused=True,
        )
    )  # fmt: skip
    return [next(found) if isinstance(one, torch.Tensor) and one.requires_grad else None for one in inputs]


def _view(value: Any) -> Any:
    """Another object for the same tensor, so that a gradient of this run can be asked for; lists item by item."""
    if isinstance(value, list):
        return [_view(item) for item in value]
    return value.view_as(value) if isinstance(value, torch.Tensor) and value.requires_grad else value


class Runs(Protocol):
    """The compiled halves of a derivative, or what stands for them until others take over."""

    derivative: Derivative
    casting: Casting

    def apply(self, arguments: Sequence[Any], n_inputs: int) -> list[Any]:
        """Run the forward half; its differentiable results get their nodes."""


class Takeover(Protocol):
    """Lets another executor take over after some calls. What a graph was made by stays its executor."""

    def plain(self, first: Executable, program: Program) -> Executable:
        """What runs calls without gradients."""

    def halves(self, first: Runs, program: Program, make: Callable[[Compile], Runs]) -> Runs:
        """What runs calls with gradients; ``make``: the same halves, made runnable by another executor."""


__all__ = ["Casting", "Compile", "Executable", "Halves", "Runs", "Takeover"]
