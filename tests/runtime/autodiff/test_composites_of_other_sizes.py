"""Gradients of operators made of others, from one function over several sizes: no derivative may keep a size."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from dy2static import to_static
from runtime.errors import Dy2StaticError
from runtime.ops import aten
from tests.end_to_end.operator_calls import call_of, composites
from tests.oracle import same

OPERATORS = {
    "interpolate": lambda x: F.interpolate(x[None, None], scale_factor=2.0),
    "chunk": lambda x: x.chunk(2, 1)[0] * x.mean(),
    "cosine_similarity": lambda x: F.cosine_similarity(x, x * 2 + 1),
    "kl_div": lambda x: F.kl_div(x.log_softmax(1), x.softmax(1), reduction="batchmean"),
    "cov": lambda x: torch.cov(x), "group_norm": lambda x: F.group_norm(x, 2), "bilinear":
        lambda x: F.bilinear(x, x, torch.ones(2, 4, 4)),
    "unfold": lambda x: F.unfold(x[None, None], (2, 2)), "tensor_split": lambda x: torch.tensor_split(x, 2, 0)[0],
    "adaptive_avg_pool1d": lambda x: F.adaptive_avg_pool1d(x[None], 2), "renorm": lambda x: torch.renorm(x, 2, 0, 1.0),
    "chunk of one": lambda x: torch.unsafe_chunk(x, 1)[0],
    "multi_dot": lambda x: torch.linalg.multi_dot([x, x.T, x]), "std_mean": lambda x: torch.std_mean(x)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_gradients(name):
    def f(x):
        r = OPERATORS[name](x)
        return (r * 2 if x.sum() > 1e9 else r).sum()

    converted = to_static(f)
    for rows in (3, 5, 2, 7, 4):
        x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(rows)).requires_grad_()
        got, expected = (torch.autograd.grad(call(x), x) for call in (converted, f))
        torch.testing.assert_close(got, expected, rtol=1e-4, atol=1e-5)


CELLS = {
    "gru cell": nn.GRUCell(4, 5), "lstm cell": nn.LSTMCell(4, 5), "rnn cell": nn.RNNCell(4, 5),
    "upsampling": nn.Sequential(nn.Unflatten(1, (2, 2)), nn.Upsample(scale_factor=2.0, mode="linear")),
    "gru": nn.GRU(4, 5), "lstm": nn.LSTM(4, 5),
}  # fmt: skip


def result_of(module: Any, given: Any) -> torch.Tensor:
    made = module(*given) if isinstance(given, tuple) else module(given)
    return made[0] if isinstance(made, tuple) else made


@pytest.mark.parametrize("sizes", [(3, 8, 1, 5), (3, 1, 5, 4), (1, 3, 5)], ids=str)
@pytest.mark.parametrize("name", CELLS)
def test_gradients_asked_inside(name, sizes):
    """A formula that asks for a size as a number holds for that size: the next one has a derivative of its own."""
    module = CELLS[name]

    def f(x):
        return torch.autograd.grad(result_of(module, x).square().sum(), x)[0]

    converted = to_static(f)
    for rows in sizes:
        x = torch.randn(rows, 4, generator=torch.Generator().manual_seed(rows)).requires_grad_()
        same(converted(x), f(x), tolerance=1e-5)


# --- every operator that is made of others, asked for a gradient outside of the function and in it

_NOT_TRIED = (
    "embedding_bag", "cumprod_backward", "mkldnn", "_convolution_mode", "quantize", "item", "random", "dropout",
    "rrelu", "to_dense_backward", ".data", "lstm.", "gru.", "rnn_", "_cell.",
)  # fmt: skip
"""Whose arguments of other sizes would not fit each other, or which draw random numbers."""


def composite_calls() -> list[str]:
    names = [name for name in composites() if not name.split(".")[1].endswith("_")]
    return [name for name in names if not any(word in name for word in _NOT_TRIED)]


def resized(value: Any, old: int, new: int) -> Any:
    """Arguments with another size wherever a tensor has the size ``old``."""
    if isinstance(value, (list, tuple)):
        return type(value)(resized(one, old, new) for one in value)
    if not isinstance(value, torch.Tensor) or old not in value.shape:
        return value
    shape = torch.Size(new if size == old else size for size in value.shape)
    numbers = torch.arange(1, shape.numel() + 1).reshape(shape)
    return (numbers * 0.618 % 1).to(value.dtype) if value.is_floating_point() else (numbers % 2).to(value.dtype)


def leaves_of(value: Any) -> list[torch.Tensor]:
    if isinstance(value, (list, tuple)):
        return [leaf for one in value for leaf in leaves_of(one)]
    return [value] if isinstance(value, torch.Tensor) and value.is_floating_point() else []


def with_leaves(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return type(value)(with_leaves(one) for one in value)
    return value.detach().clone().requires_grad_() if leaves_of(value) else value


def total(result: Any) -> Any:
    parts = [one for one in (result if isinstance(result, (list, tuple)) else [result]) if one.is_floating_point()]
    return sum(((one * one).sum() for one in parts), torch.zeros(()))


def outside(overload: Any, args: Any) -> Any:
    loss = total(overload(*args))
    return loss * 2 if loss > 1e9 else loss


def inside(overload: Any, args: Any) -> Any:
    return torch.autograd.grad(total(overload(*args)), leaves_of(args), allow_unused=True)


def gradients(function: Any, overload: Any, args: Any) -> Any:
    args = with_leaves(args)
    found = function(overload, args)
    return found if isinstance(found, tuple) else torch.autograd.grad(found, leaves_of(args), allow_unused=True)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.sample(20)
@pytest.mark.parametrize("function", [outside, inside], ids=lambda one: one.__name__)
@pytest.mark.parametrize("name", composite_calls())
def test_every_composite(name: str, function: Any) -> None:
    """Where eager takes arguments of several sizes: each call has eager's gradients, or is refused by name."""
    overload, args = aten.resolve(name), call_of(name)
    sizes = sorted({size for one in leaves_of(args) for size in one.shape if size > 1}) if args is not None else []
    tried = 0
    for old in sizes[:2]:
        converted = to_static(lambda given: function(overload, given))
        for new in (old, old + 2, 1, old + 1, old + 3):
            given = resized(args, old, new)
            try:
                expected = gradients(function, overload, given)
            except (RuntimeError, IndexError, ValueError):  # eager does not take them, or has no gradient
                continue
            try:
                got = gradients(lambda _, given: converted(given), overload, given)
            except Dy2StaticError as error:
                assert error.code in ("D2S213", "D2S231", "D2S235"), error
                continue
            tried += 1
            same(got, expected, tolerance=1e-4)
    if not tried:
        pytest.skip("eager has no gradient for arguments of several sizes")


