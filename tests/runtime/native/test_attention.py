"""Attention in C: every mask, layouts of the arguments, sizes around tiles, rows of which all is masked."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.runtime.native.programs import agree, gave_up

LAYOUTS = {"rows": "aten.neg.default({})", "heads": "aten.transpose.int({}, 1, 2)",
           "columns": "aten.transpose.int({}, 2, 3)", "part": "aten.slice.Tensor({}, 3, 1, 9)"}  # fmt: skip
SIZES = [(1, 1, 1, 1, 8), (2, 3, 5, 7, 8), (1, 2, 70, 130, 8), (2, 1, 64, 3, 8), (1, 2, 1, 33, 8), (2, 3, 70, 130, 8)]


def _given(layout: str, shape: tuple[int, ...], dtype: torch.dtype) -> torch.Tensor:
    b, h, n, d = shape
    laid = {"rows": shape, "heads": (b, n, h, d), "columns": (b, h, d, n), "part": (b, h, n, d + 2)}[layout]
    return torch.randn(laid, dtype=dtype)


@pytest.mark.sample(3)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("options", ["", ", None, 0.0, True", ", None, 0.0, False, scale=0.3"])
@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_layouts_and_options(layout: str, options: str, kind: str) -> None:
    dtype = torch.float32 if kind == "f32" else torch.float64
    sides = {"rows": "b, h, {n}, 8", "heads": "b, {n}, h, 8", "columns": "b, h, 8, {n}", "part": "b, h, {n}, 10"}
    inputs = "\n".join(f'input %{name}g : {kind}[{sides[layout].format(n=n)}] = "{name}"\n'
                       f"%{name} : {kind}[b, h, {n}, 8] = {LAYOUTS[layout].format(f'%{name}g')}"
                       for name, n in (("q", "m"), ("k", "n"), ("v", "n")))  # fmt: skip
    lines = sorted(inputs.split("\n"), key=lambda line: not line.startswith("input"))
    text = 'program "f" {\n' + "\n".join(lines) + f"""
      %o : {kind}[b, h, m, 8] = aten.scaled_dot_product_attention.default(%q, %k, %v{options})
      %t : {kind}[b, m, h, 8] = aten.transpose.int(%o, 1, 2)
      return %t as $0
    }}"""
    calls = [[_given(layout, (b, h, n, d), dtype) for n in (rows, columns, columns)]
             for b, h, rows, columns, d in SIZES
             if layout in ("rows", "heads") or 1 not in (b, h, rows)]  # a stride of size 1 means nothing  # fmt: skip
    made = agree(text, *calls, rounding=1e-5)
    assert not gave_up(made)
    if layout != "columns":  # strides of nothing
        agree(text, [_given(layout, (2, 2, n, 8), dtype) for n in (0, 4, 4)],
              [_given(layout, (2, 2, n, 8), dtype) for n in (4, 0, 0)], rounding=1e-5)  # fmt: skip


MASKS = ["b, 1, m, n", "b, h, m, n", "1, 1, m, n", "m, n", "1, n", "b, 1, 1, n", "b, h, m, 1", "h, m, n", "n"]


@pytest.mark.parametrize("shape", MASKS)
@pytest.mark.parametrize("kind", ["bool", "f32"])
def test_masks(shape: str, kind: str) -> None:
    """Rows of which all is masked are zero, as in PyTorch."""
    text = f"""program "f" {{
      input %q : f32[b, h, m, 4] = "q"
      input %k : f32[b, h, n, 4] = "k"
      input %v : f32[b, h, n, 6] = "v"
      input %m : {kind}[{shape}] = "m"
      %o : f32[b, h, m, 6] = aten.scaled_dot_product_attention.default(%q, %k, %v, %m)
      %t : f32[b, m, h, 6] = aten.transpose.int(%o, 1, 2)
      return %t as $0
    }}"""
    for (b, h, m, n), masked in itertools.product([(2, 3, 5, 7), (1, 1, 66, 9)], [0.0, 0.4, 1.0]):
        sizes = {"b": b, "h": h, "m": m, "n": n, "1": 1}
        mask = torch.rand([sizes[one] for one in shape.split(", ")]) >= masked
        given = mask if kind == "bool" else torch.where(mask, torch.randn(mask.shape), float("-inf"))
        call = [torch.randn(b, h, m, 4), torch.randn(b, h, n, 4), torch.randn(b, h, n, 6), given]
        made = agree(text, call, rounding=1e-5, in_c=1 if shape == "n" else None)  # which PyTorch refuses
        assert not gave_up(made)


def test_numbers_that_are_no_numbers() -> None:
    text = """program "f" {
      input %q : f32[1, 1, m, 4] = "q"
      input %k : f32[1, 1, n, 4] = "k"
      input %v : f32[1, 1, n, 4] = "v"
      %o : f32[1, 1, m, 4] = aten.scaled_dot_product_attention.default(%q, %k, %v)
      %y : f32[1, 1, m, 4] = aten.mul.Tensor(%o, 1.0)
      return %y as $0
    }"""
    for place in range(3):
        call = [torch.randn(1, 1, 3, 4), torch.randn(1, 1, 5, 4), torch.randn(1, 1, 5, 4)]
        call[place][0, 0, 1, 2] = float("nan")
        agree(text, call, rounding=1e-5)


@pytest.mark.parametrize("left", [(1, 2, 3, 4), (2, 2, 3, 4)])
def test_sizes_that_do_not_fit_are_pythons(left: tuple[int, ...]) -> None:
    """Batches that broadcast, and sizes that raise."""
    text = """program "f" {
      input %q : f32[a, h, m, d] = "q"
      input %k : f32[b, h, n, e] = "k"
      %o : f32[c, h, m, e] = aten.scaled_dot_product_attention.default(%q, %k, %k)
      %y : f32[c, h, m, e] = aten.mul.Tensor(%o, 1.0)
      return %y as $0
    }"""
    agree(text, [torch.randn(left), torch.randn(2, 2, 5, 4)], [torch.randn(left), torch.randn(2, 2, 5, 3)],
          [torch.randn(left), torch.randn(3, 2, 5, 4)], rounding=1e-5)  # fmt: skip


@pytest.mark.parametrize(("k", "v"), [("b, 1", "b, 1"), ("1, h", "b, h"), ("b, 1", "1, h"), ("b, h", "b, 1")])
def test_batches_that_are_one(k: str, v: str) -> None:
    """One head of keys for all of the queries', and its like."""
    text = f"""program "f" {{
      input %q : f32[b, h, m, 4] = "q"
      input %k : f32[{k}, n, 4] = "k"
      input %v : f32[{v}, n, 4] = "v"
      %o : f32[b, h, m, 4] = aten.scaled_dot_product_attention.default(%q, %k, %v)
      return %o as $0
    }}"""
    sizes = {"b": 2, "h": 3, "1": 1}
    call = [torch.randn(2, 3, 5, 4), *(torch.randn(*(sizes[one] for one in lead.split(", ")), 7, 4) for lead in (k, v))]
    made = agree(text, call, rounding=1e-5)
    assert not gave_up(made)
