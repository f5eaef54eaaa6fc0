"""Gradient operators: gradients that may not exist (None, as on a path that was not taken), and lists of them.

``FUNCTIONS`` is their meaning. ``grad.accumulate...`` and the ``grad.list_`` operators use their first argument up: it
must be an accumulator that nothing else reads, which is how the backward of a loop carries what it adds up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from runtime import torch_internals
from runtime.ir.definition import Fail, OpDefinition
from runtime.ir.inference import element_of, type_of
from runtime.ir.operator import Operator
from runtime.ir.types import ArrayType, ScalarType, Type
from runtime.ops.arity import check_attrs, check_no_kwargs, check_plain

Tensor = torch.Tensor
Gradients = list[Any]
"""A list of gradients or None, as long as the list they belong to."""


def sum_(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum of two gradients, either of which may be None."""
    if a is None:
        return b
    return a if b is None else a + b


def accumulate(total: Tensor | None, grad: Tensor | None) -> Tensor | None:
    """The running total with one more gradient, in the total's own memory."""
    if grad is None:
        return total
    if total is None:
        return grad.clone(memory_format=torch.contiguous_format)
    return total.add_(grad)


def accumulate_product(total: Tensor | None, a: Tensor, b: Tensor) -> Tensor:
    """The running total with one more matrix product, in the total's own memory.

    The product is a matrix of its own: where ``addmm_`` begins with the total, it rounds otherwise than autograd's sum.
    """
    return a.mm(b) if total is None else total.add_(a.mm(b))


def take(items: list[Any]) -> list[Any]:
    """A list that the caller gives up: it may be emptied in place."""
    return items