def _second(module: Any, x: torch.Tensor, h: torch.Tensor, of: str, by: str) -> Any:
    given = {"x": x, "h": h}
    state = (h, h * 0.5) if isinstance(module, nn.LSTMCell) else h
    (first,) = torch.autograd.grad(result_of(module, (x, state)).tanh().sum(), given[of], create_graph=True)
    return torch.autograd.grad(first.square().sum(), given[by])[0]


def _after_another(module: Any, x: torch.Tensor, h: torch.Tensor, of: str, by: str) -> Any:
    t = h * 1.0
    (t * t).sum().backward(retain_graph=True)
    state = (t, t * 0.5) if isinstance(module, nn.LSTMCell) else t
    return torch.autograd.grad(result_of(module, (x, state)).sum(), t)[0]


@pytest.mark.parametrize("function", [_second, _after_another], ids=lambda one: one.__name__.strip("_"))
@pytest.mark.parametrize("of,by", ["xx", "xh", "hx", "hh"])
@pytest.mark.parametrize("kind", [nn.GRUCell, nn.LSTMCell, nn.RNNCell], ids=lambda one: one.__name__)
def test_cells_that_are_differentiated_twice(kind: Any, of: str, by: str, function: Any) -> None:
    """A cell writes the parts of one product in place: what it is taken apart into has derivatives that see the writes.
    """
    torch.manual_seed(0)
    module = kind(3, 4)
    called = to_static(lambda x, h: function(module, x, h, of, by))
    for rows in (2, 3, 1):
        generator = torch.Generator().manual_seed(rows)
        given = [torch.randn(rows, size, generator=generator) for size in (3, 4)]
        got, expected = (
            call(*[one.clone().requires_grad_() for one in given])
            for call in (called, lambda x, h: function(module, x, h, of, by)))
        same(got, expected, tolerance=1e-5)
