"""Whether the rows of a Program's inputs are computed each by itself, so that requests may be put together.

    y = linear(x, w)              row i of y depends on row i of x
    y = x - x.mean(0)             it depends on all rows: requests that are put together would change each other
    while x.abs().max() > 1:      so does whether a loop goes on

What is not proven here is refused: a batch gives each request what a run of its own gives, but for rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime.errors import StorageError
from runtime.ir import Block, Operand, Operator, Program, TensorType, Variable, leaves
from runtime.ir.flow import Kind, Port
from runtime.ir.ports import flow_of
from runtime.ops import aten


class _Mixed(Exception):
    """An Operator whose rows are not proven to be independent, and why."""

    def __init__(self, op: Operator | None, reason: str) -> None:
        super().__init__(reason)
        self.op, self.reason = op, reason


def require_independent_rows(program: Program) -> None:
    """Errors raised: StorageError (D2S562) for a Program whose requests may not be put together, at its line."""
    try:
        _Rows(program).prove()
    except _Mixed as error:
        raise StorageError(
            f"requests cannot be put together: {error.reason}",
            hint="Leave max_batch out; or save a model whose first dimension is open in all inputs and outputs, and "
            "which computes each row by itself.",
            location=None if error.op is None else error.op.location, code="D2S562") from None  # fmt: skip


class _Rows:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.rows: set[Variable] = set()
        """Tensors whose first dimension is the requests' rows."""
        self.counts: set[Variable] = set()
        """Ints that are the number of rows."""
        self.size: Any = None

    def prove(self) -> None:
        program = self.program
        for one in program.inputs:
            shape = _shape(one.var)
            if not shape or not isinstance(shape[0], str):
                raise _Mixed(None, f"the first dimension of input '{one.name}' is not open")
            self.size = self.size or shape[0]
            if shape[0] != self.size or self.size in shape[1:]:
                raise _Mixed(None, f"the first dimension of input '{one.name}' is not that of all inputs alone")
            self.rows.add(one.var)
        if not program.inputs:
            raise _Mixed(None, "there are no inputs")
        self.block(program.block)
        for var in leaves(program.block.yields):
            if var not in self.rows or not isinstance(var.type, TensorType):
                raise _Mixed(None, "the first dimension of an output is not open")
        if any(not isinstance(one, Variable) for one in program.block.yields):
            raise _Mixed(None, "an output is a constant")

    def block(self, block: Block) -> None:
        for op in block.ops:
            self.operator(op)

    def _read(self, op: Operator) -> set[Variable]:
        inside = {var for block in op.blocks for var in block.captures()}
        return {*op.inputs, *inside}

    def operator(self, op: Operator) -> None:
        read = self._read(op)
        if aten_random(op):
            raise _Mixed(op, "random numbers are drawn in an order of their own")
        if not read & (self.rows | self.counts):
            return  # the same for all requests
        if op.name.startswith("aten."):
            self.aten(op)
        elif op.name == "scalar.dim":
            return
        elif op.name == "scalar.size" and type(op.args[1]) is int and _rank(op.args[0]) is not None:
            if _normal(op.args[1], op.args[0]) == 0:
                self.counts.add(op.outputs[0])
        elif op.name in ("grad.named", "grad.leaf"):
            self.rows.add(op.outputs[0])
        elif op.name == "update":
            self.update(op)
        elif flow_of(op).kind is Kind.BRANCH:
            self.branch(op)
        elif flow_of(op).kind is Kind.LOOP and all(port.whole for port in flow_of(op).ports(op)):
            self.loop(op)
        else:
            raise _Mixed(op, f"{op.name} looks at values or at the number of rows")

    def branch(self, op: Operator) -> None:
        """All paths give rows, or none does; what decides is the same for all requests."""
        if set(op.inputs) & (self.rows | self.counts):
            raise _Mixed(op, f"{op.name} decides by values of the rows")
        for block in op.blocks:
            self.block(block)
        for port in flow_of(op).ports(op):
            self._join(op, port)

    def loop(self, op: Operator) -> None:
        """What is carried is rows in all iterations, or in none; the test is the same for all requests."""
        flow = flow_of(op)
        ports = flow.ports(op)
        for port in ports:
            if port.arg is not None and op.args[port.arg] in self.rows:
                self.rows.update(_inside(op, port))
        if any(given in self.counts for given in op.args):
            raise _Mixed(op, "a loop that carries the number of rows")
        for block in op.blocks:
            self.block(block)
        if not self.is_shared(*flow.decides(op)):
            raise _Mixed(op, "a loop ends by values of the rows")
        for port in ports:
            carries = not self.rows.isdisjoint(_inside(op, port))
            if any((isinstance(left, Variable) and left in self.rows) != carries for left in _left(op, port)):
                raise _Mixed(op, "a loop carries rows in some iterations only")
            if carries and port.output is not None:
                self.rows.add(op.outputs[port.output])

    def _join(self, op: Operator, port: Port) -> None:
        """An output of a branch is rows where all paths give rows."""
        given = _left(op, port)
        found = [isinstance(one, Variable) and one in self.rows for one in given]
        if any(isinstance(one, Variable) and one in self.counts for one in given):
            raise _Mixed(op, "a path gives the number of rows")
        if any(found) and not all(found):
            raise _Mixed(op, "a path gives rows, and another does not")
        if all(found) and port.output is not None:
            self.rows.add(op.outputs[port.output])

    def update(self, op: Operator) -> None:
        (block,) = op.blocks
        for given, arg in zip(op.args, block.args):
            if given in self.rows:
                self.rows.add(arg)
        for inner in block.ops:
            packet = inner.name.split(".")[1]
            if inner.name.startswith("aten.") and aten.writes(aten.resolve(inner.name), inner.args, inner.kwargs):
                pointwise = torch.Tag.pointwise in aten.resolve(inner.name).tags
                if not (pointwise or packet in ("copy_", "fill_", "zero_")) or inner.args[0] not in self.rows:
                    raise _Mixed(inner, f"{packet} is not known to write each row by itself")
                self._aligned(inner, [one for one in inner.inputs if isinstance(one.type, TensorType)],
                              _rank(inner.args[0]))  # fmt: skip
                self.rows.update(inner.outputs)
            else:
                self.operator(inner)
        for out, value in zip(op.outputs, block.yields):
            if value in self.rows:
                self.rows.add(out)

    # -- ATen

    def aten(self, op: Operator) -> None:
        overload = aten.resolve(op.name)
        packet = op.name.split(".")[1]
        bound = aten.arguments(overload, op.args, op.kwargs)
        if any(var in self.counts for var in op.inputs) and packet not in (*_SIZED, *_RESHAPED):
            raise _Mixed(op, f"{packet} is given the number of rows")
        if torch.Tag.pointwise in overload.tags or packet in _SAME:
            tensors = [one for one in op.inputs if isinstance(one.type, TensorType)]
            self._aligned(op, tensors, _rank(op.outputs[0]))
        else:
            rule = _RULES.get(packet)
            if rule is None or not rule(self, op, bound):
                raise _Mixed(op, f"{packet} is not known to compute each row by itself")
        self.rows.update(op.outputs)

    def _aligned(self, op: Operator, tensors: Sequence[Variable], rank: int | None) -> None:
        """The first dimension of rows is the result's; what is no row has none there, or one of size 1."""
        for one in tensors:
            shape = _shape(one)
            if shape is None or rank is None:
                raise _Mixed(op, "a tensor whose number of dimensions is not known")
            if one in self.rows:
                aligned = len(shape) == rank
            else:
                aligned = len(shape) < rank or shape[0] == 1
            if not aligned:
                raise _Mixed(op, f"{op.name.split('.')[1]} puts rows beside something else")

    def is_rows(self, operand: Operand, least: int = 1) -> bool:
        """Whether an operand is rows, of at least so many dimensions."""
        rank = _rank(operand)
        return isinstance(operand, Variable) and operand in self.rows and rank is not None and rank >= least

    def is_shared(self, *operands: Operand) -> bool:
        """Whether operands are the same for all requests."""
        return not any(var in self.rows or var in self.counts for one in operands for var in leaves(one))


