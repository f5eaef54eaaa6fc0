"""Padding and ranges in C."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.native.programs import agree, compiled, gave_up


@pytest.mark.parametrize("pads", ["[1, 2]", "[0, 0]", "[2, 0, 0, 1]", "[1, 1, 1, 1]", "[0, 1, 0, 0]", "[0, %k]",
                                  "[%k, 1, %k, 0]"])
@pytest.mark.parametrize("value", ["", ', "constant", 1.5', ', "constant", -inf'])
@pytest.mark.parametrize("kind", ["f32", "i64"])
@pytest.mark.parametrize("source", ["aten.neg.default(%x)", "aten.t.default(%x)"])
def test_pads(pads: str, value: str, kind: str, source: str) -> None:
    if kind == "i64" and "inf" in value:
        pytest.skip("no whole number is infinite")
    text = f"""program "f" {{
      input %x : {kind}[{"n, 3" if "neg" in source else "3, n"}] = "x"
      input %k : int = "k"
      %w : {kind}[n, 3] = {source}
      %y : {kind}[a, b] = aten.pad.default(%w, {pads}{value})
      %z : {kind}[a, b] = aten.neg.default(%y)
      return %y, %z as ($0, $1)
    }}"""
    dtype = torch.float32 if kind == "f32" else torch.int64
    turned = "aten.t" in source
    lengths = (2, 4) if turned else (0, 1, 4)  # strides of 0 and 1 mean nothing
    calls = [[torch.arange(3 * n).reshape((3, n) if turned else (n, 3)).to(dtype), k]
             for n in lengths for k in (0, 1, 3)]  # fmt: skip
    made = agree(text, *calls, in_c=compiled(text).share().in_c)
    assert turned or not gave_up(made) and not made.in_python()
    agree(text, [calls[-1][0], -1])


@pytest.mark.parametrize("numbers", ["%n", "2, %n", "%k, %n", "%k, %n, 3", "0, %n, %k", "5", "1, 7", "1, 9, 4"])
@pytest.mark.parametrize(("kind", "dtype"), [
    ("i64", ""), ("f32", ", dtype=torch.float32"), ("i32", ", dtype=torch.int32"), ("f64", ", dtype=torch.float64"),
])  # fmt: skip
def test_ranges(numbers: str, kind: str, dtype: str) -> None:
    name = "arange.default" if numbers.count(",") == 0 else "arange.start" if numbers.count(",") == 1 else (
        "arange.start_step")  # fmt: skip
    text = f"""program "f" {{
      input %n : int = "n"
      input %k : int = "k"
      %x : {kind}[c] = aten.{name}({numbers}{dtype}, device=device("cpu"), pin_memory=False)
      %y : {kind}[c] = aten.neg.default(%x)
      return %x, %y as ($0, $1)
    }}"""
    in_c = compiled(text).share().in_c
    made = agree(text, *([n, k] for n in (3, 8, 100) for k in (1, 2, 3)), in_c=in_c)
    assert not gave_up(made) and "aten.arange" not in " ".join(made.in_python())
    agree(text, [0, 3], [-4, 2], [5, 0], [5, -1], in_c=in_c)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_of_any_layout(dim: int) -> None:
    """Transposed parts, parts that are nothing."""
    text = f"""program "f" {{
      input %x : f32[n, m] = "x"
      input %y : f32[m, n] = "y"
      input %e : f32[0] = "e"
      %t : f32[n, m] = aten.t.default(%y)
      %u : f32[n, m] = aten.neg.default(%x)
      %c : f32[a, b] = aten.cat.default([%e, %t, %u, %e], {dim})
      %d : f32[n, m] = aten.cat.default([%e, %t], {dim})
      %s : f32[a, b] = aten.exp.default(%c)
      return %s, %c, %d as ($0, $1, $2)
    }}"""
    made = agree(text, *([torch.randn(n, m), torch.randn(m, n), torch.empty(0)] for n, m in ((2, 3), (1, 1), (5, 4))),
                 rounding=1e-6)  # fmt: skip
    assert not gave_up(made)
