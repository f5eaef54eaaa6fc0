"""PyTorch's operators in models: the dtypes they compute in, and what is written in place of some."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnxruntime
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from dy2static import InputSpec
from tests.runtime.export.onnx.harness import check, refused

ROWS = torch.tensor([[1.5, -2.0, 0.25, 3.0], [0.5, 2.0, -1.25, 7.0], [-0.5, 0.0, 4.0, 1.0]])
WHOLE = torch.tensor([[5, -3, 2, 7], [1, 0, -8, 4], [9, 3, -1, 2]])
NAN, INF = float("nan"), float("inf")
STRANGE = torch.tensor([[1.0, NAN, -INF, 3.0], [INF, 2.0, NAN, NAN], [-INF, 0.5, 1.0, INF]])
EARLY = tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 24)
"""Whether this is ONNX Runtime 1.23, the last for Python 3.10, or an older one."""
SPECS = [InputSpec([None, 4], "float32", "x"), InputSpec([None, 4], "int64", "n")]

USES: dict[str, Callable[[Any, Any], Any]] = {
    "int + float": lambda x, n: (x + n, n + 1.5, 1.5 + n, n * True, x.double() + x, x + torch.tensor(2.0).double()),
    "comparisons": lambda x, n: (x > n, n == 5.0, n > 1.5, x >= 0.25, n != n, (x > 0) == (n > 0)),
    "divisions": lambda x, n: (n / 2, x / n.abs().add(1), n // 3, n % 3, n // -2.0, x % 0.75, torch.fmod(n, 3)),
    "rounding modes": lambda x, n: (torch.div(n, 2, rounding_mode="floor"), torch.div(n, 2, rounding_mode="trunc"),
                                    torch.div(x, 0.3, rounding_mode="floor")),
    "flags": lambda x, n: ((x > 0) & (n > 0), (x > 0) | (n > 0), (x > 0) ^ (n > 0), ~(x > 0), n & 3, n | 8, n ^ 1, ~n),
    "powers": lambda x, n: (n ** 2, n ** 2.0, x.abs() ** 0.5, 2 ** n.abs(), x ** 3, x.square(), x.abs().sqrt()),
    "sums": lambda x, n: (n.sum(), (x > 0).sum(), x.sum(1), n.int().sum(0), (x > 0).sum(1, keepdim=True), x.mean(0),
                          n.cumsum(1), (x > 0).cumsum(0), n.prod(1), n.float().mean()),
    "spread": lambda x, n: (x.var(1), x.std(1, unbiased=False), x.std(-1, keepdim=True), x.var((1,), correction=0)),
    "norms": lambda x, n: (x.norm(), x.norm(dim=1), torch.linalg.vector_norm(x, dim=-1), F.normalize(x, dim=-1),
                           F.rms_norm(x, (4,)), F.layer_norm(x, (4,))),
    "extremes": lambda x, n: (x.max(), x.max(1), n.min(0).values, x.amax(1), x.argmax(-1), n.argmin(0), x.clamp(-1, 1),
                              n.clamp(min=0), torch.maximum(x, x * 0), x.topk(2).values, x.sort(1).values),
    "where": lambda x, n: (torch.where(x > 0, x, 0.0), torch.where(x > 0, n, x), torch.where(n > 0, 1, 0),
                           x.masked_fill(x < 0, 9.0), torch.where(x > 0, x, torch.zeros(()))),
    "shapes": lambda x, n: (x.t(), x.reshape(-1), x.view(-1, 2, 2), x.unsqueeze(1), x.unsqueeze(0).squeeze(0), x.mT,
                            x.movedim(0, 1), x.swapaxes(0, 1), x.flatten(), x.permute(1, 0), x.T, x.expand(2, -1, 4)),
    "indices": lambda x, n: (x[0], x[-1, 1:3], x[:, ::2], x[n[:, 0] % 2], x[x > 0], n[n[:, 0] > 2], x[..., None, 0],
                             x.gather(1, n.abs() % 4), x.index_select(1, torch.tensor([3, 0])), x[[0, 0]],
                             x[:, [1, 2]]),
    "together": lambda x, n: (torch.cat([x, n]), torch.stack([x, x * 2], 1), torch.cat([x, x], -1), x.repeat(2, 1),
                              torch.hstack([x, x]), torch.vstack([x, x])),
    "apart": lambda x, n: (x.split(2, 1), x.chunk(2, -1), x.unbind(1), x.tril(), x.triu(1), x.flip(0), x.roll(1, 1)),
    "new": lambda x, n: (torch.zeros(2, 3), torch.ones_like(n), x.new_full((2,), 3), torch.full((2, 2), 7),
                         torch.arange(x.shape[0]), torch.arange(1, 9, 3), torch.arange(0, 1, 0.25), torch.eye(3),
                         torch.zeros(x.shape[0], 2), torch.tensor(x.shape[0])),
    "functions": lambda x, n: (x.relu(), x.sigmoid(), x.tanh(), F.gelu(x), F.silu(x), F.softplus(x), F.elu(x),
                               F.leaky_relu(x), x.exp(), x.abs().log1p(), x.sin(), x.cos(), x.round(), x.floor(),
                               x.sign(), x.erf(), x.softmax(-1), x.log_softmax(0), x.logsumexp(1), F.hardtanh(x)),
    "products": lambda x, n: (x @ x.t(), x @ x[0], torch.outer(x[0], x[1]), torch.einsum("ij,kj->ik", x, x), n @ n.t(),
                              F.linear(x, x), x[0].dot(x[1]), torch.trace(x[:, :3])),
    "casts": lambda x, n: (x.long(), n.float(), x.bool(), (x > 0).int(), n.to(torch.int8), x.double(), n.type_as(x)),
    "counts": lambda x, n: (torch.count_nonzero(x), F.one_hot(n.abs() % 5, 5), (x > 0).any(), (x > 0).all(1),
                            x.numel()),
    "losses": lambda x, n: (F.mse_loss(x, x * 2), F.l1_loss(x, x * 2), F.cross_entropy(x, n[:, 0] % 4)),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", USES)
def test_uses(name, tmp_path):
    more = torch.cat([ROWS, -ROWS * 1.7]), torch.cat([WHOLE, WHOLE * 3])
    check(USES[name], tmp_path, SPECS, (ROWS, WHOLE), more)


MODULES: dict[str, tuple[Any, tuple[int | None, ...]]] = {
    "convolutions": (lambda: nn.Sequential(nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
                                           nn.Conv2d(4, 3, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten()), (None, 2, 8, 8)),
    "transposed": (lambda: nn.ConvTranspose2d(2, 3, 3, stride=2, output_padding=1), (None, 2, 4, 4)),
    "one dimension": (lambda: nn.Sequential(nn.Conv1d(2, 3, 3), nn.GroupNorm(3, 3), nn.AvgPool1d(2)), (None, 2, 9)),
    "lstm": (lambda: nn.LSTM(3, 4, batch_first=True), (2, 5, 3)),
    "attention": (lambda: nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), (None, None, 8)),
}  # fmt: skip


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", MODULES)
def test_modules(name, tmp_path):
    torch.manual_seed(0)
    make, shape = MODULES[name]
    sizes = [tuple(one or other for one in shape) for other in (2, 3)]
    check(make().eval(), tmp_path, [InputSpec(shape, "float32", "x")], *[(torch.randn(one),) for one in sizes])


class Refined(nn.Module):
    """An encoder's layer in a loop: whether its input needs a gradient is not known there, so that PyTorch's quick path
    for inference is the only one without that question."""

    def __init__(self, **options):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **options)

    def forward(self, x):
        steps = 0
        while x.abs().max() > 0.01 and steps < 3:
            x = self.layer(x) * 0.1
            steps += 1
        return x, steps


@pytest.mark.skipif(torch.__version__ < "2.13", reason="PyTorch 2.11 asks for the sizes of what matmul is given")
@pytest.mark.parametrize("options", [{}, {"norm_first": True, "activation": "gelu"}], ids=str)
def test_pytorchs_quick_path_for_inference(options, tmp_path):
    torch.manual_seed(0)
    calls = [(torch.randn(2, 5, 8),), (torch.randn(1, 1, 8),), (torch.zeros(1, 2, 8),)]
    check(Refined(**options).eval(), tmp_path, [InputSpec([None, None, 8], "float32", "x")], *calls)


def test_one_of_two_flags_and_of_two_numbers_of_16_bits(tmp_path):
    def f(x, n):
        masked = x > 0
        masked[x > 1] = False
        large = x.sum() > 0
        most = max(bool(large), bool(n.max() > 100))
        short = x.to(torch.int16)
        return (torch.where(x > 0, x > 1, x < -1), masked, (x > 0).masked_fill(x > 1, False), most,
                torch.where(x > 0, short, -short), torch.where(x > 0, x.half(), x.half() * 2))  # fmt: skip

    check(f, tmp_path, SPECS, (ROWS, WHOLE), (-ROWS, WHOLE * 90))


class Experts(nn.Module):
    """Rows go to the two experts that their gate chooses, and what these give is added up."""

    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(4, 3), nn.ModuleList(nn.Linear(4, 4) for _ in range(3))

    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, place = torch.where(chosen == number)
            if rows.numel() > 0:
                out.index_add_(0, rows, expert(x[rows]) * weights[rows, place][:, None])
        return out


def test_rows_that_are_sent_to_experts(tmp_path):
    torch.manual_seed(0)
    counts = (1, 5, 4) if EARLY else (1, 5, 4, 0)  # the TopK of onnxruntime 1.23 divides by no rows, and crashes
    calls = [(torch.randn(count, 4),) for count in counts]
    check(Experts().eval(), tmp_path, [InputSpec([None, 4], "float32", "x")], *calls)


def test_rows_that_are_added_at_places(tmp_path):
    def f(x, n):
        places = torch.tensor([2, 0, 2])
        y = torch.ones(5, 4).index_add(0, places, x[:3], alpha=0.5)
        return y, x.index_add(-1, torch.tensor([1, 1]), x[:, :2]), n.index_add(0, torch.tensor([0]), n[1:2])

    check(f, tmp_path, SPECS, (torch.cat([ROWS] * 3)[:3], WHOLE))


def test_a_division_of_ints_by_zero_ends_the_run(tmp_path):
    def f(x, n):
        return n // x.long()

    check(f, tmp_path, SPECS, (ROWS.abs() + 1, WHOLE), (ROWS * 0, WHOLE), (ROWS[:0], WHOLE[:0]))


def test_numbers_of_the_run_as_arguments(tmp_path):
    def f(x, n):
        limit, scale = n.max().item(), x.max().item()
        large = n > limit // 2
        return x.clamp(max=limit), x * scale, x + limit, large, torch.full((2, 2), scale), x.masked_fill(x > 0, scale)

    check(f, tmp_path, SPECS, (ROWS, WHOLE), (-ROWS, WHOLE * 2))


def test_random_numbers_are_refused(tmp_path):
    def f(x, n):
        return x + torch.randn(4)

    error = refused(f, tmp_path, SPECS, "D2S540")
    assert "aten.randn" in str(error) and error.location.text.strip() == "return x + torch.randn(4)"


def test_what_has_no_form_is_refused_by_its_name(tmp_path):
    def f(x, n):
        y = x * 2
        return torch.linalg.svd(y)[0]

    error = refused(f, tmp_path, SPECS, "D2S540")
    assert "svd" in error.summary and error.location.text.strip() == "return torch.linalg.svd(y)[0]"


def test_nan_and_infinite_values(tmp_path):
    def f(x, n):
        return (x.max(), x.min(), x.amax(1), x.amin(0, keepdim=True), x.max(1), x.min(0), x.argmax(), x.argmin(1),
                x.clamp(min=0), x.clamp(-1, 1), x.sign(), x.relu(), torch.maximum(x, x * 0), x != x)

    check(f, tmp_path, SPECS, (ROWS, WHOLE), (STRANGE, WHOLE))


@pytest.mark.skipif(EARLY, reason="the TopK of onnxruntime 1.23 takes NaN for no number at all")
def test_the_largest_of_nan_and_infinite_values(tmp_path):
    check(lambda x, n: x.topk(2).values, tmp_path, SPECS, (ROWS, WHOLE), (STRANGE, WHOLE))
