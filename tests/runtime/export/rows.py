"""For each row of the capability table a function that needs it, and calls that take every path."""

from __future__ import annotations

import logging
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from dy2static import InputSpec

X = InputSpec([None, 3], "float32", "x")
N = InputSpec([], "int64", "n")
POSITIVE, NEGATIVE = torch.ones(4, 3), -torch.ones(2, 3)


@dataclass(frozen=True)
class Row:
    """A function or module (made by ``make``), its InputSpecs and calls."""

    make: Callable[[], Any]
    specs: Sequence[InputSpec]
    calls: Sequence[tuple[Any, ...]]


ROWS: dict[str, Row] = {}
"""By the name of the table's row."""
BOTH = [(POSITIVE,), (NEGATIVE,)]
COUNTS = [(POSITIVE, torch.tensor(3)), (NEGATIVE, torch.tensor(0))]


def row(name: str, specs: Sequence[InputSpec] = (X,), calls: Sequence[tuple[Any, ...]] = tuple(BOTH)) -> Any:
    def add(function: Any) -> Any:
        made = function if isinstance(function, type) else lambda: function
        ROWS[name] = Row(made, list(specs), calls)
        return function

    return add


@row("branch")
def branch(x):
    if x.sum() > 0:
        return x * 2
    return x - 1


@row("choice of many", (X, N), [(POSITIVE, torch.tensor(at)) for at in (0, 1, 2, -1)])
def choice(x, n):
    return [torch.relu, torch.neg, torch.exp][n.item()](x)


@row("loop", (X, N), COUNTS)
def loop(x, n):
    i = 0
    while i < n:
        x = x * 0.5 + i
        i += 1
    return x, i


@row("rows of a loop", (X,), BOTH)
def rows(x):
    out = []
    total = torch.zeros(3)
    for i in range(x.shape[0]):
        total = total + x[i]
        out.append(total)
    return torch.stack(out)


@row("exception", (X,), BOTH)
def exception(x):
    if x.sum() < 0:
        raise ValueError("negative")
    return x * 2


@row("check of an operator", (X,), [(POSITIVE,), (POSITIVE[:0],)])
def checked(x):
    return torch.stack([one * 2 for one in x])


@row("write to what the function made")
def write(x):
    y = x.clone()
    y[0] = 7.0
    if x.sum() > 0:
        y[1] += 1
    return y


@row("number of the run")
def number(x):
    n = int(x.sum().item())
    return x * (n // 2), n % 5, x.shape[0] * 3


@row("sizes differ on paths")
def sizes(x):
    if x.sum() > 0:
        y = x[:1]
    else:
        y = torch.cat([x, x])
    return y * 2


@row("rank differs on paths")
def rank(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.sum(0)
    return y * 2


@row("dtype differs on paths")
def dtype(x):
    if x.sum() > 0:
        y = x
    else:
        y = x.to(torch.float64)
    return y * 2


@row("structure of the result differs on paths")
def structure(x):
    if x.sum() > 0:
        return x * 2
    return x - 1, x.sum()


@row("None on one path")
def none(x):
    y = None
    if x.sum() > 0:
        y = x * 3
    if y is None:
        return x
    return y


@row("sizes change in a loop", (X, N), COUNTS)
def growing(x, n):
    while x.shape[0] < 9 + n:
        x = torch.cat([x, x * 0.5])
    return x


@row("list that grows", (X, N), COUNTS)
def grows(x, n):
    out = [x]
    while len(out) <= n:
        out.append(out[-1] * 0.5)
    return out


@row("list of lists that grows", (X, N), COUNTS)
def nested(x, n):
    out = []
    i = 0
    while i < n:
        out.append([x[:1] * i for _ in range(i)])
        i += 1
    return x if len(out) < 2 else x + len(out[1])


@row("order of a set", (X, N), COUNTS)
def of_a_set(x, n):
    for number in {n.item(), 8, 16}:
        x = x * 0.5 + number
    return x


@row("list of other length on paths")
def lengths(x):
    out = [x]
    if x.sum() > 0:
        out.append(x * 2)
    return torch.cat(out)


@row("text of the run")
def text(x):
    return x, f"{x.sum().item():.1f}"


@row("complex number", (InputSpec([4, 3], "float32", "x"),), [(POSITIVE,)])
def complex_(x):
    z = torch.complex(x, x)
    return (z * z).real


@row("half precision", (InputSpec([None, 3], "float16", "x"),), [(POSITIVE.half(),)])
def half(x):
    return x * 2


@row("random numbers", (X,), [(POSITIVE,)])
def torchs_random(x):
    return x + torch.rand(3)


@row("numbers drawn from the process", (X,), [(POSITIVE,)])
def drawn(x):
    return x + random.random()


@row("autocast", (X,), [(POSITIVE,)])
def autocast(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.t()
    return y


@row("write to an argument")
def argument(x):
    x += 1
    return x * 2


@row("write to a buffer")
class Buffer(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.total += x.sum(0)
        return x + self.total


@row("store to an object")
class Stored(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.last = torch.zeros(3)

    def forward(self, x):
        self.last = x.sum(0)
        return x * 2


@row("print")
def prints(x):
    print(x.sum())
    return x * 2


@row("warning")
def warns(x):
    if x.sum() < 0:
        warnings.warn("negative")
    return x * 2


@row("log record")
def logs(x):
    logging.getLogger("rows").info("sum %s", x.sum())
    return x * 2


@row("gradients inside")
def gradients(x):
    y = x.detach().requires_grad_()
    with torch.enable_grad():
        (found,) = torch.autograd.grad((y * y).sum(), y)
    return found


class _Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


@row("gradient of one's own")
def custom(x):
    y, n = _Twice.apply(x) + 1, 0
    while n < 3 and y.sum() < 10:
        y = _Twice.apply(y) + x
        n += 1
    if y.sum() > 0:
        y = _Twice.apply(_Twice.apply(y))
    return y + 1


@row("function that calls itself")
def recursive(x):
    return recursive(x / 2) if x.sum() > 1 else x
