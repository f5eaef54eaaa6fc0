"""What torch's shape rules say where a size is open: rank, sizes and layout are those of eager, whatever the size."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

import dy2static
from dy2static import InputSpec
from tests.oracle import check, check_saved

ROWS = (2, 4, 5, 1)


def numbers(*shape: int) -> torch.Tensor:
    return torch.linspace(-0.9, 1.7, torch.Size(shape).numel()).sin().reshape(shape)


def classes(n: int) -> torch.Tensor:
    return torch.arange(n) % 3


LOSSES: dict[str, Callable[[int], tuple[torch.Tensor, ...]]] = {
    "binary_cross_entropy": lambda n: (numbers(n, 3).sigmoid(), numbers(n, 3).abs()),
    "binary_cross_entropy_with_logits": lambda n: (numbers(n, 3), numbers(n, 3).abs()),
    "cosine_embedding_loss": lambda n: (numbers(n, 3), numbers(n, 3).exp(), torch.ones(n)),
    "cross_entropy": lambda n: (numbers(n, 3), classes(n)),
    "ctc_loss": lambda n: (numbers(6, n, 3).log_softmax(2), torch.ones(n, 2, dtype=torch.long),
                           torch.full((n,), 6), torch.full((n,), 2)),
    "gaussian_nll_loss": lambda n: (numbers(n, 3), numbers(n, 3).cos(), numbers(n, 3).exp()),
    "hinge_embedding_loss": lambda n: (numbers(n, 3), numbers(n, 3).sign()),
    "huber_loss": lambda n: (numbers(n, 3), numbers(n, 3).exp()),
    "kl_div": lambda n: (numbers(n, 3), numbers(n, 3).abs()),
    "l1_loss": lambda n: (numbers(n, 3), numbers(n, 3).exp()),
    "margin_ranking_loss": lambda n: (numbers(n), numbers(n).exp(), numbers(n).sign()),
    "mse_loss": lambda n: (numbers(n, 3), numbers(n, 3).exp()),
    "multi_margin_loss": lambda n: (numbers(n, 3), classes(n)),
    "multilabel_margin_loss": lambda n: (numbers(n, 3), torch.zeros(n, 3, dtype=torch.long)),
    "multilabel_soft_margin_loss": lambda n: (numbers(n, 3), numbers(n, 3).abs()),
    "nll_loss": lambda n: (numbers(n, 3).log_softmax(1), classes(n)),
    "poisson_nll_loss": lambda n: (numbers(n, 3), numbers(n, 3).exp()),
    "smooth_l1_loss": lambda n: (numbers(n, 3), numbers(n, 3).exp()),
    "soft_margin_loss": lambda n: (numbers(n, 3), numbers(n, 3).sign()),
    "triplet_margin_loss": lambda n: (numbers(n, 3), numbers(n, 3).exp(), numbers(n, 3).cos()),
    "triplet_margin_with_distance_loss": lambda n: (numbers(n, 3), numbers(n, 3).exp(), numbers(n, 3).cos()),
}


def test_all_losses_are_walked() -> None:
    """Those that PyTorch has with a reduction; ``linear_cross_entropy`` is newer than others."""
    here = {name for name, one in vars(F).items() if inspect.isfunction(one) and not name.startswith("_")
            and "reduction" in inspect.signature(one).parameters}  # fmt: skip
    assert here - {"linear_cross_entropy"} <= LOSSES.keys()


def shaped(loss: torch.Tensor) -> Any:
    """A result and what is decided by its shape."""
    same = loss * 2 if loss.dim() == 1 else loss * 100
    return loss.dim(), tuple(loss.shape), loss.numel(), torch.ones(loss.shape) * 3, same, loss.stride()


@pytest.mark.sample(20)
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_losses(name: str, reduction: str, grad: bool) -> None:
    def f(*given: torch.Tensor) -> Any:
        return shaped(getattr(F, name)(*given, reduction=reduction))

    made = [LOSSES[name](n) for n in ROWS]
    check(f, *((one[0].requires_grad_(grad), *one[1:]) for one in made), tolerance=1e-6)


WAYS: list[Callable[[torch.Tensor, torch.Tensor], Any]] = [
    lambda x, y: F.cross_entropy(x, y, reduction="none")[:, None],
    lambda x, y: shaped(F.cross_entropy(x, x.detach().argmax(1), reduction="none")),
    lambda x, y: shaped(F.cross_entropy(x, torch.zeros(x.shape[0], dtype=torch.long), reduction="none")),
    lambda x, y: shaped(F.nll_loss(x.log_softmax(1), y, torch.ones(3), reduction="none")),
    lambda x, y: shaped(F.cross_entropy(x, y, ignore_index=1, reduction="none")),
    lambda x, y: shaped(F.cross_entropy(x, y, label_smoothing=0.1, reduction="none")),
    lambda x, y: shaped(F.cross_entropy(x, x.softmax(1), reduction="none")),
    lambda x, y: shaped(F.cross_entropy(x[0], y[0], reduction="none")),
]


def per_row(x: torch.Tensor, y: torch.Tensor) -> Any:
    return F.cross_entropy(x, y, reduction="none").mean(-1)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("construct", ["straight", "branch", "loop"])
@pytest.mark.parametrize("way", range(len(WAYS)))
def test_classes_by_row(way: int, construct: str, grad: bool) -> None:
    loss = WAYS[way]

    def straight(x: torch.Tensor, y: torch.Tensor) -> Any:
        return loss(x, y)

    def branch(x: torch.Tensor, y: torch.Tensor) -> Any:
        if x.sum() > 0:
            return loss(x * 2, y)
        return loss(x, y)

    def loop(x: torch.Tensor, y: torch.Tensor) -> Any:
        total = x.sum() * 0
        for row in (x > -2).sum(1):
            total = total + row * loss(x, y)[-1 if way == 0 else -2].sum()
        return total

    function = {"straight": straight, "branch": branch, "loop": loop}[construct]
    check(function, *((numbers(n, 3).requires_grad_(grad), classes(n)) for n in ROWS), tolerance=1e-5)


def test_a_loss_by_row_from_a_file(tmp_path: Path) -> None:
    static = dy2static.to_static(per_row, [InputSpec([None, 3]), InputSpec([None], "int64")])
    check_saved(per_row, static, tmp_path / "f.d2s", *((numbers(n, 3), classes(n)) for n in (5, 2, 3)), tolerance=1e-6)


SPREADS: list[Callable[[torch.Tensor], Any]] = [
    lambda x: x.std(False), lambda x: x.var(True), lambda x: torch.std_mean(x, False),
    lambda x: torch.var_mean(x, False), lambda x: torch.std_mean(x), lambda x: torch.std_mean(x, 1, keepdim=True),
    lambda x: torch.std_mean(x, 1, False, True), lambda x: torch.std_mean(x, (0, 1)),
    lambda x: torch.var_mean(x, 1, keepdim=True), lambda x: torch.var_mean(x, [1], unbiased=False),
    lambda x: torch.meshgrid(x[0], x[:, 0], indexing="xy")[0],
]  # fmt: skip


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("spread", range(len(SPREADS)))
def test_spreads(spread: int, grad: bool) -> None:
    def f(x: torch.Tensor) -> Any:
        found = SPREADS[spread](x)
        one = found if isinstance(found, torch.Tensor) else found[0]
        return found, one.dim(), tuple(one.shape), one.stride()

    def looped(x: torch.Tensor) -> Any:
        for _ in range(int((x > 0).sum().clamp(1, 3))):
            found = SPREADS[spread](x)
            x = x + (found if isinstance(found, torch.Tensor) else found[0]).sum()
        return x

    calls = [(numbers(n, 3).requires_grad_(grad),) for n in (2, 4, 5)]
    check(f, *calls, tolerance=1e-5)
    check(looped, *calls, tolerance=1e-4)


TRANSFORMS = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("name", [*TRANSFORMS, "fftn", "rfftn", "ihfftn"])
def test_layouts_of_transforms(name: str, dim: int) -> None:
    def f(x: torch.Tensor) -> Any:
        found = getattr(torch.fft, name)(x, dim=dim if name in TRANSFORMS else (dim,))
        flat = found.view(-1) if found.is_contiguous() else found.reshape(-1) * 2
        return found.stride(), tuple(found.shape), flat

    check(f, *((numbers(n, 4),) for n in (3, 2, 5, 6)), tolerance=1e-5)


@pytest.mark.parametrize("dim", [-1, -2, 0, 1])
def test_repeated_parts_by_dimension(dim: int) -> None:
    def f(x: torch.Tensor) -> Any:
        found, counts = torch.unique_consecutive(x, return_counts=True, dim=dim)
        return found, counts, found.dim()

    check(f, *((torch.tensor([[1.0, 1, 2]]).repeat(n, 1),) for n in (2, 3, 4)))


PADDINGS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "as long again": lambda x: F.pad(x, (0, len(x))),
    "before": lambda x: F.pad(x, (len(x), 0)),
    "both": lambda x: F.pad(x, (len(x), 2 * len(x) + 1)),
    "taken away": lambda x: F.pad(F.pad(x, (1, len(x))), (0, -len(x))),
    "what is kept": lambda x: F.pad(x[x > 0], (0, int((x > 0).sum()))),
    "of two": lambda x: F.pad(x[x > 0], (0, len(x) - int((x > 0).sum()))),
}


@pytest.mark.parametrize("name", PADDINGS)
def test_padding_by_a_size(name: str) -> None:
    """Its gradient cuts off as much: sizes that are no multiple of one."""

    def f(x: torch.Tensor) -> Any:
        return PADDINGS[name](x) * 2

    check(f, *((numbers(n).requires_grad_(),) for n in (3, 5, 8, 4)))
