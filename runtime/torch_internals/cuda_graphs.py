"""CUDA graphs: what a function launches, recorded to be launched again."""

from __future__ import annotations

import contextlib
import functools
import gc
from collections.abc import Callable, Sequence
from typing import Any

import torch


def stream_to_record(device: int) -> int | None:
    """PyTorch's current stream of a device, as a number; None if it is not the current device, or somebody records."""
    if torch._C._cuda_getDevice() != device or torch.cuda.is_current_stream_capturing():
        return None
    return int(torch._C._cuda_getCurrentRawStream(device))


@functools.cache
def _aside(device: int, stream: int) -> tuple[Any, Any]:
    """Where what is replayed on a stream is recorded, and the memory that all such recordings share: they run one after
    another there. A first recording keeps that memory known to PyTorch when all others are gone."""
    side, memory = torch.cuda.Stream(device), torch.cuda.graph_pool_handle()
    first, _ = _recorded(lambda: (torch.zeros(1, device=f"cuda:{device}"),), (), side, memory)
    _lasting.append(first)
    return side, memory


_lasting: list[Any] = []


def copy_all(to: list[torch.Tensor], given: list[torch.Tensor]) -> None:
    """Write tensors into others, in few launches."""
    torch._foreach_copy_(to, given)


def record_cuda(function: Callable[..., tuple[Any, ...]], arguments: Sequence[Any], device: int
                ) -> tuple[Callable[[], None], tuple[Any, ...]]:  # fmt: skip
    """Record what a function launches on the current stream: what launches it again, and its results, in whose memory
    each replay leaves them. Nothing is computed yet. Errors raised: whatever the function or CUDA raises."""
    current = torch.cuda.current_stream(device)
    side, memory = _aside(device, current.cuda_stream)
    side.wait_stream(current)
    collects = gc.isenabled()
    gc.disable()  # what is collected meanwhile may call CUDA
    try:
        graph, results = _recorded(function, arguments, side, memory)
    except BaseException:
        with contextlib.suppress(RuntimeError):  # generators count as recorded until a recording ends well
            _recorded(lambda: (torch.zeros(1, device=f"cuda:{device}"),), (), torch.cuda.Stream(device), None)
        raise
    finally:
        if collects:
            gc.enable()
    current.wait_stream(side)
    return graph.replay, results


def _recorded(function: Callable[..., tuple[Any, ...]], arguments: Sequence[Any], stream: Any, memory: Any
              ) -> tuple[Any, tuple[Any, ...]]:  # fmt: skip
    graph: Any = torch.cuda.CUDAGraph()
    ended = False
    try:
        with torch.cuda.stream(stream):
            graph.capture_begin(pool=memory, capture_error_mode="thread_local")
            try:
                results = function(*arguments)
            finally:
                graph.capture_end()
                ended = True
    finally:
        if not ended:
            _give_up(graph, stream, memory)
    return graph, results


def _give_up(graph: Any, stream: Any, memory: Any) -> None:
    """Tell PyTorch's allocator that a graph whose end failed, as after a wait for the device, is not recorded any more:
    else it never frees what is cached. It may ask the graph, which therefore lasts."""
    _lasting.append(graph)
    if memory is not None:
        with contextlib.suppress(Exception):
            torch._C._cuda_endAllocateToPool(stream.device_index, memory)


__all__ = ["copy_all", "record_cuda", "stream_to_record"]
