"""An artefact as one ONNX file. Nothing is written before all of it is known to work.

    Artefact > Variant for inference > Program, passes -> asked (rules) -> translated -> checked -> a file, renamed
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import onnx_ir
import torch

from runtime.errors import StorageError
from runtime.export.inference import program_for_inference, variants_for_inference
from runtime.export.lists import refine
from runtime.export.onnx.files import Checked
from runtime.export.onnx.kernels import give_kernels
from runtime.export.onnx.rules import require_all, rule_of
from runtime.export.onnx.sizes import require_sizes
from runtime.export.onnx.translator import Translator
from runtime.export.onnx.writer import DTYPES, Refused, Value, Writer
from runtime.export.results import outputs_of, plain_name
from runtime.export.shared import place
from runtime.ir import Operator, Program, TensorType
from runtime.ir.location import Location
from runtime.storage.artefact import Artefact, Variant
from runtime.torch_internals.onnx_converters import HIGHEST_OPSET, LOWEST_OPSET, OnnxConverters
from runtime.version import __version__

DEFAULT_OPSET = 18
_IR_VERSION = 10


@dataclass(frozen=True)
class Exported:
    """A model that was written: its file, and the names of what a caller gives and gets.

    state: Buffers that a run changes: the name of the input that has one, and of the output that has it afterwards. The
    input need not be given: it is what the buffer was when the model was written.
    """

    path: Path
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    program: Program
    """What the model computes; its ``output`` says how the function's result is made of the outputs."""
    state: Mapping[str, str] = field(default_factory=dict)


RUNTIMES = {"onnxruntime": "onnx", "openvino": "openvino"}
"""What runs the file, and its column in the table of ``runtime.export.capability``."""


def export_artefact(artefact: Artefact, path: str | os.PathLike[str], method: str = "forward",
                    opset_version: int | None = None, runtime: str = "onnxruntime") -> Exported:  # fmt: skip
    """Write a method's Program for inference as an ONNX file, for one of ``RUNTIMES``.

    Errors raised: ValueError for another runtime; StorageError, D2S540 for an operator without a form in ONNX, D2S541
    for arguments, results or effects that have none; ImportError where onnx, onnx_ir or onnxscript are not installed.
    """
    target = Path(path)
    if runtime not in RUNTIMES:
        raise ValueError(f"runtime is {runtime!r}; there are {', '.join(map(repr, RUNTIMES))}")
    refused: StorageError | None = None
    for variant in variants_for_inference(artefact, method):  # what is fast without gradients may have no form
        try:
            model = model_of(artefact, variant, opset_version, RUNTIMES[runtime])
            checked = Checked(model, target, runtime)
            break
        except StorageError as error:
            refused = refused or error
    else:
        assert refused is not None
        raise refused
    with contextlib.closing(checked):
        checked.put()
    inputs, outputs = ([str(one.name) for one in values] for values in (model.graph.inputs, model.graph.outputs))
    state: dict[str, str] = json.loads(model.metadata_props.get("state", "{}"))
    kept = {*state, *state.values()}
    return Exported(target, tuple(one for one in inputs if one not in kept),
                    tuple(one for one in outputs if one not in kept), variant.program, state)  # fmt: skip


def model_of(artefact: Artefact, variant: Variant, opset_version: int | None = None, target: str = "onnx") -> Any:
    """The model, an ``onnx_ir.Model``. Errors raised: as ``export_artefact``."""
    opset = DEFAULT_OPSET if opset_version is None else opset_version
    if not LOWEST_OPSET <= opset <= HIGHEST_OPSET:
        raise ValueError(f"opset_version is {opset}; PyTorch's ONNX forms are for {LOWEST_OPSET} to {HIGHEST_OPSET}")
    program, tensors = program_for_inference(artefact, variant, target)
    refine(program)
    writer = Writer(OnnxConverters(opset))
    try:
        return _translated(program, tensors, writer, opset, artefact.name)
    except Refused as error:
        raise _refusal(error.op, error.reason) from None


def _no_form(summary: str, hint: str, location: Location | None = None) -> StorageError:
    return StorageError(summary, hint=hint, location=location, code="D2S541")


def _refusal(op: Operator | None, reason: str) -> StorageError:
    name = "a result" if op is None else op.name
    return StorageError(
        f"ONNX has no form for {name}: {reason}",
        hint="Compute this outside of what is exported, or write it with what docs/export.md lists.",
        location=None if op is None else op.location, code="D2S540")  # fmt: skip


