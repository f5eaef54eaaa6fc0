"""The traces that a file is made of: one for each kind of call and mode, with examples made from InputSpecs.

    x: InputSpec([None, 4])   ->   zeros of 5 x 4; the Program has to hold for 6 x 4 as well
"""

from __future__ import annotations

import contextlib
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dy2static.cached_calls import Specs, rebuilt, shown, structure_of
from dy2static.errors import Dy2StaticError, SignatureError, TraceError
from dy2static.examples import is_packed, packed_of, tensor_of
from dy2static.output_spec import OutputSpec, keep_results
from dy2static.program_cache import Dynamic
from dy2static.saved_methods import Calls
from dy2static.saved_variant import require_no_training
from runtime.executor.trial import trial
from runtime.ir import Assume
from runtime.ir.assume import check
from runtime.ir.input_spec import InputSpec
from runtime.kinds import is_a
from runtime.storage.allowed import require_no_code
from runtime.storage.answers import AUTOCAST, QUESTIONS, Answer, Plain, question, setting
from runtime.storage.artefact import MODES, WITHOUT_GRADIENTS
from runtime.torch_internals import autocast_devices
from runtime.tracer.ambient import source_places
from runtime.tracer.ambient.calls import Ahead, Undecided
from runtime.tracer.boundary.tracing import Traced
from runtime.tracer.recording import faults
from runtime.tracer.values.arguments import Arguments, flatten
from runtime.translated.fitting import spell_assumption

_EXAMPLES = (
    ((5, 7, 11, 13, 17, 19), (6, 9, 14, 15, 21, 25)),
    ((5,), (6,)),
    ((8,), (16,)),
    ((12,), (24,)),
    ((60,), (120,)),
)
"""Sizes for open dimensions, one after another: those to trace with, and others for which the Program must hold too.

First they differ; then they agree, if the function needs some that do; then they have many divisors, and are larger.
"""


_TRIED_APART = 6
"""Inputs up to which it is tried for each whether it is the one that cannot be left open."""
_DECIDED = 3
"""Inputs for which there are traces for calls where they need a gradient, and for others, if the function asks."""


@dataclass(eq=False)
class Trace:
    """One trace made for saving, what it was made with, which inputs get no gradient, and what they have to answer."""

    traced: Traced
    arguments: Arguments
    stopped: list[int]
    answers: tuple[Answer, ...]
    settings: tuple[tuple[str, Plain], ...]


Traces = dict[str, list[Trace]]
"""By mode, the traces of one kind of call, for arguments of which different ones need a gradient."""


def traces_of(
    calls: Calls, root: torch.nn.Module | None, modes: Collection[str] = MODES, outputs: OutputSpec | None = None
) -> list[Traces]:
    """For each kind of call, the traces for each mode; the same for both if there is no module.

    Errors raised: whatever tracing raises; SignatureError for sizes that cannot be left open (D2S315, D2S316), results
    that are not there (D2S317) and InputSpecs that no call fits (D2S318); StorageError for a function that trains.
    """
    if root is None:
        return _filled([_in_modes(calls, specs, modes, outputs) for specs in calls.kinds])
    found: list[Traces] = [{} for _ in calls.kinds]
    for mode in MODES:
        if mode in modes:
            with _in_mode(root, mode):
                for traces, specs in zip(found, calls.kinds):
                    traces.update(_in_modes(calls, specs, [mode], outputs))
    return _filled(found)


@contextlib.contextmanager
def _in_mode(root: torch.nn.Module | None, mode: str) -> Iterator[None]:
    """A module and its parts in a mode; afterwards each is in its own."""
    before = [] if root is None else [(module, module.training) for module in root.modules()]
    try:
        if root is not None:
            root.train(mode == "train")
        yield
    finally:
        for module, training in before:
            module.training = training


def traces_for_inference(calls: Calls, root: torch.nn.Module | None) -> Traces:
    """The trace of what is exported: of the usual call, in eval, without gradients.

    One with gradients switched on beside it, if the function asks whether they are: what is fast without them may have
    no form where it is exported to. That one alone, if there is no other. Errors raised: as of ``traces_of``.
    """
    specs = calls.kinds[0]
    found: Traces = {}
    with _in_mode(root, "eval"):
        with contextlib.suppress(Exception):  # then the function may need gradients: its other trace says why
            found["eval"] = _traces(calls, specs, None, gradients=False, inference=True)
        if not found or any(trace.traced.asks_gradients for trace in found["eval"]):
            found = {WITHOUT_GRADIENTS[mode]: traces for mode, traces in found.items()}
            found["eval"] = _traces(calls, specs, None, inference=True)
    for trace in itertools.chain(*found.values()):
        require_no_training(trace.traced)
    return found


