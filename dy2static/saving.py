"""save: a layer or function is traced for training and for inference, and written to one file without code.

    save(model, "model", input_spec=[InputSpec([None, 64])])      ->   model.d2s
    load("model")                                                 ->   a module with the same parameters and methods
"""

from __future__ import annotations

import contextlib
import inspect
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, MethodType
from typing import Any

import torch

from dy2static.api import to_static
from dy2static.errors import SignatureError, StorageError
from dy2static.input_spec import read_specs
from dy2static.operators.shared.distributed import Parallel
from dy2static.saved_variant import Tensors, require_no_training, variant_of
from dy2static.static_function import StaticFunction
from runtime.executor.trial import trial
from runtime.ir import Assume
from runtime.ir.assume import check
from runtime.ir.compare import difference
from runtime.ir.input_spec import InputSpec
from runtime.storage.artefact import (
    MODES,
    WITHOUT_GRADIENTS,
    Argument,
    Artefact,
    Method,
    ModuleEntry,
    TensorRef,
    Variant,
)
from runtime.storage.files import write_artefact
from runtime.storage.modules import describe_modules
from runtime.tracer.boundary.tracing import Traced
from runtime.tracer.memory.inputs import LiveParameter
from runtime.tracer.values import structure
from runtime.tracer.values.arguments import Arguments, flatten
from runtime.translated import TranslatedLayer
from runtime.translated import save as save_loaded
from runtime.translated.fitting import spell_assumption
from runtime.translated.located import located

_EMPTY: dict[Any, Any] = {inspect.Parameter.VAR_POSITIONAL: (), inspect.Parameter.VAR_KEYWORD: {}}
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


@located
def save(
    layer: Any,
    path: str | os.PathLike[str],
    input_spec: Any = None,
    *,
    methods: Sequence[str] | Mapping[str, Any] | None = None,
    source_locations: bool = True,
) -> Path:
    """Save a layer or function: its Programs for training and for inference, and its tensors. Returns the file's path.

    Args:
        layer: An ``nn.Module``, a function or method (converted by ``to_static`` or not), or a loaded layer.
        path: Where to; ``.d2s`` is put at the end.
        input_spec: InputSpecs for the arguments, as ``to_static`` takes them. Without it, those it was converted with
            count, else the arguments of its last call.
        methods: Methods of a module to save beside ``forward``: names, or names with their InputSpecs.
        source_locations: Whether the file says where in the source each operator stood, with that line's text.

    Errors raised: StorageError for what a file cannot hold, at its place in the source, or a file that cannot be
    written; SignatureError for InputSpecs that do not fit; whatever conversion raises. The disk is touched only when
    everything else has worked.
    """
    if isinstance(layer, TranslatedLayer):
        if input_spec is not None or methods is not None:
            raise TypeError("a loaded layer is saved as it is; it takes no input_spec and no methods")
        return save_loaded(layer, path, source_locations=source_locations)
    artefact = make_artefact(layer, input_spec, methods)
    return write_artefact(artefact, path, source_locations)


def make_artefact(layer: Any, input_spec: Any = None, methods: Any = None) -> Artefact:
    """What ``save`` writes, in memory."""
    target = _target(layer, input_spec, methods)
    tensors = Tensors(target.root)
    traces = {name: _traces(one, target.root) for name, one in target.methods.items()}
    if target.root is not None:
        entries, state = describe_modules(target.root)
        entries[0].type_name = type(target.root).__name__
    else:
        live = [one for group in traces.values() for _, trace in group for one in trace.traced.live]
        entries, state = _modules_of(live, tensors)
    made = {name: _method(name, target.methods[name].function, group, tensors) for name, group in traces.items()}
    detached = [t if t.is_leaf else t.detach() for t in state]
    return Artefact(target.name, entries, detached, tensors.constants, made)


# --- what is to be saved


@dataclass(eq=False)
class _Method:
    """A method to save: the converted function, and its arguments by name, InputSpecs in place of tensors."""

    function: StaticFunction
    specs: dict[str, Any]
    from_call: bool = False
    """Whether one InputSpec object is one tensor."""


