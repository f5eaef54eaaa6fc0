"""Tiny transformers of Hugging Face: how much of each runs in C, and its time beside eager and the interpreter.

    python benchmarks/architectures.py [bert gpt2 ...] [--repeats 7]          (pip install dy2static[third-party])

The models are those of ``tests/third_party/models.py``: two layers of width 32, random weights, batches of two,
float32, evaluation without gradients. So small a model waits for Python between operators: what a call costs shows,
not what products cost. One thread, processor time; the three ways alternate, the least of the repeats counts. Results
are held against eager's for three inputs first.
"""

from __future__ import annotations

import argparse
import collections
import copy
import os
import platform
import statistics
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "third_party"))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))

from dy2static import to_static
from runtime.native import executable

CALLS = 20


def tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors of a result, in their order."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict) or hasattr(value, "items"):
        for one in value.values():
            yield from tensors(one)
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors(one)


def best(call: Callable[[], Any]) -> float:
    """Microseconds of a call."""
    began = time.thread_time()
    for _ in range(CALLS):
        call()
    return (time.thread_time() - began) / CALLS * 1e6


def floats(inputs: dict[str, Any]) -> dict[str, Any]:
    return {name: value.float() if value.is_floating_point() else value for name, value in inputs.items()}


Inputs = Callable[[int], dict[str, Any]]


def measure(name: str, make: Callable[[], Any], inputs: Inputs, repeats: int) -> dict[str, Any]:
    """The row of one architecture."""
    torch.manual_seed(0)
    model = make().float().eval()
    ways = {"eager": model}
    for backend in ("interpreter", "c"):
        executable.made = []
        ways[backend] = to_static(copy.deepcopy(model), backend=backend)
        began = time.perf_counter()
        ways[backend](**floats(inputs(0)))
        first = time.perf_counter() - began
    made = executable.made or []
    differ = 0.0
    for seed in range(3):
        given = floats(inputs(seed))
        expected = list(tensors(model(**given)))
        for way in ("interpreter", "c"):
            found = list(tensors(ways[way](**given)))
            assert [one.shape for one in found] == [one.shape for one in expected], (name, way)
            pairs = [(a, b) for a, b in zip(found, expected) if a.is_floating_point()]
            differ = max([differ, *((a - b).abs().max().item() for a, b in pairs)])
    given = floats(inputs(0))
    for _ in range(30):
        for way in ways.values():
            way(**given)
    times: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(repeats):
        for way, found in times.items():
            found.append(best(lambda way=way: ways[way](**given)))
    shares = [one.share() for one in made[-1:]]
    return {
        **{way: min(found) for way, found in times.items()}, "first": first, "differ": differ,
        "in_c": sum(one.in_c + one.called for one in shares), "all": sum(one.all for one in shares),
        "pieces": sum(len(one.written.compiled) for one in made[-1:]),
        "python": collections.Counter(op for one in made[-1:] for op in one.in_python()),
    }  # fmt: skip


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    from models import MODELS

    print(f"PyTorch {torch.__version__}, Python {platform.python_version()}, {platform.machine()}, one thread")
    print("| architecture | operators in C | calls of C | eager, us | interpreter | C | first call, s | differ by |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    python: collections.Counter[str] = collections.Counter()
    rows = []
    for name in options.names or MODELS:
        make, inputs = MODELS[name][:2]
        with torch.no_grad():
            row = measure(name, make, inputs, options.repeats)
        rows.append(row)
        python.update(row["python"])
        print(f"| {name} | {row['in_c']} of {row['all']} | {row['pieces']} | {row['eager']:.0f} "
              f"| {row['interpreter'] / row['eager']:.2f} | {row['c'] / row['eager']:.2f} | {row['first']:.1f} "
              f"| {row['differ']:.0e} |", flush=True)  # fmt: skip
    share = sum(row["in_c"] for row in rows) / max(sum(row["all"] for row in rows), 1)
    print(f"\n{share:.1%} of the operators of {len(rows)} architectures in C; of eager's time the median is "
          f"{statistics.median(row['c'] / row['eager'] for row in rows):.2f} in C and "
          f"{statistics.median(row['interpreter'] / row['eager'] for row in rows):.2f} on the interpreter")  # fmt: skip
    print("left to Python: " + ", ".join(f"{op} {count}" for op, count in python.most_common(20)))


if __name__ == "__main__":
    main()
