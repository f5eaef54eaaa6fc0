"""Serving: a Predictor beside ONNX Runtime on the model that was exported, requests of mixed sizes, 1 and 8 threads.

    python benchmarks/serving.py [--requests 2000]

Every answer is held against eager. One thread inside of each run, for PyTorch and ONNX Runtime alike. Latency is wall
time from a request to its answer; throughput is requests a second over all threads.
"""

from __future__ import annotations

import argparse
import os
import platform
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy
import torch

import dy2static
from dy2static import InputSpec
from runtime import Predictor
from runtime.serving.statistics import percentile


class Classifier(torch.nn.Module):
    """Straight lines, each row by itself."""

    specs = [InputSpec([None, 64], "float32", "x")]

    def __init__(self) -> None:
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.LayerNorm(256),
                                        torch.nn.Linear(256, 10))  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out: torch.Tensor = self.body(x)
        return out

    @staticmethod
    def request(at: int) -> torch.Tensor:
        return torch.randn(1 + at % 7, 64)


class Settling(torch.nn.Module):
    """A loop whose end the values decide, with a branch inside."""

    specs = [InputSpec([None, 16], "float32", "x")]

    def __init__(self) -> None:
        super().__init__()
        self.step = torch.nn.Linear(16, 16)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, int]:
        steps = 0
        while x.abs().max() > 0.5 and steps < 40:
            if x.sum() > 0:
                x = self.step(x).tanh() * 0.95
            else:
                x = x * 0.9 - 0.01
            steps += 1
        return x, steps

    @staticmethod
    def request(at: int) -> torch.Tensor:
        return torch.randn(1 + at % 5, 16) * (1 + at % 3)


Call = Callable[[torch.Tensor], Sequence[Any]]


def measured(call: Call, requests: Sequence[torch.Tensor], wanted: Sequence[Sequence[Any]], threads: int, count: int,
             ) -> tuple[float, float, float, int]:  # fmt: skip
    """p50 and p99 in microseconds, requests a second, and how many answers were wrong."""
    latencies: list[float] = []
    wrong: list[int] = []
    lock = threading.Lock()

    def work(first: int) -> None:
        mine = []
        for number in range(first, count, threads):
            at = number % len(requests)
            began = time.perf_counter()
            got = call(requests[at])
            mine.append(time.perf_counter() - began)
            same = all(numpy.allclose(numpy.asarray(a), numpy.asarray(b), rtol=1e-4, atol=1e-5)
                       for a, b in zip(got, wanted[at], strict=True))  # fmt: skip
            if not same:
                wrong.append(at)
        with lock:
            latencies.extend(mine)

    for at in range(40):
        call(requests[at % len(requests)])
    workers = [threading.Thread(target=work, args=(first,)) for first in range(threads)]
    began = time.perf_counter()
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    spent = time.perf_counter() - began
    latencies.sort()
    return percentile(latencies, 50) * 1e6, percentile(latencies, 99) * 1e6, count / spent, len(wrong)


def ways(model: torch.nn.Module, specs: Any, folder: Path) -> list[tuple[str, Call, Callable[[], None]]]:
    """What answers requests: its name, a call, and what ends it."""
    import onnxruntime

    dy2static.save(model, folder / "model", specs)
    path = dy2static.onnx.export(model, folder / "model.onnx", specs)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    found: list[tuple[str, Call, Callable[[], None]]] = [
        ("ONNX Runtime", lambda x: session.run(None, {"x": x.numpy()}), lambda: None)]
    kinds: dict[str, dict[str, Any]] = {"Predictor": {}, "Predictor, C": {"backend": "c"}}
    if isinstance(model, Classifier):
        kinds["Predictor, max_batch=32"] = {"max_batch": 32, "max_wait": 0.0005}
    for name, how in kinds.items():
        predict = Predictor(folder / "model", warm_up={"x": model.request(0)}, **how)  # type: ignore[operator]
        found.append((name, lambda x, predict=predict: list(predict.run({"x": x}).values()), predict.close))
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=2000)
    count = parser.parse_args().requests
    torch.set_num_threads(1)
    cpu = next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")),
               platform.processor())  # fmt: skip
    print(f"{cpu}, {os.cpu_count()} cores, PyTorch {torch.__version__}, {count} requests a row\n")
    print("| model | threads | way | p50, us | p99, us | requests / s | wrong |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for kind in (Classifier, Settling):
        torch.manual_seed(0)
        model = kind().eval()
        requests = [kind.request(at) for at in range(50)]
        with torch.no_grad():
            results = [model(x) for x in requests]
        wanted = [one if isinstance(one, tuple) else (one,) for one in results]
        with tempfile.TemporaryDirectory() as folder:
            for threads in (1, 8):
                for name, call, end in ways(model, kind.specs, Path(folder)):
                    p50, p99, rate, wrong = measured(call, requests, wanted, threads, count)
                    end()
                    print(f"| {kind.__name__} | {threads} | {name} | {p50:.0f} | {p99:.0f} | {rate:.0f} | {wrong} |",
                          flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
