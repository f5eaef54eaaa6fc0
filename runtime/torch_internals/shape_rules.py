"""Shape rules of our own, for operators whose rule in torch fails on numbers that are not known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from runtime.kinds import is_a
from runtime.torch_internals.fakes import contiguity, fake_only, new_symbol, strides_of

if TYPE_CHECKING:
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

_ROUNDING = frozenset({
    torch.ops.aten.fake_quantize_per_tensor_affine.default,
    torch.ops.aten.fake_quantize_per_tensor_affine.tensor_qparams,
    torch.ops.aten.fake_quantize_per_channel_affine.default,
})
"""Operators that are made of others, which fake tensors do not take apart where autograd is off."""
_OF_ALL = (torch.ops.aten._is_all_true.default, torch.ops.aten._is_any_true.default)
_PADDING = (torch.ops.aten.pad.default, torch.ops.aten.constant_pad_nd.default)
_SYMBOLS = (torch.SymInt, torch.SymFloat)


def by_own_rule(fake_mode: FakeTensorMode, shape_env: ShapeEnv, func: Any, args: Any, kwargs: Any) -> Any:
    """The result of an operator that has a rule here, None if torch's rule holds."""
    if func.namespace == "aten" and func._schema.name == "aten::arange" and "out" not in kwargs:
        return _arange(fake_mode, shape_env, args, kwargs)
    if func is torch.ops.aten.combinations.default:
        return _combinations(fake_mode, *args, **kwargs)
    if func is torch.ops.aten.dropout.default and len(args) == 3 and _keeps(*args[1:]):
        return args[0]
    if func is torch.ops.aten.linalg_lstsq.default:
        return _least_squares(fake_mode, *args, **kwargs)
    if func._schema.name == "aten::ctc_loss":
        return _ctc_loss(fake_mode, *args, **kwargs)
    if func is torch.ops.aten._transformer_encoder_layer_fwd.default and not args[0].is_nested:
        return _encoder_layer(fake_mode, args[0])
    if func is torch.ops.aten.unique_consecutive.default and len(args) > 3 and type(args[3]) is int and args[3] < 0:
        with fake_only(fake_mode):  # torch's rule does not count from the end
            return func(*args[:3], args[3] + args[0].dim(), **kwargs) if args[3] + args[0].dim() >= 0 else None
    if func is torch.ops.aten.unbind.int and not kwargs and args[0].layout is torch.strided:
        return _unbound(fake_mode, *args)
    if func in _PADDING and not kwargs.keys() - {"mode", "value"}:
        return _padded(fake_mode, *args, **kwargs)
    if func is torch.ops.aten.scaled_dot_product_attention.default:
        return _attention(fake_mode, *args, **kwargs)
    if func in _OF_ALL and args[0].dtype is torch.bool:  # torch's rule calls Python where there is none for open sizes
        with fake_only(fake_mode):
            return torch.empty((), dtype=torch.bool, device=args[0].device)
    if func in _ROUNDING and is_a(args[0], torch.Tensor):
        with fake_only(fake_mode):
            return torch.empty_like(args[0])
    return None


def _unbound(fake_mode: FakeTensorMode, tensor: torch.Tensor, dim: int = 0) -> list[torch.Tensor] | None:
    """``unbind`` of an open size: torch's rule splits, and squeezes only what it knows to be 1."""
    if not -tensor.dim() <= dim < tensor.dim() or type(tensor.shape[dim]) is int:
        return None
    try:
        count = int(tensor.shape[dim])
    except RuntimeError:  # only the run knows
        return None
    with fake_only(fake_mode):
        return [tensor.select(dim, number) for number in range(count)]