def _translated(program: Program, tensors: Sequence[torch.Tensor], writer: Writer, opset: int, name: str) -> Any:
    require_all(program, writer.converters)
    t = Translator(writer, rule_of)
    taken: set[str] = set()
    inputs = [_input(t, one.var, one.name, taken) for one in program.inputs]
    weights = {one.var: _weight(t, one.var, one.name, tensor) for one, tensor in zip(program.params, tensors)}
    state = [weights.pop(write.target) for write in program.writes]
    writer.given = [*inputs, *state]
    for one in state:
        one.name = one.const_value.name = plain_name(one.name, taken)
    results = outputs_of(program, "ONNX", "D2S541")
    if not results:
        raise _no_form("the function returns no value that depends on the run", "Return a tensor or a number.")
    require_sizes(t, program)
    t.block(program.block)
    outputs: list[Value] = []
    written = [(write.index, f"{one.name}.next", f"the new '{one.name}'") for write, one in zip(program.writes, state)]
    for index, wanted, said in [*((one.index, one.name, one.said) for one in results), *written]:
        made = t.value(program.block.yields[index])
        if made in outputs or made not in writer.graphs[0].made:
            made = writer.node("Identity", made, like=made)
        _require_rank(made, said)
        made.name = plain_name(wanted, taken)
        outputs.append(made)
    constants = list(writer.constants.values())
    graph = onnx_ir.Graph([*inputs, *state], outputs, nodes=writer.graphs[0].nodes, initializers=(),
                          name=plain_name(name, set()), opset_imports={"": opset})  # fmt: skip
    model = onnx_ir.Model(graph, ir_version=_IR_VERSION, producer_name="dy2static", producer_version=__version__,
                          functions=_functions(writer))  # fmt: skip
    graph.initializers.update({str(one.name): one for one in state})
    _name_all(model, [*weights.values(), *constants], taken)
    if state:
        new = outputs[len(outputs) - len(state) :]
        model.metadata_props["state"] = json.dumps({str(one.name): str(made.name) for one, made in zip(state, new)})
    model.metadata_props["returns"] = repr(program.output).replace("Leaf(index=", "value(")[:2000]
    return model


def _input(t: Translator, var: Any, name: str, taken: set[str]) -> Value:
    type_ = var.type
    known = isinstance(type_, TensorType) and type_.dtype in DTYPES and type_.shape is not None
    if not known or type_.device is not None:
        raise _no_form(f"'{name}' cannot be an argument of a model: {type_}",
                       "Export tensors of the CPU, of dtypes that docs/export.md lists.")  # fmt: skip
    made = t.w.value(type_.dtype, type_.shape)
    made.name = plain_name(name, taken)
    t.give(var, made)
    return made


def _weight(t: Translator, var: Any, name: str, tensor: torch.Tensor) -> Value:
    if tensor.dtype not in DTYPES or tensor.layout is not torch.strided or tensor.device.type == "meta":
        raise _no_form(f"the tensor '{name}' is {str(tensor.dtype).removeprefix('torch.')}, {tensor.layout}, on "
                       f"{tensor.device}, which a model cannot hold", "Convert it before the export.")  # fmt: skip
    made = t.w.value(tensor.dtype, tuple(tensor.shape))
    data = tensor.detach().cpu().contiguous()
    if tensor.dtype is torch.bfloat16:
        array: Any = data.view(torch.int16).numpy().view(onnx_ir.DataType.BFLOAT16.numpy())
    else:
        array = data.numpy()
    made.const_value = onnx_ir.Tensor(array, dtype=DTYPES[tensor.dtype], name=name)
    made.name = name
    t.give(var, made)
    return made


def _require_rank(value: Value, said: str) -> None:
    if value.shape is None and not isinstance(value.type, onnx_ir.SequenceType):
        raise Refused(f"{said}, of which only the run knows how many dimensions it has")


def _functions(writer: Writer) -> list[Any]:
    return [one if isinstance(one, onnx_ir.Function) else onnx_ir.serde.deserialize_function(one.to_function_proto())
            for one in writer.functions.values()]  # fmt: skip


def _name_all(model: Any, held: Sequence[Value], taken: set[str]) -> None:
    """Give every value and node a name that no other has, at any depth.

    Of their sizes values inside keep none, but that they are single numbers.

    A name inside a graph would hide one outside, and sizes of one symbol may differ from one iteration to the next.
    """
    if model.functions:
        from onnx_ir.passes.common import InlinePass

        InlinePass()(model)
    give_kernels(model)
    keep = {*model.graph.inputs, *model.graph.outputs}
    numbers: dict[str, int] = {}

    def fresh(stem: str) -> str:
        number = numbers.get(stem, 0)
        while (found := f"{stem}_{number}") in taken:
            number += 1
        numbers[stem] = number + 1
        taken.add(found)
        return found

    for one in held:
        if one.const_value.name:
            name = one.const_value.name
            one.name = plain_name(name, taken) if name in taken else name
            taken.add(one.name)
        else:
            one.name = fresh("c")
        one.const_value.name = one.name
        if one.uses():
            model.graph.initializers[one.name] = one
    for node in onnx_ir.traversal.RecursiveGraphIterator(model.graph):
        where = place(node.meta.get("place"))
        said = node.meta.get("said")  # why a node fails, if it is one that may
        node.name = fresh(said or f"{where}{' ' if where else ''}{node.op_type}")
        graphs = [attr.value for attr in node.attributes.values() if attr.type == onnx_ir.AttributeType.GRAPH]
        for value in (*node.outputs, *(one for graph in graphs for one in graph.inputs)):
            if value not in keep:
                value.name = fresh("v")
                value.shape = None if value.shape is None or len(value.shape) else value.shape
    known = {dim.value for given in model.graph.inputs for dim in given.shape if isinstance(dim, onnx_ir.SymbolicDim)}
    for one in model.graph.outputs:
        if one.shape is not None:
            one.shape = onnx_ir.Shape([dim if isinstance(dim, int) or dim.value in known else None
                                       for dim in one.shape])  # fmt: skip


__all__ = ["DEFAULT_OPSET", "RUNTIMES", "Exported", "export_artefact", "model_of"]

