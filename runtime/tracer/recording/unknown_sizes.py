"""Sizes that are not known while tracing, where eager takes more values of them than torch's shape rules do.

Torch's rules take such a size for a plain one that equals what it meets. In eager it may also be

    x.view(n, 3)             -1: the size that is left
    x + torch.ones(n)        1: broadcast
    torch.ones(n).expand(3)  1

and there the result's size is known all the same. The rule is given that size in place of the unknown one, and nothing
is assumed of the unknown one: the operator itself says at run time whether it fits.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Block, Variable
from runtime.kinds import is_a
from runtime.tracer.recording.session import Session

if TYPE_CHECKING:
    import sympy
else:
    from runtime.tracer.numbers.symbols import sympy

_LEFT_OVER = frozenset({"aten::view", "aten::reshape", "aten::_unsafe_view"})
_BROADCASTING = frozenset({"aten::complex", "aten::polar", "aten::linalg_cross"})
"""Those that broadcast as pointwise operators do, and that PyTorch does not call so."""
_EXPANDING = frozenset({"aten::expand", "aten::expand_as", "aten::broadcast_to"})


def settled(session: Session, func: Any, args: Any, kwargs: Any) -> list[Any] | None:
    """Fake arguments whose results have the same sizes for all values that eager takes; None if that is not needed.

    ``args`` are what the tracer was given.

    Errors raised: TraceError (D2S235) in a replay where the size of a gradient, or what is recorded after it, would
    depend on the size: torch's autograd has to see it when the Program runs.
    """
    if func._schema.name in _EXPANDING:
        return _expanded(session, func, args)
    if func is torch.ops.aten.unflatten.int and len(args) > 2:
        _require_at_most_one_left(session, [size for size in args[2] if is_a(size, torch.SymInt)])
    if func._schema.name in _LEFT_OVER:
        return with_size_left(session, func, [session.fake(args[0]), *args[1:]])
    broadcasts = torch.Tag.pointwise in func.tags or func._schema.name in _BROADCASTING
    if broadcasts and not any(is_a(value, torch.Tensor) for value in kwargs.values()):
        return _broadcast(session, func, args)
    return None


def with_size_left(session: Session, func: Any, args: Any) -> list[Any] | None:
    """The arguments of ``reshape`` with -1 in place of the one unknown number that may be -1; None if there is none."""
    if func._schema.name not in _LEFT_OVER or len(args) != 2 or is_a(args[1], torch.dtype):
        return None
    tensor, shape = args
    unknown = [place for place, size in enumerate(shape) if is_a(size, torch.SymInt)]
    if len(unknown) > 1:
        _require_at_most_one_left(session, [shape[place] for place in unknown])
    if len(unknown) != 1 or -1 in [size for size in shape if type(size) is int]:
        return None
    if _least(session, shape[unknown[0]]) >= 0:
        return None
    return [tensor, [-1 if place in unknown else size for place, size in enumerate(shape)]]


def _require_at_most_one_left(session: Session, sizes: list[torch.SymInt]) -> None:
    """Refuse several sizes of which one may be the -1 of a path: which of them is what is left depends on it.

    Raises:
        TraceError: D2S235.
    """
    numbers = [session.sizes.number_of(size) for size in sizes]
    if any(_is_left(scope.block, number) for number in numbers for scope in session.scope.chain()):
        raise session.error(
            "several sizes of a shape depend on the path, and one of them may be -1",
            hint="Call the function on each path, with the sizes written there.", code="D2S235")


def _is_left(block: Block, number: Any) -> bool:
    """Whether a number that a Block gives is -1 on some path of a branch in it."""
    if not is_a(number, Variable):
        return type(number) is int and number == -1
    op = next((op for op in block.ops if op.blocks and number in op.outputs), None)
    if op is None:
        return False
    place = op.outputs.index(number)
    return any(_is_left(one, one.yields[place]) for one in op.blocks if place < len(one.yields))


def depends_on_data(session: Session, value: Any) -> bool:
    """Whether a size among the arguments of a call is not computed from sizes of inputs alone."""
    if is_a(value, torch.SymInt):
        return not session.sizes.is_of_inputs(value)
    if is_a(value, torch.Tensor):
        return any(depends_on_data(session, size) for size in value.shape)
    return is_a(value, (list, tuple)) and any(depends_on_data(session, item) for item in value)


def _broadcast(session: Session, func: Any, args: Any) -> list[Any] | None:
    tensors = {place: session.fake(arg) for place, arg in enumerate(args) if is_a(arg, torch.Tensor)}
    if not any(is_a(size, torch.SymInt) for fake in tensors.values() for size in fake.shape):
        return None
    changed: dict[int, torch.Tensor] = {}
    dense = all(torch_internals.contiguity(fake)[0] for fake in tensors.values())
    for place, fake in tensors.items():
        sizes = list(fake.shape)
        becomes = [_settled_size(session, size, dim - len(sizes), tensors) for dim, size in enumerate(sizes)]
        if all(new is old for new, old in zip(becomes, sizes)):
            continue
        if fake.is_conj() or fake.is_neg() or (place == 0 and func._schema.is_mutable):
            return None
        _require_no_replay(session, args[place], dense)
        with torch_internals.fake_only(session.fake_mode):
            changed[place] = torch.empty(becomes, dtype=fake.dtype, device=fake.device)
    if not changed:
        return None
    fakes = list(args)
    for place, fake in tensors.items():
        fakes[place] = changed.get(place, fake)
    return fakes


def _expanded(session: Session, func: Any, args: Any) -> list[Any] | None:
    """The arguments of ``expand`` with 1 in place of sizes of the tensor that become others."""
    fake = session.fake(args[0])
    target = session.fake(args[1]).shape if is_a(args[1], torch.Tensor) else args[1]
    if len(target) < fake.dim():
        return None
    targets = target[len(target) - fake.dim() :]
    changes = [_becomes(session, size, other) for size, other in zip(fake.shape, targets)]
    if not any(changes):
        if session.replaying is not None and any(map(functools.partial(_may_become, session), fake.shape, targets)):
            _require_no_replay(session, args[0], False)
        return None
    sizes = [1 if change else size for change, size in zip(changes, fake.shape)]
    _require_no_replay(session, args[0], False)
    with torch_internals.fake_only(session.fake_mode):
        return [fake.as_strided(sizes, fake.stride(), fake.storage_offset()), *args[1:]]


def _becomes(session: Session, size: Any, other: Any) -> bool:
    """Whether a size that is perhaps 1 is expanded to another, which is not -1."""
    if not is_a(size, torch.SymInt) or not _may_be_one(session, size) or other is size:
        return False
    if type(other) is int:
        return other not in (1, -1)
    if session.replaying is not None and not _is_not_one(session, other):
        return False  # a gradient has the sizes of one of the two: they are taken to be equal
    return bool(torch_internals.size_expr(other) != torch_internals.size_expr(size)) and _least(session, other) >= 0


def _may_become(session: Session, size: Any, other: Any) -> bool:
    """Whether only the run knows if a size is 1, and is expanded to another one that is not known."""
    unknown = is_a(size, torch.SymInt) and is_a(other, torch.SymInt) and _may_be_one(session, size)
    return unknown and bool(torch_internals.size_expr(other) != torch_internals.size_expr(size))


def _require_no_replay(session: Session, tensor: torch.Tensor, dense: bool) -> None:
    if session.replaying is not None and (tensor.requires_grad or not dense):
        raise session.error(
            "whether a tensor is broadcast here depends on a size that is only known while the Program runs",
            hint="Make the size fixed, or take the gradient outside.", code="D2S235")


def is_dense(session: Session, func: Any, args: Any) -> bool:
    """Whether the layout of what a call with settled arguments gives is the same for all sizes."""
    if func._schema.name in _LEFT_OVER:
        return True
    tensors = [session.fake(arg) for arg in args if is_a(arg, torch.Tensor)]
    return func._schema.name not in _EXPANDING and all(torch_internals.contiguity(fake)[0] for fake in tensors)


def _may_be_one(session: Session, size: torch.SymInt) -> bool:
    return not session.sizes.is_of_inputs(size) and _least(session, size) <= 1


def _settled_size(session: Session, size: Any, dim: int, tensors: dict[int, torch.Tensor]) -> Any:
    """What a size becomes: that of another tensor's, if it is surely not 1 and this one may be."""
    if not is_a(size, torch.SymInt) or not _may_be_one(session, size):
        return size
    for fake in tensors.values():
        if fake.dim() >= -dim and _is_not_one(session, other := fake.shape[dim]):
            return other
    return size


def _is_not_one(session: Session, size: Any) -> bool:
    if type(size) is int:
        return size != 1
    expr = size.node.expr
    return is_a(expr, sympy.Symbol) and session.sizes.kept_apart(expr)


def _least(session: Session, size: torch.SymInt) -> Any:
    return session.shape_env.bound_sympy(size.node.expr).lower


__all__ = ["depends_on_data", "is_dense", "settled", "with_size_left"]
