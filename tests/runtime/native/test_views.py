"""Views and reductions of every layout; slices as Python clips them."""

from __future__ import annotations

import itertools

import pytest
import torch

from tests.runtime.native.programs import agree, compiled, gave_up


def test_slices_are_clipped_as_pythons() -> None:
    text = """program "f" {
      input %x : f32[n, 2] = "x"
      input %a : int = "a"
      input %b : int = "b"
      %y : f32[k, 2] = aten.slice.Tensor(%x, 0, %a, %b)
      %z : f32[k, 2] = aten.exp.default(%y)
      return %z as $0
    }"""
    calls = [[torch.randn(5, 2), a, b] for a, b in itertools.product((-9, -5, -2, 0, 1, 4, 5, 9), repeat=2)]
    made = agree(text, *calls, rounding=1e-6)
    assert not gave_up(made)


@pytest.mark.sample(2)
@pytest.mark.parametrize("view", [
    "aten.transpose.int(%x, 0, 1)", "aten.permute.default(%x, [2, 0, 1])", "aten.unsqueeze.default(%x, 1)",
    "aten.select.int(%x, 1, 2)", "aten.select.int(%x, 0, -1)", "aten.slice.Tensor(%x, 2, 1, 3)",
    "aten.view.default(%x, [6, 4])", "aten.view.default(%x, [-1])", "aten.squeeze.dim(%x, 0)",
    "aten.expand.default(%x, [5, 2, 3, 4])", "aten.detach.default(%x)",
])  # fmt: skip
@pytest.mark.parametrize("use", ["aten.sum.default(%v)", "aten.mul.Tensor(%v, %v)", "aten.clone.default(%v)"])
def test_views_and_what_reads_them(view: str, use: str) -> None:
    shape = ", ".join(map(str, eval(view.replace("aten.", "torch.ops.aten.").replace("%x", "x"),
                                    {"torch": torch, "x": torch.empty(2, 3, 4)}).shape))  # fmt: skip
    out = "" if "sum" in use else shape
    text = f"""program "f" {{
      input %x : f32[2, 3, 4] = "x"
      %w : f32[2, 3, 4] = aten.neg.default(%x)
      %v : f32[{shape}] = {view.replace("%x", "%w")}
      %y : f32[{out}] = {use}
      return %y, %v as ($0, $1)
    }}"""
    made = agree(text, [torch.randn(2, 3, 4)], rounding=1e-5, in_c=compiled(text).share().in_c)
    assert not gave_up(made)


@pytest.mark.sample(3)
@pytest.mark.parametrize("kind", ["f32", "f64", "i64"])
@pytest.mark.parametrize("dims", [[0], [1], [2], [0, 1], [1, 2], [0, 2], [0, 1, 2], []])
@pytest.mark.parametrize("keep", [False, True])
def test_reductions_over_dimensions(kind: str, dims: list[int], keep: bool) -> None:
    gone = dims or [0, 1, 2]
    shape = ", ".join(str(1 if dim in gone else size) for dim, size in enumerate((2, 70, 5)) if keep or dim not in gone)
    dtype = {"f32": torch.float32, "f64": torch.float64, "i64": torch.int64}[kind]
    mean = f"%m : {kind}[{shape}] = aten.mean.dim(%x, {dims}, {keep})" if kind != "i64" else ""
    text = f"""program "f" {{
      input %x : {kind}[2, 70, 5] = "x"
      %s : {kind}[{shape}] = aten.sum.dim_IntList(%x, {dims}, {keep})
      {mean}
      %a : {kind}[{shape}] = aten.amax.default(%x, {dims}, {keep})
      return %s, {"%m," if mean else ""} %a as ($0, $1{", $2" if mean else ""})
    }}"""
    x = torch.randn(2, 70, 5, dtype=torch.float64).mul(10).to(dtype)
    agree(text, [x], rounding=1e-5)


