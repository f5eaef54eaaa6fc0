"""Whole programs: filters, parsers, solvers and buffers as one writes them, of classes, heaps, exceptions and loops."""

from __future__ import annotations

import functools
import heapq
import itertools
from collections import Counter, deque
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Any, NamedTuple

import torch
from torch import nn

from tests.conformance.family import Call, Family, ints, normal, vec
from tests.oracle import check, check_module

family = Family("Whole programs")


def program(title: str, *calls: Call, tolerance: float = 0.0) -> Callable[[Any], Any]:
    """Decorates a function or module class; it is held against eager. Not every Block of so many is to run."""

    def note(target: Any) -> Any:
        def compared() -> None:
            held = check_module if isinstance(target, type) else check
            held(target, *calls, tolerance=tolerance)

        compared.__name__ = target.__name__
        family.scenario(title)(compared)
        return target

    return note


def _outliers(*shape):
    return normal(*shape, seed=3).detach() * 20


def _small(*shape):
    return normal(*shape, seed=3).detach() * 0.1


@dataclass
class KalmanState:
    mean: torch.Tensor
    cov: torch.Tensor
    skipped: int = 0


def kalman_predict(state, A, Q):
    return KalmanState(A @ state.mean, A @ state.cov @ A.T + Q, state.skipped)


def kalman_update(state, H, Rn, z, gate):
    innovation = z - H @ state.mean
    S = H @ state.cov @ H.T + Rn
    d2 = innovation @ torch.linalg.solve(S, innovation)
    if d2 > gate:
        return KalmanState(state.mean, state.cov, state.skipped + 1)
    K = state.cov @ H.T @ torch.linalg.inv(S)
    mean = state.mean + K @ innovation
    cov = (torch.eye(state.mean.shape[0]) - K @ H) @ state.cov
    return KalmanState(mean, cov, state.skipped)


@program(
    "a Kalman filter that leaves outliers out",
    (normal(6, 1), 5.0),
    (_outliers(6), 5.0),
    (normal(3, 1, seed=4), 0.5),
    tolerance=1e-4,
)
def kalman_filter(zs, gate):
    A = torch.tensor([[1.0, 1.0], [0.0, 1.0]])
    H = torch.tensor([[1.0, 0.0]])
    Q, Rn = 0.01 * torch.eye(2), 0.5 * torch.eye(1)
    state = KalmanState(torch.zeros(2), torch.eye(2))
    history, loglik = [], 0.0
    for z in zs:
        state = kalman_predict(state, A, Q)
        before = state.skipped
        state = kalman_update(state, H, Rn, z, gate)
        if state.skipped == before:
            loglik = loglik - 0.5 * (z - H @ state.mean).pow(2).sum()
            history.append(state.mean)
    if not history:
        return state, loglik, None
    return state, loglik, torch.stack(history)


class UnionFind:
    def __init__(self, n):
        self.parent = torch.arange(n)
        self.rank = torch.zeros(n, dtype=torch.long)
        self.count = n

    def find(self, i):
        root = i
        while self.parent[root] != root:
            root = self.parent[root].item()
        while self.parent[i] != root:
            self.parent[i], i = root, self.parent[i].item()
        return root

    def union(self, a, b):
        a, b = self.find(a), self.find(b)
        if a == b:
            return False
        if self.rank[a] < self.rank[b]:
            a, b = b, a
        self.parent[b] = a
        if self.rank[a] == self.rank[b]:
            self.rank[a] += 1
        self.count -= 1
        return True


@program(
    "a minimum spanning tree by union-find",
    (torch.tensor([[0, 1], [1, 2], [3, 4], [2, 0]]), normal(4).detach(), 5),
    (torch.tensor([[0, 1], [2, 3], [1, 3], [4, 0]]), normal(4, seed=3).detach(), 5),
    (torch.tensor([[0, 0]]), normal(1).detach(), 2),
)
def kruskal(edges, weights, n):
    uf = UnionFind(n)
    order = weights.argsort().tolist()
    total, chosen = weights.new_zeros(()), []
    for e in order:
        a, b = edges[e].tolist()
        if uf.union(a, b):
            total = total + weights[e]
            chosen.append((a, b))
    return total, chosen, uf.count, [uf.find(i) for i in range(n)]


class Action(Enum):
    SHIFT = 0
    LEFT = 1
    RIGHT = 2


