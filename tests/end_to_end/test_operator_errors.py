"""Operators that raise, and operators whose shape rules raise: each call ends as eager's does."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from dy2static import to_static
from runtime.errors import TraceError
from tests.oracle import same

_DTYPES = (torch.float32, torch.bfloat16, torch.float64, torch.int64)

PRODUCTS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, ((2, 3), (3, 4))),
    "matmul": (torch.matmul, ((2, 2, 3), (3, 4))),
    "addmm": (lambda a, b, c: torch.addmm(c, a, b), ((2, 3), (3, 4), (2, 4))),
    "addmv": (lambda a, b, c: torch.addmv(c, a, b), ((2, 3), (3,), (2,))),
    "linear": (F.linear, ((2, 3), (4, 3), (4,))),
    "linear of a transposed one": (lambda a, b, c: F.linear(a.mT[None].transpose(1, 0), b, c), ((3, 3), (4, 3), (4,))),
    "bilinear": (F.bilinear, ((2, 3), (2, 4), (5, 3, 4))),
    "einsum": (lambda a, b: torch.einsum("ij,jk->ik", a, b), ((2, 3), (3, 4))),
    "conv1d": (F.conv1d, ((1, 2, 5), (3, 2, 2), (3,))),
    "attention": (F.scaled_dot_product_attention, ((1, 2, 3, 4), (1, 2, 3, 4), (1, 2, 3, 4))),
    "gru_cell": (lambda a, b, c: torch.gru_cell(a, b, c, c), ((2, 3), (2, 3), (9, 3))),
    "layer_norm": (lambda a, b, c: F.layer_norm(a, (3,), b, c), ((2, 3), (3,), (3,))),
}  # fmt: skip


def _outcome(call: Callable[[], Any]) -> Any:
    try:
        result = call()
    except Exception as error:
        return type(error), str(error)
    return result.dtype, result.shape


@pytest.mark.sample(3)
@pytest.mark.parametrize("autocast", [False, True])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_of_mixed_dtypes(name: str, autocast: bool) -> None:
    """Type and text are eager's for every choice of two dtypes, with and without gradient."""
    operator, shapes = PRODUCTS[name]
    counts: Counter[str] = Counter()

    def f(*tensors):
        with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
            return operator(*tensors)

    for first, second, grad in itertools.product(_DTYPES, _DTYPES, (False, True)):
        if first == second:
            continue
        dtypes = (first, second, second)

        def tensors(dtypes: Any = dtypes, grad: bool = grad) -> list[Tensor]:
            made = [torch.ones(shape).to(dtype) for shape, dtype in zip(shapes, dtypes)]
            return [one.requires_grad_(grad and one.is_floating_point()) for one in made]

        eager = _outcome(lambda: f(*tensors()))
        assert _outcome(lambda: to_static(f)(*tensors())) == eager, (dtypes, grad)
        counts["raises" if isinstance(eager[0], type) else "works"] += 1
    print(name, autocast, dict(counts))
    assert counts.total() == 24


_TARGET, _LABELS = torch.full((3, 3), 0.25), torch.tensor([0, 1, 2])
LOSSES: dict[str, Callable[[Tensor, Any], Tensor]] = {
    "soft_margin": lambda x, n: torch._C._nn.soft_margin_loss(x, torch.ones(3, 3), n),
    "mse": lambda x, n: torch._C._nn.mse_loss(x, _TARGET, n),
    "huber": lambda x, n: torch._C._nn.huber_loss(x, _TARGET, n),
    "smooth_l1": lambda x, n: torch._C._nn.smooth_l1_loss(x, _TARGET, n),
    "cross_entropy": lambda x, n: torch._C._nn.cross_entropy_loss(x, _LABELS, None, n),
    "kl_div": lambda x, n: torch.kl_div(x, _TARGET, n),
}


@pytest.mark.parametrize("name", LOSSES)
def test_reductions_as_numbers(name: str) -> None:
    """What a number that names no reduction means, each function says."""
    def f(x, n):
        return LOSSES[name](x, int(n)) * 2

    g = to_static(f)
    x = torch.arange(9.0).reshape(3, 3) / 5
    for n in map(torch.tensor, (1, 0, 2, -1, 3, 7)):
        eager, mine = (_outcome(lambda call=call: call(x, n)) for call in (f, g))  # type: ignore[misc]
        assert mine == eager, n
        if not isinstance(eager[0], type):
            same(g(x, n), f(x, n))


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_rule_that_raises_for_what_the_operator_takes() -> None:
    """What the results are like is seen on real tensors then."""
    def ranges(x, n):
        return torch.choose_qparams_optimized(x, int(n), 200, 0.16, 8)

    def sparse(x, n):
        return torch.sparse_coo_tensor(torch.tensor([[0, 1, 2]]), x[:3], (9,), is_coalesced=True).to_dense() * n

    x = torch.arange(9.0)
    for f in (ranges, sparse):
        g = to_static(f)
        for n in map(torch.tensor, (9, 1, 0)):
            same(g(x, n), f(x, n))


@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_a_rule_that_raises_where_sizes_are_in_the_data() -> None:
    @to_static
    def f(x):
        return torch.sparse_coo_tensor(torch.tensor([[0, 1, 2]]), x, is_coalesced=True)

    with pytest.raises(TraceError, match="D2S235.*sparse_coo_tensor"):
        f(torch.ones(3))
