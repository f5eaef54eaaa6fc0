"""Nodes of ONNX as they are written: values, constants, graphs inside graphs, and nodes that fail.

    writer.node("Add", a, b, like=a)          a node in the graph that is open
    with writer.graph("then") as inner: ...   a graph inside it, which sees the values around it
    writer.fail_if(flag, "ValueError: ...")   a node that ends the run where the flag is true
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy
import onnx_ir
import torch

from runtime.export.shared import place
from runtime.ir import Operator
from runtime.ir.location import Location
from runtime.ir.types import Dim
from runtime.torch_internals.onnx_converters import Converted, OnnxConverters

DTYPES: dict[torch.dtype, Any] = {
    torch.float32: onnx_ir.DataType.FLOAT, torch.float64: onnx_ir.DataType.DOUBLE,
    torch.float16: onnx_ir.DataType.FLOAT16, torch.bfloat16: onnx_ir.DataType.BFLOAT16,
    torch.int64: onnx_ir.DataType.INT64, torch.int32: onnx_ir.DataType.INT32, torch.int16: onnx_ir.DataType.INT16,
    torch.int8: onnx_ir.DataType.INT8, torch.uint8: onnx_ir.DataType.UINT8, torch.bool: onnx_ir.DataType.BOOL,
}  # fmt: skip
"""The dtypes of tensors that are exported."""

NUMBERS: dict[str, torch.dtype] = {"int": torch.int64, "float": torch.float64, "bool": torch.bool}
"""Python's numbers as tensors without dimensions."""

Value = Any
"""A value of ONNX: ``onnx_ir.Value``. The package has no types for those of PyTorch's converters."""


class Refused(Exception):
    """What has no form in ONNX: why, and the Operator, where it is known."""

    def __init__(self, reason: str, op: Operator | None = None) -> None:
        super().__init__(reason)
        self.reason, self.op = reason, op


@dataclass
class Inner:
    """A graph that is being written."""

    name: str
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    nodes: list[Any] = field(default_factory=list)
    made: set[Value] = field(default_factory=set)
    runs_if: Value = None
    """A flag around it or of its own that tells whether it runs: true, or false if ``runs_if_not``."""
    runs_if_not: bool = False
    finished: Any = None


def dtype_of(dtype: torch.dtype | None) -> Any:
    """A dtype in ONNX. Errors raised: Refused."""
    if dtype is None:
        raise Refused("a value whose dtype depends on the path")
    if dtype not in DTYPES:
        raise Refused(f"values of {str(dtype).removeprefix('torch.')}")
    return DTYPES[dtype]


_TORCH = {onnx: dtype for dtype, onnx in DTYPES.items()}


def torch_dtype(value: Value) -> torch.dtype:
    """The dtype of a value, or of a sequence's items."""
    type_ = value.type
    found: torch.dtype = _TORCH[type_.dtype]
    return found


def is_sequence(value: Value) -> bool:
    """Whether a value is a sequence of tensors."""
    return isinstance(value.type, onnx_ir.SequenceType)


