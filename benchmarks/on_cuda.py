"""A CUDA device: eager, the interpreter, ``backend="cuda"``, and torch.compile.

    python benchmarks/on_cuda.py --repeats 7 [--only W7,W5] [--columns "eager,dy2static cuda"]

Microseconds a call, waiting for the device: the median of repeats in which the columns alternate. Each repeat calls for
a twentieth of a second. Results are held against eager's first. ``first`` is the wall time of the first call, tracing
and compiling included.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "peer"))

import torch_ as peer
from data import MOST_STEPS, arrays

from dy2static import to_static

Step = Callable[[], Any]
COLUMNS = ("eager", "dy2static interpreter", "dy2static cuda", "torch.compile", "torch.compile max-autotune")
SLOW_TO_COMPILE = "torch.compile max-autotune"
MOST_COMPILED = ("B1", "B32")
"""The workloads that max-autotune compiles: the others have loops, which it cuts into pieces."""
ROOM = 0.05


class Encoder(nn.Module):
    """BERT-base's shape: a post-norm encoder of 12 layers, hidden 768."""

    def __init__(self, layers: int = 12, hidden: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.heads = heads
        self.layers = nn.ModuleList(
            nn.ModuleDict({
                "q": nn.Linear(hidden, hidden), "k": nn.Linear(hidden, hidden), "v": nn.Linear(hidden, hidden),
                "o": nn.Linear(hidden, hidden), "m": nn.LayerNorm(hidden), "n": nn.LayerNorm(hidden),
                "a": nn.Linear(hidden, 4 * hidden), "b": nn.Linear(4 * hidden, hidden),
            }) for _ in range(layers)
        )  # fmt: skip

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """The last hidden states."""
        b, t, d = x.shape
        for one in self.layers:
            q, k, v = (one[n](x).view(b, t, self.heads, d // self.heads).transpose(1, 2) for n in "qkv")
            y = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d)
            x = one["m"](x + one["o"](y))
            x = one["n"](x + one["b"](F.gelu(one["a"](x))))
        return x


def converted(function: Any, column: str) -> Any:
    """A function or module as a column runs it."""
    if column == "eager":
        return function
    if column.startswith("torch.compile"):
        torch._dynamo.reset()
        mode = column.removeprefix("torch.compile").strip() or None
        return torch.compile(function, mode=mode)
    return to_static(function, backend=column.removeprefix("dy2static "))


def bert(column: str, batch: int, dtype: torch.dtype, train: bool) -> Step:
    """A forward pass, or a step of training with SGD, of BERT-base's shape on sequences of 128."""
    torch.manual_seed(0)
    module = Encoder().to("cuda", dtype)
    call = converted(module, column)
    x = torch.randn(batch, 128, 768).to("cuda", dtype)
    if not train:

        def forward() -> Any:
            with torch.no_grad():
                return call(x)

        return forward
    optimizer = torch.optim.SGD(module.parameters(), lr=0.0)

    def step() -> Any:
        loss = call(x).float().square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return [loss.detach(), *[one.grad for one in module.parameters()][:4]]

    return step


def chain(column: str, rows: int) -> Step:
    """W7 with so many rows of 1,000."""
    torch.manual_seed(0)
    given = torch.randn(rows, 1000), torch.rand(1000), torch.randn(1000)
    x, w, b = (one.to("cuda").requires_grad_() for one in given)
    call = converted(peer.chain, column)
    return lambda: torch.autograd.grad(call(x, w, b), [x, w, b])


def small(column: str, name: str) -> Step:
    """A workload of ``benchmarks/peers.py``."""
    given = {key: torch.as_tensor(value).clone() for key, value in arrays(name).items()}
    given = {key: value.to("cuda") for key, value in given.items()}
    function, names = peer.FUNCTIONS["GRU" if name.startswith("GRU") else name.removesuffix("b1")]
    args: list[Any] = [given[key] for key in names] + ([MOST_STEPS] if name == "W5" else [])
    call = converted(function, column)
    if name not in peer.TRAINED:
        return lambda: call(*args)
    wanted = [given[key].requires_grad_() for key in names if key.startswith("p_")]
    return lambda: torch.autograd.grad(call(*args), wanted)


WORKLOADS: dict[str, tuple[str, Callable[[str], Step]]] = {
    "W7": ("chain of activations, norm, softmax, 1,000 x 1,000, f + b", lambda column: chain(column, 1000)),
    "W7big": ("the same, 64,000 x 1,000", lambda column: chain(column, 64000)),
    "W2": ("LSTM language model, gradients (batch 8, T 20, hidden 128)", lambda column: small(column, "W2")),
    "W3": ("dynamic RNN, batch 32, h 256, T 64", lambda column: small(column, "W3")),
    "W4": ("power iteration 16x16", lambda column: small(column, "W4")),
    "W5": ("greedy decode, batch 8, hidden 128", lambda column: small(column, "W5")),
    "W6": ("1,000 SGD steps in the graph", lambda column: small(column, "W6")),
    "GRU128": ("GRU-128 f + b (batch 4, T 64)", lambda column: small(column, "GRU128")),
    "B1": ("BERT-base shape, b1 s128, float32, forward", lambda column: bert(column, 1, torch.float32, False)),
    "B32": ("BERT-base shape, b32 s128, bfloat16, forward", lambda column: bert(column, 32, torch.bfloat16, False)),
    "Btrain": ("BERT-base shape, b32 s128, bfloat16, training", lambda column: bert(column, 32, torch.bfloat16, True)),
}


def timed(step: Step) -> float:
    """Microseconds a call, over calls for a twentieth of a second, the device waited for."""
    torch.cuda.synchronize()
    begin, count = time.perf_counter(), 0
    while count == 0 or time.perf_counter() - begin < ROOM:
        step()
        count += 1
        torch.cuda.synchronize()
    return (time.perf_counter() - begin) / count * 1e6


def apart(got: Any, expected: Any) -> float:
    """The largest difference between two results, relative to the largest of the expected."""
    pairs = zip(got, expected) if isinstance(expected, (list, tuple)) else [(got, expected)]
    worst = 0.0
    for one, other in pairs:
        scale = float(other.double().abs().max()) or 1.0
        worst = max(worst, float((one.double() - other.double()).abs().max()) / scale)
    return worst


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--only", default=",".join(WORKLOADS))
    parser.add_argument("--columns", default=",".join(COLUMNS))
    options = parser.parse_args()
    torch.set_float32_matmul_precision("highest")
    warnings.simplefilter("ignore")
    columns = options.columns.split(",")
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, Python {sys.version.split()[0]}", flush=True)
    for name in options.only.split(","):
        text, make = WORKLOADS[name]
        steps: dict[str, Step] = {}
        said: dict[str, str] = {}
        expected: Any = None
        for column in columns:
            if column == SLOW_TO_COMPILE and name not in MOST_COMPILED:
                continue
            begin = time.perf_counter()
            try:
                step = make(column)
                got = step()
                torch.cuda.synchronize()
                first = time.perf_counter() - begin
                off = apart(got, expected) if expected is not None else 0.0
                expected = got if column == "eager" else expected
                steps[column], said[column] = step, f"first {first:.2f} s, off by {off:.1e}"
                for _ in range(3):
                    step()
            except Exception as error:  # whatever a framework raises is a row of the table
                said[column] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
                steps.pop(column, None)
        times: dict[str, list[float]] = {column: [] for column in steps}
        for _ in range(options.repeats):
            for column, step in steps.items():
                times[column].append(timed(step))
        print(f"{name}: {text}")
        base = statistics.median(times["eager"]) if times.get("eager") else 1.0
        for column in columns:
            if column in times:
                found = statistics.median(times[column])
                print(f"    {column:28} {found:12.1f} us  {found / base:6.3f}  {said[column]}", flush=True)
            elif column in said:
                print(f"    {column:28} {said[column]}", flush=True)


if __name__ == "__main__":
    main()
