"""Results whose form is known from trying several numbers: a run in which it is another one is refused, never wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from dy2static import load, save, to_static
from dy2static.input_spec import InputSpec
from runtime.errors import TraceError

SMALL = (1, 3, 7)
LARGE = (5000, 6001)
"""Above 4000 each of these operators gives what none of the numbers that are tried shows."""


def size(x: Tensor, n: int) -> Tensor:
    return x.new_ones(n if n > 4000 else 3)


def related(x: Tensor, n: int) -> Tensor:
    return x.new_ones(n + 1 if n <= 4000 else n)


def rank(x: Tensor, n: int) -> Tensor:
    return x.new_ones((3,) if n <= 4000 else (3, 1))


def dtype(x: Tensor, n: int) -> Tensor:
    return x.new_ones(3, dtype=torch.float64 if n > 4000 else torch.float32)


def layout(x: Tensor, n: int) -> Tensor:
    return x.new_ones(3, 4) if n <= 4000 else x.new_ones(4, 3).t()


def of_a_size(x: Tensor, n: int) -> Tensor:
    return x.new_ones(x.shape[0] if x.shape[0] > 4000 else 3) * n


RULES: list[Callable[[Tensor, int], Tensor]] = [size, related, rank, dtype, layout]


@pytest.fixture(scope="module", autouse=True)
def _library() -> Iterator[None]:
    library = torch.library.Library("sampled", "DEF")
    for rule in (*RULES, of_a_size):
        for kind in ("int", "SymInt"):
            name = f"{rule.__name__}_{kind.lower()}"
            library.define(f"{name}(Tensor x, {kind} n) -> Tensor")
            library.impl(name, rule, "CPU")
            library.impl(name, rule, "Meta")
    yield
    library._destroy()


def _function(name: str) -> Callable[[Tensor, Tensor], Any]:
    operator = getattr(torch.ops.sampled, name)

    def f(x, n):
        y = operator(x, int(n))
        return y, y.shape[0], y.dim(), y.is_contiguous(), y.dtype, y.sum() * 2

    return f


def _told(call: Callable[[], Any]) -> Any:
    return [(str(one), one.stride()) if isinstance(one, Tensor) else one for one in call()]


@pytest.mark.parametrize("kind", ["int", "symint"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_another_form_beyond_the_numbers_tried(rule: Callable[..., Any], kind: str, tmp_path: Path) -> None:
    f = _function(f"{rule.__name__}_{kind}")
    x = torch.ones(2)
    converted = to_static(f)
    save(to_static(f, input_spec=[InputSpec([2]), InputSpec([], "int64")]), tmp_path / "f")
    for g in (converted, load(tmp_path / "f", allow=["sampled"])):
        for n in map(torch.tensor, SMALL):
            assert _told(lambda: g(x, n)) == _told(lambda: f(x, n))
        for n in map(torch.tensor, LARGE):
            try:
                assert _told(lambda: g(x, n)) == _told(lambda: f(x, n))
            except TraceError as error:
                assert error.code == "D2S235" and error.location is not None
                assert rule.__name__ in str(error) and "operator(x, int(n))" in str(error)
            except RuntimeError as error:
                assert "not related to the arguments" in str(error) and rule is related


def test_an_operator_in_a_try_is_not_caught() -> None:
    def f(x, n):
        try:
            y = torch.ops.sampled.size_int(x, int(n))
        except RuntimeError:
            y = x
        return y * 2

    g = to_static(f)
    assert torch.equal(g(torch.ones(2), torch.tensor(2)), torch.full((3,), 2.0))
    with pytest.raises(TraceError, match="D2S2"):
        g(torch.ones(2), torch.tensor(5000))


@pytest.mark.parametrize("kind", ["int", "symint"])
def test_sizes_of_tensors(kind: str) -> None:
    operator = getattr(torch.ops.sampled, f"of_a_size_{kind}")

    def f(x):
        y = operator(x[x > 0], 2)
        return y, y.shape[0]

    g = to_static(f)
    for x in (torch.ones(4), torch.tensor([1.0, -1, 1])):
        assert _told(lambda: g(x)) == _told(lambda: f(x))
    with pytest.raises(TraceError, match="D2S235"):
        g(torch.ones(6001))


def test_small_numbers_are_tried_where_the_shape_rule_fails() -> None:
    """Of every large stride the result has as many rows, and torch's rule does not take an unknown one."""
    def f(x, n):
        stride = int(n)
        return torch.conv2d(x, x[:, :, :3, :3], stride=stride, padding=(stride, 1))

    x, g = torch.randn(2, 2, 6, 6), to_static(f)
    for n in map(torch.tensor, (1, 2, 3, 5)):
        torch.testing.assert_close(g(x, n), f(x, n))