def traces_as_it_is(calls: Calls, outputs: OutputSpec | None = None) -> list[Traces]:
    """For each kind of call the same traces for both modes, with every module in the mode that it is in.

    Errors raised: as of ``traces_of``.
    """
    return _filled([_in_modes(calls, specs, MODES, outputs) for specs in calls.kinds])


def _in_modes(calls: Calls, specs: Specs, modes: Collection[str], outputs: OutputSpec | None) -> Traces:
    """The traces for some modes, and others for calls without gradients, if the function asks for that."""
    traces = _traces(calls, specs, outputs)
    for trace in traces:
        require_no_training(trace.traced)
    found = dict.fromkeys(modes, traces)
    if any(trace.traced.asks_gradients for trace in traces):
        without = _traces(calls, specs, outputs, gradients=False)
        found |= {WITHOUT_GRADIENTS[mode]: without for mode in modes}
    return found


def _filled(found: list[Traces]) -> list[Traces]:
    """Where one kind of call asks for gradients, all have traces for calls without."""
    for mode, without in WITHOUT_GRADIENTS.items():
        if any(without in traces for traces in found):
            for traces in found:
                traces.setdefault(without, traces[mode])
    return found


def _traces(
    calls: Calls, specs: Specs, outputs: OutputSpec | None, gradients: bool = True, inference: bool = False
) -> list[Trace]:
    """Trace anew, with examples made from the InputSpecs, in PyTorch's usual state: gradients on, no autocast.

    A size that is left open must stay open: where the Program would hold for the example only, other examples are
    tried, and then it is an error. ``inference``: one trace, for arguments and parameters that need no gradient.
    """
    failure: Exception | None = None
    around = [(one, torch.get_autocast_dtype(one)) for one in autocast_devices() if torch.is_autocast_enabled(one)]
    for sizes, others in _EXAMPLES:
        example = _Example(calls, specs, sizes, gradients, inference)
        try:
            with usual_state(), torch.set_grad_enabled(gradients):
                traces = example.traces({})
                if not inference:
                    traces += _otherwise(traces, around, example)
        except Exception as error:  # perhaps the sizes do not fit together; if no example does, this is raised
            if is_a(error, Dy2StaticError) or not faults.is_torchs(error):
                failure = failure or error
            else:
                failure = failure or _does_not_fit(calls, specs, error)
            if not example.open_sizes:
                raise failure from error
            continue
        other = flatten(_example(calls, specs, others))
        broken = [_broken(trace.traced.program.assumes, trace.arguments, other) for trace in traces]
        if not any(broken):
            if outputs is not None:
                for trace in traces:
                    keep_results(trace.traced, outputs, calls.function.__name__)
            return traces
        failure = _cannot_be_open(next(filter(None, broken)), calls)
    assert failure is not None
    raise failure


def _otherwise(traces: list[Trace], around: Sequence[tuple[str, torch.dtype]], example: _Example) -> list[Trace]:
    """More traces, if the function asks for what was otherwise; where there can be none, no such call is answered."""
    found: list[Trace] = []
    with _frozen(traces) as some, contextlib.suppress(Exception):
        found += example.traces({}) if some else []
    if any(AUTOCAST in trace.traced.asked_settings for trace in traces):
        with contextlib.suppress(Exception):
            found += _under(around, example)
    return found


def _under(autocast: Sequence[tuple[str, torch.dtype]], example: _Example) -> list[Trace]:
    """The traces for calls under the autocast under which the function is saved, if it is under one."""
    with contextlib.ExitStack() as stack:
        for device, dtype in autocast:
            stack.enter_context(torch.autocast(device, dtype))
        return example.traces({}) if autocast else []