def aten_random(op: Operator) -> bool:
    """Whether an Operator draws random numbers."""
    return op.name.startswith("aten.") and aten.is_random(aten.resolve(op.name), op.args, op.kwargs)


def _inside(op: Operator, port: Port) -> list[Variable]:
    """What a value is called in the Blocks that get it."""
    return [block.args[place] for block, place in zip(op.blocks, port.inner) if place is not None]


def _left(op: Operator, port: Port) -> list[Operand]:
    """What the Blocks give for a value."""
    return [block.yields[place] for block, place in zip(op.blocks, port.yields) if place is not None]


def _shape(operand: Operand) -> tuple[Any, ...] | None:
    type_ = operand.type if isinstance(operand, Variable) else None
    return type_.shape if isinstance(type_, TensorType) else None


def _rank(operand: Operand) -> int | None:
    shape = _shape(operand)
    return None if shape is None else len(shape)


def _normal(dim: int, operand: Operand) -> int:
    rank = _rank(operand)
    return dim if dim >= 0 or rank is None else dim + rank


# --- rules: (rows, Operator, its arguments by name) -> whether each row is computed by itself

Rule = Callable[[_Rows, Operator, dict[str, Any]], bool]


def _first(bound: dict[str, Any]) -> Any:
    return next(iter(bound.values()))


