"""Functions and modules to export, each with what it takes and calls that go every way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from dy2static import InputSpec


@dataclass(frozen=True)
class Sample:
    name: str
    target: Any
    specs: Sequence[InputSpec]
    calls: Callable[[], Sequence[Sequence[torch.Tensor]]]
    tolerance: float = 1e-5
    options: dict[str, Any] = field(default_factory=dict)


SAMPLES: list[Sample] = []


def sample(*specs: InputSpec, calls: Any, tolerance: float = 1e-5) -> Any:
    def note(target: Any) -> Any:
        made = calls if callable(calls) else lambda: calls
        SAMPLES.append(Sample(target.__name__, target, specs, made, tolerance))
        return target

    return note


def f32(*shape: int | None) -> InputSpec:
    return InputSpec(shape, "float32")


def i64(*shape: int | None) -> InputSpec:
    return InputSpec(shape, "int64")


def rand(*shape: int, seed: int = 0, scale: float = 1.0) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + sum(shape))) * scale


def t(*values: Any, dtype: Any = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype)


# -- control flow


@sample(f32(None), calls=[(rand(5),), (-rand(5).abs(),), (rand(0),), (rand(1),)])
def branch(x):
    if x.sum() > 0:
        return x * 2
    return x - 1, x.sum().item()


@sample(f32(None, 3), calls=[(rand(4, 3, scale=9),), (rand(1, 3),), (t([1e30, 1, 1]),)])
def decay(x):
    steps, seen = 0, []
    while x.abs().max() > 1.0:
        x = x / 2
        steps += 1
        seen.append(x)
        if steps > 40:
            raise ValueError(f"no convergence after {steps} steps, at {x.abs().max().item() > 2.0}")
    return x, steps, seen


@sample(f32(None), calls=[(t(1, 2, 3),), (t(1, -2, 3),), (t(float("nan")),)])
def break_and_else(x):
    found = 0.0
    for value in x:
        if value < 0:
            break
        found = found + value
    else:
        return found + 100
    return found * 2


@sample(f32(4), calls=[(rand(4, seed=s, scale=3),) for s in range(6)])
def nested(x):
    total = x.sum()
    count = 0
    for i in range(3):
        while total > i:
            total = total - 1.5
            count += 1
            if count == 4:
                continue
            if count > 6:
                return total, -count
    return total, count


@sample(f32(None), calls=[(t(3.7),), (t(-3.7, 1),), (t(0.0, 5, 2),), (t(2.5, 2),)])
def early(x):
    n = int(x[0].item())
    if n > 2:
        return n // 2, n % 3, -n // 4
    if n < 0:
        return n // 2, n % 3, n ** 2
    assert x.sum() < 6, "too much"
    return n, float(n) / 3, not n


@sample(i64(None), calls=[(t(7, -3, dtype=torch.int64),), (t(-7, 3, dtype=torch.int64),), (t(7, 0, dtype=torch.int64),),
                          (t(2**62, 1, dtype=torch.int64),), (t(-9, -1, dtype=torch.int64),)])  # fmt: skip
def whole_numbers(x):
    a, b = x[0].item(), x[1].item()
    if a == 2**62:
        return a * b
    return a // b, a % b, a - b, a * b, -a, abs(b), a > b, a == b, a & b, a | b, ~a, min(a, b), max(a, b)


@sample(InputSpec([2], "float64"), calls=[(t(7.5, 2, dtype=torch.float64),), (t(-7.5, 2, dtype=torch.float64),),
        (t(1, 0, dtype=torch.float64),), (t(float("inf"), 2, dtype=torch.float64),),
        (t(2, 0.5, dtype=torch.float64),), (t(-8, 0.5, dtype=torch.float64),), (t(0.1, -3,
        dtype=torch.float64),)])  # fmt: skip
def floats(x):
    import math

    a, b = x[0].item(), x[1].item()
    if a < -1:
        return a // b, a % b, round(0.5), math.floor(a), math.ceil(a), int(a)
    return a / b, a ** b, math.sqrt(a), math.exp(-b), a > b, a // b, a % b


@sample(f32(3), calls=[(t(1, 2, 3),), (t(-1, 2, 3),), (t(1, -2, 0.1),), (t(1, 2, 0),)])
def raises(x):
    if x[0] < 0:
        raise KeyError("first")
    if x[1] < 0:
        raise RuntimeError("second", 3, x[1].item(), True)
    if x[2] == 0:
        raise ValueError
    assert x[2] > 1, f"the third is {x[2].item()}"
    return x.exp()


@sample(i64(1), calls=[(t(k, dtype=torch.int64),) for k in (0, 2, -1, 5)])
def index_of_list(k):
    parts = [torch.ones(2), torch.zeros(3), torch.full((1,), 4.0)]
    n = k.item()
    if n == 0:
        return parts[0].sum()
    total = torch.zeros(())
    for i in range(n):
        total = total + parts[i % 3].sum() * i
    return total


@sample(f32(None, 2), calls=[(rand(5, 2),), (rand(1, 2),)])
def lists(x):
    rows, marks, sizes = [], [], []
    for i in range(x.shape[0]):
        if x[i, 0] > 0:
            rows.append(x[i] * 2)
            marks.append(i)
        sizes.append(float(i) / 2)
    count = len(rows)
    return rows, marks, count, sizes


@sample(f32(None, 3), f32(3), calls=[(rand(6, 3), rand(3)), (rand(1, 3), rand(3))])
def scanned(x, h):
    outs = []
    for i in range(x.shape[0]):
        h = torch.tanh(x[i] + h * 0.5)
        outs.append(h)
    return torch.stack(outs), h


@sample(f32(None), calls=[(rand(8, scale=4),), (rand(3),), (-rand(4).abs(),)])
def popped(x):
    stack = [x]
    depth = 0
    while len(stack) > 0:
        top = stack.pop()
        depth += 1
        if top.sum() > 1 and depth < 20:
            stack.append(top - 1)
            stack.append(top / 3)
    return depth


@sample(f32(4, 4), calls=[(rand(4, 4),), (torch.eye(4),), (rand(4, 4, seed=9),)])
def power_iteration(a):
    v = torch.ones(4)
    before, n = torch.zeros(4), 0
    while (v - before).abs().max() > 1e-4 and n < 60:
        before = v
        v = a @ v
        v = v / (v.norm() + 1e-9)
        n += 1
    return v


@sample(f32(None), calls=[(rand(5),), (rand(2),)])
def written_in_place(x):
    y = x.clone()
    y += 1
    y[0] = 5.0
    for i in range(x.shape[0]):
        y[i] = y[i] * i
    z = torch.zeros(3, 2)
    z[1] = 7
    return y, z


@sample(f32(None, None), f32(None, None), calls=[(rand(2, 3), rand(3, 4)), (rand(5, 1), rand(1, 7)),
        (rand(0, 3), rand(3, 2)), (rand(2, 0), rand(0, 2)), (rand(2, 3), rand(2, 3))])  # fmt: skip
def sizes(a, b):
    c = a @ b
    n, m = c.shape
    return c, n * m, c.reshape(-1), n > m


@sample(f32(None, 4), calls=[(rand(3, 4),), (rand(1, 4),)])
def nothing_or_something(x):
    y = None
    n = None
    if x.sum() > 0:
        y = x * 2
        n = 3
    return y, n


# -- networks


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(8, 32), nn.GELU(), nn.LayerNorm(32), nn.Linear(32, 16), nn.SiLU(),
                                 nn.Dropout(0.5), nn.Linear(16, 3), nn.Softmax(-1))  # fmt: skip

    def forward(self, x):
        return self.net(x)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1 = nn.Conv2d(3, 8, 3, padding=1)
        self.b1 = nn.BatchNorm2d(8)
        self.c2 = nn.Conv2d(8, 8, 3, stride=2, groups=4, bias=False)
        self.c3 = nn.Conv2d(8, 6, 1)
        self.out = nn.Linear(6, 5)
        self.b1.running_mean.uniform_(-1, 1)
        self.b1.running_var.uniform_(0.5, 2)

    def forward(self, x):
        x = F.relu(self.b1(self.c1(x)))
        x = F.max_pool2d(x, 2)
        x = F.leaky_relu(self.c2(x), 0.1)
        x = F.avg_pool2d(self.c3(x), 2, ceil_mode=True)
        x = F.adaptive_avg_pool2d(x, 1).flatten(1)
        y = self.out(x)
        return y, y.argmax(-1), y.topk(2)


class Conv1(nn.Module):
    def __init__(self):
        super().__init__()
        self.c = nn.Conv1d(2, 4, 3, dilation=2, padding="same")
        self.d = nn.ConvTranspose1d(4, 2, 4, stride=2, padding=1)
        self.g = nn.GroupNorm(2, 4)

    def forward(self, x):
        x = self.g(torch.tanh(self.c(x)))
        return self.d(x), F.max_pool1d(x, 3, stride=1), F.adaptive_avg_pool1d(x, 2)


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 6)
        self.ih = nn.Linear(6, 16)
        self.hh = nn.Linear(4, 16, bias=False)

    def forward(self, tokens):
        x = self.embed(tokens)
        h = torch.zeros(tokens.shape[0], 4)
        c = torch.zeros(tokens.shape[0], 4)
        outs = []
        for s in range(tokens.shape[1]):
            i, f, g, o = (self.ih(x[:, s]) + self.hh(h)).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            outs.append(h)
        return torch.stack(outs, 1), (h, c)


class Greedy(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 8)
        self.cell = nn.Linear(16, 8)
        self.head = nn.Linear(8, 11)

    def forward(self, start):
        h = torch.zeros(start.shape[0], 8)
        token, tokens = start, []
        done = torch.zeros(start.shape[0], dtype=torch.bool)
        while len(tokens) < 9:
            h = torch.tanh(self.cell(torch.cat([self.embed(token), h], 1)))
            token = self.head(h).argmax(-1)
            tokens.append(token)
            done = done | (token == 3)
            if done.all():
                break
        return torch.stack(tokens, 1), len(tokens)


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(16, 48)
        self.proj = nn.Linear(16, 16)
        self.n1, self.n2 = nn.LayerNorm(16), nn.LayerNorm(16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(approximate="tanh"), nn.Linear(32, 16))

    def forward(self, x):
        b, n, d = x.shape
        q, k, v = self.qkv(self.n1(x)).reshape(b, n, 3, 4, 4).permute(2, 0, 3, 1, 4).unbind(0)
        mask = torch.ones(n, n, dtype=torch.bool).tril()
        w = (q @ k.transpose(-2, -1) / 2.0).masked_fill(~mask, float("-inf")).softmax(-1)
        y = (w @ v).transpose(1, 2).reshape(b, n, d)
        x = x + self.proj(y)
        z = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        return x + self.mlp(self.n2(x)), z


def modules(kind: type[nn.Module], *specs: InputSpec, calls: Any, tolerance: float = 1e-5) -> None:
    torch.manual_seed(0)
    layer = kind().eval()
    SAMPLES.append(Sample(kind.__name__.lower(), layer, specs, lambda: calls, tolerance))


modules(Mlp, f32(None, 8), calls=[(rand(5, 8),), (rand(1, 8),), (rand(0, 8),)])
modules(Cnn, f32(None, 3, None, None), calls=[(rand(2, 3, 13, 11),), (rand(1, 3, 20, 20),), (rand(1, 3, 2, 2),)])
modules(Conv1, f32(None, 2, 9), calls=[(rand(2, 2, 9),), (rand(1, 2, 9),)])
modules(Lstm, i64(None, None), calls=[(torch.arange(6).reshape(2, 3),), (torch.arange(5).reshape(1, 5) * 3,),
                                      (torch.tensor([[25]]),), (torch.tensor([[-1]]),)])  # fmt: skip
modules(Greedy, i64(None), calls=[(torch.tensor([1, 2, 3]),), (torch.tensor([0]),)])
modules(Attention, f32(None, None, 16), calls=[(rand(2, 5, 16),), (rand(1, 1, 16),)], tolerance=2e-5)


# -- operators


@sample(f32(None, 4), i64(None), calls=[(rand(5, 4), torch.tensor([0, 4, 2])), (rand(2, 4), torch.tensor([1])),
                                        (rand(2, 4), torch.tensor([2])), (rand(3, 4), torch.tensor([-1]))])  # fmt: skip
def picked(x, i):
    if i[0] < 0:
        return x[i], x[:, [1, 3]]
    return x.index_select(0, i), x[i], x.gather(0, i.view(-1, 1).expand(-1, 4)), x[x > 0], x[:, 1:4:2]


@sample(f32(None, 5), calls=[(rand(3, 5),), (rand(1, 5),), (torch.full((2, 5), float("nan")),)])
def ordered(x):
    v, i = x.sort(dim=1, descending=True)
    return v, i, x.argsort(0), x.max(1), x.min(dim=0, keepdim=True), x.argmax(), x.cumsum(0), x.cumprod(1)


@sample(f32(None, 3), calls=[(rand(4, 3),), (rand(1, 3),)])
def shaped(x):
    y = torch.cat([x, x.flip(0)], 1)
    z = torch.stack([x, x * 2], -1)
    return (y, z, x.repeat(2, 3), x.t().contiguous(), x.t().reshape(-1), x[None].expand(2, -1, 3).sum(0), x.tril(),
            y.split([2, 4], 1), x.unsqueeze(1).squeeze(1), x.roll(1, 0), torch.arange(x.shape[0]).float(),
            torch.arange(1, 10, 3), torch.linspace(0, 1, 5), torch.eye(3))  # fmt: skip


@sample(f32(None, 4), f32(4), calls=[(rand(3, 4), rand(4)), (rand(2, 4), rand(4).abs() + 0.1)])
def arithmetic(x, y):
    return (x ** 2, x.abs() ** y, 2 ** x, x // y, x % y, torch.where(x > 0, x, y), x.clamp(-0.5, 0.5), x.round(),
            x.sign(), x.std(), x.var(0, unbiased=False), x.mean((0, 1)), x.norm(), x.prod(1), (x > 0).any(1),
            (x > 9).all(), x.amax(0), x.log1p(), torch.atan2(x, y), x.softmax(0), x.logsumexp(1), x.log_softmax(0),
            torch.maximum(x, y), x.floor(), x.double() / 3, x.int(), (x > 0).sum(1), torch.erf(x),
            x.to(torch.int64))  # fmt: skip


@sample(i64(None), InputSpec([None], "int32"), calls=[
    (torch.tensor([7, -7, 3]), torch.tensor([2, 2, -5], dtype=torch.int32)),
    (torch.tensor([2**62, -(2**63)]), torch.tensor([3, -1], dtype=torch.int32)),
    (torch.tensor([1]), torch.tensor([0], dtype=torch.int32))])  # fmt: skip
def whole_tensors(a, b):
    return a * b, a + b, -a, a * a, a // b, a % b, a.sum(), a & b, a ^ b, a.abs(), a ** 2, a == b, ~a, a.clamp(0, 5)


@sample(InputSpec([None, 3], "bool"), f32(None, 3), calls=[
    (rand(2, 3) > 0, rand(2, 3)), (torch.ones(1, 3, dtype=torch.bool), rand(1, 3))])  # fmt: skip
def masks(m, x):
    return m & (x > 0), ~m, m.any(), m.all(1), x.masked_fill(m, 0.0), x[m], m.sum(), m.float(), m.nonzero()


# -- every operator once more, at its edges


@sample(f32(2, 4, 9, 7), calls=[(rand(2, 4, 9, 7),), (torch.full((2, 4, 9, 7), float("nan")),)])
def pooling(x):
    return (F.max_pool2d(x, 3, 2, 1), F.max_pool2d(x, (2, 3), ceil_mode=True), F.max_pool2d(x, 2, dilation=2),
            F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, count_include_pad=False),
            F.avg_pool2d(x, 2, divisor_override=3), F.adaptive_avg_pool2d(x, (4, 5)), F.adaptive_max_pool2d(x, 3),
            F.max_pool2d(x, 2, return_indices=True), F.avg_pool1d(x[0], 2), F.max_pool3d(x, 2), F.avg_pool3d(x,
            2))  # fmt: skip


@sample(f32(2, 4, 9, 7), f32(6, 2, 3, 2), f32(4, 3, 2, 3), f32(6), calls=[
    (rand(2, 4, 9, 7), rand(6, 2, 3, 2), rand(4, 3, 2, 3), rand(6))], tolerance=3e-5)  # fmt: skip
def convolutions(x, w, u, b):
    return (F.conv2d(x, w, b, groups=2), F.conv2d(x, w, None, 2, 1, 2, 2), F.conv2d(x, w[:, :, :, :1], b,
            padding="same", groups=2),
            F.conv2d(x[0], w, groups=2), F.conv_transpose2d(x, u, b, 2, 1, 1, 2), F.conv_transpose2d(x, u, None),
            F.conv3d(x[:, None], w[:, :1, None]), F.conv3d(x[:, None], w[:, :1, None], stride=(1, 2, 2),
            padding=(1, 0, 1)),
            F.conv1d(x[:, :, 0], w[:, :, 0], groups=2), F.conv2d(x, w[:4, :1], groups=4))  # fmt: skip


@sample(f32(2, 4, 6), f32(4), f32(4), calls=[(rand(2, 4, 6), rand(4), rand(4).abs() + 0.1)], tolerance=2e-5)
def norms(x, w, v):
    return (F.batch_norm(x, w, v, w, v), F.batch_norm(x, w, v), F.group_norm(x, 2, w, v), F.instance_norm(x),
            F.layer_norm(x.transpose(1, 2), (4,), w, v), F.softmax(x, 1), F.log_softmax(x.transpose(0, 2), -1),
            F.softmax(x.transpose(0, 1), 0), F.normalize(x, dim=1), F.gelu(x.transpose(0, 1)), F.rms_norm(x, (6,)),
            F.silu(x), F.elu(x), F.softplus(x), F.hardtanh(x), F.relu6(x), F.mish(x), F.hardswish(x), F.logsigmoid(x),
            F.hardsigmoid(x), F.softsign(x), F.leaky_relu(x, 0.3), F.glu(x), F.celu(x), F.selu(x))  # fmt: skip


@sample(f32(2, 3, 4, 8), f32(2, 3, 5, 8), f32(4, 5), calls=[
    (rand(2, 3, 4, 8), rand(2, 3, 5, 8), rand(4, 5)),
    (rand(2, 3, 4, 8), rand(2, 3, 5, 8), torch.full((4, 5), float("-inf")))], tolerance=2e-5)  # fmt: skip
def attention(q, k, m):
    s = F.scaled_dot_product_attention
    return (s(q, k, k * 2), s(q, k, k, m), s(q, k, k, m > 0), s(q, k, k, is_causal=True), s(q, k, k, scale=0.3),
            q @ k.transpose(-1, -2), q[0, 0] @ k.transpose(-1, -2), torch.bmm(q[0], k[0].transpose(1, 2)),
            torch.baddbmm(m, q[0], k[0].transpose(1, 2), beta=0.5, alpha=2), torch.addmm(m, q[0, 0], k[0, 0].t(),
            alpha=3),
            q[0, 0] @ k[0, 0, 0], k[0, 0, 0] @ q[0, 0].t(), F.linear(q.transpose(0, 1), k[0, 0], m[0]))  # fmt: skip


@sample(f32(3, 5), i64(3, 2), calls=[(rand(3, 5), torch.tensor([[0, 4], [2, 2], [1, 0]])),
                                     (rand(3, 5), torch.tensor([[0, 5], [2, 2], [1, 0]]))])  # fmt: skip
def placed(x, i):
    return (x.scatter(1, i, 9.0), x.scatter(1, i, x), x.scatter_add(1, i, x), F.one_hot(i, 6), x[:, i[0]], x[i[:,
            0] - 3],
            x[i[:, 0] % 3, i[:, 1]], x[(x[:, 0] > 0)], x.masked_select(x > 0), x.narrow(1, 1, 3), x.movedim(0, 1) * 2,
            x.diagonal(), x[..., None, 1:4], x[-1], x[:, -2:], x.t()[1:3].reshape(-1), x.t().flatten(),
            x.unflatten(1, (5, 1)),
            torch.cat([x, x.t()[:3, :2], x.t()[2:, :2]], 1), torch.stack([x.t(), x.t() * 2], 1), x.chunk(2, 1),
            x.unbind(1),
            x.take_along_dim(i, 1), torch.tril(x, -1), x.triu(1), x.permute(1, 0).contiguous().view(-1))  # fmt: skip


@sample(InputSpec([None], "float64"), f32(None), calls=[
    (t(1.5, -1.5, 0.0, -0.0, float("inf"), float("nan"), 7, -7, dtype=torch.float64),
     t(2, 2, 3, -3, 2, 1, float("inf"), -2)),
    (t(1.0, dtype=torch.float64), t(0.0))])  # fmt: skip
def edges(a, b):
    return (a // b, a % b, torch.div(a, b, rounding_mode="trunc"), torch.fmod(a, b), a / b, a ** b, torch.maximum(a, b),
            torch.minimum(a, b), a.clamp(b, None), a.clamp(max=2), a.sign(), a.round(), a.trunc(), a.relu(),
            a == b, a != b,
            a < b, a.isnan(), a.isinf(), a.isfinite(), torch.logical_and(a, b), torch.logical_xor(a, b), a.max(),
            a.min(),
            a.argmax(), a.argmin(), a.sort()[0], a.sort(descending=True)[1], a.topk(1, largest=False), a.exp(),
            a.tanh(),
            a.sigmoid(), b.exp(), b.tanh(), b.erf(), b.sigmoid(), b.abs().log(), b.abs().sqrt(), a.square(), a.amax(),
            torch.hypot(a, b.double()), b.sin(), b.cos(), b.tan(), b.atan(), b.log2(), b.log10(), b.expm1(),
            b.frac())  # fmt: skip


@sample(f32(None), calls=[(rand(4),), (rand(2),)])
def made(x):
    n = x.shape[0]
    return (torch.arange(n, -n, -2), torch.arange(n, n), torch.arange(3, 3, -1), torch.arange(n, 2 * n + 1, 2),
            torch.arange(0.5, 3, 0.5), torch.arange(n + 0.0), torch.zeros(n, 2), torch.ones(n),
            torch.full((n, n), 3), torch.full_like(x, 2), torch.zeros_like(x, dtype=torch.int64), x.new_ones(2, n),
            torch.linspace(-1, 1, n), torch.eye(n, 3), torch.tensor(2.5) * x,
            (x > 0).sum(), (x > 0).float().mean(), x.prod(), x.norm(1), x.norm(float("inf")), x.std(),
            x.var(correction=0),
            torch.isclose(x, x + 1e-9), x.count_nonzero(), x.cumsum(0)[-1], x.view(-1, 1).expand(n, 3), x.expand(2,
            n) + 1,
            x.type_as(torch.tensor(1.0, dtype=torch.float64)), x.to(torch.int32), x.bool(),
            x.long() * 2 ** 40)  # fmt: skip


@sample(f32(None, None), f32(None, None), calls=[(rand(3, 4), rand(3, 4)), (rand(3, 4), rand(1, 4)), (rand(1, 1),
        rand(2, 5)),
        (rand(3, 1), rand(1, 4)), (rand(2, 3), rand(3, 3))])  # fmt: skip
def broadcasting(a, b):
    return a.t().contiguous().t() * 2, a.sum(0), b.mean(1, keepdim=True)


class Networks(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 4, 2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(8, 3)
        self.rnn = nn.RNN(3, 3, nonlinearity="relu", bias=False)
        self.cell, self.gate = nn.LSTMCell(5, 4), nn.GRUCell(4, 6)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        z, k = self.gru(y)
        r, q = self.rnn(z)
        a, b = self.cell(x[:, 0])
        return y, h, c, z, k, r, q, a, b, self.gate(a)


modules(Networks, f32(2, 6, 5), calls=[(rand(2, 6, 5),), (rand(2, 6, 5, seed=5),)], tolerance=2e-5)


A = torch.ops.aten


@sample(f32(2, 3), f32(2, 3), InputSpec([2, 3], "bool"), InputSpec([2, 3], "int64"), calls=[
    (rand(2, 3), rand(2, 3, seed=3), rand(2, 3) > 0, torch.tensor([[1, 2, 3], [-4, 5, 0]])),
    (rand(2, 3).sigmoid(), rand(2, 3, seed=4).abs() + 1, rand(2, 3) > 1, torch.tensor([[7, -2, 3], [1, 1,
    1]]))])  # fmt: skip
def by_name(x, y, m, i):
    return (
        A.acos(x), A.acosh(y), A.asin(x), A.asinh(x), A.atanh(x), A.cosh(x), A.sinh(x), A.erfc(x), A.exp2(x), A.ceil(x),
        A.reciprocal(y), A.rsqrt(y), A.copysign(x, y),
        A.copysign(x, -1.0), A.logical_not(x), A.logical_or(x, m), A.logical_and(m, i), A.logical_xor(i, m),
        A.__and__(i, 6), A.__or__(i, 6), A.__xor__(m, True), A.bitwise_and(i, 3), A.bitwise_or(i, i),
        A.bitwise_xor(m, m),
        A.ge(x, y), A.ge(i, 2), A.gt(x, y), A.le(x, 0.5), A.le(i, y), A.ne(i, 2), A.fmod(x, 0.3), A.fmod(i, -3),
        A.floor_divide(i, 2), A.floor_divide(x, y), A.div(i, 2, rounding_mode="trunc"), A.div(x, 2,
        rounding_mode="floor"),
        A.div(i, 4), A.rsub(x, y), A.rsub(i, 3), A.rsub(x, 3.0, alpha=2), A.addcmul(x, y, y, value=0.5),
        A.addcdiv(x, y, y + 3, value=2), A.clamp_min(x, y), A.clamp_max(x, y), A.clamp_max(x, 0.1), A.clamp_min(i, 1),
        A.where(m, 1.0, 2.0), A.where(m, x, 0.0), A.where(m, 5, i), A.masked_fill(x, m, y[0, 0]), A.add(x, y, alpha=3),
        A.sub(i, i, alpha=-2), A.add(i, m), A.mul(m, i), A.maximum(i, i - 1), A.minimum(i, i * 2),
    )  # fmt: skip


@sample(f32(2, 3, 4), f32(3), f32(4, 4), i64(2, 3), calls=[
    (rand(2, 3, 4), rand(3), rand(4, 4), torch.tensor([[1, 2, 3], [4, 5, 0]]))])  # fmt: skip
def by_name_again(x, v, w, i):
    return (
        A.all(x > -9, 1), (x > 0).all((0, 1)), (x > 0).any((0, 2)), A.any(x > 1, 0, True), A.amin(x, [0, 2]),
        A.amax(x, [1], True),
        A.std(x), A.std(x, [1]), A.std(x, True), A.var(x), A.var(x, [0, 2], False, True), A.norm(x, 1), A.norm(x,
        2, [1], True),
        A.count_nonzero(x > 0, [1]), A.dot(v, v), A.mv(w, w[0]), A.mm(w, w), x.mT, A.movedim(x, [0, 1], [2, 0]),
        A.reshape_as(x, x.transpose(0, 1)), A.view_as(i, i.reshape(2, 3)), x[:1].squeeze(), x[:, :1,
        :1].squeeze((1, 2)),
        A.split(x, 2, 2), A.split(x, [1, 3], 2), A.unsafe_split(w, 3), A.alias(x) + 0, x.detach(), A.arange(2, 9),
        A.full([2], 1.5), x.new_full((2,), 3), x.new_zeros(2, 2), A.ones_like(i), A.scalar_tensor(2.0) * v,
        A.native_layer_norm(x, [4], w[0], w[1], 1e-5), A._softmax(x, 1, False), A._log_softmax(x, -1, False),
        A.to(x, torch.float64), x.to(i), x.to("cpu") * 1, x.cpu(), torch.empty(2).fill_(3), A.rnn_tanh_cell(w, w,
        w, w, w[0], w[1]),
        A.rnn_relu_cell(w, w, w, w), F.dropout1d(x, 0.5, False), F.alpha_dropout(x, 0.5, False),
        F.adaptive_max_pool1d(x, 2),
        F.adaptive_avg_pool3d(x[None], (1, 2, 3)), F.adaptive_max_pool3d(x[None], 2), F.max_pool1d(x, 2,
        return_indices=True),
        F.max_pool3d(x[None], 2, return_indices=True), F.conv3d(x[None], w[None, None, None, :1, :3], padding="same"),
        F.conv_transpose3d(x[None], w[None, None, None, :2], stride=2), A.softmax(x.double(), 0), x.int().sum(),
        x.cumsum(0, dtype=torch.float64),
    )  # fmt: skip


@sample(f32(None, 3), i64(2, 3), calls=[(rand(4, 3), torch.ones(2, 3, dtype=torch.int64)), (rand(1, 3), torch.zeros(
    2, 3, dtype=torch.int64)), (rand(7, 3), torch.full((2, 3), -4))])  # fmt: skip
def laid_otherwise(x, i):
    t = x.t()
    return (
        F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=1.5), F.pad(i, (0, 0, 1, 1), value=7), F.pad(t, (2, 0)),
        x.repeat_interleave(2, 1), t.repeat_interleave(3, 0), x.T, x.mT, x.swapaxes(0, 1) + 1, x.swapdims(0, 1),
        x[::2], t[:, 1::3], torch.stack([t, t * 2], 1), torch.stack([x, x], -1), torch.cat([torch.empty(0), x]),
        x.split([1, 2], 1), torch.flatten(t), t.reshape(-1), t.reshape(1, 3, -1), i.type_as(x), i.to(x), x.type_as(x),
        torch.max(x, x * 2), torch.min(i, i + 1), F.layer_norm(t[:, :1], (1,)), t.softmax(0), F.dropout(x, 0.3, False),
        torch.addmm(x[0], x, t @ x, beta=2.0, alpha=0.5), torch.arange(x.shape[0]), torch.arange(2, 2 + x.shape[0], 3),
    )


@sample(f32(None, 3), i64(2), calls=[(rand(4, 3), torch.tensor([0, 3])), (rand(4, 3), torch.tensor([1, 4])),
                                     (rand(4, 3), torch.tensor([-1, -1]))])  # fmt: skip
def written_by_index(x, i):
    y = x.clone()
    y[i] = 7.0
    z = x.clone()
    z[x > 0] = 0.0
    z.clamp_(min=-0.5)
    w = x.clone()
    w[1:, 1].clamp_(-0.1, 0.1)
    w.t()[0].mul_(2).add_(1)
    v = torch.zeros(5, 2)
    v[:, 1] = torch.arange(5)
    v.masked_fill_(v > 3, -1.0)
    u = torch.zeros(4)
    u[i[0]] += 2
    return y, z, w, v, u, round(x.sum().item() * 10), round(2.5), x.index_put((i,), x[:2], accumulate=True)


@sample(i64(3), calls=[(torch.tensor([1, 2, 3]),)])
def with_itself(x):
    n = x[0].item()
    m = n
    return x == x, x < x, n == m, n < m, x.float() >= x.float(), torch.maximum(x, x), torch.cat([x, x]), x * x - x
