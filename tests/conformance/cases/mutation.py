"""Writes: in place, through views and aliases, to attributes and containers."""

from __future__ import annotations

import torch
from torch import nn

from tests.conformance.family import BOTH, EACH, MIX, NEG, POS, Family, normal, num, vec

family = Family("Mutation")
case = family.case
PLAIN = ((vec(0.5, 1.0, 1.5, grad=False),), (vec(-0.5, -1.0, -1.5, grad=False),))
COUNTS = tuple((vec(1.0, 2.0, 3.0, grad=False), num(n)) for n in (0, 1, 3))


@case("in-place method", *BOTH)
def in_place(x):
    y = x.clone()
    if x.sum() > 0:
        y.mul_(2).add_(1)
    else:
        y.zero_()
    return y


@case("argument changed in place", *PLAIN)
def argument(x):
    if x.sum() > 0:
        x.add_(1)
    return x.sum()


@case("argument changed in place", *COUNTS)
def argument_in_loop(x, n):
    for i in range(n):
        x += i
        x[0] = i
    return x


@case("assignment to an index", *BOTH)
def index(x):
    y = x * 1
    if x.sum() > 0:
        y[0] = 5
        y[1:] = x[:2]
    else:
        y[...] = 7.0
    return y


@case("assignment under a mask", *EACH)
def mask(x):
    y = x.clone()
    y[y > 0.75] = 0
    if x.sum() > 0:
        y[y == 0] = -1.0
    return y


@case("assignment to a staged index", *[(normal(3, 2), num(n)) for n in (0, 2, -1)])
def staged_index(x, n):
    y = torch.zeros(3, 2)
    y[n] = x[0]
    y[int(n), 1] = 9
    return y


@case("rows filled in a loop", *[(normal(4, 2), num(n)) for n in (0, 1, 4)])
def rows(x, n):
    out = torch.zeros(4, 2)
    for t in range(n):
        out[t] = x[t] * 2
    return out


@case("rows filled in a loop", (normal(4, 2),), (-normal(4, 2).detach().abs(),), search=1)
def rows_while(x):
    out = torch.zeros_like(x)
    t = 0
    h = x[0] * 0
    while t < 4:
        h = h * 0.5 + x[t]
        if h.sum() > 1:
            h = h * 0.1
        out[t] = h
        t += 1
    return out


@case("augmented assignment to tensors", *BOTH)
def augmented(x):
    y = x.clone()
    z = y
    if x.sum() > 0:
        y += 1
    else:
        y = y + 1
    return y, z


@case("augmented assignment to tensors", *BOTH)
def augmented_item(x):
    y = x.clone()
    if x.sum() > 0:
        y[0] += 10
        y[1:] *= 2
    y /= 2
    return y


@case("through a view", *BOTH)
def view(x):
    y = x.clone()
    v = y.view(3, 1)
    if x.sum() > 0:
        v.add_(1)
    return y, v


@case("through a view", (normal(2, 3),), (-normal(2, 3).detach().abs(),), search=1)
def view_of_view(x):
    y = x * 1
    row = y[1]
    part = row[1:]
    if x.sum() > 0:
        part.fill_(3)
    row.mul_(2)
    return y, row, part


@case("through a transposed view", (normal(2, 3),), (-normal(2, 3).detach().abs(),), search=1)
def transposed(x):
    y = x * 1
    t = y.t()
    if x.sum() > 0:
        t[0] = 1
    return y, t


@case("through an alias", *BOTH)
def alias(x):
    y = x.clone()
    z = y
    if x.sum() > 0:
        z.mul_(3)
    return y + z


@case("through an alias made in a branch", *BOTH)
def alias_in_branch(x):
    y = x.clone()
    z = x * 2
    if x.sum() > 0:
        z = y
    z.add_(1)
    return y, z


@case("view made in a branch is written there", *BOTH)
def view_in_branch(x):
    y = x.clone()
    if x.sum() > 0:
        v = y[:2]
        v.zero_()
    return y


@case("detach and data share memory", *BOTH)
def detached(x):
    y = x.clone()
    d = y.detach()
    if x.sum() > 0:
        d = d * 2
    return y, d


@case("out= and copy_", *BOTH)
def out_argument(x):
    out = torch.empty(3)
    torch.add(x.detach(), 1, out=out)
    if x.sum() > 0:
        out.copy_(x.detach() * 5)
    return out


@case("scatter, index_add, masked_fill", *EACH)
def scatters(x):
    y = torch.zeros(4).index_add_(0, torch.tensor([0, 1, 1]), x)
    if y.sum() > 0:
        y = y.masked_fill_(y > 1, 0.5)
    return y