class _Example:
    """One example of a kind of call, and what the function does with it."""

    def __init__(
        self, calls: Calls, specs: Specs, sizes: Sequence[int], gradients: bool, inference: bool = False
    ) -> None:
        self._calls, self._gradients, self._inference = calls, gradients, inference
        bound = _example(calls, specs, sizes)
        self._arguments = flatten(bound)
        by_tensor = _specs_of(specs, bound)
        labelled = [(label, by_tensor[id(one)]) for one, label in zip(self._arguments.tensors, self._arguments.labels)]
        self.open_sizes: Dynamic = {label: spec.dynamic for label, spec in labelled if spec.dynamic}
        self._stopped = {label for label, spec in labelled if spec.stop_gradient}

    def traces(self, needs: dict[str, bool]) -> list[Trace]:
        """The traces for an example of whose inputs some need a gradient and others do not, the rest being left open.

        Where the function asks for more of them, there is a trace for each answer. That no input needs one is what the
        first is for; where another cannot be traced, no call of a file will be like it.
        """
        for tensor, label in zip(self._arguments.tensors, self._arguments.labels):
            if tensor.is_floating_point() or tensor.is_complex():
                tensor.requires_grad_(needs.get(label, False))
        try:
            found = [self._trace(needs)]
        except Undecided as one:
            asked = one.labels
        else:
            given = self._given_gradients(found[0].traced, needs)
            return self.traces(needs | dict.fromkeys(given, False)) if given else found
        found = []
        for answers in itertools.product((False, True), repeat=len(asked)):
            answered = needs | dict(zip(asked, answers))
            with contextlib.suppress(*(Exception,) if any(answered.values()) else ()):
                made = self.traces(answered)
                for trace in made if any(answered.values()) else ():
                    require_no_training(trace.traced)
                found += made
        return found

    def _given_gradients(self, traced: Traced, needs: dict[str, bool]) -> tuple[str, ...]:
        """The inputs that a backward pass inside the function leaves a ``.grad`` if they need one: a file is for calls
        where they do not, as of a function that makes a module and trains it."""
        given = {effect.target for effect in traced.effects if effect.place.name == "grad"}
        labels = zip((one.var for one in traced.program.inputs), self._arguments.labels)
        known = self._stopped | needs.keys()
        return tuple(label for var, label in labels if var in given and label not in known)

    def _trace(self, needs: dict[str, bool]) -> Trace:
        arguments = self._arguments
        traced, ahead = self._as_open_as_possible(needs)
        require_no_code(traced.program)
        if _broken(traced.program.assumes, arguments) is None:  # else it is no example of what the Program is for
            trial(traced.program, traced.inputs(arguments), traced.parameters(), traced.raised)
        if traced.ends_in is not None and not ahead.raising:
            raise traced.ends_in
        stopped = [index for index, label in enumerate(arguments.labels) if label in self._stopped]
        settings = tuple((name, setting(name)) for name in sorted(traced.asked_settings))
        return Trace(traced, arguments, stopped, _answers(traced, arguments, ahead, stopped), settings)

    def _as_open_as_possible(self, needs: dict[str, bool]) -> tuple[Traced, Ahead]:
        """Trace with as much left open as the function allows: which inputs need a gradient, and how they lie in
        memory. What cannot be left open, each call has to have as the example has it.

        For inference no input needs one, and nobody asks what calls have: the layouts are open all or none."""
        everywhere = frozenset(self._arguments.labels)
        needing = frozenset[str]() if self._inference else everywhere - self._stopped - needs.keys()
        raising = not self._inference and (not self._gradients or any(needs.values()))

        def attempt(needing: frozenset[str], layouts: frozenset[str]) -> tuple[Traced, Ahead]:
            ahead = Ahead(needing, layouts, raising, in_file=True, decidable=_DECIDED - len(needs))
            return self._calls.function.trace(self._arguments, self.open_sizes, ahead), ahead

        try:
            return attempt(needing, everywhere)
        except TraceError:
            closed = attempt(frozenset(), frozenset())
        if self._inference:
            return closed
        tries = [(needing, frozenset[str]()), (frozenset[str](), everywhere)]
        if len(everywhere) <= _TRIED_APART:
            tries = [
                *((needing, everywhere - {one}) for one in everywhere if len(everywhere) > 1),
                *((needing - {one}, everywhere) for one in needing if len(needing) > 1),
                *tries,
                *((needing - {one}, everywhere - {one}) for one in needing if len(needing) > 1),
            ]
        for one in tries:
            with contextlib.suppress(TraceError):
                return attempt(*one)
        return closed


def _answers(traced: Traced, arguments: Arguments, ahead: Ahead, stopped: Sequence[int]) -> tuple[Answer, ...]:
    """What each call has to answer, in the order of inputs."""
    found: list[Answer] = []
    for index, (tensor, label) in enumerate(zip(arguments.tensors, arguments.labels)):
        differentiable = (tensor.is_floating_point() or tensor.is_complex()) and index not in stopped
        names = [name for name, wanted in (
            ("requires_grad", differentiable and label not in ahead.needing),
            ("lies plainly", label not in ahead.layouts and tensor.layout is torch.strided),
            ("is a leaf", index in traced.no_leaves),
            ("is_leaf", traced.leaves.get(index) is True),
        ) if wanted]  # fmt: skip
        for name, *_ in traced.asked.get(index, ()):
            names.append(name if name in QUESTIONS else f".{name}")
        for name in dict.fromkeys(names):
            asked = question(name)
            if asked is not None:
                found.append(Answer(index, name, asked.ask(tensor)))
    if traced.asks_needs:
        found += [Answer(index, "requires_grad", one.real.requires_grad)
                  for index, one in enumerate(traced.live, len(traced.program.inputs)) if _may_be_frozen(one.real)]
    return tuple(found)


