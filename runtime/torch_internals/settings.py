"""Settings of the process that decide which kernels operators use: ``sdpa_kernel``, ``mkldnn.flags``, ``cudnn.flags``.

Code that is traced may change them around a few operators. Those Operators name what differs from the caller's, and
run under it, as in eager PyTorch.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

Setting = bool | int | tuple[int, ...]
Settings = tuple[tuple[str, Setting], ...]
"""Names and values."""

_FUNCTIONS = {
    "sdp_flash": ("_get_flash_sdp_enabled", "_set_sdp_use_flash"),
    "sdp_mem_efficient": ("_get_mem_efficient_sdp_enabled", "_set_sdp_use_mem_efficient"),
    "sdp_math": ("_get_math_sdp_enabled", "_set_sdp_use_math"),
    "sdp_cudnn": ("_get_cudnn_sdp_enabled", "_set_sdp_use_cudnn"),
    "sdp_overrideable": ("_get_overrideable_sdp_enabled", "_set_sdp_use_overrideable"),
    "sdp_math_reduced_precision": (
        "_get_math_sdp_allow_fp16_bf16_reduction", "_set_math_sdp_allow_fp16_bf16_reduction"),
    "sdp_order": ("_get_sdp_priority_order", "_set_sdp_priority_order"),
    "mkldnn": ("_get_mkldnn_enabled", "_set_mkldnn_enabled"),
    "mkldnn_deterministic": ("_get_mkldnn_deterministic", "_set_mkldnn_deterministic"),
    "nnpack": ("_get_nnpack_enabled", "_set_nnpack_enabled"),
    "cudnn": ("_get_cudnn_enabled", "_set_cudnn_enabled"),
    "cudnn_benchmark": ("_get_cudnn_benchmark", "_set_cudnn_benchmark"),
    "cudnn_deterministic": ("_get_cudnn_deterministic", "_set_cudnn_deterministic"),
    "cpu_reduced_precision": (
        "_get_cpu_allow_fp16_reduced_precision_reduction", "_set_cpu_allow_fp16_reduced_precision_reduction"),
}  # fmt: skip
"""How PyTorch's own Python functions read and write them (``torch.backends``)."""
_GETTERS: dict[str, Callable[[], Any]] = {}
_SETTERS: dict[str, Callable[[Any], None]] = {}
for _name, (_get, _set) in _FUNCTIONS.items():
    if hasattr(torch._C, _get) and hasattr(torch._C, _set):  # not every version has all
        _GETTERS[_name], _SETTERS[_name] = getattr(torch._C, _get), getattr(torch._C, _set)
_READ = tuple(_GETTERS.values())


def settings() -> list[Any]:
    """Their values now, in a fixed order."""
    return [get() for get in _READ]


def changed_settings(before: list[Any]) -> Settings:
    """Those that are not what ``settings`` gave before, with what they are now."""
    now = settings()
    if now == before:
        return ()
    return tuple(
        (name, tuple(map(int, value)) if isinstance(value, (list, tuple)) else value)
        for name, value, old in zip(_GETTERS, now, before) if value != old
    )  # fmt: skip


def put_back_settings(before: list[Any]) -> None:
    """Make them what ``settings`` gave."""
    for write, value, now in zip(_SETTERS.values(), before, settings()):
        if value != now:
            write(value)


def is_setting(name: Any, value: Any) -> bool:
    """Whether something read from a file names a setting and a value for it; those of other versions count."""
    if name not in _FUNCTIONS:
        return False
    if name == "sdp_order":
        return isinstance(value, tuple) and len(value) < 16 and all(type(one) is int and 0 <= one < 16 for one in value)
    return type(value) is bool


@contextlib.contextmanager
def under_settings(wanted: Settings) -> Iterator[None]:
    """With these settings; afterwards all are as before. Those that this version of PyTorch lacks are left out."""
    before = settings()
    try:
        for name, value in wanted:
            if name in _SETTERS:
                _SETTERS[name](list(value) if isinstance(value, tuple) else value)
        yield
    finally:
        put_back_settings(before)


__all__ = ["Setting", "Settings", "changed_settings", "is_setting", "put_back_settings", "settings", "under_settings"]
