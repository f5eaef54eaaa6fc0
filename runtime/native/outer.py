"""What a region reads from outside: arguments of its C function."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from runtime.ir import ArrayType, Operator, ScalarType, TensorType, Variable
from runtime.native.layout import Layout
from runtime.native.values import CTYPES, NUMBERS, UNKNOWN, Expr, Items, Number, Tensor, Value, identity
from runtime.native.writer import Writer


@dataclass
class Input:
    """One argument. kind: tensor, list, a kind of number, or "packed": a matrix in panels, which is an argument of the
    kind "tensor", too. dims: its sizes; new: those that it says first; layout: how it lies in memory; steps: its
    strides, if each call says them."""

    var: Variable
    kind: str
    value: Value
    dims: tuple[Expr, ...] = ()
    new: set[str] = field(default_factory=set)
    layout: Layout | None = None
    steps: tuple[Expr, ...] = ()
    turned: bool = False
    """Of a packed matrix, whether it lies in memory the other way round."""


def may_be_none(var: Variable, ops: Iterable[Operator]) -> bool:
    """Whether Operators treat a value as one that may be None."""
    for op in ops:
        if var in op.inputs and (op.name.startswith("grad.") or op.name == "scalar.is_none" or op.blocks):
            return True
        for block in op.blocks:
            if any(value is var for value in block.yields) or may_be_none(var, block.ops):
                return True
    return False


def make_input(w: Writer, var: Variable, ops: Sequence[Operator], symbols: dict[str, str],
               layout: Layout | None = None) -> Input | None:  # fmt: skip
    """The locals of an argument; None if C has no form for it. ``layout``: how it lies in memory."""
    type_ = var.type
    if isinstance(type_, TensorType):
        if type_.dtype not in CTYPES or type_.shape is None or type_.device is not None:
            return None
        null = may_be_none(var, ops)
        n = w.fresh()
        w.declare("buf *", f"b{n}")
        w.declare(f"{CTYPES[type_.dtype]} *", f"p{n}")
        w.declare("i64", f"o{n}")
        dims: list[Expr] = []
        new: set[str] = set()
        for place, dim in enumerate(type_.shape):
            if isinstance(dim, int):
                dims.append(dim)
                continue
            known = symbols.get(dim)
            if known is None or null:
                known = f"d{n}_{place}"
                w.declare("i64", known)
                new.add(known)
                if not null:
                    symbols[dim] = known
            dims.append(known)
        layout = layout or Layout(identity(len(dims)))
        steps: tuple[Expr, ...] = layout.steps(lambda: w.local("i64", "s")) if layout.strided else ()
        new.update(step for step in steps if isinstance(step, str))
        tensor = Tensor(n, type_.dtype, tuple(dims), steps or None, layout.order, null, mine=False)
        return Input(var, "tensor", tensor, tuple(dims), new, layout, steps)
    if isinstance(type_, ScalarType) and type_.kind in NUMBERS:
        name = w.local(NUMBERS[type_.kind], "n")
        return Input(var, type_.kind, Number(type_.kind, name))
    if isinstance(type_, ArrayType):
        element = type_.element
        if isinstance(element, TensorType) and element.dtype in CTYPES and element.shape is not None:
            sizes = tuple(dim if isinstance(dim, int) else UNKNOWN for dim in element.shape)
            item: Tensor | Number = Tensor(0, element.dtype, sizes, order=identity(len(sizes)), null=True)
        elif isinstance(element, ScalarType) and element.kind in NUMBERS:
            item = Number(element.kind, "0")
        else:
            return None
        n = w.fresh()
        w.declare("lst *", f"l{n}")
        return Input(var, "list", Items(n, item, null=may_be_none(var, ops), mine=False))
    return None
