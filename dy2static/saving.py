"""save: a layer or function is traced for training and for inference, and written to one file without code.

    save(model, "model", input_spec=[InputSpec([None, 64])])      ->   model.d2s
    load("model")                                                 ->   a module with the same parameters and methods

    saved_methods: which methods, which kinds of calls
        ->   saved_traces: a trace for each   ->   saved_variant: what a live call takes from objects, by name
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from dy2static.output_spec import OutputSpec
from dy2static.saved_methods import Asked, Target, target_of
from dy2static.saved_traces import Traces, traces_for_inference, traces_of
from dy2static.saved_variant import Tensors, variant_of
from dy2static.static_function import StaticFunction
from runtime.ir.compare import difference
from runtime.kinds import is_a
from runtime.storage.artefact import MODES, Argument, Artefact, Method, ModuleEntry, TensorRef, Variant
from runtime.storage.files import write_artefact
from runtime.storage.metadata import checked_metadata
from runtime.storage.modules import describe_modules
from runtime.tracer.memory.inputs import LiveParameter
from runtime.translated import TranslatedLayer
from runtime.translated import save as save_loaded
from runtime.translated.located import located


@located
def save(
    layer: Any,
    path: str | os.PathLike[str],
    input_spec: Any = None,
    *,
    methods: Sequence[str] | Mapping[str, Any] | None = None,
    modes: Collection[str] = MODES,
    variants: Mapping[str, Sequence[Any]] | None = None,
    output_spec: OutputSpec | Mapping[str, OutputSpec] | None = None,
    metadata: dict[str, Any] | None = None,
    source_locations: bool = True,
) -> Path:
    """Save a layer or function: its Programs for training and for inference, and its tensors. Returns the file's path.

    Args:
        layer: An ``nn.Module``, a function or method (converted by ``to_static`` or not), or a loaded layer.
        path: Where to; ``.d2s`` is put at the end, and folders that are missing are made.
        input_spec: InputSpecs for the arguments, as ``to_static`` takes them. Without it, those it was converted with
            count, else the calls that were made: their sizes, where they differ, are left open.
        methods: Methods of a module to save beside ``forward``: names, or names with their InputSpecs.
        modes: ``"train"``, ``"eval"`` or both: what the loaded layer can be used for.
        variants: Values that an argument may have, by its name: ``{"causal": [True, False]}``; the loaded layer chooses
            the Program. InputSpecs are values too (``{"mask": [None, InputSpec([None, 8])]}``). Without it, numbers,
            strings and None that calls have passed for an argument that no InputSpec is for are all saved.
        output_spec: Names or indices of results to keep (``["logits"]``, ``[0]``), or one alone; the others, and what
            only they need, leave the Program. By method in a dict: ``{"forward": ["logits"]}``.
        metadata: JSON values to write beside, by name; ``load(path).metadata`` and ``dy2static inspect`` show them.
        source_locations: Whether the file says where in the source each operator stood, with that line's text.

    Errors raised: StorageError for what a file cannot hold, at its place in the source, or a file that cannot be
    written; SignatureError for InputSpecs that do not fit, calls that no one Program can be for, and results that are
    not there; whatever conversion raises. The disk is touched only when everything else has worked.
    """
    if is_a(layer, TranslatedLayer):
        if input_spec is not None or methods is not None or variants is not None or output_spec is not None:
            raise TypeError("a loaded layer is saved as it is: no input_spec, methods, variants or output_spec")
        if tuple(modes) != MODES:
            raise TypeError("a loaded layer is saved with the modes that it has")
        return save_loaded(layer, path, metadata=metadata, source_locations=source_locations)
    written = checked_metadata({} if metadata is None else metadata)
    asked = Asked(input_spec, methods, variants, several=True)
    artefact = _artefact(target_of(layer, asked), checked_modes(modes), output_spec)
    artefact.metadata = written
    return write_artefact(artefact, path, source_locations)


def make_artefact(layer: Any, input_spec: Any = None, methods: Any = None, variants: Any = None) -> Artefact:
    """What ``save`` writes, in memory; without InputSpecs, for the last call alone."""
    return _artefact(target_of(layer, Asked(input_spec, methods, variants)), MODES, None)


def artefact_for_inference(layer: Any, input_spec: Any = None, method: str = "forward") -> Artefact:
    """One method as it is exported: for calls in eval, of arguments that need no gradient. Without InputSpecs, as it
    was called last. Errors raised: as of ``save``."""
    target = target_of(layer, Asked(input_spec, only=method))
    return assembled(target, {name: [traces_for_inference(one, target.root)] for name, one in target.methods.items()})


def checked_modes(modes: Any) -> tuple[str, ...]:
    """The modes to save. Errors raised: ValueError for anything but "train", "eval" or both."""
    if is_a(modes, str) or not modes or not set(modes) <= set(MODES):
        raise ValueError(f"modes is ('train', 'eval'), or one of them in a tuple, not {modes!r}")
    return tuple(mode for mode in MODES if mode in modes)


def _artefact(target: Target, modes: Sequence[str], output_spec: Any) -> Artefact:
    outputs = output_spec if is_a(output_spec, Mapping) else {"forward": output_spec}
    for name in outputs:
        if name not in target.methods and outputs[name] is not None:
            raise TypeError(f"output_spec is for {name!r}, which is not saved; there are {', '.join(target.methods)}")
    return assembled(target, {
        name: traces_of(calls, target.root, modes, outputs.get(name)) for name, calls in target.methods.items()
    })  # fmt: skip


def assembled(target: Target, traces: Mapping[str, list[Traces]]) -> Artefact:
    """The artefact of traces: by method, for each kind of call the traces for each mode.

    Errors raised: StorageError for what a file cannot hold, at its place in the source.
    """
    tensors = Tensors(target.root)
    if target.root is not None:
        entries, state = describe_modules(target.root)
        entries[0].type_name = type(target.root).__name__
    else:
        kinds = (kind for method in traces.values() for kind in method)
        every = {id(trace): trace for kind in kinds for ones in kind.values() for trace in ones}
        entries, state = _modules_of([one for trace in every.values() for one in trace.traced.live], tensors)
    made = {name: _method(name, target.methods[name].function, kinds, tensors) for name, kinds in traces.items()}
    detached = [t if t.is_leaf else t.detach() for t in state]
    return Artefact(target.name, entries, detached, tensors.constants, made)


def _method(name: str, static: StaticFunction, kinds: list[Traces], tensors: Tensors) -> Method:
    by_mode: dict[str, list[Variant]] = {}
    for traces in kinds:
        variants: dict[int, Variant] = {}
        for mode, trace in ((mode, trace) for mode, ones in traces.items() for trace in ones):
            if id(trace) not in variants:
                made = variant_of(trace.traced, trace.arguments, trace.stopped, tensors, trace.answers, trace.settings)
                variants[id(trace)] = next((one for one in variants.values() if _alike(one, made)), made)
            by_mode.setdefault(mode, []).append(variants[id(trace)])
    arguments = []
    for parameter in static.signature.parameters:
        default = parameter.default
        if default is not parameter.empty:
            default = _default(default, tensors, parameter.name)
        arguments.append(Argument(parameter.name, parameter.kind.name.lower(), default))
    first = {mode: variants[0] for mode, variants in by_mode.items()}
    others = {mode: tuple(variants[1:]) for mode, variants in by_mode.items() if variants[1:]}
    return Method(name, tuple(arguments), first, others)


def _alike(a: Variant, b: Variant) -> bool:
    """Whether two traces are one: the same Program, fitted to a call in the same way."""
    mine = (a.params, a.stores, a.same, a.objects, a.exceptions, a.stopped, a.device, a.answers, a.settings)
    others = (b.params, b.stores, b.same, b.objects, b.exceptions, b.stopped, b.device, b.answers, b.settings)
    views = [
        {place: (view.source.name, view.steps) for place, view in one.views.items()} for one in (a, b)
    ]  # fmt: skip
    return mine == others and views[0] == views[1] and difference(a.program, b.program) is None


def _default(value: Any, tensors: Tensors, name: str) -> Any:
    if is_a(value, torch.Tensor):
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
        if not is_a(owner, torch.nn.Module) or not plain:
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


__all__ = ["artefact_for_inference", "assembled", "checked_modes", "make_artefact", "save"]
