"""TracedLayer: a layer traced with example inputs, to run and to save for inference, as Paddle has it.

    outputs, traced = TracedLayer.trace(model, [x])
    traced(x)                                        what model(x) gives
    traced.save_inference_model("net")               ->   net.d2s, for dy2static.load

A trace that met ``if x.sum() > 0`` would hold one path. So control flow that decides on data is refused, and
``to_static`` with ``save``, which keep it, are the way.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from dy2static.data_dependence import deciding_on_data, name_of
from dy2static.errors import SignatureError, TraceError
from dy2static.input_spec import read_tree
from dy2static.output_spec import OutputSpec
from dy2static.saved_methods import Calls, Target, converted
from dy2static.saved_traces import Traces, traces_as_it_is
from dy2static.saving import assembled
from runtime.ir import Program
from runtime.ir.operator import leaves
from runtime.ir.template import TensorSlot
from runtime.kinds import is_a
from runtime.storage.artefact import Artefact, Variant
from runtime.storage.files import write_artefact
from runtime.storage.metadata import checked_metadata
from runtime.translated import TranslatedLayer
from runtime.translated.located import located

_METHOD = "forward"


class TracedLayer:
    """A layer as it was when it was traced: its mode, the sizes of its inputs. Made by ``TracedLayer.trace``.

    It shares the memory of the layer's parameters and buffers. Calls are held against the inputs it was traced with.
    """

    def __init__(self, layer: torch.nn.Module, calls: Calls, artefact: Artefact) -> None:
        self._layer = layer
        self._calls = calls
        self._modes = [(module, module.training) for module in layer.modules()]
        self._translated = TranslatedLayer(artefact)

    @staticmethod
    @located
    def trace(layer: torch.nn.Module, inputs: torch.Tensor | Sequence[Any]) -> tuple[Any, TracedLayer]:
        """Run a layer on ``inputs`` and trace it: what the layer gives for them, and the traced layer.

        Args:
            layer: An ``nn.Module``, in the mode that it is to be traced in.
            inputs: Its arguments by position, in a list or tuple; a tensor alone is one argument.

        Errors raised: TraceError (D2S294) for control flow that decides on data, with its line; TypeError for what is
        no layer; whatever conversion and the layer itself raise.
        """
        if not is_a(layer, torch.nn.Module):
            raise TypeError(f"TracedLayer.trace() takes an nn.Module, not {type(layer).__name__}")
        given = (inputs,) if is_a(inputs, torch.Tensor) else tuple(inputs)
        forward = converted(layer.forward)
        specs = {name: read_tree(value) for name, value in forward.signature.bind(given, {}).items()}
        calls = Calls(forward, [specs])
        traces = traces_as_it_is(calls)
        _refuse_decisions(traces, type(layer).__name__)
        outputs = layer(*given)
        return outputs, TracedLayer(layer, calls, _artefact(layer, calls, traces))

    @property
    def program(self) -> Program:
        """The Program that a call runs."""
        return self._translated.program()

    @located
    def __call__(self, *inputs: Any) -> Any:
        """Run it; a list or tuple alone holds the inputs. SignatureError for inputs of another kind."""
        alone = len(inputs) == 1 and type(inputs[0]) in (list, tuple) and len(self._calls.function.signature.names) > 0
        kind = next(iter(self._calls.kinds[0].values()), None)
        given = inputs[0] if alone and type(kind) not in (list, tuple) else inputs
        return self._translated(*given)

    @located
    def save_inference_model(
        self, path: str | os.PathLike[str], feed: Sequence[int] | None = None, fetch: OutputSpec | None = None, *,
        metadata: dict[str, Any] | None = None,
    ) -> Path:  # fmt: skip
        """Write it to a file for ``dy2static.load`` (``runtime.load``), and return the file's path.

        Args:
            path: Where to; ``.d2s`` is put at the end, and folders that are missing are made.
            feed: Indices of inputs that the loaded layer takes; without it, all. Results must not need another.
            fetch: Indices or names of results that it gives; without it, all.
            metadata: JSON values to write beside.

        Errors raised: SignatureError (D2S317) for inputs and results that are not there, or an input that is needed;
        StorageError for a file that cannot be written, as of ``save``.
        """
        artefact = self._translated.artefact()
        if feed is not None or fetch is not None:
            artefact = self._chosen(fetch)
            for variant in artefact.methods[_METHOD].all() if feed is not None else ():
                _feed(artefact, variant, list(feed or ()))
        artefact.metadata = checked_metadata({} if metadata is None else metadata)
        return write_artefact(artefact, path)

    def _chosen(self, fetch: OutputSpec | None) -> Artefact:
        """The layer as it was traced, with some results."""
        now = [(module, module.training) for module in self._layer.modules()]
        try:
            for module, training in self._modes:
                module.training = training
            return _artefact(self._layer, self._calls, traces_as_it_is(self._calls, fetch))
        finally:
            for module, training in now:
                module.training = training


def _artefact(layer: torch.nn.Module, calls: Calls, traces: list[Traces]) -> Artefact:
    return assembled(Target(type(layer).__name__, layer, {_METHOD: calls}), {_METHOD: traces})


def _refuse_decisions(traces: list[Traces], name: str) -> None:
    programs = [trace.traced.program for modes in traces for ones in modes.values() for trace in ones]
    found = [op for program in programs for op in deciding_on_data(program)]
    if not found:
        return
    first, more = found[0], len({op.location for op in found}) - 1
    raise TraceError(
        f"{name} has control flow that decides on data, {name_of(first)}, of which a trace would hold one path"
        f"{f' (and {more} more)' if more else ''}",
        hint="Convert it with to_static() and save it with save(), which keep all paths.",
        location=first.location,
        code="D2S294",
    )


def _feed(artefact: Artefact, variant: Variant, feed: list[int]) -> None:
    """Take inputs that are not fed out of a Program, in place."""
    method, program = artefact.methods[_METHOD], variant.program
    names = [name for name, _ in variant.template]
    if not feed or any(type(one) is not int or not 0 <= one < len(names) for one in feed):
        raise SignatureError(
            f"feed is {feed}, and the layer has the inputs 0 to {len(names) - 1}: {', '.join(names)}",
            hint="Name inputs by their index from 0.", code="D2S317",
        )  # fmt: skip
    dropped = [index for index in range(len(names)) if index not in feed]
    read = {var for op in program.block.walk() for var in op.inputs} | set(leaves(program.block.yields))
    read |= {var for op in program.block.walk() for block in op.blocks for var in leaves(block.yields)}
    read |= {*(write.target for write in program.writes), *(view.source for view in variant.views.values())}
    for index in dropped:
        name, tree = variant.template[index]
        if not is_a(tree, TensorSlot) or program.inputs[tree.index].var in read:
            raise SignatureError(
                f"the input {index} of the layer, '{name}', is not in feed, but the results need it",
                hint="Feed it, or fetch results that do not need it.", code="D2S317",
            )  # fmt: skip
    gone = {tree.index for index in dropped for tree in [variant.template[index][1]]}
    number = {old: new for new, old in enumerate(one for one in range(len(program.inputs)) if one not in gone)}
    kept = [pair for index, pair in enumerate(variant.template) if index not in dropped]
    variant.template = tuple((name, _renumbered(tree, number)) for name, tree in kept)
    variant.stopped = frozenset(number[one] for one in variant.stopped if one in number)
    program.inputs = [program.inputs[one] for one in number]
    program.block.args = [*(one.var for one in program.inputs), *(one.var for one in program.params)]
    method.signature = tuple(one for one in method.signature if one.name in dict(variant.template))


def _renumbered(tree: Any, number: dict[int, int]) -> Any:
    if is_a(tree, TensorSlot):
        return TensorSlot(number[tree.index])
    if type(tree) in (list, tuple):
        return type(tree)(_renumbered(item, number) for item in tree)
    return {key: _renumbered(item, number) for key, item in tree.items()} if type(tree) is dict else tree


__all__ = ["TracedLayer"]
