"""Ordinary snippets that cannot be one Program each: what ``full_graph=False`` is for.

Each function makes what is called, fresh, with the calls and what else the calls change: (function, calls, watched).
"""

from __future__ import annotations

import collections
import contextlib
import copy
import csv
import dataclasses
import functools
import io
import itertools
import json
import logging
import math
import os
import pickle
import random
import re
import tempfile
import threading
import time
import uuid
import warnings
import weakref
from typing import Any

import numpy as np
import torch
from torch import nn

from dy2static import not_to_static

X = torch.tensor([1.0, -2.0, 3.0, 0.5])
Y = torch.tensor([0.25, 1.5, -1.0, 2.0])
Snippet = tuple[Any, list[list[Any]], list[Any]]


def leaf(x: torch.Tensor = X) -> torch.Tensor:
    return x.clone().requires_grad_()


def calls(*others: Any) -> list[list[Any]]:
    return [[leaf(), *others], [leaf(-X), *others], [leaf(Y), *others]]


# -- helpers that are Programs of their own


def shrink(x, limit=1.0):
    while x.norm() > limit:
        x = x * 0.5
    return x


def signed(x):
    if x.sum() > 0:
        return x * 2
    return -x


def running(x):
    total = x.new_zeros(())
    out = []
    for value in x:
        if value > 0:
            total = total + value
        out.append(total)
    return torch.stack(out)


class Gate(nn.Module):
    def __init__(self, size: int = 4) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(size, size), nn.Linear(size, size)

    def forward(self, x):
        if x.mean() > 0:
            return torch.tanh(self.a(x))
        return torch.relu(self.b(x)) - x


def seeded(make: Any) -> Any:
    torch.manual_seed(7)
    return make()


# -- host randomness and time


def host_random() -> Snippet:
    def f(x):
        return shrink(x) * random.random()

    return f, calls(), []


def host_random_branch() -> Snippet:
    def f(x):
        if random.random() < 0.5:
            return signed(x)
        return shrink(x)

    return f, calls(), []


def numpy_random() -> Snippet:
    def f(x):
        noise = torch.from_numpy(np.random.randn(4)).float()
        return signed(x + noise)

    return f, calls(), []


def numpy_generator() -> Snippet:
    rng = np.random.default_rng(0)

    def f(x):
        order = rng.permutation(4)
        return signed(x[torch.from_numpy(order)])

    return f, calls(), []


def own_random() -> Snippet:
    source = random.Random(3)

    def f(x):
        return [signed(x) for _ in range(source.randint(1, 3))]

    return f, calls(), []


def shuffled() -> Snippet:
    def f(x):
        order = list(range(4))
        random.shuffle(order)
        total = 0.0
        for index in order:
            total = total + shrink(x[index : index + 1])
        return total, order

    return f, calls(), []


def seeds_inside() -> Snippet:
    def f(x):
        torch.manual_seed(5)
        return signed(x) + torch.rand(4)

    return f, calls(), []


def own_generator() -> Snippet:
    def f(x):
        generator = torch.Generator().manual_seed(2)
        return signed(x) + torch.rand(4, generator=generator)

    return f, calls(), []


def dropout_around_host_random() -> Snippet:
    def part(x):
        if x.sum() > 0:
            x = nn.functional.dropout(x, 0.5)
        return x + torch.rand(())

    def f(x):
        return part(x) * random.random() + part(x)

    return f, calls(), []


def timed() -> Snippet:
    def f(x):
        start = time.perf_counter()
        y = shrink(x)
        assert time.perf_counter() >= start
        return y

    return f, calls(), []


def identifiers() -> Snippet:
    seen: list[int] = []

    def f(x):
        seen.append(len(str(uuid.uuid4())))
        return signed(x)

    return f, calls(), seen


def environment_of_process() -> Snippet:
    def f(x):
        return shrink(x) * (os.getpid() > 0)

    return f, calls(), []


# -- NumPy and Python values in the middle


def numpy_middle() -> Snippet:
    def f(x):
        y = shrink(x)
        scale = float(np.sqrt(np.abs(y.detach().__array__()).sum()))
        return signed(y) * scale

    return f, calls(), []


def asarray() -> Snippet:
    def f(x):
        table = np.asarray(x.detach())
        return signed(x) + torch.as_tensor(np.cumsum(table))

    return f, calls(), []


