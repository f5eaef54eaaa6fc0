"""Settings of the process that decide which kernels operators use, and how they round.

``sdpa_kernel``, ``mkldnn.flags``, ``cudnn.flags``, ``torch.set_float32_matmul_precision``.

Code that is traced may change them around a few operators. Those Operators name what differs from the caller's, and
run under it, as in eager PyTorch.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any

import torch

from runtime.kinds import is_a

Setting = bool | int | str | tuple[int, ...]
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
    "cublas_fp16_reduced_precision": (
        "_get_cublas_allow_fp16_reduced_precision_reduction", "_set_cublas_allow_fp16_reduced_precision_reduction"),
    "cublas_bf16_reduced_precision": (
        "_get_cublas_allow_bf16_reduced_precision_reduction", "_set_cublas_allow_bf16_reduced_precision_reduction"),
    "cublas_fp16_accumulation": ("_get_cublas_allow_fp16_accumulation", "_set_cublas_allow_fp16_accumulation"),
    "float32_matmul_precision": ("_get_float32_matmul_precision", "_set_float32_matmul_precision"),
    "cudnn_tf32": ("_get_cudnn_allow_tf32", "_set_cudnn_allow_tf32"),
}  # fmt: skip
"""How PyTorch's own Python functions read and write them (``torch.backends``)."""
if torch.backends.cudnn.is_available():
    _FUNCTIONS["cudnn_benchmark_limit"] = ("_cuda_get_cudnn_benchmark_limit", "_cuda_set_cudnn_benchmark_limit")
_PAIRS = ("cublas_fp16_reduced_precision", "cublas_bf16_reduced_precision")
"""One value, or two (also for split-k) in newer versions of PyTorch."""


def _write_pair(write: Callable[..., None], value: Any) -> None:
    if is_a(value, tuple):
        write(*map(bool, value))
    else:
        write(value)


_GETTERS: dict[str, Callable[[], Any]] = {}
_SETTERS: dict[str, Callable[[Any], Any]] = {}
for _name, (_get, _set) in _FUNCTIONS.items():
    if hasattr(torch._C, _get) and hasattr(torch._C, _set):  # not every version has all
        _GETTERS[_name], _SETTERS[_name] = getattr(torch._C, _get), getattr(torch._C, _set)
for _name in _GETTERS.keys() & set(_PAIRS):
    _SETTERS[_name] = functools.partial(_write_pair, _SETTERS[_name])

_FLOAT32 = "float32_"
_FLOAT32_OF = [("generic", "all")] + [(on, of) for on in ("cuda", "mkldnn") for of in ("all", "matmul", "conv", "rnn")]
"""How float32 is computed with, by device and kind of operator; PyTorch has this beside the older settings above."""
_PRECISE = frozenset(f"{_FLOAT32}{on}_{of}" for on, of in _FLOAT32_OF)
_PRECISIONS = ("none", "ieee", "tf32", "bf16", "highest", "high", "medium")
if hasattr(torch._C, "_get_fp32_precision_getter"):
    for _on, _of in _FLOAT32_OF:  # after the older settings, which change these too
        _GETTERS[f"{_FLOAT32}{_on}_{_of}"] = functools.partial(torch._C._get_fp32_precision_getter, _on, _of)
        _SETTERS[f"{_FLOAT32}{_on}_{_of}"] = functools.partial(torch._C._set_fp32_precision_setter, _on, _of)
_READ = tuple(_GETTERS.values())


def settings() -> list[Any]:
    """Their values now, in a fixed order; None for an older one that PyTorch cannot tell beside a newer one."""
    try:
        return [get() for get in _READ]
    except RuntimeError:
        return [_told(get) for get in _READ]


_CUDA = {
    "sdp_flash", "sdp_mem_efficient", "sdp_math", "sdp_cudnn", "sdp_math_reduced_precision", "sdp_order", "cudnn",
    "cudnn_benchmark", "cudnn_deterministic", "cudnn_benchmark_limit", "cublas_fp16_reduced_precision",
    "cublas_bf16_reduced_precision", "cublas_fp16_accumulation",
}  # fmt: skip
if f"{_FLOAT32}cuda_conv" in _GETTERS:  # where these tell what follows from the older settings, too
    _CUDA |= {f"{_FLOAT32}cuda_matmul", f"{_FLOAT32}cuda_conv"}
else:
    _CUDA |= {"float32_matmul_precision", "cudnn_tf32"}
_OF_CUDA = (torch.are_deterministic_algorithms_enabled, torch.is_deterministic_algorithms_warn_only_enabled,
            *[get for name, get in _GETTERS.items() if name in _CUDA])  # fmt: skip


