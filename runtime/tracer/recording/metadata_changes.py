"""Calls that change what a tensor is (its shape, strides, names or place in memory), not only what it holds.

A tensor made inside the function becomes another view of its storage (``t_()``, ``unsqueeze_()``), or the base of a
storage of another size (``torch.add(a, b, out=empty)``). Where somebody else would see the change who cannot be told of
it, it is a located error.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.errors import ProgramError
from runtime.ir import Dim, Type, Variable
from runtime.kinds import is_a
from runtime.ops import aten
from runtime.tracer.ambient.calls import flatten_results, tensors_in
from runtime.tracer.memory.conditions import ALWAYS, when
from runtime.tracer.memory.deferred import Needed
from runtime.tracer.recording import shape_rules
from runtime.tracer.recording.raising import raise_where

if TYPE_CHECKING:
    from runtime.tracer.memory.storage_table import TensorInfo
    from runtime.tracer.recording.session import Session

_NO_VIEW = ("resize_", "resize_as_", "set_", "set_data", "resize_as_sparse_", "rename_")
_OTHER_NAMES = {"aten.transpose_.default": "aten.transpose.int", "aten.squeeze_.dims": "aten.squeeze.dims"}


def functional_view(name: str) -> str | None:
    """The view operator that an in-place metadata change amounts to, None if there is none.

    >>> functional_view("aten.transpose_.default"), functional_view("aten.resize_.default")
    ('aten.transpose.int', None)
    """
    namespace, packet, overload = name.split(".")
    functional = _OTHER_NAMES.get(name, f"{namespace}.{packet.removesuffix('_')}.{overload}")
    if packet in _NO_VIEW:
        return None
    try:
        aten.resolve(functional)
    except ProgramError:
        return None
    return functional


def require_changeable(session: Session, name: str, tensor: torch.Tensor, info: TensorInfo) -> None:
    """Refuse an in-place change of metadata of a tensor that the caller, or another path, has too.

    Raises:
        TraceError: D2S223.
    """
    called = name.split(".")[1]
    if session.replaying is not None:
        return
    if session.inputs.own_variable(tensor) is not None:
        raise session.error(
            f"{called} changes the shape of a tensor of the caller in place",
            hint="Use the function without the trailing underscore and assign its result, or change the tensor outside "
            "the converted function.", code="D2S223")
    if not _made_here(session, info):
        raise session.error(
            f"{called} changes a tensor's shape in place inside a branch or loop",
            hint="Use the function without the trailing underscore and assign its result.", code="D2S223")
    _require_same_history(session, name, info)
    dependents = [alias for ref in info.storage.dependents if (alias := ref()) is not None]
    if any(not alias.when.always for alias in (*info.storage.aliases, *dependents)):
        raise session.error(
            f"{called} changes the shape of what is another tensor on some path in place",
            hint="Use the function without the trailing underscore and assign its result.", code="D2S223")


def _require_same_history(session: Session, name: str, info: TensorInfo) -> None:
    """Refuse a change that autograd does not note, and one after which a tensor is not all that others see of it.

    Raises:
        TraceError: D2S223: gradients are off, and eager keeps a graph for the shape before; or ``as_strided_``.
    """
    if not info.requires_grad:
        return
    called = name.split(".")[1]
    if session.outside.grad and not torch.is_grad_enabled():
        raise session.error(
            f"{called} changes the shape of a tensor that has a history where gradients are switched off, and autograd "
            "keeps that of the shape before", code="D2S223",
            hint="Use the function without the trailing underscore and assign its result.")
    if called == "as_strided_" and torch.is_grad_enabled():
        raise session.error(
            "as_strided_ changes what a tensor with a history shows of its memory in place", code="D2S223",
            hint="Use as_strided without the trailing underscore and assign its result.")


def _made_here(session: Session, info: TensorInfo) -> bool:
    """Whether no other path knows the memory."""
    return info.storage.first in session.scope.names or all(s.kind == "main" for s in session.scope.chain())


def require_no_view(session: Session, tensor: torch.Tensor, info: TensorInfo) -> None:
    """Raise what ``detach_()`` of a view raises.

    Raises:
        RuntimeError: As PyTorch does.
        TraceError: D2S221 for a view that the caller gives: the next call may give none.
    """
    own = session.inputs.own_variable(tensor)
    if own is None:
        if info.steps and not info.steps[-1].detaches:
            raise RuntimeError(_DETACHED_VIEW)
        return
    real = session.inputs.real(own)
    if real is not None and real._is_view():
        raise session.error("detach_() of a view of the caller's", hint="Write x = x.detach() instead.", code="D2S221")


_DETACHED_VIEW = (
    "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, "
    "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be "
    "called on these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
    "torch/optim/optimizer.py as the solution."
)


def shapes(session: Session, tensors: Sequence[torch.Tensor]) -> list[tuple[Dim, ...]]:
    """The sizes of tensors, as the Program writes them."""
    return [session.dims(session.fake(tensor)) for tensor in tensors]


def require_resizable(session: Session, func: Any, before: list[tuple[Dim, ...]], tensors: list[torch.Tensor]) -> None:
    """Refuse an ``out=`` that gave a tensor another shape where others see its memory, or another path has it.

    The tensor itself, a base of the Program or of the caller, has the new shape afterwards: the very same operator
    resizes it when the Program runs.

    Raises:
        TraceError: D2S244.
    """
    if session.replaying is not None or not _has_out(func):  # a copy only tells what its sizes have to be
        return
    for old, tensor in zip(before, tensors):
        if session.dims(session.fake(tensor)) == old:
            continue
        info = session.info(tensor)
        others = [one for one in session.known_tensors() if one.storage is info.storage and one is not info]
        why = ""
        if info.steps:
            why = "is a view of another tensor"
        elif others or info.storage.aliases or any(ref() is not None for ref in info.storage.dependents):
            why = "shares its memory with other tensors"
        elif not _made_here(session, info):
            why = "was made outside the branch or loop"
        if why:
            raise session.error(
                f"the out= of {func._schema.name.split('::')[1]} is resized from {_spell(old)}, and it {why}",
                hint="Give it an out= of the shape of the result, or assign the result.", code="D2S244")


def call(session: Session, func: Any, args: Any, kwargs: Any, fake_call: Callable[..., Any]) -> Any:
    """``fake_call(func, args, kwargs)`` of an operator that writes; each ``out=`` has its new shape afterwards."""
    if not _has_out(func):
        return fake_call(func, args, kwargs)
    fake_args, fake_kwargs = shape_rules.call_fakes(session, args, kwargs)
    names = [argument.name for argument in func._schema.arguments if argument.is_out]
    given = aten.arguments(func, fake_args, fake_kwargs)
    if any(one.layout is not torch.strided for one in tensors_in([given.get(name) for name in names], {})):
        raise session.error(f"the out= of {func._schema.name.split('::')[1]} is a sparse tensor", code="D2S240",
                            hint="Assign the result instead.")
    outs = shape_rules.places(func, fake_args, fake_kwargs)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the operator warns of a resize when the Program runs
            return _resizing(session, func, args, kwargs, fake_call, outs)
    except RuntimeError:  # those about sizes that are not known are such
        shape_rules.put_back(session, outs)
        _require_known_sizes(session, func, [out for out, _ in outs], _without_out(func, args, kwargs, fake_call))
        raise


def _resizing(
    session: Session, func: Any, args: Any, kwargs: Any, fake_call: Callable[..., Any], outs: shape_rules.Places
) -> Any:
    """The call, with every ``out=`` given its new shape."""
    fake_args, fake_kwargs = shape_rules.call_fakes(session, args, kwargs)
    result = fake_call(func, args, kwargs)
    changed = shape_rules.places(func, fake_args, fake_kwargs)
    shape_rules.put_back(session, outs)  # what is written may be read, too
    made = _without_out(func, args, kwargs, fake_call)
    if made is not None and len(made) == len(outs):
        shapes = [tuple(one.shape) for one in made]
        if shapes == [tuple(shape) for _, (shape, *_) in changed] == [tuple(shape) for _, (shape, *_) in outs]:
            return result
    if shape_rules.resized(session, func, fake_args, fake_kwargs, outs):
        return result
    shape_rules.put_back(session, changed)
    if made is not None and len(made) == len(outs):
        with torch_internals.in_fake_mode(session.fake_mode):
            for (out, _), one in zip(outs, made):
                if session.dims(out) != session.dims(one):
                    out.resize_(one.shape)
    return result


def _require_known_sizes(
    session: Session, func: Any, outs: list[torch.Tensor], made: list[torch.Tensor] | None
) -> None:
    """Refuse an ``out=`` of which only the run knows whether it is resized.

    Raises:
        TraceError: D2S244.
    """
    for out, one in zip(outs, made or ()):
        old, new = session.dims(out), session.dims(one)
        if old != new and not all(type(size) is int for size in out.shape):
            raise session.error(
                f"the out= of {func._schema.name.split('::')[1]} has a shape {_spell(old)} of which only the run knows "
                "whether it is that of the result",
                hint="Give it an out= of the shape of the result, or assign the result.", code="D2S244")


def _has_out(func: Any) -> bool:
    return any(argument.is_out for argument in func._schema.arguments)


def _without_out(func: Any, args: Any, kwargs: Any, fake_call: Callable[..., Any]) -> list[torch.Tensor] | None:
    """What the operator without ``out=`` gives: not every rule for shapes resizes what it writes to."""
    functional = aten.without_out(func)
    if functional is None:
        return None
    names = [argument.name for argument in func._schema.arguments if argument.is_out]
    made = fake_call(functional, args, {name: value for name, value in kwargs.items() if name not in names})
    return [one for one in flatten_results(made) if is_a(one, torch.Tensor)]


def out_of_graph(session: Session, func: Any, args: Any, kwargs: Any, infos: dict[int, TensorInfo]) -> bool:
    """Whether autograd records no call of an operator with ``out=`` that a tensor which requires grad is given to.

    Such a call raises; where the tensor needs a gradient on some paths, on those. ``infos`` are those of the call's
    tensors, by identity.

    Raises:
        RuntimeError: As eager words it.
    """
    if session.replaying is not None or not torch.is_grad_enabled():
        return False
    if not _has_out(func):
        return False
    needing = [tensor for tensor in tensors_in(args, kwargs) if infos[id(tensor)].requires_grad]
    always = [tensor for tensor in needing if not infos[id(tensor)].grad_in_some_runs]
    found = False
    for group in [always] if always else [[tensor] for tensor in needing]:
        needs = {id(session.fake(tensor)): _is_leaf(session, tensor) for tensor in group}
        said = torch_internals.graph_error(func, *shape_rules.call_fakes(session, args, kwargs), needs)
        if said is not None:
            condition = ALWAYS if always else when(Needed(infos[id(group[0])].storage.value))
            raise_where(session, condition, RuntimeError(said))
            found = True
    return found


def _is_leaf(session: Session, tensor: torch.Tensor) -> bool:
    own = session.inputs.own_variable(tensor)
    real = session.inputs.real(own) if own is not None else None
    if own is None or real is None:
        without = any(not fixed.has_node and fixed.when.always for fixed in session.info(tensor).fixed)
        return without or isinstance(tensor, torch.nn.Parameter)  # a view that was made without gradients has no node
    if own in session.inputs.undecided:  # what is said is the same
        return False
    session.inputs.leaves[own] = real.is_leaf
    return real.is_leaf


def base_types(session: Session, before: Sequence[Variable], tensors: Sequence[tuple[Any, TensorInfo]]) -> list[Type]:
    """The types of written bases, which held ``before``, as they are now."""
    now = {info.storage.value: session.type_of(tensor) for tensor, info in tensors if not info.steps}
    return [now.get(var, var.type) for var in before]


def _spell(shape: tuple[Dim, ...]) -> str:
    return f"({', '.join(map(str, shape))}{',' if len(shape) == 1 else ''})"


__all__ = [
    "base_types", "call", "functional_view", "out_of_graph", "require_changeable", "require_no_view",
    "require_resizable", "shapes",
]  # fmt: skip