def zeros_if_none(grad: Tensor | None, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor:
    """The gradient, or zeros where there is none."""
    return torch.zeros(tuple(shape), dtype=dtype, device=device) if grad is None else grad


def contiguous(grad: Tensor | None) -> Tensor | None:
    """The gradient in contiguous memory."""
    return None if grad is None else grad.contiguous()


def required(grad: Tensor | None, index: int = 0) -> Tensor:
    """The gradient; RuntimeError where there is none, as from ``torch.autograd.grad``, of which it is at ``index``."""
    if grad is None:
        raise RuntimeError(torch_internals.unused_gradient(index))
    return grad


def list_get(grads: Gradients | None, index: int) -> Tensor | None:
    """The gradient of one item."""
    return None if grads is None else grads[index]


def list_pop(grads: Gradients | None) -> tuple[Gradients | None, Tensor | None]:
    """The gradients without the last item's, and that."""
    if grads is None:
        return None, None
    last = grads.pop()
    return grads, last


def list_put(grads: Gradients | None, length: int, index: int | None, grad: Tensor | None) -> Gradients | None:
    """One more gradient for one item of ``length``."""
    if grad is None or index is None:  # None stands for no row
        return grads
    if grads is None:
        grads = [None] * length
    grads[index] = sum_(grads[index], grad)
    return grads


def list_take(grads: Gradients | None, index: int) -> tuple[Gradients | None, Tensor | None]:
    """The gradients without that of one item, and that."""
    if grads is None:
        return None, None
    taken, grads[index] = grads[index], None
    return grads, taken


def list_insert(grads: Gradients | None, length: int, index: int, grad: Tensor | None) -> Gradients | None:
    """The gradients of a list of ``length`` before the item at ``index`` was popped, which has ``grad``."""
    if grads is None:
        if grad is None:
            return None
        grads = [None] * (length - 1)
    grads.insert(index + length if index < 0 else index, grad)
    return grads


def list_cut(grads: Gradients | None, at: int) -> tuple[Gradients | None, Gradients | None]:
    """The gradients of the two lists that were joined."""
    return (None, None) if grads is None else (grads[:at], grads[at:])


def list_spread(grads: Gradients | None, length: int, where: slice) -> Gradients | None:
    """The gradients of a list of ``length`` of which ``where`` was taken."""
    if grads is None:
        return None
    spread: Gradients = [None] * length
    spread[where] = grads
    return spread


def list_sum(a: Gradients | None, b: Gradients | None) -> Gradients | None:
    """Item by item, the sum of the gradients of one list."""
    if a is None or b is None:
        return b if a is None else a
    for index, grad in enumerate(b):
        a[index] = sum_(a[index], grad)
    return a


def sizes(items: Sequence[Tensor], dim: int) -> list[int]:
    """The sizes of the items along the dimension in which they are concatenated."""
    return [0 if item.shape == (0,) else item.shape[dim] for item in items]


def rows(items: Gradients | None, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor | None:
    """The gradient of a tensor from those of its first rows, zeros for the others."""
    if items is None or all(one is None for one in items):
        return None
    zero = torch.zeros(tuple(shape[1:]), dtype=dtype, device=device)
    more = [zero] * (shape[0] - len(items))
    return torch.stack([*(zero if one is None else one for one in items), *more])


def unstack(grad: Tensor | None, dim: int) -> Gradients | None:
    """The gradients of what was stacked."""
    return None if grad is None else [one.contiguous() for one in grad.unbind(dim)]


def split(grad: Tensor | None, sizes: list[int], dim: int) -> Gradients | None:
    """The gradients of what was concatenated."""
    return None if grad is None else [one.contiguous() for one in grad.split(sizes, dim)]


def leaf(tensor: Tensor) -> Tensor:
    """The tensor as the start of a graph of its own: ``x.detach().requires_grad_()``."""
    return tensor.detach().requires_grad_()


def needed(tensor: Tensor) -> bool:
    """``tensor.requires_grad``: whether the tensor has a history, on the path that was taken."""
    return tensor.requires_grad


def history(tensor: Tensor) -> str:
    """The name of the node of autograd's graph that made a tensor of the caller."""
    return torch_internals.node_name(tensor) or torch_internals.LEAF


def named(tensor: Tensor, name: str, needed: bool) -> Tensor:
    """The tensor for its text, which names the node of autograd's graph that eager has; itself if it has that node."""
    if needed and tensor.requires_grad and torch_internals.node_name(tensor) == name:
        return tensor
    if name == torch_internals.PARAMETER:
        return torch.nn.Parameter(tensor.detach(), needed)
    if needed:
        return torch_internals.with_node(tensor, name)
    return tensor.detach() if tensor.requires_grad else tensor


def flags(items: Sequence[Any], flag: bool) -> list[bool]:
    """The same flag for each item."""
    return [flag] * len(items)


def any_flag(flags: Sequence[bool]) -> bool:
    """Whether one of the flags is true."""
    return any(flags)


# name -> (function, arguments, outputs)
_TABLE: dict[str, tuple[Callable[..., Any], int, int]] = {
    "grad.sum": (sum_, 2, 1),
    "grad.accumulate": (accumulate, 2, 1),
    "grad.accumulate_product": (accumulate_product, 3, 1),
    "grad.take": (take, 1, 1),
    "grad.zeros_if_none": (zeros_if_none, 4, 1),
    "grad.contiguous": (contiguous, 1, 1),
    "grad.required": (required, 2, 1),
    "grad.list_get": (list_get, 2, 1),
    "grad.list_pop": (list_pop, 1, 2),
    "grad.list_put": (list_put, 4, 1),
    "grad.list_take": (list_take, 2, 2),
    "grad.list_insert": (list_insert, 4, 1),
    "grad.list_cut": (list_cut, 2, 2),
    "grad.list_spread": (list_spread, 3, 1),
    "grad.list_sum": (list_sum, 2, 1),
    "grad.sizes": (sizes, 2, 1),
    "grad.rows": (rows, 4, 1),
    "grad.unstack": (unstack, 2, 1),
    "grad.split": (split, 3, 1),
    "grad.leaf": (leaf, 1, 1),
    "grad.needed": (needed, 1, 1),
    "grad.history": (history, 1, 1),
    "grad.named": (named, 3, 1),
    "grad.flags": (flags, 2, 1),
    "grad.any_flag": (any_flag, 1, 1),
}

FUNCTIONS: dict[str, Callable[..., Any]] = {name: row[0] for name, row in _TABLE.items()}
"""``"grad.sum" -> sum_``: what each operator computes."""


def _verify(op: Operator, fail: Fail) -> None:
    _, arguments, outputs = _TABLE[op.name]
    least = 1 if op.name == "grad.required" else arguments  # files of before say no index
    check_plain(op, fail, least, arguments, outputs)
    check_no_kwargs(op, fail)
    check_attrs(op, fail, {})


def _same(op: Operator) -> list[Type | None]:
    return [type_of(op.args[0])]


def _untold(op: Operator) -> list[Type | None]:
    return [None] * _TABLE[op.name][2]


_INFER: dict[str, Callable[[Operator], list[Type | None]]] = {
    **dict.fromkeys(
        ("take", "zeros_if_none", "contiguous", "required", "list_put", "list_insert", "list_spread", "leaf", "named"),
        _same,
    ),
    "list_get": lambda op: [element_of(op.args[0])],
    "list_pop": lambda op: [type_of(op.args[0]), element_of(op.args[0])],
    "list_take": lambda op: [type_of(op.args[0]), element_of(op.args[0])],
    "sizes": lambda op: [ArrayType(ScalarType("int"))],
    "flags": lambda op: [ArrayType(ScalarType("bool"))],
    "needed": lambda op: [ScalarType("bool")],
    "any_flag": lambda op: [ScalarType("bool")],
    "history": lambda op: [ScalarType("str")],
}
"""What an operator gives; of the others a gradient that is None tells nothing."""


DEFINITIONS: Sequence[OpDefinition] = [
    OpDefinition(name, str(function.__doc__).partition("\n")[0], verify=_verify, evaluate=function,
                 infer=_INFER.get(name.removeprefix("grad."), _untold), effect=name == "grad.required",
                 only_reads=name == "grad.needed")
    for name, function in FUNCTIONS.items()
]  # fmt: skip