def _padded(
    fake_mode: FakeTensorMode, tensor: torch.Tensor, pad: Any, mode: Any = "constant", value: Any = None
) -> torch.Tensor | None:  # fmt: skip
    """``constant_pad_nd`` of open sizes by known numbers: torch runs its kernel, which reads the sizes as numbers.

    What is cut off at all ends is a copy, as the kernel makes it; else the result is new, in the order of ``tensor``.
    """
    rank, known = tensor.dim(), all(type(one) is int for one in (*tensor.shape, *strides_of(tensor)))
    if known or is_a(mode, str) and mode != "constant" or tensor.layout is not torch.strided:
        return None
    if len(pad) % 2 or len(pad) > 2 * rank or not all(type(number) is int for number in pad):
        return None
    ends = [(0, 0)] * (rank - len(pad) // 2) + list(zip(pad[-2::-2], pad[::-2]))
    with fake_only(fake_mode):
        if all(number <= 0 for number in pad):
            for dim, (left, right) in enumerate(ends):
                if left or right:
                    tensor = tensor.narrow(dim, -left, tensor.shape[dim] + left + right)
            return tensor.clone()
        if rank in (4, 5) and contiguity(tensor) != (True, True):  # perhaps with the channels last
            return None
        sizes = [size + left + right for size, (left, right) in zip(tensor.shape, ends)]
        if any(left < 0 or right < 0 for left, right in ends):
            for size in sizes:
                torch._check(size >= 0)
        return torch.empty(sizes, dtype=tensor.dtype, device=tensor.device)


def _attention(
    fake_mode: FakeTensorMode, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
    mask: torch.Tensor | None = None, dropout: Any = 0.0, causal: Any = False, *, scale: Any = None,
    enable_gqa: Any = False,
) -> torch.Tensor | None:  # fmt: skip
    """``scaled_dot_product_attention`` of open sizes, which torch's rule compares: the result has those of the query,
    and the last one of the value. Whether the others fit, the kernel says. None where they surely do not.

    A mask that is a vector has this rule for known sizes too: torch's rule does not take it, the plainest kernel does.
    """
    tensors = [query, key, value]
    known = all(type(size) is int for one in (*tensors, *([] if mask is None else [mask])) for size in one.shape)
    if known and (mask is None or mask.dim() != 1):
        return None
    rank = query.dim()
    if type(enable_gqa) is not bool or rank < 2 + enable_gqa:
        return None
    if any(one.dim() != rank or one.dtype != query.dtype or one.layout is not torch.strided for one in tensors):
        return None
    heads = tensors[:1] if enable_gqa else tensors
    lead: list[Any] = []
    for dim in range(rank - 2):
        size = _broadcast([one.shape[dim] for one in (heads if dim == rank - 3 else tensors)])
        if size is None:
            return None
        lead.append(size)
    if enable_gqa and any(not _divides(one.shape[-3], query.shape[-3]) for one in tensors[1:]):
        return None
    if not _may_equal(query.shape[-1], key.shape[-1]) or not _may_equal(key.shape[-2], value.shape[-2]):
        return None
    if mask is not None:
        weights = [*lead, query.shape[-2], key.shape[-2]]
        if mask.dtype not in (torch.bool, query.dtype) or mask.dim() > rank:
            return None
        if any(not _may_equal(size, other, 1) for size, other in zip(reversed(mask.shape), reversed(weights))):
            return None
    with fake_only(fake_mode):
        return torch.empty([*lead, query.shape[-2], value.shape[-1]], dtype=query.dtype, device=query.device)


def _broadcast(sizes: list[Any]) -> Any:
    """The size that all of some become; None where that is not known, or they surely do not fit."""
    other = [size for size in sizes if type(size) is not int or size != 1]
    known = {size for size in other if type(size) is int}
    if not other or known:
        return None if len(known) > 1 else next(iter(known), 1)
    for size in other[1:]:  # one of them may be 1 in a run: what they have in common is what the rules of torch take
        torch._check(size == other[0])
    return other[0]


def _may_equal(size: Any, *others: Any) -> bool:
    return type(size) is not int or any(type(other) is not int or size == other for other in others)


def _divides(size: Any, other: Any) -> bool:
    return type(size) is not int or type(other) is not int or size > 0 and other % size == 0


def _encoder_layer(fake_mode: FakeTensorMode, src: torch.Tensor) -> torch.Tensor:
    """``_transformer_encoder_layer_fwd``: PyTorch 2.11 has no rule, and that of newer versions keeps the strides of
    ``src``, which the kernel does not."""
    with fake_only(fake_mode):
        return torch.empty(src.shape, dtype=src.dtype, device=src.device)


def _ctc_loss(
    fake_mode: FakeTensorMode, log_probs: Any, targets: Any, input_lengths: Any, target_lengths: Any, blank: Any = 0,
    reduction: Any = 1, zero_infinity: Any = False,
) -> Any:  # fmt: skip
    """``ctc_loss``: what it computes on the way has sizes that depend on data, the loss has not. ``log_probs``: of
    sizes (time, batch, classes) or (time, classes)."""
    if type(reduction) is not int or log_probs.dim() not in (2, 3):
        return None
    sizes = (log_probs.shape[1],) if reduction == 0 and log_probs.dim() == 3 else ()
    with fake_only(fake_mode):
        return torch.empty(sizes, dtype=log_probs.dtype, device=log_probs.device)


def _least_squares(
    fake_mode: FakeTensorMode, matrix: Any, right: Any, rcond: Any = None, *, driver: Any = None
) -> Any:
    """``linalg_lstsq``: of its results only the residuals may have a size that depends on data, with some drivers."""
    driver = driver or ("gels" if matrix.is_cuda else "gelsy")
    if matrix.dim() < 2 or matrix.dtype != right.dtype or driver not in ("gels", "gelsy", "gelsd", "gelss"):
        return None
    *batch, rows, columns = matrix.shape
    vector = right.dim() == matrix.dim() - 1
    if right.dim() != matrix.dim() - vector or any(
        type(one) is not int or one == 0 or one != other for one, other in zip((*batch, rows), right.shape)
    ):
        return None  # broadcast, wrong, or not known
    if driver != "gelsy" and not (type(columns) is int and (rows <= columns or driver == "gels")):
        return None
    many = [] if vector else [right.shape[-1]]
    long = torch.sym_max(rows, columns)
    strides, stride = [1, long][: 1 + len(many)], long
    for one in many:
        stride = stride * one
    for size in reversed(batch):
        strides, stride = [stride, *strides], stride * size
    residuals = [*batch, *(many or [1])] if driver == "gels" and rows > columns else [0]
    values = [*batch, torch.sym_min(rows, columns)] if driver in ("gelsd", "gelss") else [0]
    real = matrix.real.dtype if matrix.is_complex() else matrix.dtype
    with fake_only(fake_mode):
        return (
            torch.empty_strided([*batch, columns, *many], strides, dtype=matrix.dtype, device=matrix.device),
            torch.empty(residuals, dtype=real, device=matrix.device),
            torch.empty([0] if driver == "gels" else batch, dtype=torch.int64, device=matrix.device),
            torch.empty(values, dtype=real, device=matrix.device),
        )


def _combinations(fake_mode: FakeTensorMode, tensor: Any, r: Any = 2, with_replacement: bool = False) -> Any:
    """``combinations``: torch's rule counts them with a mask, whose content it does not know."""
    if type(r) is not int or r < 1 or tensor.dim() != 1 or type(with_replacement) is not bool:
        return None
    size = tensor.shape[0]
    product = 1
    for place in range(r):
        product = product * (size + place if with_replacement else size - place)
    with fake_only(fake_mode):
        return torch.empty((product // math.factorial(r), r), dtype=tensor.dtype, device=tensor.device)


def _keeps(p: Any, train: Any) -> bool:
    """Whether ``dropout`` gives back the tensor that it is given; torch's own rule makes a copy."""
    return train is False or (type(p) in (int, float) and p == 0)


def _arange(fake_mode: FakeTensorMode, shape_env: ShapeEnv, args: Any, kwargs: Any) -> Any:
    """``arange`` with a float among numbers that are not known: as many as the kernel finds, checked there."""
    numbers = args if len(args) > 1 else (0, *args)
    if not any(is_a(one, _SYMBOLS) for one in numbers):
        return None
    dtype = kwargs.get("dtype")
    floats = any(is_a(one, (float, torch.SymFloat)) for one in numbers)
    if not floats and (dtype is None or not dtype.is_floating_point):
        return None
    one_by_one = len(numbers) < 3 or (type(numbers[2]) in (int, float) and numbers[2] == 1)
    size = _count(*numbers) if one_by_one else None
    if size is None:
        size = new_symbol(shape_env, size=True)
    if dtype is None:
        dtype = torch.get_default_dtype() if floats else torch.int64
    with fake_only(fake_mode):
        return torch.empty((size,), dtype=dtype, device=kwargs.get("device"))


def _count(start: Any, end: Any, step: Any = 1) -> Any:
    """``end - start`` where that surely is the number of items: whole numbers, none of them a symbol for a float."""
    parts: list[Any] = []
    for one in (start, end):
        if is_a(one, torch.SymFloat) or (is_a(one, float) and not one.is_integer()):
            return None
        parts.append(int(one) if is_a(one, float) else one)
    size: Any = parts[1] - parts[0]
    return size if type(size) is int or size.node.shape_env.bound_sympy(size.node.expr).lower >= 0 else None
