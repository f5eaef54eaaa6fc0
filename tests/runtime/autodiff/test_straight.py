"""Who gives the gradient of a Program without loops: torch's autograd where it is faster, as in eager."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static
from runtime.autodiff import node


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node, "BIG", 65_536)


def product(x: Any, w: Any) -> Any:
    return torch.tanh(x @ w).sum()


def with_a_branch(x: Any, w: Any) -> Any:
    y = x @ w
    return y.sum() if y.mean() > 0 else -y.sum()


def with_branches_in_branches(x: Any, w: Any) -> Any:
    y = x @ w
    if y.mean() > 100:
        return y.sum()
    index = (y.sum() > 0).long()
    return (y * 2).sum() if y.min() > 50 else [y, -y][int(index)].sum() * 3


def with_a_loop_in_a_branch(x: Any, w: Any) -> Any:
    if x.norm() < 10:
        while x.norm() < 10:
            x = x + x @ w
    return x.sum()


def with_a_write_in_a_branch(x: Any, w: Any) -> Any:
    y = x @ w
    if y.mean() < 100:
        y.mul_(2)
    return y.sum()


def with_a_loop(x: Any, w: Any) -> Any:
    while x.norm() < 10:
        x = x + x @ w
    return x.sum()


def with_a_write(x: Any, w: Any) -> Any:
    y = x @ w
    y.mul_(2)
    return y.sum()


def of_an_argument(x: Any, w: Any) -> Any:
    y = x * 2
    y += w.sum()
    return y.sum()


def tensors(size: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    return torch.randn(size, 4, requires_grad=True), torch.rand(4, 4, requires_grad=True)


@pytest.mark.parametrize("size, name", [(3, "SumBackward0"), (20_000, "ProgramNodeBackward")])
def test_the_size_of_the_arguments_chooses(size: int, name: str) -> None:
    static = to_static(product, backend="interpreter")
    for _ in range(3):
        x, w = tensors(size)
        found = static(x, w)
        found.backward()
        assert type(found.grad_fn).__name__ == name
        other, v = tensors(size)
        product(other, v).backward()
        assert torch.equal(x.grad, other.grad) and torch.equal(w.grad, v.grad)  # type: ignore[arg-type]


def test_each_call_chooses_anew() -> None:
    static = to_static(product, backend="interpreter")
    names = [type(static(*tensors(size)).grad_fn).__name__ for size in (3, 3, 20_000, 20_000, 4, 20_001, 3)]
    assert [name == "ProgramNodeBackward" for name in names] == [False, False, True, True, False, True, False]


@pytest.mark.parametrize("function", [with_a_branch, with_branches_in_branches], ids=lambda one: one.__name__)
def test_a_branch_is_one_straight_line_or_the_other(function: Callable[..., Any]) -> None:
    static = to_static(function, backend="interpreter")
    for scale in (1.0, -1.0):
        (x, w), (other, v) = tensors(), tensors()
        found, expected = static(x * scale, w), function(other * scale, v)
        assert type(found.grad_fn) is type(expected.grad_fn)
        found.backward()
        expected.backward()
        assert torch.equal(x.grad, other.grad) and torch.equal(w.grad, v.grad)  # type: ignore[arg-type]
    large, (_, w) = tensors(20_000)[0], tensors()
    assert type(static(large, w).grad_fn).__name__ == "ProgramNodeBackward"


@pytest.mark.parametrize("function", [with_a_loop, with_a_write, of_an_argument, with_a_loop_in_a_branch,
                                      with_a_write_in_a_branch], ids=lambda one: one.__name__)  # fmt: skip
def test_loops_and_writes_have_backward_programs(function: Callable[..., Any]) -> None:
    found = to_static(function, backend="interpreter")(*tensors())
    assert type(found.grad_fn).__name__ == "ProgramNodeBackward"


def test_the_graph_is_eagers() -> None:
    static: Any = to_static(lambda x, w: ((c := x * 3), c[:1], w * 2), backend="interpreter")
    x, w = tensors()
    c, view, other = static(x, w)
    assert view._is_view() and [type(one.grad_fn).__name__ for one in (c, other)] == ["MulBackward0"] * 2
    view.mul_(torch.ones(1, requires_grad=True))
    assert type(c.grad_fn).__name__ == "CopySlices"


def test_files_and_retained_graphs(tmp_path: Path) -> None:
    static = to_static(product, backend="interpreter")
    x, w = tensors()
    static(x, w)
    loaded = dy2static.load(dy2static.save(static, tmp_path / "straight.d2s"))
    found = loaded(x, w)
    assert type(found.grad_fn).__name__ == "SumBackward0"
    (first,) = torch.autograd.grad(found, x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), w)
    y, v = tensors()
    (expected,) = torch.autograd.grad(product(y, v), y, create_graph=True)
    assert torch.equal(first, expected)
    assert torch.equal(second, torch.autograd.grad(expected.sum(), v)[0])


class Normed(torch.nn.Module):
    """A norm that keeps statistics, called twice, between layers."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm = torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(torch.relu(self.norm(self.first(x)))).sin().sum()


class OwnStatistics(Normed):
    """Keeps a mean with the history that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.first(x)
        self.mean.mul_(0.5).add_(y.mean().detach())
        return (y * self.mean).sum()


@pytest.mark.parametrize("train", [True, False])
def test_statistics_of_norms_are_no_writes_that_matter(train: bool) -> None:
    torch.manual_seed(0)
    model = Normed().train(train)
    plain = copy.deepcopy(model)
    to_static(model, backend="interpreter")
    for seed in range(4):
        torch.manual_seed(seed)
        x = torch.randn(5, 4)
        results = []
        for one in (model, plain):
            one.zero_grad()
            found = one(x)
            found.backward()
            results.append(found)
        assert type(results[0].grad_fn).__name__ == type(results[1].grad_fn).__name__ == "SumBackward0"
        assert torch.equal(*results)
        for (name, a), (_, b) in zip(model.state_dict().items(), plain.state_dict().items()):
            assert torch.equal(a, b), name
        for a, b in zip(model.parameters(), plain.parameters()):
            assert torch.equal(a.grad, b.grad)  # type: ignore[arg-type]


def test_two_calls_before_one_backward() -> None:
    model = Normed()
    plain = copy.deepcopy(model)
    to_static(model, backend="interpreter")
    for one in (model, plain):
        torch.manual_seed(0)
        first, second = one(torch.randn(5, 4)), one(torch.randn(5, 4))
        (first * 2 + second).backward()
    for a, b in zip(model.parameters(), plain.parameters()):
        assert torch.equal(a.grad, b.grad)  # type: ignore[arg-type]


def test_other_buffers_have_backward_programs() -> None:
    model = OwnStatistics()
    to_static(model, backend="interpreter")
    assert type(model(torch.randn(5, 4)).grad_fn).__name__ == "ProgramNodeBackward"


def test_a_norm_with_statistics_that_need_a_gradient_has_a_backward_program() -> None:
    def normed(x: torch.Tensor, mean: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.batch_norm(x, mean, torch.ones(4), training=True).sin().sum()

    x = torch.randn(5, 4, requires_grad=True)
    found = to_static(normed, backend="interpreter")(x, torch.zeros(4))
    assert type(found.grad_fn).__name__ == "ProgramNodeBackward"  # the mean is an argument
