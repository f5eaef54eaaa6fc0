"""CUDA graphs with WHILE nodes: a loop that the device runs by itself, recorded from what PyTorch launches.

    graph: first, set(flag) -> WHILE -> last
                                 |- step, set(flag)

PyTorch records straight graphs only. So the graph is made with the driver's functions, and PyTorch's operators are
captured into it while a pool of their own gives them memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import struct
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from runtime import collector
from runtime.torch_internals import nvrtc

MOST_COPIES = 16
"""Tensors that the kernel copies; the others are copied before it."""
_PARAMETERS = ", ".join(f"char *t{place}, const char *f{place}, long long n{place}" for place in range(MOST_COPIES))
_COPIES = "\n  ".join(f"copy(t{place}, f{place}, n{place});" for place in range(MOST_COPIES))
_SOURCE = f"""extern "C" __device__ void cudaGraphSetConditional(unsigned long long handle, unsigned int value);
static __device__ void copy(char *to, const char *from, long long bytes) {{
  long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x, all = gridDim.x * (long long)blockDim.x;
  long long words = (((unsigned long long)to | (unsigned long long)from) & 15) == 0 ? bytes / 16 : 0;
  for (long long i = at; i < words; i += all) ((uint4 *)to)[i] = ((const uint4 *)from)[i];
  for (long long i = words * 16 + at; i < bytes; i += all) to[i] = from[i];
}}
extern "C" __global__ void carry(unsigned long long handle, const bool *flag, {_PARAMETERS}) {{
  if (blockIdx.x == 0 && threadIdx.x == 0) cudaGraphSetConditional(handle, *flag ? 1u : 0u);
  {_COPIES}
}}
"""
_THREADS, _MOST_BLOCKS = 256, 512
_NEEDED = ("cuGraphAddNode_v2", "cuGraphConditionalHandleCreate", "cuStreamBeginCaptureToGraph",
           "cuStreamBeginCapture_v2", "cuStreamGetCaptureInfo_v3", "cuGraphInstantiateWithFlags")  # fmt: skip
_THREAD_LOCAL, _CONDITIONAL, _WHILE = 1, 13, 1
_POINTER, _COUNT, _FLAGS, _WORD = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_uint, ctypes.c_ulonglong


Carried = tuple[torch.Tensor, list[torch.Tensor], list[torch.Tensor]]
"""A flag, and what is copied into which memory before anybody looks at it."""


class _Parameters(ctypes.Structure):
    """``CUgraphNodeParams`` of a conditional node: 256 bytes."""

    _fields_ = [("type", ctypes.c_int), ("reserved0", ctypes.c_int * 3), ("handle", _WORD), ("kind", ctypes.c_uint),
                ("size", ctypes.c_uint), ("graphs", ctypes.POINTER(_POINTER)), ("context", _POINTER),
                ("rest", ctypes.c_char * 208)]  # fmt: skip


@functools.cache
def _setter(device: int) -> Callable[[int, int, bytes, int], None]:
    """What launches the kernel that copies, and tells a node whether to go on."""
    code = nvrtc.compile_cuda(_SOURCE, nvrtc.capability(device))
    return nvrtc.load_cuda(code, ("carry",), device)["carry"]


@functools.cache
def _memory(device: int, stream: int) -> tuple[Any, Any, Any]:
    """Two streams to capture on, and the memory of all loops that are replayed on one stream, one after another."""
    return torch.cuda.Stream(device), torch.cuda.Stream(device), torch.cuda.MemPool()


def record_cuda_loop(first: Callable[[], Carried], step: Callable[[], Carried], last: Callable[[], None],
                     device: int) -> Callable[[], None]:  # fmt: skip
    """Record ``flag = first(); while flag: flag = step(); last()`` for the current stream: what launches it. Errors
    raised: RuntimeError where the driver has no such nodes; whatever the functions or CUDA raise."""
    library = nvrtc.driver()
    missing = [name for name in _NEEDED if not hasattr(library, name)]
    if missing:
        raise RuntimeError(f"the CUDA driver has no {missing[0]}")
    current = torch.cuda.current_stream(device)
    outer, inner, memory = _memory(device, current.cuda_stream)
    set_flag = _setter(device)
    outer.wait_stream(current)
    inner.wait_stream(current)
    graph = _POINTER()
    # what is collected meanwhile may call CUDA
    with nvrtc.on_device(device), collector.resting(), torch.cuda.use_mem_pool(memory, device):
        for part in (first, step, last):
            _rehearse(part, inner)
        _call("cuGraphCreate", ctypes.byref(graph), _FLAGS(0))
        _fill(graph, (outer, inner), set_flag, first, step, last)
        ready = _POINTER()
        try:
            _call("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, _WORD(0))
        finally:
            library.cuGraphDestroy(graph)  # not after a capture that failed, which may have taken it along
    current.wait_stream(outer)
    current.wait_stream(inner)
    return _Loop(ready.value or 0, device).play


class _Loop:
    """A graph that is ready to be launched."""

    def __init__(self, ready: int, device: int) -> None:
        self.ready, self.device = _POINTER(ready), device
        weakref.finalize(self, _destroy, ready, device)

    def play(self) -> None:
        """Launch it on the current stream."""
        with nvrtc.on_device(self.device):
            _call("cuGraphLaunch", self.ready, _POINTER(torch._C._cuda_getCurrentRawStream(self.device)))


def _destroy(ready: int, device: int) -> None:
    """Let go of a graph; the driver waits for what still runs."""
    with contextlib.suppress(RuntimeError), nvrtc.on_device(device) as library:
        library.cuGraphExecDestroy(_POINTER(ready))


def _rehearse(part: Callable[[], Any], stream: Any) -> None:
    """Capture a part into a graph of its own, which is dropped. Errors raised: what the part raises, and RuntimeError
    if it cannot be captured.

    Where CUDA itself ended a capture into the body of a node, as it does when an operator waits for the device, the
    process crashed once the graph around it was ended or destroyed [m, H200, CUDA 13.0]. So nothing is captured there
    that was not captured by itself before, and a graph that is not completed is left as it is.
    """
    raw, graph = _POINTER(stream.cuda_stream), _POINTER()
    with torch.cuda.stream(stream):
        _call("cuStreamBeginCapture_v2", raw, _FLAGS(_THREAD_LOCAL))
        try:
            part()
        finally:
            status = nvrtc.driver().cuStreamEndCapture(raw, ctypes.byref(graph))
            if graph.value:
                nvrtc.driver().cuGraphDestroy(graph)
    if status:
        raise RuntimeError("an operator waits for the device")


def _fill(graph: Any, streams: tuple[Any, Any], set_flag: Callable[[int, int, bytes, int], None],
          first: Callable[[], Carried], step: Callable[[], Carried], last: Callable[[], None]) -> None:  # fmt: skip
    """Capture the loop into a graph."""
    outer, inner = streams
    handle = _WORD()
    context = _POINTER()
    _call("cuCtxGetCurrent", ctypes.byref(context))
    _call("cuGraphConditionalHandleCreate", ctypes.byref(handle), graph, context, _FLAGS(0), _FLAGS(0))

    def carry(part: Carried) -> None:
        flag, to, given = part
        pairs = [(one, other) for one, other in zip(to, given) if _alike(one, other)][:MOST_COPIES]
        fast = {id(one) for one, _ in pairs}
        for one, other in zip(to, given):
            if id(one) not in fast:
                one.copy_(other)
        sizes = [one.numel() * one.element_size() for one, _ in pairs]
        words = [handle.value, flag.data_ptr()]
        for (one, other), size in zip(pairs, sizes):
            words += [one.data_ptr(), other.data_ptr(), size]
        words += [0, 0, 0] * (MOST_COPIES - len(pairs))
        blocks = min(max(-(-max(sizes, default=0) // (16 * _THREADS)), 1), _MOST_BLOCKS)
        set_flag(blocks, _THREADS, struct.pack(f"<{len(words)}Q", *words), 0)

    with _captured(outer, graph, None):
        carry(first())
        before, count = _dependencies(outer)
        parameters = _Parameters(type=_CONDITIONAL, handle=handle.value, kind=_WHILE, size=1, context=context)
        node = _POINTER()
        _call("cuGraphAddNode_v2", ctypes.byref(node), graph, before, None, _COUNT(count), ctypes.byref(parameters))
        body = _POINTER(parameters.graphs[0])
    with _captured(inner, body, None):
        carry(step())
    with _captured(outer, graph, node):
        last()


def _alike(one: torch.Tensor, other: torch.Tensor) -> bool:
    """Whether to copy a tensor into another is to copy its bytes."""
    alike = one.dtype is other.dtype and one.shape == other.shape and one.stride() == other.stride()
    return alike and 1 + sum((size - 1) * stride for size, stride in zip(one.shape, one.stride())) == one.numel()


@contextlib.contextmanager
def _captured(stream: Any, graph: Any, after: Any) -> Iterator[None]:
    """Capture what is launched into a graph, behind a node of it."""
    raw = _POINTER(stream.cuda_stream)
    depends = None if after is None else (_POINTER * 1)(after.value)
    with torch.cuda.stream(stream):
        _call("cuStreamBeginCaptureToGraph", raw, graph, depends, None, _COUNT(after is not None),
              _FLAGS(_THREAD_LOCAL))  # fmt: skip
        end = _POINTER()
        try:
            yield
        except BaseException:
            nvrtc.driver().cuStreamEndCapture(raw, ctypes.byref(end))
            raise
        _call("cuStreamEndCapture", raw, ctypes.byref(end))


def _dependencies(stream: Any) -> tuple[Any, int]:
    """The nodes that what is captured next comes after."""
    status, number, graph = ctypes.c_int(), _WORD(), _POINTER()
    found, edges, count = _POINTER(), _POINTER(), _COUNT()
    _call("cuStreamGetCaptureInfo_v3", _POINTER(stream.cuda_stream), ctypes.byref(status), ctypes.byref(number),
          ctypes.byref(graph), ctypes.byref(found), ctypes.byref(edges), ctypes.byref(count))  # fmt: skip
    return (_POINTER * count.value).from_address(found.value or 0) if count.value else None, count.value


def _call(name: str, *given: Any) -> None:
    """A function of the driver's. Errors raised: RuntimeError."""
    status = getattr(nvrtc.driver(), name)(*given)
    if status:
        text = ctypes.c_char_p()
        nvrtc.driver().cuGetErrorString(status, ctypes.byref(text))
        raise RuntimeError(f"{name}: CUDA error: {text.value.decode() if text.value else status}")


__all__ = ["record_cuda_loop"]
