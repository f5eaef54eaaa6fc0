"""Shape rules of our own: what they say holds in every version of torch, and is what kernels do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import statically_known_true

import dy2static
import runtime
from dy2static import InputSpec
from runtime import torch_internals
from runtime.errors import TraceError
from tests.oracle import check, same


def unknown() -> tuple[Any, Any, Any, Any]:
    """A fake mode, its shape environment, and two sizes of which nothing is known."""
    mode, env = torch_internals.make_fake_mode()
    return mode, env, torch_internals.new_symbol(env, size=True), torch_internals.new_symbol(env, size=True)


def facts(env: Any) -> list[str]:
    return [str(fact.expr) for found in env.deferred_runtime_asserts.values() for fact in found
            if type(fact.expr).__name__ == "Equality"]  # fmt: skip


COPIES: dict[str, tuple[Callable[[Any, Any], tuple[Any, Any]], int]] = {
    "of the same size": (lambda u, v: ((u, 4), (u, 4)), 0),
    "of another size": (lambda u, v: ((u, 4), (v, 4)), 1),
    "of fewer dimensions": (lambda u, v: ((u, 4), (4,)), 0),
    "of a size of one": (lambda u, v: ((u, 4), (1, 4)), 0),
    "into a known size": (lambda u, v: ((3,), (v,)), 1),
    "of a known size": (lambda u, v: ((u,), (3,)), 1),
}


@pytest.mark.parametrize("name", COPIES)
def test_what_a_copy_assumes_of_sizes(name: str) -> None:
    make, count = COPIES[name]
    mode, env, u, v = unknown()
    with mode:
        written, given = map(torch.empty, make(u, v))
        assert written.copy_(given) is written
    assert len(facts(env)) == count


SLICES: dict[str, tuple[slice, Callable[[Any], Any]]] = {
    "all but the first": (slice(1, None), lambda u: torch.sym_max(u - torch.sym_min(1, u), 0)),
    "the first": (slice(None, 2), lambda u: torch.sym_min(2, u)),
    "the last": (slice(-1, None), lambda u: torch.sym_max(u - torch.sym_max(u - 1, 0), 0)),
    "each second": (slice(None, None, 2), lambda u: (u + 1) // 2),
    "all": (slice(None), lambda u: u),
}


@pytest.mark.parametrize("name", SLICES)
def test_the_size_of_a_slice(name: str) -> None:
    part, size = SLICES[name]
    mode, env, u, _ = unknown()
    with mode:
        found = torch.empty(u, 3)[part].shape[0]
    assert statically_known_true(found == size(u)), (found, size(u))


@pytest.mark.parametrize("norm_first", [False, True])
def test_an_encoder_layer_gives_rows_whatever_it_is_given(norm_first: bool) -> None:
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, norm_first=norm_first).eval()

    def f(x: torch.Tensor) -> Any:
        y = layer(x.transpose(0, 1))
        return y, y.stride(), y.is_contiguous(), y.view(-1)

    with torch.no_grad():
        check(f, (torch.randn(5, 3, 4),), (torch.randn(2, 6, 4),), paths=("program",))


def whole(t: torch.Tensor, x: torch.Tensor, n: torch.Tensor) -> Any:
    t = t * 1
    t[:] = x[:n]
    return t


def row(t: torch.Tensor, x: torch.Tensor, n: torch.Tensor) -> Any:
    t = torch.stack([t, t])
    t[1] = x[:n]
    return t


def part(t: torch.Tensor, x: torch.Tensor, n: torch.Tensor) -> Any:
    t = t * 1
    u = t[:n]
    u[...] = x[:n] * u
    return t


def leading(t: torch.Tensor, x: torch.Tensor, n: torch.Tensor) -> Any:
    t = t * 1
    t[0:3] = x[None, None, :n]
    return t


@pytest.mark.parametrize("function", [whole, row, part, leading], ids=lambda one: one.__name__)
def test_assigned_what_data_sizes(function: Any) -> None:
    """A 1 fits every size."""
    t, x = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([4.0, 5.0, 6.0])
    calls = [(t.clone().requires_grad_(), x.clone().requires_grad_(), torch.tensor(n)) for n in (3, 1)]
    check(function, *calls)
    if function is not part:
        with pytest.raises(RuntimeError, match="expanded size"):
            dy2static.to_static(function)(t, x, torch.tensor(2))


def test_places_and_counts_are_whole_numbers() -> None:
    def f(x: torch.Tensor) -> Any:
        values, places, counts = torch.unique(x, return_inverse=True, return_counts=True)
        rows, of_rows, _ = torch.unique(x, return_inverse=True, return_counts=True, dim=0)
        runs = torch.unique_consecutive(x, return_inverse=True, return_counts=True)
        found = [values[places], counts * 2, rows[of_rows], *runs]
        return found, [one.dtype for one in found]

    check(f, (torch.tensor([1.0, 2.0, 2.0, 1.0]),), (torch.tensor([3.0, 3.0, 3.0]),), paths=("program",))


PADDINGS: dict[str, tuple[int, tuple[int, ...], str]] = {
    "at the end": (2, (0, 2), "constant"),
    "of two dimensions": (2, (1, 1, 2, 0), "constant"),
    "cut off": (2, (-1, -1), "constant"),
    "cut off and added": (2, (-1, 3, 2, -1), "constant"),
    "by nothing": (2, (0, 0), "constant"),
    "of a vector": (1, (3, 0), "constant"),
    "of an inner dimension": (3, (0, 0, 1, 1), "constant"),
    "of an image": (4, (1, 1, 1, 1), "constant"),
    "of an image, cut off": (4, (-1, 0, 0, -1), "constant"),
    "of a volume": (5, (1, 2), "constant"),
    "reflected": (3, (1, 1), "reflect"),
    "repeated": (3, (1, 1), "replicate"),
    "around": (3, (1, 1), "circular"),
}


@pytest.mark.parametrize("name", PADDINGS)
def test_padding_leaves_sizes_open(name: str, tmp_path: Path) -> None:
    """One file for all sizes: values, strides and gradients."""
    rank, pad, mode = PADDINGS[name]

    def function(x: torch.Tensor) -> Any:
        y = nn.functional.pad(x, pad, mode=mode)
        return y, y.stride(), y.is_contiguous(), (y * y).sum(0)

    dy2static.save(dy2static.to_static(function, input_spec=[InputSpec([None] * rank)]), tmp_path / "padded")
    loaded = runtime.load(tmp_path / "padded")
    for sizes in ((4, 5, 4, 6, 3), (3, 4, 5, 3, 7), (5, 6, 4, 4, 4)):
        x = torch.randn(sizes[:rank], requires_grad=True)
        found, wanted = loaded(x), function(x)
        same(found, wanted)
        same(*(torch.autograd.grad(one[0].sin().sum(), x) for one in (found, wanted)))


@pytest.mark.parametrize("pad", [(1,), (1, 1, 1, 1, 1, 1)])
def test_padding_that_does_not_fit_raises(pad: tuple[int, ...]) -> None:
    check(lambda x: nn.functional.pad(x, pad), (torch.ones(2, 3),), (torch.ones(3, 4),), paths=("program",))


def least_squares(driver: str | None) -> Callable[..., Any]:
    def function(a: torch.Tensor, b: torch.Tensor) -> Any:
        found = torch.linalg.lstsq(a, b, driver=driver)
        return found, found.solution.stride(), found.solution * 2, found.rank

    return function


SYSTEMS = {
    "tall": ((4, 3), (4, 2)), "square": ((3, 3), (3, 2)), "wide": ((3, 4), (3, 2)), "vector": ((4, 3), (4,)),
    "batch": ((2, 4, 3), (2, 4, 2)), "batch of vectors": ((2, 3, 3), (2, 3)),
}  # fmt: skip


@pytest.mark.parametrize("driver", [None, "gels"])
@pytest.mark.parametrize("name", SYSTEMS)
def test_least_squares(name: str, driver: str | None) -> None:
    """Only the residuals of some drivers have a size that depends on data."""
    generator = torch.Generator().manual_seed(0)
    given = [torch.randn(size, generator=generator, dtype=torch.float64) for size in SYSTEMS[name]]
    check(least_squares(driver), [one.requires_grad_() for one in given], paths=("program",), tolerance=1e-9)


def test_least_squares_whose_residuals_depend_on_the_rank() -> None:
    static = dy2static.to_static(least_squares("gelsd"))
    check(least_squares("gelsd"), (torch.eye(3), torch.ones(3, 2)), static=static, paths=("program",), tolerance=1e-6)
    with pytest.raises(TraceError, match="D2S235"):
        static(torch.ones(4, 3), torch.ones(4, 2))