@program(
    "a transition-based parser with stack and buffer", (ints(1, 2, 3),), (ints(4, 1),), (ints(7, 8, 9, 2),), (ints(5),)
)
class TransitionParser(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.score = nn.Linear(8, 3)
        self.merge = nn.Linear(8, 4)

    def legal(self, stack, buffer):
        actions = []
        if buffer:
            actions.append(Action.SHIFT)
        if len(stack) >= 2:
            actions += [Action.LEFT, Action.RIGHT]
        return actions

    def forward(self, tokens):
        buffer = deque((i, self.embed(t)) for i, t in enumerate(tokens))
        stack, arcs, loss = [], [], 0.0
        empty = torch.zeros(4)
        while buffer or len(stack) > 1:
            top = stack[-1][1] if stack else empty
            front = buffer[0][1] if buffer else empty
            logits = self.score(torch.cat([top, front])).log_softmax(0)
            legal = self.legal(stack, buffer)
            action = max(legal, key=lambda a: logits[a.value])
            loss = loss - logits[action.value]
            if action is Action.SHIFT:
                stack.append(buffer.popleft())
            else:
                (i, left), (j, right) = stack[-2:]
                del stack[-2:]
                head, dep = (j, i) if action is Action.LEFT else (i, j)
                arcs.append((head, dep, action.name))
                stack.append((head, torch.tanh(self.merge(torch.cat([left, right])))))
        return stack[0][1], arcs, loss


@program(
    "a mixture of experts that drops tokens over capacity", (normal(6, 4),), (normal(3, 4, seed=2),), (_small(8, 4),)
)
class MoE(nn.Module):
    def __init__(self, experts=3, d=4, capacity=2):
        super().__init__()
        self.gate = nn.Linear(d, experts)
        self.experts = nn.ModuleList(nn.Linear(d, d) for _ in range(experts))
        self.capacity = capacity

    def forward(self, x):
        probs = self.gate(x).softmax(-1)
        weight, choice = probs.max(-1)
        out = x.clone()
        load, dropped = {}, []
        for e, expert in enumerate(self.experts):
            idx = (choice == e).nonzero(as_tuple=True)[0]
            load[e] = len(idx)
            if len(idx) > self.capacity:
                order = weight[idx].argsort(descending=True)
                dropped.extend(idx[order[self.capacity :]].tolist())
                idx = idx[order[: self.capacity]]
            if len(idx) == 0:
                continue
            out[idx] = weight[idx, None] * expert(x[idx])
        aux = sum((probs[:, e].mean() * n / len(x)) for e, n in load.items()) * len(self.experts)
        return out, aux, load, sorted(dropped)


class Transition(NamedTuple):
    state: torch.Tensor
    reward: float
    done: bool


class Replay:
    def __init__(self, capacity):
        self.capacity = capacity
        self.heap = []
        self.counter = itertools.count()

    def push(self, priority, item):
        entry = (priority, next(self.counter), item)
        if len(self.heap) < self.capacity:
            heapq.heappush(self.heap, entry)
        elif priority > self.heap[0][0]:
            heapq.heapreplace(self.heap, entry)

    def best(self, n):
        return heapq.nlargest(n, self.heap)

    def __len__(self):
        return len(self.heap)


@program(
    "a replay buffer that keeps the largest errors in a heap",
    (normal(6, 2).detach(), normal(6).detach()),
    (normal(6, 2, seed=3).detach(), normal(6, seed=4).detach()),
    (normal(2, 2).detach(), normal(2).detach()),
)
def replay_buffer(states, rewards):
    memory = Replay(3)
    for s, r in zip(states, rewards):
        error = (r - s.sum()).abs().item()
        if error < 0.2:
            continue
        memory.push(error, Transition(s, r.item(), bool(r < 0)))
    if not memory:
        return None
    batch = [t for _, _, t in memory.best(2)]
    return torch.stack([t.state for t in batch]), [t.reward for t in batch], [t.done for t in batch], len(memory)


class NoBracket(ValueError):
    def __init__(self, lo, hi):
        super().__init__(f"no sign change between {lo} and {hi}")
        self.interval = (lo, hi)


def solve(f, lo, hi, tol=1e-5):
    flo, fhi = f(lo), f(hi)
    if flo * fhi > 0:
        raise NoBracket(lo, hi)
    x = 0.5 * (lo + hi)
    for it in range(30):
        leaf = torch.tensor(x, requires_grad=True)
        y = f(leaf)
        (slope,) = torch.autograd.grad(y, leaf)
        if abs(y.item()) < tol:
            return x, it
        if (y * flo) > 0:
            lo = x
        else:
            hi = x
        nxt = x - (y / slope).item()
        x = nxt if lo < nxt < hi else 0.5 * (lo + hi)
    return x, it


@program(
    "a bracketed Newton solver, with exceptions where there is no bracket",
    (vec(1.0, -2.0, 0.5, grad=False),),
    (vec(-1.0, 0.0, 3.0, grad=False),),
    (vec(0.2, 0.0, -1.0, grad=False),),
    tolerance=1e-4,
)
def root_finder(coeffs):

    def f(x):
        return coeffs[0] * x**3 + coeffs[1] * x + coeffs[2]

    attempts = []
    for width in (0.5, 1.0, 2.0):
        try:
            root, it = solve(f, -width, width)
        except NoBracket as e:
            attempts.append(e.interval)
            continue
        return root, it, attempts
    return None, 0, attempts


@program(
    "an edit distance with its alignment",
    (ints(0, 1, 2, 0), ints(1, 2, 2)),
    (ints(2, 1), ints(2, 1)),
    (ints(3), ints(0, 1, 2)),
)
def edit_alignment(a, b):
    a, b = a.tolist(), b.tolist()
    d = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i in range(len(a) + 1):
        d[i][0] = i
    for j in range(len(b) + 1):
        d[0][j] = j
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            if a[i - 1] == b[j - 1]:
                d[i][j] = d[i - 1][j - 1]
            else:
                d[i][j] = 1 + min(d[i - 1][j], d[i][j - 1], d[i - 1][j - 1])
    ops, i, j = [], len(a), len(b)
    while i or j:
        if i and j and a[i - 1] == b[j - 1]:
            ops.append("=")
            i, j = i - 1, j - 1
        elif i and j and d[i][j] == d[i - 1][j - 1] + 1:
            ops.append("s")
            i, j = i - 1, j - 1
        elif i and d[i][j] == d[i - 1][j] + 1:
            ops.append("d")
            i -= 1
        else:
            ops.append("i")
            j -= 1
    return d[-1][-1], "".join(reversed(ops)), Counter(ops)


class Op(IntEnum):
    PUSH = 0
    ADD = 1
    MUL = 2
    DUP = 3
    JZ = 4


class StackUnderflow(RuntimeError):
    pass


@program(
    "a stack machine whose commands are members of an enum",
    (torch.tensor([[0, 3], [0, 4], [1, 0], [3, 0], [2, 0]]),),
    (torch.tensor([[0, 1], [1, 0]]),),
    (torch.tensor([[0, 0], [4, 2], [0, 9], [0, 5]]),),
    (torch.tensor([[0, 2], [4, 2], [3, 0], [2, 0]]),),
)
def stack_machine(program):
    stack, pc, steps = [], 0, 0

    def pop():
        if not stack:
            raise StackUnderflow(f"at {pc}")
        return stack.pop()

    try:
        while pc < len(program) and steps < 20:
            op, arg = program[pc].tolist()
            pc += 1
            steps += 1
            match Op(op):
                case Op.PUSH:
                    stack.append(arg)
                case Op.ADD | Op.MUL as kind:
                    b, a = pop(), pop()
                    stack.append(a + b if kind is Op.ADD else a * b)
                case Op.DUP:
                    stack.append(stack[-1])
                case Op.JZ:
                    if pop() == 0:
                        pc = arg + 1
    except StackUnderflow as e:
        return None, str(e), steps
    return stack, "ok", steps


class Tracker:
    def __init__(self):
        self.stack, self.records = [], []

    @contextmanager
    def span(self, name):
        self.stack.append(name)
        try:
            yield "/".join(self.stack)
        finally:
            self.stack.pop()

    def record(self, value):
        self.records.append(("/".join(self.stack), value))


def counted(fn):
    @functools.wraps(fn)
    def wrapper(tracker, x, *args, **kw):
        with tracker.span(fn.__name__) as path:
            out = fn(tracker, x, *args, **kw)
            tracker.record((path.count("/"), out.sum()))
            return out

    return wrapper


@counted
def shrink(tracker, x, limit=1.0):
    while x.norm() > limit:
        with tracker.span("halve"):
            x = x / 2
            tracker.record(x.norm())
    return x


@counted
def normalise(tracker, x):
    if x.sum() < 0:
        x = -x
    return shrink(tracker, x, limit=0.7)


@program(
    "spans and records kept by a manager around decorated functions",
    (normal(3),),
    (_outliers(3).detach(),),
    (_small(2),),
)
def tracked(x):
    tracker = Tracker()
    y = normalise(tracker, x)
    return y, tracker.records, tracker.stack