def _along(*names: str) -> Rule:
    """Along dimensions that are not the first."""
    def rule(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
        given = _first(bound)
        dims = [bound.get(name) for name in names]
        flat = [one for dim in dims for one in (dim if isinstance(dim, (list, tuple)) else [dim])]
        others = [one for name, one in bound.items() if name not in names and one is not given]
        if not flat or not all(type(one) is int for one in flat) or not rows.is_shared(*others):
            return False
        return rows.is_rows(given, 1) and all(type(one) is int and _normal(one, given) > 0 for one in flat)

    return rule


def _sliced(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    """Along another dimension; or all rows, as in ``x[:, 0]``."""
    if type(bound["dim"]) is int and _normal(bound["dim"], bound["self"]) == 0:
        start, end = bound["start"], bound["end"]
        every = start in (None, 0) and (end is None or (type(end) is int and end >= 2**62)) and bound["step"] == 1
        return every and rows.is_rows(bound["self"])
    return _along("dim")(rows, op, bound)


def _weights(least: int) -> Rule:
    """Rows first, of at least so many dimensions, and the rest shared."""
    def rule(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
        given, *others = bound.values()
        return rows.is_rows(given, least) and rows.is_shared(*others)

    return rule


def _product(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    a, b = list(bound.values())[:2]
    if rows.is_rows(a, 2) and rows.is_shared(b):
        return (_rank(b) or 9) <= 2
    return rows.is_rows(a, 3) and rows.is_rows(b, 3) and _rank(a) == _rank(b)


def _addmm(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    bias, a, b = list(bound.values())[:3]
    return rows.is_rows(a, 2) and rows.is_shared(bias, b) and (_rank(bias) or 0) <= 1


def _embedding(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    weight, places, *others = bound.values()
    return rows.is_shared(weight, *others) and rows.is_rows(places)


def _norm(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    given, normalized, *others = bound.values()
    return rows.is_rows(given, len(normalized) + 1) and rows.is_shared(*others)


def _batch_norm(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    others = [one for name, one in bound.items() if name != "input"]
    return bound["training"] is False and rows.is_rows(bound["input"], 2) and rows.is_shared(*others)


def _permuted(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    return rows.is_rows(bound["self"]) and bound["dims"][0] == 0


def _unsqueezed(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    rank, dim = _rank(bound["self"]), bound["dim"]
    return rows.is_rows(bound["self"]) and type(dim) is int and (dim if dim >= 0 else dim + (rank or 0) + 1) > 0


def _reshaped(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    """Row after row stays in its place where the first size stays, and all others are known."""
    given, made = _shape(bound["self"]), _shape(op.outputs[0])
    if not rows.is_rows(bound["self"]) or not made or not given:
        return False
    sizes = bound.get("size", bound.get("shape"))
    first = sizes[0] if isinstance(sizes, (list, tuple)) and sizes else None
    return made[0] == rows.size or (isinstance(first, Variable) and first in rows.counts)


def _flattened(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    return rows.is_rows(bound["self"]) and _normal(bound["start_dim"], bound["self"]) > 0


def _expanded(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    first = bound["size"][0] if bound["size"] else None
    counted = isinstance(first, Variable) and first in rows.counts
    shape = _shape(bound["self"])
    if rows.is_rows(bound["self"]):
        return shape is not None and len(shape) == len(bound["size"]) and (counted or first == -1)
    return counted and shape is not None and (len(shape) < len(bound["size"]) or shape[0] == 1)


def _sized(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    """A new tensor with as many rows."""
    sizes = bound.get("size")
    if not isinstance(sizes, (list, tuple)) or not sizes:
        return False
    first, *others = sizes
    rest = [one for name, one in bound.items() if name not in ("size", "self")]
    return isinstance(first, Variable) and first in rows.counts and rows.is_shared(others, *rest)


def _joined(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    tensors = bound["tensors"]
    if not isinstance(tensors, (list, tuple)) or not all(rows.is_rows(one) for one in tensors):
        return False
    rank = (_rank(tensors[0]) or 0) + (op.name.split(".")[1] == "stack")
    dim = bound["dim"] if bound["dim"] >= 0 else bound["dim"] + rank
    return dim > 0


def _attention(rows: _Rows, op: Operator, bound: dict[str, Any]) -> bool:
    query, mask = bound["query"], bound.get("attn_mask")
    if not all(rows.is_rows(bound[name], 3) for name in ("query", "key", "value")) or bound.get("dropout_p"):
        return False
    if mask is None or rows.is_rows(mask):
        return mask is None or _rank(mask) == _rank(query)
    shape = _shape(mask)
    return shape is not None and (len(shape) < (_rank(query) or 0) or shape[0] == 1)


_SAME = frozenset(
    "contiguous clone to detach alias dropout feature_dropout alpha_dropout _to_copy zeros_like ones_like full_like "
    "empty_like lift_fresh masked_fill type_as positive gelu softplus hardtanh relu6 leaky_relu".split()
)
"""Elementwise operators that are not tagged so."""
_SIZED = frozenset("zeros ones empty full new_zeros new_ones new_empty new_full expand".split())
_RESHAPED = frozenset("reshape view _unsafe_view".split())
_ALONG_DIM = (
    "sum mean prod amax amin max min argmax argmin softmax log_softmax _softmax _log_softmax logsumexp cumsum cumprod "
    "std var all any topk sort argsort select narrow split split_with_sizes chunk unbind squeeze index_select glu "
    "norm unflatten tensor_split"
).split()
_RULES: dict[str, Rule] = {
    **dict.fromkeys(_ALONG_DIM, _along("dim")), "flip": _along("dims"), "slice": _sliced,
    "transpose": _along("dim0", "dim1"), "movedim": _along("source", "destination"),
    "linear": _weights(2), "conv1d": _weights(3), "conv2d": _weights(4), "conv3d": _weights(5),
    "conv_transpose1d": _weights(3), "conv_transpose2d": _weights(4), "conv_transpose3d": _weights(5),
    "group_norm": _weights(2), "layer_norm": _norm, "rms_norm": _norm, "batch_norm": _batch_norm,
    **{f"{kind}_pool{n}d": _weights(n + 2) for kind in ("max", "avg", "adaptive_avg") for n in (1, 2, 3)},
    "matmul": _product, "mm": _product, "bmm": _product, "addmm": _addmm, "embedding": _embedding,
    "one_hot": _weights(1), "permute": _permuted, "unsqueeze": _unsqueezed, "flatten": _flattened,
    "expand": _expanded, "cat": _joined, "stack": _joined, "scaled_dot_product_attention": _attention,
    **dict.fromkeys(_RESHAPED, _reshaped), **dict.fromkeys(_SIZED - {"expand"}, _sized),
}  # fmt: skip

__all__ = ["require_independent_rows"]
