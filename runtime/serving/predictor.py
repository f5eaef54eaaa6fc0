"""Predictor: a saved model, loaded once, that any number of threads call.

    with Predictor("net.d2s", backend="auto", warm_up={"x": torch.zeros(1, 64)}) as predict:
        predict.run({"x": images})["result"]
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NoReturn

import torch

from runtime.calling import Options, prepare
from runtime.calling.backends import choose_backend
from runtime.calling.callee import taken
from runtime.calling.executors import executor
from runtime.calling.takeover import TAKE_OVER
from runtime.errors import SignatureError, StorageError
from runtime.export.inference import variant_for_inference
from runtime.serving.batching import Batcher
from runtime.serving.ports import Input, Ports, Request, require_names
from runtime.serving.rows import require_independent_rows
from runtime.serving.statistics import Counters, Statistics
from runtime.storage.artefact import Artefact, State, Variant
from runtime.storage.files import read_artefact
from runtime.storage.types import exception_class
from runtime.translated.located import located


class Predictor:
    """A saved model for inference: ``run`` may be called from any number of threads at once.

    Args:
        path: What was given to ``save``.
        method: The saved method to run, in its Program for ``eval()`` without gradients.
        backend: The executor: "interpreter", "c", "auto", "cuda"; without it as for ``load``.
        warm_up: Inputs to run before the first request, or several such: compilers and caches are then ready. With
            "auto", so often that C has taken over.
        max_batch: Requests that wait at the same time run as one, of at most so many rows. Only for models of which
            that can be proven to change no result: the first dimension is open in all inputs and outputs, and each row
            is computed by itself. Without it every request runs by itself, in its caller's thread.
        max_wait: Seconds that the first request of a batch waits for others.
        allow, device: As for ``load``.

    Attributes:
        inputs: What a request holds: name, dtype and sizes of each tensor.
        outputs: The names of what an answer holds.

    Errors raised: StorageError, as ``load`` does; D2S560 for a model that keeps something from one call to the next,
    D2S561 for inputs or outputs that have no name, D2S562 for ``max_batch`` where requests cannot be put together;
    ValueError for a method or backend that there is not.
    """

    @located
    def __init__(
        self, path: str | os.PathLike[str], *, method: str = "forward", backend: str | None = None,
        warm_up: Request | Sequence[Request] | None = None, max_batch: int | None = None, max_wait: float = 0.002,
        allow: Collection[str] = (), device: str | torch.device | None = None,
    ) -> None:  # fmt: skip
        if max_batch is not None and (type(max_batch) is not int or max_batch < 1):
            raise ValueError(f"max_batch is a number of rows, at least 1, not {max_batch!r}")
        if not max_wait >= 0:
            raise ValueError(f"max_wait is a number of seconds, at least 0, not {max_wait!r}")
        artefact = read_artefact(path, allow, device)
        if method not in artefact.methods:
            raise ValueError(f"there is no method {method!r}; there are: {', '.join(artefact.methods)}")
        variant = variant_for_inference(artefact, method)
        _require_nothing_kept(variant)
        program = variant.program
        self._ports = Ports(program)
        if max_batch is not None:
            require_independent_rows(program)
        self._params = _parameters(artefact, variant)
        self._kept = {index for index, one in enumerate(program.block.yields) if one in program.block.args}
        self._views = dict(variant.views)
        self._places = {var: place for place, var in enumerate(program.block.args)}
        exceptions = {name: exception_class(name, base) for name, base in variant.exceptions.items()}
        backend = choose_backend(backend)
        self._runner = prepare(program, Options(backend=backend, exceptions=exceptions, views=list(variant.views),
                                                frozen=True))  # fmt: skip
        self._counters = Counters()
        self._lock = threading.Condition()
        self._running = 0
        self._closed = False
        for _ in range(TAKE_OVER + 1 if executor(backend).successor else 1):
            for one in [] if warm_up is None else [warm_up] if isinstance(warm_up, Mapping) else warm_up:
                self._run(self._ports.take(one))
        self._counters = Counters()
        self._batcher = None if max_batch is None else Batcher(self._run_checked, max_batch, max_wait)

    # -- what it takes and gives

    @property
    def inputs(self) -> tuple[Input, ...]:
        """What a request holds."""
        return self._ports.inputs

    @property
    def outputs(self) -> tuple[str, ...]:
        """The names of what an answer holds, as in an exported model: ``result``, or ``out_0``, ``out_1_mask``."""
        return tuple(one.name for one in self._ports.outputs)

    @located
    def run(self, request: Request, out: Mapping[str, torch.Tensor] | None = None) -> dict[str, Any]:
        """The results for one request, by name: tensors, numbers, and lists of them.

        Args:
            request: A tensor or NumPy array for each input, by name, of its dtype and sizes.
            out: Tensors to write results into, by name, in place of new ones.

        Errors raised: SignatureError that names the input or output for whatever does not fit (D2S302 to D2S305,
        D2S308); what the model raises; RuntimeError after ``close``. After an error it works as before.
        """
        began = time.perf_counter()
        with self._lock:
            if self._closed:
                raise RuntimeError("this Predictor is closed")
            self._running += 1
        failed = True
        try:
            tensors = self._ports.take(request)
            values = self._run(tensors) if self._batcher is None else self._batcher.run(tensors)
            found = {one.name: value for one, value in zip(self._ports.outputs, values)}
            if out:
                require_names(list(out), self.outputs)
                found |= {name: _written(name, into, found[name]) for name, into in out.items()}
            failed = False
            return found
        finally:
            with self._lock:
                self._running -= 1
                self._lock.notify_all()
            self._counters.request(began, failed)

    def _run(self, tensors: list[torch.Tensor]) -> list[Any]:
        """One run of the Program: the values of the outputs."""
        began = time.perf_counter()
        with torch.no_grad():
            values = self._runner.run(tensors, self._params)
            for place in self._kept:
                values[place] = values[place].clone()
            for place, view in self._views.items():
                at = self._places[view.source]
                source = tensors[at] if at < len(tensors) else self._params[at - len(tensors)]
                values[place] = taken(source, view.steps).clone()
        self._counters.run(time.perf_counter() - began)
        return [values[one.index] for one in self._ports.outputs]

    def _run_checked(self, tensors: list[torch.Tensor]) -> list[Any]:
        """One run of several requests together, whose sizes nobody has looked at yet."""
        self._ports.require_assumptions(tensors)
        return self._run(tensors)

    def statistics(self) -> Statistics:
        """How many requests were answered and failed, and how long they took."""
        return self._counters.told()

    # -- its end

    def close(self) -> None:
        """Answer the requests that have arrived, and take no more. It may be called twice."""
        with self._lock:
            self._closed = True
            self._lock.wait_for(lambda: self._running == 0)
        if self._batcher is not None:
            self._batcher.close()

    def __enter__(self) -> Predictor:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _require_nothing_kept(variant: Variant) -> None:
    program = variant.program
    written = {write.target for write in program.writes}
    kept = [one.name for one in program.inputs if one.var in written]
    kept += [one.name for one in program.params if one.var in written]
    if variant.stores or kept:
        said = f"'{kept[0]}'" if kept else "an object"
        raise StorageError(
            f"the model writes to {said} in each call, and a Predictor is called by several threads at once",
            hint="Save a model that returns the new value, and let the caller keep it; or call load() from one thread.",
            code="D2S560")  # fmt: skip


def _parameters(artefact: Artefact, variant: Variant) -> list[torch.Tensor]:
    state = artefact.state()
    return [(artefact.tensors[state[one.name]] if isinstance(one, State) else artefact.constants[one.index]).detach()
            for one in variant.params]  # fmt: skip


def _written(name: str, into: Any, value: Any) -> torch.Tensor:
    """A result in a tensor of the caller's."""
    def fail(problem: str) -> NoReturn:
        raise SignatureError(f"output '{name}' {problem}", hint="Give a tensor of its dtype and sizes, or none.",
                             code="D2S304")  # fmt: skip

    if not isinstance(value, torch.Tensor):
        fail(f"is {type(value).__name__}, which cannot be written into a tensor")
    if not isinstance(into, torch.Tensor) or into.dtype != value.dtype or into.shape != value.shape:
        fail(f"is {value.dtype} of sizes {list(value.shape)}, which what was given for it is not")
    return into.copy_(value)


__all__ = ["Predictor"]
