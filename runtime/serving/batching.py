"""Requests that arrive together run as one, and each gets its rows of the results.

    x [2, 8], x [1, 8], x [5, 8]     ->     one run with x [8, 8]     ->     rows 0 to 1, row 2, rows 3 to 7
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import torch

Run = Callable[[list[torch.Tensor]], list[torch.Tensor]]


@dataclass
class _Request:
    """Tensors, how many rows they have, and who waits for the results."""

    tensors: list[torch.Tensor]
    rows: int
    future: Future[list[torch.Tensor]] = field(default_factory=Future)


class Batcher:
    """Puts requests together: at most ``most`` rows, waiting at most ``wait`` seconds for more after the first."""

    def __init__(self, run: Run, most: int, wait: float) -> None:
        self._run, self._most, self._wait = run, most, wait
        self._queue: queue.SimpleQueue[_Request | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="dy2static batcher", daemon=True)
        self._thread.start()

    def run(self, tensors: list[torch.Tensor]) -> list[torch.Tensor]:
        """The results of one request. Errors raised: what its run raises; RuntimeError after ``close``."""
        request = _Request(tensors, len(tensors[0]))
        with self._lock:
            if self._closed:
                raise RuntimeError("this Predictor is closed")
            self._queue.put(request)
        return request.future.result()

    def close(self) -> None:
        """Answer what has arrived, and take no more."""
        with self._lock:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    # -- the thread

    def _work(self) -> None:
        waiting: _Request | None = None
        going = True
        while going or waiting is not None:
            first = waiting if waiting is not None else self._queue.get()
            waiting = None
            if first is None:
                return
            group, rows, until = [first], first.rows, time.monotonic() + self._wait
            while going and rows < self._most:
                try:
                    one = self._queue.get(timeout=max(until - time.monotonic(), 0))
                except queue.Empty:
                    break
                if one is None:
                    going = False
                elif rows + one.rows <= self._most and _alike(one, first):
                    group.append(one)
                    rows += one.rows
                else:
                    waiting = one
                    break
            self._answer(group)

    def _answer(self, group: Sequence[_Request]) -> None:
        if len(group) > 1:
            try:
                results = self._run([torch.cat(column) for column in zip(*(one.tensors for one in group))])
                parts = [one.split([request.rows for request in group]) for one in results]
                for place, request in enumerate(group):
                    # memory of its own: who writes to a result writes to nobody else's
                    request.future.set_result([part[place].clone() for part in parts])
                return
            except Exception:  # of one of them: each runs by itself, and has its own error
                pass
        for request in group:
            if request.future.done():
                continue
            try:
                request.future.set_result(self._run(request.tensors))
            except BaseException as error:
                request.future.set_exception(error)


def _alike(one: _Request, other: _Request) -> bool:
    return all(a.shape[1:] == b.shape[1:] and a.device == b.device for a, b in zip(one.tensors, other.tensors))


__all__: list[Any] = ["Batcher"]
