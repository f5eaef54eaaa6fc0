"""Many requests of mixed sizes, each answer held against eager: wrong answers, memory that grows, latency, throughput.

    python benchmarks/many_requests.py [--requests 100000] [--threads 1 8] [--only "Predictor, C"]

Two small models with a loop and a branch. In ``Reading`` the sizes of the request decide both, so that requests may be
put together; in ``Settling`` the values decide, so that they may not. One request in fifty does not fit or makes the
model raise, and is right if it ends in an error. Each row of the table is a process of its own, with one thread inside
of each run. Memory is the process's resident memory: at the end, and how much more that is than after a tenth and after
half of the requests. Latency is wall time from a request to its answer; requests a second are over all threads, and
the time that looking at the answers takes is in them.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor, nn

POOL = 211
"""So many different requests there are; no multiple of a number of threads, so that each thread has all of them."""

MAX_BATCH = {"max_batch": 32, "max_wait": 0.0005}
PREDICTORS: dict[str, dict[str, Any]] = {
    "Predictor": {}, "Predictor, C": {"backend": "c"},
    "Predictor, max_batch": MAX_BATCH, "Predictor, C, max_batch": {"backend": "c", **MAX_BATCH},
}  # fmt: skip
WAYS = ("eager", "ONNX Runtime", *(["OpenVINO"] if find_spec("openvino") else []), *PREDICTORS)


class Reading(nn.Module):
    """A recurrent cell over (rows, length, 8); long ones go through one more layer."""

    sizes = (None, None, 8)

    def __init__(self) -> None:
        super().__init__()
        self.cell = nn.Linear(8 + 16, 16)
        self.long, self.out = nn.Linear(16, 16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        """Logits (rows, 4)."""
        state = x.new_zeros(x.shape[0], 16)
        for at in range(x.shape[1]):
            state = torch.tanh(self.cell(torch.cat([x[:, at], state], 1)))
        if x.shape[1] > 12:
            state = torch.relu(self.long(state))
        logits: Tensor = self.out(state)
        return logits

    @staticmethod
    def request(at: int) -> Tensor:
        """Every fiftieth has one column too many."""
        return torch.randn(1 + at % 7, 1 + at % 19, 9 if at % 50 == 49 else 8)


class Settling(nn.Module):
    """A loop whose end the values decide, with a branch inside; it raises where it does not end."""

    sizes = (None, 16)

    def __init__(self) -> None:
        super().__init__()
        self.step = nn.Linear(16, 16)

    def forward(self, x: Tensor) -> tuple[Tensor, int]:
        """The settled values, and in how many steps."""
        steps = 0
        while x.abs().max() > 0.5:
            if steps >= 40:
                raise ValueError(f"not settled after {steps} steps")
            if x.sum() > 0:
                x = self.step(x).tanh() * 0.95
            else:
                x = x * 0.9 - 0.01
            steps += 1
        return x, steps

    @staticmethod
    def request(at: int) -> Tensor:
        """Every fiftieth does not settle."""
        return torch.full((2, 16), -1e6) if at % 50 == 49 else torch.randn(1 + at % 5, 16) * (1 + at % 3)


MODELS = {one.__name__: one for one in (Reading, Settling)}
Call = Callable[[Tensor], Sequence[Any]]
Wanted = list[numpy.ndarray] | None


def made(name: str) -> tuple[nn.Module, list[Tensor], list[Wanted]]:
    """The model, the requests, and eager's answers; None where eager raises."""
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    requests = [model.request(at) for at in range(POOL)]
    wanted: list[Wanted] = []
    for x in requests:
        try:
            found = model(x)
            wanted.append([numpy.asarray(one) for one in (found if isinstance(found, tuple) else (found,))])
        except (RuntimeError, ValueError):
            wanted.append(None)
    return model, requests, wanted


def right(got: Sequence[Any] | None, wanted: Wanted) -> bool:
    """Whether an answer is eager's but for rounding; whether both are errors."""
    if got is None or wanted is None:
        return got is None and wanted is None
    if len(got) != len(wanted):
        return False
    for one, other in zip(got, wanted):
        array = numpy.asarray(one)
        if array.shape != other.shape or not (numpy.abs(array - other) <= 1e-5 + 1e-4 * numpy.abs(other)).all():
            return False
    return True


