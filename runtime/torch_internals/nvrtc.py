"""CUDA C compiled in the process and launched: the libraries that PyTorch has loaded, called through ``ctypes``.

PyTorch's own ``torch.cuda._compile_kernel`` gives kernels that take 32-bit whole numbers and builds for contraction of
``a * b + c``; so only its way to the two libraries is taken from it.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

_NO_CONTEXT = 201
_CONTEXTS = frozenset({_NO_CONTEXT, 709, 4})
"""What the driver says where a thread has no context, or one that is gone."""


class CompileError(RuntimeError):
    """NVRTC is not there, or refuses a source; the message has its log."""


@functools.cache
def _compiler() -> ctypes.CDLL:
    try:
        from torch.cuda._utils import _get_nvrtc_library

        return _get_nvrtc_library()
    except (ImportError, OSError, AttributeError) as error:
        raise CompileError(f"NVRTC cannot be loaded: {error}") from error


@functools.cache
def driver() -> ctypes.CDLL:
    """The library of the CUDA driver. Errors raised: CompileError."""
    try:
        from torch.cuda._utils import _get_cuda_library

        library = _get_cuda_library()
    except (ImportError, OSError) as error:
        raise CompileError(f"the CUDA driver cannot be loaded: {error}") from error
    library.cuLaunchKernel.argtypes = [ctypes.c_void_p, *[ctypes.c_uint] * 7, ctypes.c_void_p, ctypes.c_void_p,
                                       ctypes.c_void_p]  # fmt: skip
    return library


def has_cuda() -> bool:
    """Whether kernels can be compiled and launched here: CUDA (not ROCm) and a device."""
    return torch.version.cuda is not None and torch.version.hip is None and torch.cuda.is_available()


def capability(device: int) -> str:
    """What a device can run, as NVRTC names it."""
    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def compile_cuda(source: str, architecture: str) -> bytes:
    """The machine code of a source whose kernels have C names. Errors raised: CompileError."""
    library = _compiler()
    program = ctypes.c_void_p()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"dy2static.cu", 0, None, None))
    try:
        flags = [f"--gpu-architecture={architecture}".encode(), b"--fmad=false", b"--std=c++17"]
        status = library.nvrtcCompileProgram(program, len(flags), (ctypes.c_char_p * len(flags))(*flags))
        if status:
            size = ctypes.c_size_t()
            library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
            log = ctypes.create_string_buffer(size.value)
            library.nvrtcGetProgramLog(program, log)
            raise CompileError(f"NVRTC refuses a kernel:\n{log.value.decode(errors='replace')}")
        size = ctypes.c_size_t()
        _check(library, library.nvrtcGetCUBINSize(program, ctypes.byref(size)))
        code = ctypes.create_string_buffer(size.value)
        _check(library, library.nvrtcGetCUBIN(program, code))
        return code.raw
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


@functools.cache
def _context(device: int) -> int:
    """The context that PyTorch uses on a device."""
    library = driver()
    number, context = ctypes.c_int(), ctypes.c_void_p()
    _check_driver(library, library.cuDeviceGet(ctypes.byref(number), device), CompileError)
    _check_driver(library, library.cuDevicePrimaryCtxRetain(ctypes.byref(context), number), CompileError)
    return context.value or 0


@contextmanager
def on_device(device: int) -> Iterator[ctypes.CDLL]:
    """The driver with a device's context current: a thread that has not called CUDA yet has none."""
    library, wanted, current = driver(), _context(device), ctypes.c_void_p()
    _check_driver(library, library.cuCtxGetCurrent(ctypes.byref(current)), RuntimeError)
    if current.value == wanted:
        yield library
        return
    _check_driver(library, library.cuCtxPushCurrent_v2(ctypes.c_void_p(wanted)), RuntimeError)
    try:
        yield library
    finally:
        library.cuCtxPopCurrent_v2(ctypes.byref(current))


def load_cuda(code: bytes, names: tuple[str, ...], device: int) -> dict[str, Callable[[int, int, bytes, int], None]]:
    """What launches the kernels of machine code on a device, by name. Errors raised: CompileError."""
    found: dict[str, Callable[[int, int, bytes, int], None]] = {}
    with on_device(device) as library:
        module = ctypes.c_void_p()
        _check_driver(library, library.cuModuleLoadData(ctypes.byref(module), code), CompileError)
        for name in names:
            function = ctypes.c_void_p()
            status = library.cuModuleGetFunction(ctypes.byref(function), module, name.encode())
            _check_driver(library, status, CompileError)
            found[name] = _launcher(function.value or 0, device)
    return found


def _launcher(function: int, device: int) -> Callable[[int, int, bytes, int], None]:
    """What launches a kernel on PyTorch's current stream of a device, with parameters as words of 8 bytes and bytes of
    shared memory."""
    library = driver()
    launch, stream_of, device_now = library.cuLaunchKernel, torch._C._cuda_getCurrentRawStream, torch._C._cuda_getDevice
    lock = threading.Lock()
    values: Any = ctypes.create_string_buffer(0)
    parameters: Any = None

    def run(blocks: int, threads: int, words: bytes, shared: int) -> None:
        nonlocal values, parameters
        stream = stream_of(device)
        with lock:  # the driver has read them when it returns
            if parameters is None:
                values = ctypes.create_string_buffer(max(len(words), 8))
                base = ctypes.addressof(values)
                parameters = (ctypes.c_void_p * (len(values) // 8))(*range(base, base + len(values), 8))
            values[: len(words)] = words
            status = _NO_CONTEXT
            if device_now() == device:
                status = launch(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, None)
            if status in _CONTEXTS:  # a thread that has not called CUDA yet has none
                with on_device(device):
                    status = launch(function, blocks, 1, 1, threads, 1, 1, shared, stream, parameters, None)
        if status:
            _check_driver(library, status, RuntimeError)

    return run


def _check(library: Any, status: int) -> None:
    if status:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise CompileError(f"NVRTC: {library.nvrtcGetErrorString(status).decode()}")


def _check_driver(library: Any, status: int, kind: type[RuntimeError]) -> None:
    if status:
        text = ctypes.c_char_p()
        library.cuGetErrorString(status, ctypes.byref(text))
        raise kind(f"CUDA error: {text.value.decode() if text.value else status}")


__all__ = ["CompileError", "capability", "compile_cuda", "has_cuda", "load_cuda"]