def cuda_settings() -> tuple[Any, ...]:
    """Those that decide which kernels operators launch on a CUDA device, and whether they must be deterministic."""
    try:
        return tuple([_hashable(get()) for get in _OF_CUDA])
    except RuntimeError:
        return tuple([_hashable(_told(get)) for get in _OF_CUDA])


def _hashable(value: Any) -> Any:
    return tuple(value) if type(value) is list else value


def settled_settings() -> list[Any]:
    """As ``settings``, after PyTorch has made up its mind: on some CUDA devices the first attention changes the order
    in which its kernels are tried, which is nothing that a traced function did."""
    if torch.cuda.is_initialized() and not torch.cuda.is_current_stream_capturing():
        _first_attention()
    return settings()


@functools.cache
def _first_attention() -> None:
    with torch.no_grad():
        some = torch.zeros(1, 1, 8, 64, dtype=torch.float16, device="cuda")
        torch._fused_sdp_choice(some, some, some)


def _told(get: Callable[[], Any]) -> Any:
    try:
        return get()
    except RuntimeError:
        return None


SETTINGS = frozenset(f"torch.{name}()" for name in """
    get_float32_matmul_precision get_num_threads get_num_interop_threads is_warn_always_enabled
    is_deterministic_algorithms_warn_only_enabled get_deterministic_debug_mode is_anomaly_enabled
    is_inference_mode_enabled get_default_dtype get_default_device are_deterministic_algorithms_enabled
    backends.cuda.flash_sdp_enabled backends.cuda.mem_efficient_sdp_enabled backends.cuda.math_sdp_enabled
    backends.cuda.cudnn_sdp_enabled backends.cuda.fp16_bf16_reduction_math_sdp_allowed
    backends.cuda.preferred_linalg_library backends.mha.get_fastpath_enabled is_anomaly_check_nan_enabled
    autograd._profiler_enabled autograd.is_multithreading_enabled
    _C._is_multithreading_enabled autograd.is_view_replay_enabled _C._is_view_replay_enabled
    _C._autograd._saved_tensors_hooks_is_enabled sparse.check_sparse_tensor_invariants.is_enabled
    _C._check_sparse_tensor_invariants __future__.get_overwrite_module_params_on_conversion
    __future__.get_swap_module_params_on_conversion
""".split())  # fmt: skip
"""Functions of PyTorch without arguments that say how the process is set."""


@functools.cache
def setting_functions() -> dict[str, Any]:
    """Those of ``SETTINGS`` that this version of PyTorch has, by name."""
    found = {}
    for name in SETTINGS:
        with contextlib.suppress(AttributeError):
            found[name] = attrgetter(name.removeprefix("torch.").removesuffix("()"))(torch)
    return found


def changed_settings(before: list[Any]) -> Settings:
    """Those that are not what ``settings`` gave before, with what they are now."""
    now = settings()
    if now == before:
        return ()
    return tuple(
        (name, tuple(map(int, value)) if is_a(value, (list, tuple)) else value)
        for name, value, old in zip(_GETTERS, now, before) if value is not None and value != old
    )  # fmt: skip


def put_back_settings(before: list[Any]) -> None:
    """Make them what ``settings`` gave."""
    for _ in range(2):  # writing one may change another
        now = settings()
        if now == before:
            return
        for write, value, is_now in zip(_SETTERS.values(), before, now):
            if value is not None and value != is_now:
                write(value)


def is_setting(name: Any, value: Any) -> bool:
    """Whether something read from a file names a setting and a value for it; those of other versions count."""
    if name not in _FUNCTIONS and name not in _PRECISE:
        return False
    if name == "sdp_order":
        return is_a(value, tuple) and len(value) < 16 and all(type(one) is int and 0 <= one < 16 for one in value)
    if name == "cudnn_benchmark_limit":
        return type(value) is int and 0 <= value < 1 << 16
    if name.startswith(_FLOAT32):
        return is_a(value, str) and value in _PRECISIONS
    if name in _PAIRS and is_a(value, tuple):
        return len(value) == 2 and all(type(one) is int and 0 <= one < 2 for one in value)
    return type(value) is bool


@contextlib.contextmanager
def under_settings(wanted: Settings) -> Iterator[None]:
    """With these settings; afterwards all are as before. Those that this version of PyTorch lacks are left out."""
    before = settings()
    try:
        for name, value in wanted:
            if name in _SETTERS:
                _SETTERS[name](list(value) if is_a(value, tuple) else value)
        yield
    finally:
        put_back_settings(before)


__all__ = ["Setting", "Settings", "changed_settings", "cuda_settings", "is_setting", "put_back_settings", "settings",
           "settled_settings", "under_settings"]  # fmt: skip
