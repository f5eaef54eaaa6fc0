"""Programs as JSON-able documents, and back: exact, without code, each part where the reader expects it.

    %y : f32[2] = aten.relu.default(%x)   ->   {"op": "aten.relu.default", "args": [{"var": "x"}],
                                               "outputs": [["y", {"tensor": ["float32", [2]]}]]}
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import torch

from runtime.errors import ProgramError, StorageError
from runtime.ir import (
    ArrayType,
    Assume,
    Block,
    Input,
    Location,
    ObjectType,
    Operator,
    Parameter,
    Program,
    ScalarType,
    TensorType,
    Type,
    Variable,
    Write,
)  # fmt: skip
from runtime.ir.constants import TORCH_CONSTANTS
from runtime.ir.verify import verify
from runtime.ops.host import FAMILIES, Made, MadeTorch
from runtime.storage.document import Node, text_of
from runtime.storage.operands import decode, encode, read_device

_SCALARS = ("int", "float", "bool", "complex", "str")
_KINDS = ("parameter", "buffer", "constant")


def program_to_document(program: Program, source_locations: bool = True) -> dict[str, Any]:
    """The Program as a document of dicts, lists, strings and numbers.

    ``source_locations=False`` leaves out where in the source each Operator stood, and that line's text.

    Errors raised: StorageError for a constant that cannot be saved, located in the user's source.
    """
    return _Writer(source_locations).program(program)


def program_from_document(node: Node, results_used: Collection[int] = ()) -> Program:
    """The Program in a document; it is verified. ``results_used``: results that are needed beside output and writes.

    Errors raised: StorageError that names the place in the document.
    """
    program = _Reader().program(node)
    try:
        verify(program, results_used)
    except ProgramError as error:
        node.fail(f"the program is malformed: {error.summary}")
    except RecursionError:
        node.fail("the program nests too deeply")
    return program


class _Writer:
    def __init__(self, source_locations: bool) -> None:
        self.source_locations = source_locations
        self.locations: dict[Location, int] = {}
        self.generators: dict[int, int] = {}

    def program(self, program: Program) -> dict[str, Any]:
        document: dict[str, Any] = {
            "name": text_of(program.name),
            "inputs": [{"var": self.variable(item.var), "name": text_of(item.name)} for item in program.inputs],
            "params": [
                {"var": self.variable(one.var), "name": text_of(one.name), "kind": one.kind, "grad": one.requires_grad}
                for one in program.params
            ],
            "assumes": [self.assume(assume) for assume in program.assumes],
            "ops": [self.operator(op) for op in program.block.ops],
            "yields": [encode(value) for value in program.block.yields],
            "output": encode(program.output),
            "writes": [[text_of(write.target.name), write.index] for write in program.writes],
        }
        document["locations"] = [
            [text_of(at.file), at.line, at.column, text_of(at.function), text_of(at.text)] for at in self.locations
        ]
        return document

    def assume(self, assume: Assume) -> dict[str, Any]:
        symbols = [[text_of(symbol), text_of(name), dim] for symbol, (name, dim) in assume.symbols.items()]
        return self.placed({"expr": text_of(assume.expr), "symbols": symbols}, assume.location)

    def operator(self, op: Operator) -> dict[str, Any]:
        try:
            args = [encode(arg, self.generator) for arg in op.args]
            document: dict[str, Any] = {"op": text_of(op.name), "args": args}
            for key, pairs in (("kwargs", op.kwargs), ("attrs", op.attrs)):
                if pairs:
                    document[key] = [[text_of(name), encode(value, self.generator)] for name, value in pairs.items()]
        except StorageError as error:
            raise error.locate(op.location) from None
        if op.outputs:
            document["outputs"] = [self.variable(out) for out in op.outputs]
        if op.blocks:
            document["blocks"] = [self.block(block) for block in op.blocks]
        if op.grad_mode != "inherit":
            document["grad"] = op.grad_mode
        if op.autocast is not None:
            document["autocast"] = [[text_of(device), on, text_of(dtype)] for device, on, dtype in op.autocast]
        return self.placed(document, op.location)

    def generator(self, value: Any) -> Any:
        """A generator that each run makes, by its number; None for anything else."""
        if type(value) is Made:
            return {"generator": [self.generators.setdefault(id(value), len(self.generators)), value.family]}
        if type(value) is MadeTorch:
            number = self.generators.setdefault(id(value), len(self.generators))
            return {"torch_generator": [number, str(value.device)]}
        return None

    def block(self, block: Block) -> dict[str, Any]:
        return {
            "args": [self.variable(arg) for arg in block.args],
            "ops": [self.operator(op) for op in block.ops],
            "yields": [encode(value) for value in block.yields],
        }

    def variable(self, var: Variable) -> list[Any]:
        document = [text_of(var.name), _write_type(var.type)]
        return [*document, text_of(var.hint)] if var.hint else document

    def placed(self, document: dict[str, Any], location: Location | None) -> dict[str, Any]:
        if location is not None and self.source_locations:
            document["at"] = self.locations.setdefault(location, len(self.locations))
        return document


def _write_type(type_: Type) -> Any:
    if isinstance(type_, TensorType):
        dtype = None if type_.dtype is None else str(type_.dtype).removeprefix("torch.")
        shape = None if type_.shape is None else [dim if type(dim) is int else text_of(str(dim)) for dim in type_.shape]
        return {"tensor": [dtype, shape, *([] if type_.device is None else [str(type_.device)])]}
    if isinstance(type_, ScalarType):
        return {"scalar": type_.kind}
    if isinstance(type_, ArrayType):
        return {"array": _write_type(type_.element)}
    return "object"


class _Reader:
    def __init__(self) -> None:
        self.visible: dict[str, Variable] = {}
        self.locations: list[Location] = []
        self.generators: dict[tuple[str, int], Made | MadeTorch] = {}

    def program(self, node: Node) -> Program:
        parts = node.record(
            "name", "inputs", "params", "assumes", "ops", "yields", "output", "writes", "locations"
        )
        self.locations = [self.location(item) for item in parts["locations"].items()]
        program = Program(parts["name"].text())
        for item in parts["inputs"].items():
            fields = item.record("var", "name")
            program.inputs.append(Input(self.variable(fields["var"]), fields["name"].text()))
        for item in parts["params"].items():
            fields = item.record("var", "name", "kind", "grad")
            kind: Any = fields["kind"].choice(*_KINDS)
            var = self.variable(fields["var"])
            program.params.append(Parameter(var, fields["name"].text(), kind, fields["grad"].flag()))
        program.assumes = [self.assume(item) for item in parts["assumes"].items()]
        program.block.args = [*(item.var for item in program.inputs), *(param.var for param in program.params)]
        program.block.ops = [self.operator(item) for item in parts["ops"].items()]
        program.block.yields = [decode(item, self.visible) for item in parts["yields"].items()]
        program.output = decode(parts["output"], {})
        for item in parts["writes"].items():
            target, index = item.items(2)
            program.writes.append(Write(self.named(target), index.integer(0)))
        return program

    def location(self, node: Node) -> Location:
        file, line, column, function, text = node.items(5)
        return Location(file.text(), line.integer(), column.integer(), function.text(), text.text())

    def place(self, fields: dict[str, Node]) -> Location | None:
        if "at" not in fields:
            return None
        index = fields["at"].integer(0)
        if index >= len(self.locations):
            fields["at"].fail(f"there are only {len(self.locations)} locations")
        return self.locations[index]

    def assume(self, node: Node) -> Assume:
        fields = node.record("expr", "symbols", optional=("at",))
        symbols: dict[str, tuple[str, int]] = {}
        for item in fields["symbols"].items():
            symbol, name, dim = item.items(3)
            symbols[symbol.text()] = (name.text(), dim.integer(0))
        return Assume(fields["expr"].text(), symbols, self.place(fields))

    def named(self, node: Node) -> Variable:
        name = node.text()
        if name not in self.visible:
            node.fail(f"there is no %{name}")
        return self.visible[name]

    def variable(self, node: Node) -> Variable:
        parts = node.items()
        if len(parts) not in (2, 3):
            node.fail("a variable is a name, a type and perhaps the user's name for it")
        name = parts[0].text()
        if name in self.visible:
            node.fail(f"%{name} is assigned twice")
        var = Variable(name, _read_type(parts[1]), parts[2].text() if len(parts) == 3 else "")
        self.visible[name] = var
        return var

    def operator(self, node: Node) -> Operator:
        fields = node.record("op", "args", optional=("kwargs", "attrs", "outputs", "blocks", "grad", "autocast", "at"))
        op = Operator(fields["op"].text())
        op.args = tuple(decode(item, self.visible, self.generator) for item in fields["args"].items())
        if "kwargs" in fields:
            op.kwargs = self.pairs(fields["kwargs"])
        if "attrs" in fields:
            op.attrs = self.pairs(fields["attrs"])
        if "blocks" in fields:
            op.blocks = tuple(self.block(item) for item in fields["blocks"].items())
        if "outputs" in fields:
            op.outputs = tuple(self.variable(item) for item in fields["outputs"].items())
        if "grad" in fields:
            mode: Any = fields["grad"].choice("on", "off")
            op.grad_mode = mode
        if "autocast" in fields:
            states = [item.items(3) for item in fields["autocast"].items()]
            op.autocast = tuple((device.text(), on.flag(), dtype.text()) for device, on, dtype in states)
        op.location = self.place(fields)
        return op

    def pairs(self, node: Node) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for item in node.items():
            name, value = item.items(2)
            if name.text() in found:
                name.fail(f"{name.text()!r} is given twice")
            found[name.text()] = decode(value, self.visible, self.generator)
        return found

    def generator(self, tag: str, node: Node) -> Made | MadeTorch:
        if tag not in ("generator", "torch_generator"):
            node.fail(f"unknown kind of operand {tag!r}")
        number, of = node.items(2)
        if tag == "generator":
            made: Made | MadeTorch = Made(of.choice(*FAMILIES))
        else:
            made = MadeTorch(read_device(of))
        return self.generators.setdefault((tag, number.integer(0)), made)

    def block(self, node: Node) -> Block:
        fields = node.record("args", "ops", "yields")
        block = Block([self.variable(item) for item in fields["args"].items()])
        block.ops = [self.operator(item) for item in fields["ops"].items()]
        block.yields = [decode(item, self.visible) for item in fields["yields"].items()]
        return block


def _read_type(node: Node) -> Type:
    if node.value == "object":
        return ObjectType()
    tag, inner = node.tagged()
    if tag == "scalar":
        kind: Any = inner.choice(*_SCALARS)
        return ScalarType(kind)
    if tag == "array":
        return ArrayType(_read_type(inner))
    if tag != "tensor":
        node.fail(f"unknown type {tag!r}")
    parts = inner.items()
    dtype, shape = parts[:2] if len(parts) == 3 else inner.items(2)
    device = read_device(parts[2]) if len(parts) == 3 else None
    found = None if dtype.value is None else TORCH_CONSTANTS.get("torch." + dtype.text())
    if dtype.value is not None and not isinstance(found, torch.dtype):
        dtype.fail(f"this version of torch has no dtype {dtype.text()!r}")
    if shape.value is None:
        return TensorType(found, None, device)  # type: ignore[arg-type]  # the line above made sure
    dims = tuple(dim.integer(0) if type(dim.value) is int else dim.text() for dim in shape.items())
    return TensorType(found, dims, device)  # type: ignore[arg-type]  # as above