@dataclass(eq=False)
class _Target:
    name: str
    root: torch.nn.Module | None
    methods: dict[str, _Method]


def _target(layer: Any, input_spec: Any, methods: Any) -> _Target:
    if isinstance(layer, Parallel):
        layer = layer.module
    if isinstance(layer, torch.nn.Module):
        return _module_target(layer, input_spec, methods)
    if methods is not None:
        raise TypeError("methods are those of an nn.Module; a function has none")
    static = _static(layer)
    owner = getattr(static, "__self__", None)
    root = owner if isinstance(owner, torch.nn.Module) else None
    name = type(root).__name__ if root is not None else static.__name__
    return _Target(name, root, {"forward": _saved(static, input_spec)})


def _module_target(root: torch.nn.Module, input_spec: Any, methods: Any) -> _Target:
    if root._forward_hooks or root._forward_pre_hooks or root._backward_hooks or root._backward_pre_hooks:
        raise StorageError(
            f"this {type(root).__name__} has hooks, which belong to the module and not to the forward that is saved",
            hint="Remove them before saving and put them on the loaded layer, or wrap the module in another one.",
            code="D2S521",
        )
    wanted: dict[str, Any] = dict(methods) if isinstance(methods, Mapping) else dict.fromkeys(methods or ())
    if isinstance(methods, str):
        raise TypeError(f"methods takes a list of names, not the string {methods!r}")
    found: dict[str, _Method] = {}
    if type(root).forward is not torch.nn.Module.forward or "forward" in vars(root):
        forward = _static(root.forward)
        found["forward"] = _saved(forward, wanted.pop("forward", None) or input_spec)
    for name in wanted:
        if name.startswith("_") or hasattr(torch.nn.Module, name):
            raise TypeError(f"{name!r} cannot be the name of a saved method")
        if not callable(getattr(root, name, None)):
            raise TypeError(f"{type(root).__name__} has no method {name!r}")
        static = _static(getattr(root, name))
        found[name] = _saved(static, wanted[name])
    if methods is None:
        for name, static in _converted_methods(root):
            if name not in found:
                with contextlib.suppress(SignatureError):  # converted, but never called: nothing says with what
                    found[name] = _saved(static, None)
    return _Target(type(root).__name__, root, found)


def _converted_methods(root: torch.nn.Module) -> Iterator[tuple[str, StaticFunction]]:
    for name in dir(type(root)):
        if name.startswith("_") or hasattr(torch.nn.Module, name):
            continue
        if isinstance(inspect.getattr_static(type(root), name, None), StaticFunction):
            static = getattr(root, name)
            if getattr(static, "__self__", None) is root:
                yield name, static


def _static(function: Any) -> StaticFunction:
    if isinstance(function, StaticFunction):
        return function
    if not isinstance(function, (FunctionType, MethodType)) and not callable(function):
        raise TypeError(f"save() takes an nn.Module or a function, not {function!r}")
    converted = to_static(function)
    assert isinstance(converted, StaticFunction)
    return converted


def _saved(static: StaticFunction, input_spec: Any) -> _Method:
    """A method with its arguments: from InputSpecs, else from its last call."""
    signature = static.signature
    defaults = {one.name: _EMPTY[one.kind] if one.kind in _EMPTY else one.default for one in signature.parameters}
    given = input_spec if input_spec is not None else static.input_spec
    if given is not None:
        read = read_specs(given, signature)
        by_name = read.by_name if read is not None else {}
        return _Method(static, {name: by_name.get(name, default) for name, default in defaults.items()})
    if static.programs:
        return _Method(static, static.specialization().specs, from_call=True)
    if not signature.required():
        return _Method(static, defaults)
    raise SignatureError(
        f"nothing says what {static.__name__}() is called with",
        hint=f"Give save(..., input_spec=[...]) one InputSpec for each of its arguments "
        f"({', '.join(signature.required())}), or call it once before.",
        code="D2S307",
    )


# --- tracing


@dataclass(eq=False)
class _Trace:
    """One trace made for saving, what it was made with, and which inputs get no gradient."""

    traced: Traced
    arguments: Arguments
    stopped: list[int]


