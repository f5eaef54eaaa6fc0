"""Rows by their numbers in C: negative ones, ones that are out of range, gradients in and outside of loops; argmax."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F

from dy2static import InputSpec, to_static
from tests.runtime.native.programs import agree

INDEX = """program "f" {
  input %x : f32[SIZES] = "x"
  input %i : i64[INDICES] = "i"
  %y : f32[RESULT] = aten.index.Tensor(%x, [%i])
  return %y as $0
}"""


@pytest.mark.parametrize(("x", "i"), [
    ((5,), (3,)), ((5, 4), (3,)), ((5, 4), (2, 3)), ((5, 4, 2), (3,)), ((5, 4), ()), ((5, 4), (0,)), ((5, 0), (3,)),
])  # fmt: skip
@pytest.mark.parametrize("most", [4, 5])
def test_index(x: tuple[int, ...], i: tuple[int, ...], most: int) -> None:
    def text(sizes: tuple[int, ...]) -> str:
        return ", ".join(map(str, sizes))

    source = INDEX.replace("SIZES", text(x)).replace("INDICES", text(i)).replace("RESULT", text((*i, *x[1:])))
    numbers = torch.randint(-5, most, i)
    if most == 5 and numbers.numel():
        numbers.view(-1)[0] = 5
    agree(source, [torch.randn(x), numbers], [torch.randn(x), torch.full(i, -5)], [torch.randn(x), torch.full(i, -6)])


SEVERAL = """program "f" {
  input %x : f32[a, b, c] = "x"
  input %i : i64[NUMBERS] = "i"
  input %j : i64[NUMBERS] = "j"
  input %k : i64[NUMBERS] = "k"
  %y : f32[NUMBERS, c] = aten.index.Tensor(%x, [%i, %j])
  %z : f32[NUMBERS] = aten.index.Tensor(%x, [%i, %j, %k])
  %g : f32[a, b, c] = aten.new_zeros.default(%x, [4, 5, 3])
  %p : f32[a, b, c] = aten.index_put.default(%g, [%i, %j], %y, True)
  %q : f32[a, b, c] = aten.index_put.default(%g, [%i, %j, %k], %z, True)
  return %y, %z, %p, %q as ($0, $1, $2, $3)
}"""


@pytest.mark.parametrize("numbers", [(7,), (2, 3), (1,), (0,)])
@pytest.mark.parametrize("open_sizes", [True, False])
def test_numbers_of_several_dimensions(numbers: tuple[int, ...], open_sizes: bool) -> None:
    """Ones that come twice, negative ones, one that is out of range in one of the dimensions."""
    dims = ", ".join("mn"[: len(numbers)]) if open_sizes else ", ".join(map(str, numbers))
    calls = []
    for out in (None, 0, 1, 2):
        i, j, k = (torch.randint(-size, size, numbers) for size in (4, 5, 3))
        if out is not None and i.numel():
            (i, j, k)[out].view(-1)[-1] = (4, -6, 3)[out]
        calls.append([torch.randn(4, 5, 3), i, j, k])
    calls.append([torch.randn(4, 5, 3), *(torch.zeros(numbers, dtype=torch.int64),) * 3])
    agree(SEVERAL.replace("NUMBERS", dims), *calls, rounding=1e-6)


def test_numbers_of_sizes_that_are_broadcast_are_pythons() -> None:
    text = """program "f" {
      input %x : f32[4, 5] = "x"
      input %i : i64[m, 1] = "i"
      input %j : i64[n] = "j"
      %y : f32[m, n] = aten.index.Tensor(%x, [%i, %j])
      return %y as $0
    }"""
    agree(text, [torch.randn(4, 5), torch.tensor([[1], [3]]), torch.tensor([0, 2, 4])], in_c=0)


GRADIENTS = """program "f" {
  input %g : f32[n, 3] = "g"
  input %i : i64[n] = "i"
  %z : f32[5, 3] = aten.new_zeros.default(%g, [5, 3])
  %a : f32[5, 3] = aten.index_put.default(%z, [%i], %g, True)
  %b : f32[5, 3] = aten.embedding_dense_backward.default(%g, %i, 5, PADDING, False)
  return %a, %b as ($0, $1)
}"""


@pytest.mark.parametrize("padding", [-1, 2])
def test_gradients_of_rows(padding: int) -> None:
    """A row that is read twice gets both."""
    given = [[torch.randn(len(one), 3), torch.tensor(one, dtype=torch.int64)]
             for one in ([0, 2, 2, 4], [3], [], [1, 5])]  # fmt: skip
    agree(GRADIENTS.replace("PADDING", str(padding)), *given, rounding=1e-6)


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["index", "embedding", "padding"])
def test_in_loops(name: str) -> None:
    """Only the rows are added to the total; what else reads the table adds to it, too."""
    read: Any = {
        "index": lambda e, w: e[w], "embedding": lambda e, w: F.embedding(w, e),
        "padding": lambda e, w: F.embedding(w, e, padding_idx=1),
    }[name]  # fmt: skip

    def loss(words: torch.Tensor, e: torch.Tensor) -> torch.Tensor:
        h = torch.zeros(2, 4)
        for t in range(words.shape[0]):
            h = torch.tanh(h * 0.5 + read(e, words[t]))
        return (h * e[0]).sum()

    static = to_static(loss, backend="c", input_spec=[InputSpec([None, 2], torch.int64), InputSpec([6, 4])])
    for count in (1, 2, 7):
        words = torch.randint(0, 6, (count, 2))
        e = torch.randn(6, 4, requires_grad=True)
        torch.testing.assert_close(static(words, e), loss(words, e), rtol=1e-5, atol=1e-6)
        got, expected = (torch.autograd.grad(run(words, e), [e])[0] for run in (static, loss))
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
    bad = torch.tensor([[0, 1], [6, 2]])
    with pytest.raises(IndexError) as caught:
        loss(bad, e)
    with pytest.raises(IndexError, match=str(caught.value).split(" ", maxsplit=1)[0]):
        static(bad, e)


ARGMAX = """program "f" {
  input %x : DTYPE[SIZES] = "x"
  %y : i64[RESULT] = aten.argmax.default(%x, DIM, KEEP)
  return %y as $0
}"""


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("sizes", "dim"), [
    ((7,), "0"), ((7,), "-1"), ((7,), "None"), ((3, 40), "1"), ((2, 3, 5), "-1"),
])  # fmt: skip
@pytest.mark.parametrize("keep", [False, True])
def test_argmax(dtype: torch.dtype, sizes: tuple[int, ...], dim: str, keep: bool) -> None:
    """The first of equals; nan before all."""
    made = [torch.randint(0, 4, sizes).to(dtype), torch.randn(sizes, dtype=dtype), torch.zeros(sizes, dtype=dtype),
            torch.full(sizes, float("-inf"), dtype=dtype)]  # fmt: skip
    with_nan = made[1].clone()
    with_nan.view(-1)[3], with_nan.view(-1)[5] = float("nan"), float("nan")
    result = (*sizes[:-1], 1) if keep else sizes[:-1]
    text = ARGMAX.replace("DTYPE", "f32" if dtype is torch.float32 else "f64").replace("DIM", dim)
    text = text.replace("SIZES", ", ".join(map(str, sizes))).replace("RESULT", ", ".join(map(str, result)))
    agree(text.replace("KEEP", str(keep)), *[[one] for one in (*made, with_nan)])