@case("write in a loop under a condition", (MIX,), (POS,), (NEG,))
def write_in_loop(x):
    y = x.clone()
    for i in range(3):
        if y[i] > 0.75:
            y[i] = 0.75
    return y


@case("buffers: a counter", *BOTH, (POS,))
class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.register_buffer("high", torch.zeros(3))

    def forward(self, x):
        self.seen += 1
        if x.sum() > 0:
            self.high = torch.maximum(self.high, x.detach())
        return x / self.seen


@case("buffers: running statistics", (normal(4, 3),), (normal(4, 3, seed=1),), (normal(4, 3, seed=2),))
class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x):
        if x.sum() > 0:
            x = self.bn(x)
        return self.bn(x * 2)


@case("buffers: in a loop", *[(normal(4, 3), num(n)) for n in (0, 1, 3)])
class NormedLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(3)

    def forward(self, x, n):
        for i in range(n):
            x = self.bn(x) + i
        return x


@case("buffers: moving average under no_grad", *EACH)
class MovingAverage(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3))
        self.register_buffer("ready", torch.tensor(False))

    def forward(self, x):
        with torch.no_grad():
            if self.ready:
                self.mean.mul_(0.9).add_(x * 0.1)
            else:
                self.mean.copy_(x)
                self.ready.fill_(True)
        return x - self.mean


