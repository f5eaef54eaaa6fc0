"""Checks that cost nearly nothing at a call: of tensors, of torch's state, of hooks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from runtime.torch_internals.modes import autocast_devices, dual_level, others_trace


def assume(condition: Any) -> None:
    """Let a condition on symbolic sizes be a fact, which a run asserts."""
    torch._check(condition)


@dataclass(frozen=True)
class GlobalModuleHooks:
    """The hooks that apply to every module."""

    forward_pre: dict[int, Any]
    forward: dict[int, Any]
    backward_pre: dict[int, Any]
    backward: dict[int, Any]
    with_kwargs: dict[int, bool]
    always_called: dict[int, bool]


def global_module_hooks() -> GlobalModuleHooks:
    """What ``torch.nn.modules.module.register_module_*_hook`` registered."""
    home = torch.nn.modules.module
    return GlobalModuleHooks(
        home._global_forward_pre_hooks, home._global_forward_hooks, home._global_backward_pre_hooks,
        home._global_backward_hooks, home._global_forward_hooks_with_kwargs, home._global_forward_hooks_always_called,
    )


def module_call() -> Any:
    """What ``nn.Module.__call__`` does: hooks around ``forward``."""
    return torch.nn.Module._call_impl


def is_compiled_module(module: torch.nn.Module) -> bool:
    """Whether ``module.compile()`` has given a module another ``__call__``."""
    return getattr(module, "_compiled_call_impl", None) is not None


def tensor_test(
    tensors: Sequence[tuple[torch.Tensor, Sequence[int | None] | None]],
) -> Callable[..., bool] | None:
    """One quick test for tensors that look like these: type, dtype, device, layout, ``requires_grad``, dispatch keys,
    sizes and strides (of tensors given with sizes, those that are not None, and no strides if one is).

    It may refuse others that are equal in all this, and refuses one tensor in two positions. None if there is no such
    test for these tensors.
    """
    every = [tensor for tensor, _ in tensors]
    if any(tensor.layout is not torch.strided for tensor in every):
        return None
    sizes = [list(tensor.shape) if fixed is None else list(fixed) for tensor, fixed in tensors]
    strides: list[list[int | None]] = [
        [None] * tensor.dim() if None in fixed else list(tensor.stride()) for tensor, fixed in zip(every, sizes)
    ]
    guards = getattr(torch._C._dynamo.guards, "TensorGuards", None)
    if guards is None:
        return None
    test = guards(*every, dynamic_dims_sizes=sizes, dynamic_dims_strides=strides).check
    return test if test(*every) else None


def state_tests() -> list[tuple[Callable[..., Any], tuple[str, ...], Any]] | None:
    """Quick tests that PyTorch's global state (modes, autocast, default dtype and device, deterministic algorithms...)
    is as it is now: functions, what to call them with, and the very object that each gives. They may fail for other
    reasons too. None if there are no such tests.
    """
    guard = getattr(torch._C._dynamo.guards, "GlobalStateGuard", None)
    if guard is None or torch._C._len_torch_function_stack() != 0 or others_trace():
        return None
    every: list[tuple[Callable[..., Any], tuple[str, ...]]] = [
        (guard().check, ()), (torch._C._len_torch_function_stack, ()), (torch._C._functorch.peek_interpreter_stack, ()),
        (torch._C._is_tracing, ()), (torch.is_inference_mode_enabled, ()), (dual_level, ()),
        *((torch.get_autocast_dtype, (device,)) for device in autocast_devices()),
    ]  # fmt: skip
    return [(function, args, function(*args)) for function, args in every]