def numpy_shares_memory() -> Snippet:
    def f(x):
        y = shrink(x.detach())
        array = y.__array__()
        array += 1
        return signed(y)

    return f, calls(), []


def to_list_of_unknown_length() -> Snippet:
    def f(x):
        kept = x[x > 0]
        return [signed(kept * value) for value in kept.tolist()]

    return f, calls(), []


def data_pointer() -> Snippet:
    def f(x):
        y = signed(x)
        return y, y.data_ptr() == x.data_ptr()

    return f, calls(), []


def pickled() -> Snippet:
    def f(x):
        kept = pickle.loads(pickle.dumps(x.detach()))
        return signed(x) + kept

    return f, calls(), []


def sorted_by_value() -> Snippet:
    def f(x):
        parts = sorted(x.detach().__array__().tolist())
        return signed(x) * parts[0], parts

    return f, calls(), []


def histogram() -> Snippet:
    def f(x):
        counts, edges = np.histogram(x.detach().__array__(), bins=3)
        return shrink(x) * torch.from_numpy(counts).sum(), edges.shape

    return f, calls(), []


# -- files, logs, text


def reads_file() -> Snippet:
    path = tempfile.NamedTemporaryFile("w", suffix=".txt", delete=False)
    path.write("2.5")
    path.close()

    def f(x):
        with open(path.name) as file:
            factor = float(file.read())
        return signed(x) * factor

    return f, calls(), []


def appends_file() -> Snippet:
    out = io.StringIO()

    def f(x):
        y = shrink(x)
        out.write(f"{y.shape[0]} ")
        return signed(y)

    return f, calls(), [out]


def writes_csv() -> Snippet:
    out = io.StringIO()
    writer = csv.writer(out)

    def f(x):
        y = signed(x)
        writer.writerow([1, "a"])
        return y

    return f, calls(), [out]


def dumps_json() -> Snippet:
    out = io.StringIO()

    def f(x):
        y = signed(x)
        json.dump({"n": y.tolist()}, out)
        return y

    return f, calls(), [out]


def saves_and_loads() -> Snippet:
    def f(x):
        file = io.BytesIO()
        torch.save(x.detach(), file)
        file.seek(0)
        return signed(x) + torch.load(file)

    return f, calls(), []


def redirects() -> Snippet:
    def f(x):
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            print("inside", x.shape[0])
        return signed(x), text.getvalue()

    return f, calls(), []


def listens_to_logs() -> Snippet:
    out = io.StringIO()
    logger = logging.Logger("piece_snippets")
    logger.addHandler(logging.StreamHandler(out))

    def f(x):
        logger.info("before %d", x.shape[0])
        y = shrink(x)
        before = out.tell()
        logger.warning("after %.3f", y.detach().sum().item())
        return signed(y), out.tell() > before

    return f, calls(), [out]


def matches_text() -> Snippet:
    def f(x):
        text = str(x.detach().__array__().round(2))
        return signed(x) * len(re.findall("-", text))

    return f, calls(), []


