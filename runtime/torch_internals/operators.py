"""Operators: how they are called below everything, and the arguments of ``to``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch._library.custom_ops import CustomOpDef, _maybe_get_opdef
from torch.utils._python_dispatch import _disable_current_modes

from runtime.kinds import is_a
from runtime.torch_internals.fakes import strides_of

_Key = torch._C.DispatchKey
_ABOVE = (_Key.ADInplaceOrView, _Key.AutogradMeta, _Key.AutogradCPU, _Key.AutogradOther)


def may_go(namespace: Any, packet: Any) -> bool:
    """Whether these are ``torch.ops.lib`` and an operator of it, of a library that can be taken away."""
    known = is_a(packet, torch._ops.OpOverloadPacket) and is_a(namespace, torch._ops._OpNamespace)
    return known and namespace.name not in ("aten", "prims")


def is_composite(overload: Any) -> bool:
    """Whether an operator is written in terms of others, so that its schema need not tell what its result shares."""
    try:
        return bool(overload.has_kernel_for_dispatch_key(torch._C.DispatchKey.CompositeImplicitAutograd))
    except RuntimeError:  # torch 2.11, for operators that are TorchScript's alone (aten.dim)
        return False


def node_of(value: torch.Tensor) -> Any:
    """The node of autograd's graph that made a tensor; None for a view that autograd lets nobody ask."""
    try:
        return value.grad_fn
    except RuntimeError:
        return None


_saved_names: dict[type[Any], list[str]] = {}
"""The attributes of each kind of node that hold what it keeps."""


def saved_by(node: Any) -> list[torch.Tensor]:
    """The tensors that a node of autograd's graph keeps for its backward.

    Not those that the node's own operator overwrote: autograd raises where a gradient gets there, which may be nowhere.
    """
    return _saved(node)[0]


def overwrites_saved(node: Any) -> bool:
    """Whether a node keeps what its own operator overwrote (``x.mul_(x)``)."""
    return _saved(node)[1]


def _saved(node: Any) -> tuple[list[torch.Tensor], bool]:
    """What a node keeps, and whether some of it was overwritten."""
    found: list[torch.Tensor] = []
    overwritten = False
    kind = type(node)
    if kind not in _saved_names:
        _saved_names[kind] = [  # the latter of what Python differentiates: a library's operator
            name for name in dir(kind) if name.startswith("_saved_") or name == "saved_tensors"
        ]
    for name in _saved_names[kind]:
        try:
            value = getattr(node, name)
        except RuntimeError as error:
            if "modified by an inplace operation" not in str(error):
                raise
            overwritten = True
            continue
        values = value if is_a(value, (tuple, list)) else [value]
        found += [one for one in values if is_a(one, torch.Tensor)]
    return found, overwritten


def without_formula(overload: Any) -> bool:
    """Whether nobody said how an operator of a library is differentiated: then autograd sees what is inside its
    kernel, if that calls PyTorch."""
    keys = (_Key.CompositeImplicitAutograd, _Key.Autograd, _Key.AutogradCPU, _Key.AutogradCUDA, _Key.AutogradOther)
    return overload.namespace != "aten" and not any(map(overload.has_kernel_for_dispatch_key, keys))


def overload_of(f: Any) -> Any:
    """The operator that an object stands for which ``torch.library.custom_op`` gave; None for anything else."""
    return f._opoverload if is_a(f, CustomOpDef) else None


def writes_unseen(overload: Any) -> bool:
    """Whether autograd sees nothing of what an operator writes: it was made by ``torch.library.custom_op``."""
    return overload.namespace != "aten" and _maybe_get_opdef(overload) is not None


def gives_own_view(overload: Any, args: Any, kwargs: Any) -> bool:
    """Whether eager's result of an operator that is written in terms of others is a view of memory made on the way.

    It is run on tensors without data, under autograd; a size that is not known is taken for 3.
    """
    exclude = torch._C._dispatch_tls_local_exclude_set()
    for key in _ABOVE:
        exclude = exclude.remove(key)
    include = torch._C._dispatch_tls_local_include_set().add(_Key.ADInplaceOrView)
    with _disable_current_modes(), torch._C.DisableTorchFunction():
        given, named = _without_data(args), {key: _without_data(value) for key, value in kwargs.items()}
        with torch._C._ForceDispatchKeyGuard(include, exclude), torch.no_grad():
            try:
                result = overload(*given, **named)
            except (RuntimeError, IndexError, TypeError, ValueError):  # not for such tensors, or such sizes
                return False
    results = result if is_a(result, (list, tuple)) else (result,)
    return any(out._is_view() for out in results if is_a(out, torch.Tensor))


def _without_data(value: Any) -> Any:
    if is_a(value, torch.Tensor):
        shape = [size if type(size) is int else 3 for size in value.shape]
        if any(type(part) is not int for part in (*value.shape, *strides_of(value))):
            return torch.empty(shape, dtype=value.dtype, device="meta")
        return torch.empty_strided(shape, strides_of(value), dtype=value.dtype, device="meta")
    if is_a(value, torch.SymInt):
        return 3
    return type(value)(map(_without_data, value)) if type(value) in (list, tuple) else value


def raw_call(overload: Any) -> Any:
    """The function behind an overload: the same call, without the Python frame of ``OpOverload.__call__``."""
    return overload._op


parse_to: Callable[..., tuple[Any, ...]] = torch._C._nn._parse_to
"""Device, dtype, whether not to block, and memory format that the arguments of ``to`` ask for."""
