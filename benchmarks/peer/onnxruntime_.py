"""ONNX Runtime: what runs without training, as models written with ``onnx.helper``; loops are ``Loop``."""

from __future__ import annotations

import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import numpy as np
import onnx
import onnxruntime
from data import HEADS, LAYERS, arrays
from onnx import TensorProto, helper, numpy_helper
from protocol import Step, serve


class Graph:
    """Nodes and constants, named as they come."""

    def __init__(self, weights: dict[str, np.ndarray]) -> None:
        self.nodes: list[Any] = []
        self.constants = [numpy_helper.from_array(value, key) for key, value in weights.items()]
        self.count = 0

    def add(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """A node with one result."""
        self.count += 1
        self.nodes.append(helper.make_node(kind, inputs, [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def constant(self, value: Any) -> str:
        """A constant."""
        self.count += 1
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"v{self.count}"))
        return f"v{self.count}"


def _model(graph: Graph, inputs: dict[str, np.ndarray], output: str, rank: int) -> Any:
    kinds = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}
    given = [helper.make_tensor_value_info(key, kinds[str(value.dtype)], value.shape) for key, value in inputs.items()]
    out = helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * rank)
    made = helper.make_graph(graph.nodes, "g", given, [out], graph.constants)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


def encoder(given: dict[str, np.ndarray]) -> tuple[Any, list[str]]:
    weights = {key: np.ascontiguousarray(value.T) if value.ndim == 2 else value for key, value in given.items()
               if key != "x"}  # fmt: skip
    g = Graph(weights)
    b, t, d = given["x"].shape
    heads, flat = g.constant([b, t, HEADS, d // HEADS]), g.constant([b, t, d])
    scale = g.constant(np.float32((d // HEADS) ** -0.5))

    def linear(key: str, x: str) -> str:
        return g.add("Add", g.add("MatMul", x, f"p_{key}_w"), f"p_{key}_b")

    def norm(key: str, x: str) -> str:
        return g.add("LayerNormalization", x, f"p_{key}_w", f"p_{key}_b", axis=-1, epsilon=1e-5)

    x = "x"
    for i in range(LAYERS):
        q, k, v = (g.add("Transpose", g.add("Reshape", linear(f"{n}{i}", x), heads), perm=order)
                   for n, order in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3])))  # fmt: skip
        y = g.add("MatMul", g.add("Softmax", g.add("Mul", g.add("MatMul", q, k), scale), axis=-1), v)
        y = linear(f"o{i}", g.add("Reshape", g.add("Transpose", y, perm=[0, 2, 1, 3]), flat))
        x = norm(f"m{i}", g.add("Add", x, y))
        x = norm(f"n{i}", g.add("Add", x, linear(f"b{i}", g.add("Gelu", linear(f"a{i}", x)))))
    return _model(g, {"x": given["x"]}, x, 3), ["x"]


def _loop(g: Graph, body: Graph, most: str, going: str, state: list[tuple[str, str, list[int | None]]],
          results: list[str]) -> list[str]:  # fmt: skip
    """A Loop over carried values: (first, name in the body, shape); ``results``: whether it goes on, then the next."""
    inputs = [helper.make_tensor_value_info("number", TensorProto.INT64, []),
              helper.make_tensor_value_info("before", TensorProto.BOOL, [])]  # fmt: skip
    inputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for _, name, shape in state]
    outputs = [helper.make_tensor_value_info(results[0], TensorProto.BOOL, [])]
    outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, one[2]) for name, one in zip(results[1:], state)]
    inner = helper.make_graph(body.nodes, "body", inputs, outputs, body.constants)
    names = [f"last{place}" for place in range(len(state))]
    g.nodes.append(helper.make_node("Loop", [most, going, *(one[0] for one in state)], names, body=inner))
    return names


def recurrent(given: dict[str, np.ndarray]) -> tuple[Any, list[str]]:
    g = Graph({"iw": np.ascontiguousarray(given["p_i_w"].T), "ib": given["p_i_b"],
               "sw": np.ascontiguousarray(given["p_s_w"].T)})  # fmt: skip
    body = Graph({})
    body.count = 1000
    row = body.add("Gather", "x", "number", axis=0)
    new = body.add("Tanh", body.add("Add", body.add("Add", body.add("MatMul", row, "iw"), "ib"),
                                    body.add("MatMul", "h1", "sw")))  # fmt: skip
    top = body.add("ReduceMax", body.add("Abs", new), keepdims=0)
    going = body.add("LessOrEqual", top, body.constant(np.float32(5)))
    rows, batch, width = given["x"].shape
    (last,) = _loop(g, body, g.constant(np.int64(rows)), g.constant(np.bool_(True)), [("h", "h1", [batch, width])],
                    [going, new])  # fmt: skip
    return _model(g, {"x": given["x"], "h": given["h"]}, last, 2), ["x", "h"]


def power(given: dict[str, np.ndarray]) -> tuple[Any, list[str]]:
    g, body = Graph({}), Graph({})
    body.count = 1000
    w = body.add("MatMul", "a", "v1")
    w = body.add("Div", w, body.add("ReduceL2", w, keepdims=0))
    change = body.add("ReduceMax", body.add("Abs", body.add("Sub", w, "v1")), keepdims=0)
    going = body.add("Greater", change, body.constant(np.float32(1e-6)))
    (last,) = _loop(g, body, g.constant(np.int64(1 << 40)), g.constant(np.bool_(True)), [("v", "v1", [16])], [going, w])
    return _model(g, {"a": given["a"], "v": given["v"]}, last, 1), ["a", "v"]


MODELS = {"W1": encoder, "W3": recurrent, "W3b1": recurrent, "W4": power}


def make(name: str) -> Step:
    """A call of a workload."""
    given = arrays(name)
    model, inputs = MODELS[name](given)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    feed = {key: given[key] for key in inputs}
    return lambda: session.run(None, feed)[0]


if __name__ == "__main__":
    serve({"ONNX Runtime": make}, {"onnxruntime": onnxruntime.__version__, "onnx": onnx.__version__})