def catches_warnings() -> Snippet:
    def f(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("something", stacklevel=1)
        return signed(x), len(caught)

    return f, calls(), []


# -- state: attributes, closures, globals, caches


class Counter:
    def __init__(self) -> None:
        self.n = 0
        self.history: list[Any] = []
        self.last: Any = None

    def step(self, x):
        self.n += 1
        if x.sum() > 0:
            x = x + self.n
        self.last = x.detach()
        self.history.append(float(x.detach().__array__().sum()))
        return x


def object_state() -> Snippet:
    owner = Counter()

    def f(x):
        y = owner.step(x)
        return owner.step(y) * 2

    return f, calls(), [owner]


def method_with_state() -> Snippet:
    owner = Counter()
    return owner.step, calls(), [owner]


class Memory(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.register_buffer("average", torch.zeros(4))
        self.steps = 0
        self.cache: dict[int, Any] = {}

    def forward(self, x):
        self.steps += 1
        y = self.gate(x)
        self.average.mul_(0.9).add_(y.detach(), alpha=0.1)
        self.cache[self.steps % 2] = y.detach()
        return y + np.float32(self.average.__array__().sum()).item()


def module_state() -> Snippet:
    return seeded(Memory), calls(), []


class Stack(nn.Module):
    """Several layers; one of them cannot be a Program."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList([Gate(), nn.Sequential(nn.Linear(4, 4), Gate()), Gate()])
        self.middle = Memory()

    def forward(self, x):
        for index, layer in enumerate(self.layers):
            x = layer(x)
            if index == 1:
                x = self.middle(x)
        return x


def stack() -> Snippet:
    return seeded(Stack), calls(), []


class Hooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.seen: list[Any] = []
        self.gate.register_forward_hook(self.note)
        self.gate.register_forward_pre_hook(lambda module, args: (args[0] * 2,))

    def note(self, module, args, result):
        self.seen.append(result.detach().__array__().copy())
        return result + 1

    def forward(self, x):
        return self.gate(self.gate(x))


def forward_hooks() -> Snippet:
    return seeded(Hooked), calls(), []


class BackwardHooked(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self.seen: list[Any] = []
        self.gate.register_full_backward_hook(lambda module, before, after: self.seen.append(after[0].sum().item()))

    def forward(self, x):
        return self.gate(x) * 2


def backward_hooks() -> Snippet:
    return seeded(BackwardHooked), calls(), []


def tensor_hooks() -> Snippet:
    seen: list[float] = []

    def f(x):
        y = signed(x)
        y.register_hook(lambda grad: seen.append(float(grad.sum())))
        z = shrink(y)
        z.retain_grad()
        return z

    return f, calls(), seen


TOTAL = 0.0


def global_state() -> Snippet:
    global TOTAL
    TOTAL = 0.0

    def f(x):
        global TOTAL
        y = signed(x)
        TOTAL += y.detach().__array__().sum().item()
        return y * TOTAL

    return f, calls(), []


def closure_state() -> Snippet:
    count = 0
    held = torch.ones(4)

    def f(x):
        nonlocal count, held
        count += 1
        held = held + signed(x).detach()
        return held * count, held.__array__().sum().item()

    return f, calls(), []


def nested_functions() -> Snippet:
    def f(x):
        total = 0

        def add(value):
            nonlocal total
            total = total + value.detach().__array__().sum().item()
            return signed(value)

        y = add(x)
        y = add(y)
        return y, total

    return f, calls(), []


def default_arguments() -> Snippet:
    def part(x, factor=2.0, *rest, seen=[], **more):  # what it is about
        seen.append(len(rest) + len(more))
        if x.sum() > 0:
            x = x * factor
        for other in rest:
            x = x + other
        return x, len(seen), sorted(more)

    def f(x):
        part(x)
        part(x, 3.0, x, x)
        return part(x, seen=[], other=random.random() * 0)

    return f, calls(), []


def memo_dict() -> Snippet:
    memo: dict[Any, Any] = {}

    def f(x, key="a"):
        if key not in memo:
            memo[key] = float(signed(x).detach().__array__().sum())
        return shrink(x) * memo[key]

    return f, [[leaf(), "a"], [leaf(Y), "a"], [leaf(Y), "b"], [leaf(), "b"]], [memo]


def cached_function() -> Snippet:
    ran: list[int] = []

    @functools.lru_cache(maxsize=None)
    def table(n):
        ran.append(n)
        return np.arange(n, dtype=np.float32)

    def f(x):
        return signed(x) + torch.from_numpy(table(4) * np.float32(x.detach().__array__()[0]))

    return f, calls(), ran


def weak_references() -> Snippet:
    def f(x):
        y = signed(x)
        ref = weakref.ref(y)
        return y, ref() is y, x.numel() == len(x.detach().__array__())

    return f, calls(), []


def locked() -> Snippet:
    lock = threading.Lock()

    def f(x):
        with lock:
            return signed(x) * (1 + lock.locked()) * float(x.detach().__array__()[0])

    return f, calls(), []


def threads_inside() -> Snippet:
    def f(x):
        found: dict[int, Any] = {}
        workers = [threading.Thread(target=lambda n=n: found.update({n: shrink(x * n)})) for n in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return [found[n] for n in range(3)]

    return f, calls(), []


# -- identity, aliasing and writes


def writes_arguments() -> Snippet:
    def part(x, rows):
        if rows.sum() > -100:
            rows[0] = x[0]
        rows.mul_(2)
        return rows

    def f(x, rows):
        same = part(x, rows) is rows
        rows.add_(float(x.detach().__array__()[1]))
        return rows, same

    return f, [[leaf(), torch.ones(2)], [leaf(Y), torch.zeros(2)]], []


def views_of_arguments() -> Snippet:
    def part(x):
        if x.sum() > 0:
            return x[:2]
        return x[1:3]

    def f(x):
        y = x * 1
        head = part(y)
        head.mul_(3)
        return y, head, y.detach().__array__().sum().item()

    return f, calls(), []


def writes_results() -> Snippet:
    def part(x):
        y = x * 2 if x.sum() > 0 else x * 3
        return y, y[1:], [y[0], x]

    def f(x):
        y, tail, rest = part(x)
        tail.add_(1)
        rest.append(y.detach().__array__().sum().item())
        return y, tail, rest, rest[1] is x

    return f, calls(), []


def containers() -> Snippet:
    def part(state, x):
        if x.sum() > 0:
            state["kept"].append(x)
        state["last"] = x
        return state

    def f(x):
        state = {"kept": [], "last": None}
        same = part(state, x) is state and part(state, x * 2)["kept"] is state["kept"]
        state["numpy"] = x.detach().__array__().tolist()
        return state, same

    return f, calls(), []


def grown_lists() -> Snippet:
    def part(x):
        out = []
        while x.norm() > 0.5:
            x = x * 0.5
            out.append(x)
        return out

    def f(x):
        parts = part(x)
        parts.append(torch.tensor(x.detach().__array__()))
        return parts, len(parts)

    return f, calls(), []


@dataclasses.dataclass
class Pair:
    first: Any
    second: Any = 0


def dataclasses_across() -> Snippet:
    def part(pair):
        if pair.first.sum() > 0:
            pair.second = pair.first * 2
        return Pair(pair.first + 1, pair.second)

    def f(x):
        pair = Pair(x)
        other = part(pair)
        return pair, other, x.detach().__array__().shape

    return f, calls(), []


Row = collections.namedtuple("Row", "a b")


def named_tuples() -> Snippet:
    def part(row):
        return Row(signed(row.a), row.b) if row.a.sum() > 0 else row

    def f(x):
        row = Row(x, x.detach().__array__().sum().item())
        got = part(row)
        return got, got is row, type(got).__name__

    return f, calls(), []


# -- exceptions


def raising_parts() -> Snippet:
    def part(x, log):
        log.append("begun")
        x.add_(1)
        if x.sum() > 6:
            raise ValueError(f"too much of {x.shape[0]}")
        log.append("done")
        return x * 2

    def f(x):
        log: list[str] = []
        y = x * 1
        try:
            z = part(y, log)
        except ValueError as error:
            log.append(str(error))
            z = y
        return z, log, y.detach().__array__().tolist()

    return f, [*calls(), [leaf(X + 4)]], []


def exceptions_leave() -> Snippet:
    log: list[str] = []

    def part(x):
        log.append("begun")
        if x.sum() < 0:
            raise KeyError("negative")
        return x

    def f(x):
        log.append(f"{x.detach().__array__().sum():.2f}")
        return part(x)

    return f, calls(), log


def index_errors() -> Snippet:
    def part(x, index):
        if x.sum() > 0:
            x = x * 2
        return x[index]

    def f(x, index):
        try:
            return part(x, index)
        except IndexError as error:
            return type(error).__name__, x.detach().__array__().shape

    return f, [[leaf(), 1], [leaf(), 9], [leaf(Y), 2], [leaf(-X), 9]], []


def finally_and_else() -> Snippet:
    def f(x):
        log = []
        for sign in (1, -1):
            try:
                y = signed(x * sign)
                float(y.detach().__array__()[9 if sign < 0 else 0])
            except IndexError:
                log.append("index")
            else:
                log.append("fine")
            finally:
                log.append("end")
        return y, log

    return f, calls(), []


def exceptions_in_recursion() -> Snippet:
    def down(x, depth):
        if depth == 0:
            return float(x.detach().__array__().sum()) * x
        return down(signed(x), depth - 1) + depth

    return down, [[leaf(), 3], [leaf(-X), 2], [leaf(), 0]], []


def deep_recursion() -> Snippet:
    def down(x, depth):
        if depth == 0:
            return x * float(np.float32(1.5))
        return down(x, depth - 1) + 1

    def f(x):
        return down(shrink(x), 200) + x.detach().__array__().sum().item()

    return f, calls(), []


# -- generators and iterators


def generators() -> Snippet:
    def batches(x):
        for row in x.split(2):
            yield row, float(row.detach().__array__().sum())

    def f(x):
        return [signed(row) * total for row, total in batches(x)]

    return f, calls(), []


def outer_iterator() -> Snippet:
    numbers = itertools.count(1)

    def f(x):
        n = next(numbers)
        return signed(x) * n, x.detach().__array__().sum().item()

    return f, calls(), []


def iterator_then_failure() -> Snippet:
    words = iter(["a", "bb", "ccc", "dddd", *["e" * n for n in range(5, 90)]])
    seen: list[str] = []

    def f(x):
        seen.append(next(words))
        y = shrink(x)
        return y * float(y.detach().__array__()[0])

    return f, calls(), seen


def generator_kept() -> Snippet:
    def make():
        total = 0.0
        while True:
            x = yield total
            total += float(x.detach().__array__().sum())

    source = make()
    next(source)

    def f(x):
        return signed(x) * source.send(x)

    return f, calls(), []


# -- modes


def modes_around() -> Snippet:
    def part(x):
        return (signed(x), torch.is_grad_enabled()) if x.sum() > 0 else (x * 5, torch.is_grad_enabled())

    def f(x):
        with torch.no_grad():
            a = part(x)
        with torch.enable_grad():
            b = part(x)
        return a, b, part(x.detach()), x.detach().__array__().size

    return f, calls(), []


def autocast_around() -> Snippet:
    weight = torch.ones(4, 4)

    def part(x):
        y = x @ weight
        return y if y.sum() > 0 else -y

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            a = part(x)
        return a, part(x), x.detach().__array__().size

    return f, calls(), []


class Switching(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.gate = Gate()

    def part(self, x):
        if self.training and x.sum() > 0:
            x = x * 2
        return self.norm(x)

    def forward(self, x):
        self.train(not self.training)
        y = self.part(torch.stack([x, x * 2]))
        return self.gate(y), self.training, x.detach().__array__().size


def train_and_eval() -> Snippet:
    return seeded(Switching), calls(), []


def inference_mode() -> Snippet:
    def f(x):
        with torch.inference_mode():
            y = signed(x.detach())
            n = y.__array__().sum().item()
        return shrink(x) * n

    return f, calls(), []


def changed_default_dtype() -> Snippet:
    def f(x):
        torch.set_default_dtype(torch.float64)
        try:
            return signed(x) + torch.tensor(1.5)
        finally:
            torch.set_default_dtype(torch.float32)

    return f, calls(), []


# -- training


def training_loop() -> Snippet:
    net = seeded(Gate)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    losses: list[float] = []

    def f(x):
        order = [0, 1, 2]
        random.shuffle(order)
        for step in order:
            optimizer.zero_grad()
            loss = (net(x * step) - 1).square().mean()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            losses.append(float(loss.detach().__array__()))
        return loss.detach()

    return f, calls(), [losses, net.a.weight, net.b.weight]


def training_with_adam() -> Snippet:
    net = seeded(Stack)
    optimizer = torch.optim.Adam(net.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.5)

    def epoch(x):
        total = 0.0
        for part in x.split(4):
            optimizer.zero_grad(set_to_none=False)
            loss = net(part).square().sum()
            loss.backward(retain_graph=True)
            loss.backward()
            optimizer.step()
            total += loss.item() * random.random()
        scheduler.step()
        return total

    return epoch, calls(), [list(net.parameters()), net.middle.average]


def accumulates_gradients() -> Snippet:
    net = seeded(Gate)

    def f(x):
        for part in (x, x * 2, -x):
            loss = net(part).sum() / len(x.detach().__array__())
            loss.backward()
        norms = [p.grad.norm().item() for p in net.parameters() if p.grad is not None]
        net.zero_grad()
        return norms

    return f, calls(), []


def second_gradients() -> Snippet:
    def f(x):
        y = signed(x * x).pow(3).sum()
        (grad,) = torch.autograd.grad(y, x, create_graph=True)
        return shrink(grad), grad.detach().__array__().sum().item()

    return f, calls(), []


def early_stopping() -> Snippet:
    net = seeded(Gate)
    best: dict[str, Any] = {"loss": math.inf, "state": None}

    def f(x):
        for step in range(3):
            loss = net(x * (step + 1)).square().mean()
            if loss.detach().__array__() < best["loss"]:
                best["loss"] = loss.item()
                best["state"] = copy.deepcopy(net.state_dict())
        return loss, best["loss"]

    return f, calls(), [best]


def evaluates_with_metrics() -> Snippet:
    net = seeded(Gate)
    metrics: collections.Counter[str] = collections.Counter()

    def f(x):
        net.eval()
        with torch.no_grad():
            for row in (x, -x):
                label = "up" if net(row).__array__().sum() > 0 else "down"
                metrics[label] += 1
        net.train()
        return dict(metrics), net(x)

    return f, calls(), []


# -- unsupported constructs around


def frames_and_locals() -> Snippet:
    def f(x):
        y = signed(x)
        names = sorted(locals())
        return y, names

    return f, calls(), []


def evaluates_text() -> Snippet:
    def f(x):
        y = signed(x)
        return eval("y * 2"), x.detach().__array__().size

    return f, calls(), []


def leaves_finally() -> Snippet:
    def f(x):
        for factor in (1, 2):
            try:
                return signed(x) * factor
            finally:
                if x.detach().__array__().sum() > 0:
                    break
        return shrink(x)

    return f, calls(), []


def unconverted_helper() -> Snippet:
    @not_to_static
    def outside(x):
        return x * 2 if x.sum() > 0 else x

    def f(x):
        return signed(outside(x))

    return f, calls(), []


def unconverted_helper_with_effects() -> Snippet:
    log: list[Any] = []

    @not_to_static
    def outside(x):
        log.append(len(log))
        return x * 2 if x.sum() > 0 else x

    def f(x):
        log.append("f")
        return signed(outside(x))

    return f, calls(), log


def fills_buffers() -> Snippet:
    buffer, array = bytearray(), np.zeros(2)

    @not_to_static
    def note(n):
        buffer.extend(b"x")
        array[...] += n

    def f(x):
        note(2)
        return signed(x) * float(x.detach().__array__()[0])

    return f, calls(), [buffer, array]


def partials_and_callables() -> Snippet:
    class Scale:
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, x):
            return x * self.factor if x.sum() > 0 else x - self.factor

    scale = Scale(3)
    part = functools.partial(shrink, limit=2.0)

    def f(x):
        return scale(part(x)), list(map(signed, [x, -x])), x.detach().__array__().size

    return f, calls(), []


def objects_made_each_call() -> Snippet:
    class Step:
        def __init__(self, n):
            self.n = n

        def run(self, x):
            return x * self.n if x.sum() > 0 else x + self.n

    def f(x):
        total = x
        for n in range(12):
            total = Step(n % 3 + 1).run(total) * 0.5
        return total, x.detach().__array__().size

    return f, calls(), []


def counters_as_arguments() -> Snippet:
    def part(x, step):
        return x * step if x.sum() > 0 else x - step

    def f(x, start=0):
        for step in range(20):
            x = part(x, step + random.random() * 0) * 0.5
        return x

    return f, calls(), []


def fails_for_some_calls() -> Snippet:
    def part(x, how):
        if how == "numpy":
            return signed(x) * float(x.detach().__array__()[0])
        if how == "time":
            return signed(x) * (time.time() > 0)
        return signed(x) if x.sum() > 0 else x

    def f(x):
        return [part(x, how) for how in ("plain", "numpy", "time", "plain")]

    return f, calls(), []


def changed_shapes() -> Snippet:
    def f(x):
        y = x.detach().clone()
        y.resize_(2, 2)
        return signed(x.reshape(2, 2)) + y

    return f, calls(), []


def sparse_in_branch() -> Snippet:
    def f(x):
        if x.sum() > 0:
            y = x.detach().to_sparse()
        else:
            y = (x.detach() * 2).to_sparse()
        return signed(x) + y.to_dense()

    return f, calls(), []


SNIPPETS = {
    name: made for name, made in list(globals().items())
    if callable(made) and getattr(made, "__annotations__", {}).get("return") == "Snippet"
}  # fmt: skip