def test_extremes_keep_nan() -> None:
    text = """program "f" {
      input %x : f32[n] = "x"
      %a : f32[] = aten.max.default(%x)
      %b : f32[] = aten.min.default(%x)
      %c : bool[n] = aten.isnan.default(%x)
      %d : bool[] = aten.any.default(%c)
      %e : f32[] = aten.linalg_vector_norm.default(%x)
      return %a, %b, %d, %e as ($0, $1, $2, $3)
    }"""
    nan = float("nan")
    agree(text, *([torch.tensor(one)] for one in ([1.0, nan, 2.0], [nan, 1.0], [1.0, -1.0], [-3.0])), rounding=1e-6)
    agree(text, [torch.zeros(0)])


def test_gradients_of_slices() -> None:
    text = """program "f" {
      input %g : f32[4] = "g"
      input %h : f32[3, 2] = "h"
      input %i : int = "i"
      %a : f32[3, 4] = aten.select_backward.default(%g, [3, 4], 0, %i)
      %b : f32[4, 3] = aten.select_backward.default(%g, [4, 3], 1, %i)
      %c : f32[3, 5] = aten.slice_backward.default(%h, [3, 5], 1, 1, 3, 1)
      %d : f32[9, 2] = aten.slice_backward.default(%h, [9, 2], 0, -4, -1, 1)
      return %a, %b, %c, %d as ($0, $1, $2, $3)
    }"""
    made = agree(text, *([torch.randn(4), torch.randn(3, 2), i] for i in (0, 2, -1)))
    assert not gave_up(made)
    agree(text, [torch.randn(4), torch.randn(3, 2), 7])


SOURCES = [
    "aten.neg.default(%x)", "aten.permute.default(%w, [2, 0, 1])", "aten.transpose.int(%w, 0, 1)",
    "aten.slice.Tensor(%w, 2, 1, 3)", "aten.slice.Tensor(%w, 0, 1, 2)", "aten.select.int(%w, 1, 1)",
    "aten.unsqueeze.default(%w, 0)", "aten.expand.default(%w, [2, 2, 6, 4])", "aten.transpose.int(%w, 1, 2)",
    "aten.slice.Tensor(%w, 1, 1, 6, 2)", "aten.slice.Tensor(%w, 2, 0, 9, 3)", "aten.mT.default(%w)",
    "aten.swapaxes.default(%w, 0, -1)",
]  # fmt: skip


def _shape(view: str, **tensors: torch.Tensor) -> torch.Size | None:
    """The sizes of a view of real tensors; None where PyTorch refuses it."""
    names = {"torch": torch, **tensors}
    for name in tensors:
        view = view.replace(f"%{name}", name)
    try:
        found = eval(view.replace("aten.", "torch.ops.aten."), names)
    except (RuntimeError, IndexError):
        return None
    assert isinstance(found, torch.Tensor)
    return found.shape