def opened(way: str, model: nn.Module, folder: Path) -> tuple[Call, Callable[[], None]]:
    """What answers requests, and what ends it. Errors raised: StorageError for a way that the model cannot take."""
    if way == "eager":
        def call(x: Tensor) -> Sequence[Any]:
            found = model(x)
            return found if isinstance(found, tuple) else (found,)

        return call, lambda: None
    if way == "ONNX Runtime":
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.log_severity_level = 4  # runs that end in an error are wanted here
        session = onnxruntime.InferenceSession(str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"])
        return lambda x: session.run(None, {"x": x.numpy()}), lambda: None
    if way == "OpenVINO":
        import openvino  # type: ignore[import-not-found]

        exact = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
        compiled = openvino.Core().compile_model(str(folder / "model.onnx"), "CPU", exact)
        own = threading.local()

        def infer(x: Tensor) -> Sequence[Any]:
            if not hasattr(own, "request"):
                own.request = compiled.create_infer_request()
            found = own.request.infer({"x": x.numpy()})
            return [found[one].copy() for one in compiled.outputs]

        return infer, lambda: None
    from runtime import Predictor

    predict = Predictor(folder / "model", **PREDICTORS[way])
    return lambda x: list(predict.run({"x": x}).values()), predict.close


def resident() -> float:
    """MiB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measured(name: str, way: str, threads: int, count: int, folder: Path) -> list[str]:
    """The cells of a row. It is called in a process of its own."""
    from runtime.errors import StorageError

    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    model, requests, wanted = made(name)
    try:
        call, end = opened(way, model, folder)
    except StorageError as error:
        return [f"refused: {error.code}"] + [""] * 6
    latencies = numpy.ones(count)  # written to, so that its memory is there from the start
    memory = {count // 10: 0.0, count // 2: 0.0}
    wrong = [0] * threads

    def answer(at: int) -> Sequence[Any] | None:
        try:
            return call(requests[at])
        except Exception:  # right where eager raises as well
            return None

    def work(first: int) -> None:
        torch.set_grad_enabled(False)  # it is a setting of each thread
        for number in range(first, count, threads):
            at = number % POOL
            began = time.perf_counter()
            got = answer(at)
            latencies[number] = time.perf_counter() - began
            if not right(got, wanted[at]):
                wrong[first] += 1
            if number in memory:
                memory[number] = resident()

    for at in range(POOL):
        answer(at)
    workers = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    began = time.perf_counter()
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    spent = time.perf_counter() - began
    last = resident()
    end()
    p50, p99 = (numpy.percentile(latencies, percent) * 1e6 for percent in (50, 99))
    grown = [f"{round(last - memory[at], 1) + 0.0:+.1f}" for at in sorted(memory)]
    return [str(sum(wrong)), f"{p50:.0f}", f"{p99:.0f}", f"{count / spent:.0f}", f"{last:.0f}", *grown]


def main() -> None:
    """Print the table."""
    import dy2static
    from dy2static import InputSpec

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--requests", type=int, default=100_000, help="of each row")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--only", nargs="+", default=WAYS, choices=WAYS, help="ways to run")
    asked = parser.parse_args()
    cpu = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor())  # fmt: skip
    print(f"{cpu}, {os.cpu_count()} cores, PyTorch {torch.__version__}, {asked.requests} requests a row\n")
    print("| model | threads | way | wrong | p50, us | p99, us | requests / s | MiB | since a tenth | since half |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for name in MODELS:
        with tempfile.TemporaryDirectory() as text:
            folder = Path(text)
            model, _, _ = made(name)
            specs = [InputSpec(list(MODELS[name].sizes), "float32", "x")]
            dy2static.save(model, folder / "model", specs)
            dy2static.onnx.export(model, folder / "model.onnx", specs)
            for threads in asked.threads:
                for way in asked.only:
                    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as own:
                        cells = own.submit(measured, name, way, threads, asked.requests, folder).result()
                    print("|", " | ".join([name, str(threads), way, *cells]), "|", flush=True)


if __name__ == "__main__":
    main()