def _traces(method: _Method, root: torch.nn.Module | None) -> list[tuple[str, _Trace]]:
    """A trace for each mode; one for both if there is no module."""
    if root is None:
        trace = _trace(method)
        require_no_training(trace.traced)
        traces = [(mode, trace) for mode in MODES]
        if trace.traced.asks_gradients:
            trace = _trace(method, gradients=False)
            traces += [(mode, trace) for mode in WITHOUT_GRADIENTS.values()]
        return traces
    before = [(module, module.training) for module in root.modules()]
    traces = []
    try:
        for mode in MODES:
            root.train(mode == "train")
            traces.append((mode, _trace(method)))
            require_no_training(traces[-1][1].traced)
            if traces[-1][1].traced.asks_gradients:
                traces.append((WITHOUT_GRADIENTS[mode], _trace(method, gradients=False)))
    finally:
        for module, training in before:
            module.training = training
    return traces


def _trace(method: _Method, gradients: bool = True) -> _Trace:
    """Trace anew, with examples made from the InputSpecs, in PyTorch's usual state: gradients on, no autocast.

    A size that is left open must stay open: where the Program would hold for the example only, other examples are
    tried, and then it is an error.
    """
    failure: Exception | None = None
    for sizes, others in _EXAMPLES:
        bound = _example(method, sizes)
        arguments = flatten(bound)
        specs = _specs_of(method.specs, bound)
        asked = {
            label: specs[id(tensor)].dynamic
            for tensor, label in zip(arguments.tensors, arguments.labels)
            if specs[id(tensor)].dynamic
        }
        try:
            with _usual_state(), torch.set_grad_enabled(gradients):
                traced = method.function.trace(arguments, asked)
                trial(traced.program, traced.inputs(arguments), traced.parameters(), traced.raised)
        except Exception as error:  # perhaps the sizes do not fit together; if no example does, this is raised
            if not asked:
                raise
            failure = failure or error
            continue
        broken = _broken(traced.program.assumes, arguments, flatten(_example(method, others)))
        if broken is None:
            stopped = [index for index, one in enumerate(arguments.tensors) if specs[id(one)].stop_gradient]
            return _Trace(traced, arguments, stopped)
        failure = _cannot_be_open(broken)
    assert failure is not None
    raise failure


def _broken(assumes: Sequence[Assume], *examples: Arguments) -> Assume | None:
    """The first assumption about sizes that does not hold for every example."""
    for assume in assumes:
        for arguments in examples:
            shapes = {label: tensor.shape for tensor, label in zip(arguments.tensors, arguments.labels)}
            if not check(assume, {symbol: shapes[name][dim] for symbol, (name, dim) in assume.symbols.items()}):
                return assume
    return None


def _cannot_be_open(assume: Assume) -> SignatureError:
    sources = {symbol: f"{name}.shape[{dim}]" for symbol, (name, dim) in assume.symbols.items()}
    names = " and ".join(f"'{name}' in dimension {dim}" for name, dim in assume.symbols.values())
    return SignatureError(
        f"the size of {names} cannot be left open as the InputSpec says: the function needs "
        f"{spell_assumption(assume.expr, sources)}",
        hint="Give that size in the InputSpec, or write the function so that it holds for every size.",
        location=assume.location,
        code="D2S315",
    )


@contextlib.contextmanager
def _usual_state() -> Iterator[None]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=[]))
        stack.enter_context(torch.inference_mode(False))
        stack.enter_context(torch.enable_grad())
        for device in ("cpu", *(["cuda"] if torch.cuda.is_available() else [])):
            stack.enter_context(torch.autocast(device, enabled=False))
        yield