@case("attribute of a module", *BOTH, (POS,), idle=3)
class Remembers(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.last = None
        self.mode = "idle"

    def forward(self, x):
        self.calls += 1
        self.mode = "up" if x.sum() > 0 else "down"
        self.last = float(x.detach().sum())
        return x * self.calls


@case("attribute of a module: hidden state", *EACH, search=1)
class Stateful(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.RNNCell(3, 2)
        self.h = torch.zeros(1, 2)

    def forward(self, x):
        h = self.cell(x.unsqueeze(0), self.h)
        if h.sum() > 0:
            h = h * 0.5
        self.h = h.detach()
        return h


@case("attribute that only one path sets", *BOTH, search=1, idle=3)
class SetsLate(nn.Module):
    def __init__(self):
        super().__init__()
        self.best = None

    def forward(self, x):
        if x.sum() > 0:
            self.best = 1
        if self.best is None:
            return x
        return x * 2


@case("dict and list held in attributes", *BOTH, (POS,), idle=3)
class Log(nn.Module):
    def __init__(self):
        super().__init__()
        self.log = []
        self.counts = {"up": 0, "down": 0}

    def forward(self, x):
        key = "up" if x.sum() > 0 else "down"
        if x.sum() > 0:
            self.counts["up"] += 1
        else:
            self.counts["down"] += 1
        self.log.append(len(self.log))
        return x * self.counts["up"]


class Tracker:
    def __init__(self):
        self.n = 0
        self.items = []
        self.best = {}


@case("attributes of plain objects", *BOTH)
def plain_object(x):
    tracker = Tracker()
    if x.sum() > 0:
        tracker.n += 1
        tracker.items.append(x)
        tracker.best["x"] = x * 2
    else:
        tracker.n -= 1
        tracker.best["x"] = x
    return tracker.n, tracker.items, tracker.best


@case("attributes of plain objects in loops", *COUNTS)
def plain_object_loop(x, n):
    tracker = Tracker()
    for i in range(n):
        tracker.n += i
        tracker.items.append(x * i)
    return tracker.n, tracker.items


@case("objects held by two names", *BOTH)
def shared_object(x):
    a = Tracker()
    b = a
    if x.sum() > 0:
        a.n = 5
    return b.n, a is b


@case("a list whose items differ in kind between paths", *BOTH)
def shared_list(x):
    a = []
    b = a
    if x.sum() > 0:
        a.append(1)
    else:
        a.append(x)
        a.append(2)
    return a, b, len(b)


@case("list held by two names", *BOTH)
def shared_list_of_one_kind(x):
    a = []
    b = a
    if x.sum() > 0:
        a.append(x)
    else:
        a.append(-x)
    return a, b, len(b), a is b


@case("a branch chooses one of two lists", *BOTH)
def chosen_list(x):
    a, b = [1], [2]
    if x.sum() > 0:
        c = a
    else:
        c = b
    c.append(3)
    return a, b, c


@case("one list by two names made in a branch", *BOTH)
def made_shared(x):
    if x.sum() > 0:
        a = [1]
        b = a
    else:
        a, b = [1], [1]
    a.append(3)
    return a, b


@case("list argument", ([1, 2], POS), ([1, 2], NEG))
def list_argument(items, x):
    if x.sum() > 0:
        items.append(3)
    items[0] = 9
    return x * len(items)


@case("dict argument that gets a key on one path", ({"n": 1}, POS), ({"n": 1}, NEG))
def dict_argument(state, x):
    if x.sum() > 0:
        state["n"] += 1
        state["x"] = x
    return x * state["n"]


@case("dict argument", ({"n": 1, "x": 0}, POS), ({"n": 1, "x": 0}, NEG))
def dict_argument_same_keys(state, x):
    if x.sum() > 0:
        state["n"] += 1
    state["x"] = x
    return x * state["n"]


@case("dict methods that change the keys on one path", *BOTH)
def dict_methods(x):
    d = {"a": 1, "b": 2}
    if x.sum() > 0:
        d.update(c=3)
        d.pop("a")
    else:
        d.setdefault("z", 5)
        del d["b"]
    return d, list(d.items()), d.get("q", 0)


@case("list methods", *BOTH)
def list_methods(x):
    items = [3, 1, 2]
    if x.sum() > 0:
        items.sort()
        items.insert(0, 7)
    else:
        items.reverse()
        items.remove(1)
    return items, len(items)


@case("slice assignment to a list", *BOTH)
def list_slices(x):
    items = [1, 2, 3, 4]
    if x.sum() > 0:
        items[1:3] = [9]
    else:
        del items[0]
    return items


@case("nested containers", *BOTH)
def nested(x):
    d = {"rows": [[1], [2]], "x": (x, [x])}
    if x.sum() > 0:
        d["rows"][0].append(5)
        d["x"][1][0] = x * 2
    return d


TOTAL = 0


@case("global counter", *BOTH, idle=2)
def global_counter(x):
    global TOTAL
    TOTAL = 0
    if x.sum() > 0:
        TOTAL += 3
    return x * TOTAL, TOTAL


@case("nonlocal", *BOTH)
def nonlocal_name(x):
    n = 0

    def bump(k):
        nonlocal n
        n += k
        return n

    if x.sum() > 0:
        bump(2)
    bump(1)
    return x * n, n


@case("setattr and getattr", *BOTH)
def by_name(x):
    tracker = Tracker()
    if x.sum() > 0:
        setattr(tracker, "n", 4)
    return getattr(tracker, "n"), hasattr(tracker, "m"), getattr(tracker, "m", 8), vars(tracker)["n"]


@case("properties with setters", *BOTH)
def property_setter(x):
    class Celsius:
        def __init__(self):
            self._v = 0

        @property
        def value(self):
            return self._v

        @value.setter
        def value(self, v):
            self._v = v * 2

    c = Celsius()
    if x.sum() > 0:
        c.value = 3
    return c.value


@case("special methods", *BOTH)
def special_methods(x):
    class Vec:
        def __init__(self, v):
            self.v = v

        def __add__(self, other):
            return Vec(self.v + other.v)

        def __getitem__(self, i):
            return self.v[i]

        def __setitem__(self, i, value):
            self.v[i] = value

        def __len__(self):
            return 3

    a = Vec(x.clone()) + Vec(x)
    if x.sum() > 0:
        a[0] = 4.0
    return a[0], a.v, len(a)


class Ordered:
    def __init__(self, log):
        self.log = log

    def __lt__(self, other):
        self.log.append("compared")
        return True


@case("a special method with effects in a branch", *BOTH)
def special_method_effect(x):
    log = []
    if x.sum() > 0:
        Ordered(log) < Ordered(log)
    return x, log


@case("a generator with effects in a branch", *BOTH)
def generator_effect(x):
    log = []

    def numbers():
        log.append(1)
        yield 2

    if x.sum() > 0:
        for k in numbers():
            x = x * k
    return x, log


@case("heapq in a branch", *BOTH)
def heap_effect(x):
    import heapq

    heap = [3, 5]
    if x.sum() > 0:
        heapq.heappush(heap, 1)
    return x, heap


@case("fresh tensors get a history by what is written into them", *BOTH)
def fresh_history(x):
    a, b = torch.zeros_like(x), torch.empty_like(x)
    a[0], b[:] = x[0], x
    d = a.detach()
    if x.sum() > 0:
        b[1:] = b[1:] * 2
    return a, b, d * 1, x.new_zeros(3) + a[0], a.requires_grad, d.requires_grad


@case("iterator consumed in a branch", *BOTH, refused="D2S266")
def iterator_consumed(x):
    it = iter([1, 2, 3])
    if x.sum() > 0:
        next(it)
    return x * next(it)


@case("random numbers of Python in a branch", *BOTH)
def host_random(x):
    import random

    if x.sum() > 0:
        return x * random.random()
    return x


@case("clock and environment", *BOTH)
def clock(x):
    import time

    start = time.perf_counter()
    y = x * 2
    return y, time.perf_counter() - start >= 0


@case("file written", *BOTH, refused="D2S214")
def file_written(x):
    if x.sum() > 0:
        with open("/dev/null", "w") as f:
            f.write("x")
    return x