@pytest.mark.sample(12)
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("how", [
    "reshape.default({}, [-1])", "reshape.default({}, [2, -1])", "reshape.default({}, [-1, 2])",
    "reshape.default({}, [2, 1, -1, 2])", "view.default({}, [2, -1])", "view.default({}, [2, 3, 2, 2, 2])",
    "view.default({}, [1, 2, 6, 1, 2, 2])", "reshape.default({}, [1, 2, 6, 1, 2, 2])", "flatten.using_ints({})",
    "flatten.using_ints({}, 1)", "flatten.using_ints({}, 0, 1)", "flatten.using_ints({}, 1, 1)",
    "unsqueeze.default({}, 0)", "unsqueeze.default({}, 1)", "unsqueeze.default({}, -1)", "squeeze.dim({}, 0)",
    "squeeze.dim({}, 1)", "contiguous.default({})", "mT.default({})", "slice.Tensor({}, 0, 0, 9, 2)",
    "slice.Tensor({}, -1, 1, 9, 2)", "softmax.int({}, -1)", "repeat_interleave.self_int({}, 3, 1)",
    "repeat_interleave.self_int({}, 2, -1)", "stack.default([{}, {}], 1)", "stack.default([{}, {}], -1)",
    "stack.default([{}, {}])", "dropout.default({}, 0.5, False)", "dropout.default({}, 0.0, True)",
    "reshape.default({}, [4, 2, 6])", "reshape.default({}, [2, 6, 4])", "view.default({}, [2, 6, 2, 2])",
])  # fmt: skip
@pytest.mark.parametrize("open_", [False, True])
def test_other_sizes_of_every_layout(source: str, how: str, open_: bool) -> None:
    """Values, strides and whether it is a view: the sizes known, and left open."""
    x = torch.randn(2, 6, 4)
    first = _shape(source, x=x, w=x.neg())
    assert first is not None
    laid = eval(source.replace("aten.", "torch.ops.aten.").replace("%x", "x").replace("%w", "w"),
                {"torch": torch, "x": x, "w": x.neg()})  # fmt: skip
    second = _shape("aten." + how.replace("{}", "%v"), v=laid)
    if second is None:
        pytest.skip("PyTorch refuses it")

    def said(shape: torch.Size, letter: str) -> str:
        sizes = (f"{letter}{dim}" if open_ and size != 1 else str(size) for dim, size in enumerate(shape))
        return ", ".join(sizes)

    text = f"""program "f" {{
      input %x : f32[{"n, 6, 4" if open_ else "2, 6, 4"}] = "x"
      %w : f32[{"n, 6, 4" if open_ else "2, 6, 4"}] = aten.neg.default(%x)
      %v : f32[{said(first, "a")}] = {source}
      %y : f32[{said(second, "b")}] = aten.{how.replace("{}", "%v")}
      %e : f32[{said(second, "b")}] = aten.exp.default(%y)
      %z : f32[c] = aten.reshape.default(%e, [-1])
      return %y, %z as ($0, $1)
    }}"""
    agree(text, [x], [torch.randn(2, 6, 4)], rounding=1e-6, in_c=compiled(text).share().in_c)


@pytest.mark.parametrize("length", [0, 1, 2, 5])
def test_heads_are_put_side_by_side(length: int) -> None:
    """The reshape behind attention: a copy, but for one row a view."""
    text = """program "f" {
      input %x : f32[b, 4, l, 3] = "x"
      %n : int = scalar.size(%x, 2)
      %b : int = scalar.size(%x, 0)
      %w : f32[b, 4, l, 3] = aten.neg.default(%x)
      %t : f32[b, l, 4, 3] = aten.transpose.int(%w, 1, 2)
      %y : f32[b, l, 12] = aten.reshape.default(%t, [%b, %n, 12])
      %z : f32[b, l, 12] = aten.exp.default(%y)
      return %y, %z as ($0, $1)
    }"""
    made = agree(text, [torch.randn(2, 4, length, 3)], [torch.randn(1, 4, length, 3)], rounding=1e-6)
    assert bool(gave_up(made)) == (not length)


def test_parts_of_sizes() -> None:
    text = """program "f" {
      input %x : f32[n, 6] = "x"
      %w : f32[n, 6] = aten.neg.default(%x)
      %a : f32[n, 1], %b : f32[n, 3], %c : f32[n, 2] = aten.split_with_sizes.default(%w, [1, 3, 2], -1)
      %d : f32[2, 6], %e : f32[0, 6], %f : f32[3, 6] = aten.split.sizes(%w, [2, 0, 3])
      %g : f32[n, 3] = aten.exp.default(%b)
      return %a, %c, %d, %e, %f, %g as ($0, $1, $2, $3, $4, $5)
    }"""
    made = agree(text, [torch.randn(5, 6)], rounding=1e-6)
    assert not gave_up(made)
    agree(text, [torch.randn(4, 6)])