class Writer:
    """The model as it is written. ``converters``: PyTorch's, for one opset."""

    def __init__(self, converters: OnnxConverters) -> None:
        self.converters = converters
        self.constants: dict[Any, Value] = {}
        """Values that are initializers of the outermost graph, and seen by all others."""
        self.functions: dict[Any, Any] = {}
        self.graphs: list[Inner] = [Inner("main")]
        self.given: list[Value] = []
        """What each call tells the model."""
        self._fixed: dict[Value, bool] = {}
        self._in_a_call: Value = None
        self._count = 0
        self.place: Location | None = None
        """The user's line that nodes are written for."""

    # -- values

    def value(self, dtype: torch.dtype, shape: Sequence[Dim] | None = None, *, sequence: bool = False) -> Value:
        """A new value, which some node gives."""
        type_: Any = onnx_ir.TensorType(dtype_of(dtype))
        if sequence:
            return self.converters.new_value(type=onnx_ir.SequenceType(type_))
        return self.converters.new_value(type=type_, shape=None if shape is None else onnx_ir.Shape(list(shape)))

    def constant(self, value: Any, dtype: torch.dtype) -> Value:
        """A constant: a number, or nested lists of numbers.

        Errors raised: Refused for an int beyond 64 bits.
        """
        try:
            array = numpy.array(value, dtype=dtype_of(dtype).numpy())
        except OverflowError:
            raise Refused(f"the number {value}, which is beyond 64 bits") from None
        key = (array.dtype, array.shape, array.tobytes())
        found = self.constants.get(key)
        if found is None:
            found = self.value(dtype, array.shape)
            found.const_value = onnx_ir.tensor(array, dtype=dtype_of(dtype), name="")
            self.constants[key] = found
        return found

    def ints(self, *numbers: int) -> Value:
        """A constant row of ints."""
        return self.constant(list(numbers), torch.int64)

    # -- nodes

    def node(
        self, operator: str, *inputs: Value, dtype: torch.dtype | None = None, shape: Sequence[Dim] | None = None,
        like: Value = None, said: str = "", sequence: bool = False, **attributes: Any,
    ) -> Value:  # fmt: skip
        """A node with one result, of a dtype, or like another value."""
        if like is not None:
            out = self.value(torch_dtype(like), None if like.shape is None else list(like.shape),
                             sequence=is_sequence(like))  # fmt: skip
        else:
            assert dtype is not None
            out = self.value(dtype, shape, sequence=sequence)
        self.add(operator, inputs, [out], attributes, said)
        return out

    def add(self, operator: str, inputs: Sequence[Value], outputs: Sequence[Value], attributes: dict[str, Any],
            said: str = "") -> None:  # fmt: skip
        """A node with any number of results."""
        named = {key.rstrip("_"): value for key, value in attributes.items()}
        node = onnx_ir.Node("", operator, list(inputs), onnx_ir.convenience.convert_attributes(named),
                            outputs=list(outputs))  # fmt: skip
        if said:
            node.meta["said"] = said
        self._append(node)

    def take(self, made: Converted) -> None:
        """The nodes that a converter made.

        A transposition that leaves all where it is becomes an Identity: ONNX Runtime up to 1.23 takes one before a
        matrix product for a real one.
        """
        for node in made.nodes:
            order = list(node.attributes["perm"].as_ints()) if node.op_type == "Transpose" else [1, 0]
            if order == sorted(order):
                node.op_type = "Identity"
                node.attributes.clear()
            self._append(node)
        self.functions.update(made.functions)

    def _append(self, node: Any) -> None:
        if self.place is not None and "place" not in node.meta:
            node.meta["place"] = self.place
        graph = self.graphs[-1]
        graph.nodes.append(node)
        graph.made.update(node.outputs)

    @contextmanager
    def graph(self, name: str, runs_if: Value = None, *, runs_if_not: bool = False) -> Iterator[Inner]:
        """A graph inside the one that is open; afterwards it is in ``finished``."""
        self._count += 1
        inner = Inner(f"{name}_{self._count}", runs_if=runs_if, runs_if_not=runs_if_not)
        self.graphs.append(inner)
        try:
            yield inner
            seen: set[Value] = set()
            for place, one in enumerate(inner.outputs):
                if one not in inner.made or one in seen:
                    inner.outputs[place] = self.node("Identity", one, like=one)
                seen.add(one)
            inner.finished = onnx_ir.Graph(inner.inputs, inner.outputs, nodes=inner.nodes, name=inner.name)
        finally:
            self.graphs.pop()

    # -- small things that many rules say

    def cast(self, value: Value, dtype: torch.dtype) -> Value:
        """A value as another dtype, as C converts it."""
        if torch_dtype(value) is dtype:
            return value
        return self.node("Cast", value, dtype=dtype, shape=value.shape and list(value.shape), to=int(dtype_of(dtype)))

    def flat(self, value: Value) -> Value:
        """A single number as a row of one."""
        return self.node("Reshape", value, self.ints(1), dtype=torch_dtype(value), shape=[1])

    def single(self, value: Value) -> Value:
        """A tensor of one element without dimensions; the run ends where it has more or none."""
        if value.shape is not None and len(value.shape) == 0:
            return value
        return self.node("Reshape", value, self.constant([], torch.int64), dtype=torch_dtype(value), shape=[])

    def sizes(self, value: Value) -> Value:
        """The sizes of a tensor, as a row."""
        rank = None if value.shape is None else len(value.shape)
        return self.node("Shape", value, dtype=torch.int64, shape=None if rank is None else [rank])

    def either(self, flag: Value, a: Value, b: Value) -> Value:
        """One of two numbers."""
        return self.node("Where", flag, a, b, like=a)

    def flags(self, operator: str, *flags: Value) -> Value:
        """``And``, ``Or``, ``Not`` of single flags."""
        return self.node(operator, *flags, dtype=torch.bool, shape=[])

    def test(self, operator: str, a: Value, b: Value) -> Value:
        """A comparison of two numbers."""
        return self.node(operator, a, b, dtype=torch.bool, shape=[])

    def told(self, flag: Value) -> Value:
        """A flag that only a call knows. One of constants and weights alone is put together with one that is always
        true, of which no runtime knows that.

        ONNX Runtime puts a graph of an ``If`` in its place while it loads a model, if it knows the flag, and with some
        that are nested it crashes there.
        """
        if not self.given or not self._is_fixed(flag):
            return flag
        if self._in_a_call is None:
            inner, self.graphs = self.graphs, self.graphs[:1]
            size = self.node("Size", self.given[0], dtype=torch.int64, shape=[])
            self._in_a_call = self.test("GreaterOrEqual", size, self.constant(0, torch.int64))
            self.graphs = inner
        return self.flags("And", flag, self._in_a_call)

    def _is_fixed(self, value: Value) -> bool:
        """Whether it is the same in every call: made of constants and weights, by nodes without graphs."""
        path = [value]
        while path:
            one = path[-1]
            node = one.producer()
            if one in self._fixed or node is None:
                self._fixed.setdefault(one, one.const_value is not None and one not in self.given)
                path.pop()
                continue
            before = [each for each in node.inputs if each is not None]
            missing = next((each for each in before if each not in self._fixed), None)
            if missing is not None:
                path.append(missing)
                continue
            graphs = any(attr.type == onnx_ir.AttributeType.GRAPH for attr in node.attributes.values())
            self._fixed[one] = not graphs and all(self._fixed[each] for each in before)
            path.pop()
        return self._fixed[value]

    def fail(self, said: str) -> None:
        """End the run wherever the graph that is open runs.

        Errors raised: Refused in the outermost graph: every run would.
        """
        graph = self.graphs[-1]
        if graph.runs_if is None:
            raise Refused("an exception that every run raises")
        # a constant flag would be a node that fails while a runtime loads the model
        self.fail_if(self.flags("Not", graph.runs_if) if graph.runs_if_not else graph.runs_if, said)

    def fail_if(self, flag: Value, said: str) -> None:
        """End the run where a flag is true. The node's name, which runtimes show, says why.

        It is an index beyond a row of one item.
        """
        index = self.cast(flag, torch.int64)
        where = "" if self.place is None else f" ({place(self.place)})"
        self.node("Gather", self.ints(0), index, dtype=torch.int64, shape=[], said=f"{said}{where}")


__all__ = ["DTYPES", "NUMBERS", "Inner", "Refused", "Value", "Writer", "dtype_of", "is_sequence", "torch_dtype"]