def _may_be_frozen(tensor: torch.Tensor) -> bool:
    return isinstance(tensor, torch.nn.Parameter) and tensor.is_leaf


@contextlib.contextmanager
def _frozen(traces: Sequence[Trace]) -> Iterator[bool]:
    """Parameters that need no gradient, as users freeze them, if the function asks for that; whether there are some."""
    live = [one.real for trace in traces if trace.traced.asks_needs for one in trace.traced.live]
    frozen = [one for one in live if _may_be_frozen(one) and one.requires_grad]
    try:
        for one in frozen:
            one.requires_grad_(False)
        yield bool(frozen)
    finally:
        for one in frozen:
            one.requires_grad_(True)


def _broken(assumes: Sequence[Assume], *examples: Arguments) -> Assume | None:
    """The first assumption about sizes that does not hold for every example."""
    for assume in assumes:
        for arguments in examples:
            shapes = {label: tensor.shape for tensor, label in zip(arguments.tensors, arguments.labels)}
            if not check(assume, {symbol: shapes[name][dim] for symbol, (name, dim) in assume.symbols.items()}):
                return assume
    return None


_OPEN = re.compile(r"\b[su]\d+\b")
"""How PyTorch's shape rules call a size that is left open."""


def _does_not_fit(calls: Calls, specs: Specs, error: BaseException) -> SignatureError:
    made = ", ".join(f"{name}={shown(value)}" for name, value in specs.items())
    return SignatureError(
        f"{calls.function.__name__}() raises {type(error).__name__} for every call that fits its InputSpecs ({made}): "
        f"{_OPEN.sub('?', str(error).strip())}",
        hint="Give the sizes and dtypes that the function is called with.",
        location=source_places.error_place(error),
        code="D2S318",
    )


def _cannot_be_open(assume: Assume, calls: Calls) -> SignatureError:
    sources = {symbol: f"{name}.shape[{dim}]" for symbol, (name, dim) in assume.symbols.items()}
    names = " and ".join(f"'{name}' in dimension {dim}" for name, dim in assume.symbols.values())
    if calls.from_calls:
        made = "; ".join(dict.fromkeys(
            ", ".join(f"{name}={shown(value)}" for name, value in one.specs.items())
            for one in calls.function.specializations
        ))  # fmt: skip
        return SignatureError(
            f"the Programs of {calls.function.__name__}() that calls have made cannot be saved as one: with the size "
            f"of {names} left open the function needs {spell_assumption(assume.expr, sources)}. They are for ({made})",
            hint="Say what to save, with input_spec=[...], or write the function so that it holds for every size.",
            location=assume.location,
            code="D2S316",
        )
    return SignatureError(
        f"the size of {names} cannot be left open as the InputSpec says: the function needs "
        f"{spell_assumption(assume.expr, sources)}",
        hint="Give that size in the InputSpec, or write the function so that it holds for every size.",
        location=assume.location,
        code="D2S315",
    )


@contextlib.contextmanager
def usual_state() -> Iterator[None]:
    """PyTorch as a file has it: gradients on, no autocast, and random numbers drawn here drawn again afterwards."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _example(calls: Calls, specs: Specs, sizes: Sequence[int]) -> dict[str, Any]:
    """Arguments that fit the specs: zeros for tensors."""
    made: dict[int, Any] = {}
    device = calls.function.device

    def build(spec: Any) -> Any:
        if calls.from_calls and id(spec) in made:
            return made[id(spec)]
        if is_a(spec, InputSpec):
            result: Any = tensor_of(spec, sizes, device)
        elif is_packed(spec):
            result = packed_of(spec, sizes, device)
            made.update({id(part): value for part, value in zip(spec, result)})
        else:
            inside = structure_of(spec)
            if inside is None:
                return spec
            result = rebuilt(spec, inside[0], [build(item) for item in inside[1]])
        made[id(spec)] = result
        return result

    return {name: build(spec) for name, spec in specs.items()}


def _specs_of(specs: Any, values: Any) -> dict[int, InputSpec]:
    """The InputSpec of every tensor, by the tensor's identity."""
    found: dict[int, InputSpec] = {}

    def visit(spec: Any, value: Any) -> None:
        if is_a(value, torch.Tensor):
            found[id(value)] = spec if is_a(spec, InputSpec) else InputSpec.from_tensor(value)
            return
        inside, items = structure_of(spec), structure_of(value)
        for one, item in zip(inside[1], items[1]) if inside is not None and items is not None else ():
            visit(one, item)

    for name, spec in specs.items():
        visit(spec, values[name])
    return found


__all__ = ["Trace", "traces_as_it_is", "traces_for_inference", "traces_of", "usual_state"]
