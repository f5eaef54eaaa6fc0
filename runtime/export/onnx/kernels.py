"""Operators for which ONNX Runtime has no kernel with some dtypes, as ones for which it has.

    Where(flag, a, b)  of flags    ->    Cast(Where(flag, Cast(a), Cast(b))), of uint8 inside
"""

from __future__ import annotations

from typing import Any

import onnx_ir

_WIDER = {onnx_ir.DataType.BOOL: onnx_ir.DataType.UINT8, onnx_ir.DataType.INT16: onnx_ir.DataType.INT32}
"""By dtypes that ``Where`` has no kernel for: others that hold all of their numbers."""


def give_kernels(model: Any) -> None:
    """Rewrite a model, graphs inside included."""
    for node in list(onnx_ir.traversal.RecursiveGraphIterator(model.graph)):
        if node.op_type == "Where" and not node.domain:
            _widen(node)


def _widen(node: Any) -> None:
    flag, *given = node.inputs
    (out,) = node.outputs
    kinds = [one.type.dtype for one in (out, *given) if one.type is not None]
    wider = _WIDER.get(kinds[0]) if kinds else None
    if wider is None:
        return
    casts = [_node("Cast", [one], wider, one.shape, to=int(wider)) for one in given]
    chosen = _node("Where", [flag, *(one.outputs[0] for one in casts)], wider, out.shape)
    back = _node("Cast", [chosen.outputs[0]], kinds[0], out.shape, to=int(kinds[0]))
    for one in (*casts, chosen, back):
        one.meta.update(node.meta)
    onnx_ir.convenience.replace_nodes_and_values(node.graph, node, [node], [*casts, chosen, back], [out], back.outputs)


def _node(operator: str, inputs: list[Any], dtype: Any, shape: Any, **attributes: Any) -> Any:
    out = onnx_ir.Value(type=onnx_ir.TensorType(dtype), shape=None if shape is None else onnx_ir.Shape(list(shape)))
    return onnx_ir.Node("", operator, inputs, onnx_ir.convenience.convert_attributes(attributes), outputs=[out])


__all__ = ["give_kernels"]