def _example(method: _Method, sizes: Sequence[int]) -> dict[str, Any]:
    """Arguments that fit the specs: zeros for tensors."""
    made: dict[int, Any] = {}
    device = method.function.device

    def build(spec: Any) -> Any:
        if method.from_call and id(spec) in made:
            return made[id(spec)]
        if isinstance(spec, InputSpec):
            free = itertools.cycle(sizes)
            shape = [next(free) if size is None else size for size in spec.shape]
            result: Any = torch.zeros(shape, dtype=spec.dtype, device=device)
        elif type(spec) in (list, tuple):
            result = type(spec)(build(item) for item in spec)
        else:
            fields = structure.field_items(spec) if not isinstance(spec, type) else None
            if fields is None:
                return spec
            result = structure.rebuild_fields(type(spec), fields[0], tuple(build(item) for item in fields[1]))
        made[id(spec)] = result
        return result

    return {name: build(spec) for name, spec in method.specs.items()}


def _specs_of(specs: Any, values: Any) -> dict[int, InputSpec]:
    """The InputSpec of every tensor, by the tensor's identity."""
    found: dict[int, InputSpec] = {}

    def visit(spec: Any, value: Any) -> None:
        if isinstance(value, torch.Tensor):
            found[id(value)] = spec if isinstance(spec, InputSpec) else InputSpec.from_tensor(value)
        elif type(spec) in (list, tuple):
            for one, item in zip(spec, value):
                visit(one, item)
        else:
            fields, items = structure.field_items(spec), structure.field_items(value)
            for one, item in zip(fields[1], items[1]) if fields is not None and items is not None else ():
                visit(one, item)

    for name, spec in specs.items():
        visit(spec, values[name])
    return found


# --- putting it together


def _method(name: str, static: StaticFunction, traces: list[tuple[str, _Trace]], tensors: Tensors) -> Method:
    variants: dict[str, Variant] = {}
    for mode, trace in traces:
        made = variant_of(trace.traced, trace.arguments, trace.stopped, tensors)
        if variants and _alike(next(iter(variants.values())), made):
            made = next(iter(variants.values()))
        variants[mode] = made
    arguments = []
    for parameter in static.signature.parameters:
        default = parameter.default
        if default is not parameter.empty:
            default = _default(default, tensors, parameter.name)
        arguments.append(Argument(parameter.name, parameter.kind.name.lower(), default))
    return Method(name, tuple(arguments), variants)


def _alike(a: Variant, b: Variant) -> bool:
    """Whether two traces are one: the same Program, fitted to a call in the same way."""
    mine = (a.params, a.stores, a.same, a.objects, a.exceptions, a.stopped, a.device)
    others = (b.params, b.stores, b.same, b.objects, b.exceptions, b.stopped, b.device)
    views = [
        {place: (view.source.name, view.steps) for place, view in one.views.items()} for one in (a, b)
    ]  # fmt: skip
    return mine == others and views[0] == views[1] and difference(a.program, b.program) is None


def _default(value: Any, tensors: Tensors, name: str) -> Any:
    if isinstance(value, torch.Tensor):
        return TensorRef(tensors.constant(value, name).index)
    if type(value) in (list, tuple):
        return type(value)(_default(item, tensors, name) for item in value)
    if type(value) is dict:
        return {key: _default(item, tensors, name) for key, item in value.items()}
    return value


def _modules_of(live: list[LiveParameter], tensors: Tensors) -> tuple[list[ModuleEntry], list[torch.Tensor]]:
    """Parts for the modules that a function uses: their parameters and buffers, named as the Program names them."""
    root = torch.nn.Module()
    for one in live:
        owner, name = one.owner, one.parameter.name
        plain = all(step.isidentifier() or step.isdigit() for step in name.split("."))
        if not isinstance(owner, torch.nn.Module) or not plain:
            continue
        slot = "_parameters" if one.attribute in owner._parameters else "_buffers"
        tensor = getattr(owner, slot).get(one.attribute)
        if tensor is None or id(tensor) in tensors.names:
            continue
        part = root
        *path, last = name.split(".")
        for step in path:
            part = part._modules.setdefault(step, torch.nn.Module())  # type: ignore[assignment]  # no None is put there
        if last in part._parameters or last in part._buffers or last in part._modules:
            continue
        getattr(part, slot)[last] = tensor
        tensors.names[id(tensor)] = name
    entries, state = describe_modules(root)
    return entries, state


__all__ = ["make_artefact", "save"]
