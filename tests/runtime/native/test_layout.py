"""Arguments that lie in memory in every way: C is written once more for each, and gives what the interpreter gives."""

from __future__ import annotations

import pytest
import torch

from runtime.native.layout import Layout, layout_of, order_of
from tests.runtime.native.programs import agree, compiled, gave_up

WAYS = {
    "rows": lambda: torch.randn(4, 6, 8),
    "first of each row": lambda: torch.randn(4, 6, 11)[:, :, :8],
    "last of each row": lambda: torch.randn(4, 6, 11)[:, :, 3:],
    "every second": lambda: torch.randn(4, 6, 16)[:, :, ::2],
    "every second row": lambda: torch.randn(4, 12, 8)[:, ::2],
    "some rows": lambda: torch.randn(4, 9, 8)[:, 2:8],
    "a half, turned": lambda: torch.randn(4, 16, 6).chunk(2, 1)[1].transpose(1, 2),
    "all but the first, turned": lambda: torch.randn(7, 6, 8)[3:].permute(0, 1, 2),
    "outermost is innermost": lambda: torch.randn(6, 8, 5).permute(2, 0, 1)[:4],
    "one of the last dimension": lambda: torch.randn(4, 6, 8, 3)[..., 1],
    "one of the first dimension": lambda: torch.randn(4, 3, 6, 8)[:, 1],
    "expanded rows": lambda: torch.randn(4, 1, 8).expand(4, 6, 8),
    "expanded elements": lambda: torch.randn(4, 6, 1).expand(4, 6, 8),
    "one element": lambda: torch.randn(1, 1, 1).expand(4, 6, 8),
    "windows": lambda: torch.randn(4, 13).unfold(1, 8, 1),
    "turned": lambda: torch.randn(8, 6, 4).permute(2, 1, 0),
}
BODIES = {
    "elements": "%r : f32[a, b, c] = aten.exp.default(%x)\n%s : f32[a, b, c] = aten.mul.Tensor(%r, %x)",
    "sums": "%r : f32[a, c] = aten.sum.dim_IntList(%x, [1])\n%s : f32[a, c] = aten.neg.default(%r)",
    "sums of rows": "%r : f32[a, b] = aten.mean.dim(%x, [-1])\n%s : f32[a, b] = aten.neg.default(%r)",
    "rows": "%r : f32[a, b, c] = aten._softmax.default(%x, 2, False)\n%s : f32[a, b, c] = aten.neg.default(%r)",
    "products": "%r : f32[a, c, b] = aten.transpose.int(%x, 1, 2)\n%s : f32[a, b, b] = aten.bmm.default(%x, %r)",
    "views": "%r : f32[a, c, b] = aten.transpose.int(%x, 1, 2)\n%s : f32[a, c, b] = aten.neg.default(%r)",
    "part": "%r : f32[a, 6] = aten.select.int(%x, 2, 1)\n%s : f32[a, 6] = aten.neg.default(%r)",
    "joined": "%r : f32[24, 8] = aten.reshape.default(%x, [24, 8])\n%s : f32[24, 8] = aten.neg.default(%r)",
    "joined behind": "%r : f32[4, 48] = aten.reshape.default(%x, [4, 48])\n%s : f32[4, 48] = aten.neg.default(%r)",
    "split": "%r : f32[4, 6, 2, 4] = aten.reshape.default(%x, [4, 6, 2, 4])\n"
             "%s : f32[4, 6, 2, 4] = aten.neg.default(%r)",
    "beside another": "%r : f32[a, b, c] = aten.add.Tensor(%x, %y)\n%s : f32[a, b, c] = aten.mul.Tensor(%r, %y)",
    "side by side": "%r : f32[a, b, c] = aten.neg.default(%x)\n%s : f32[a, b, 2 c] = aten.cat.default([%x, %r], 2)",
    "chosen": "%m : bool[a, b, 1] = aten.gt.Scalar(%z, 0.0)\n%r : f32[a, b, c] = aten.where.self(%m, %x, %y)",
    "one of some": "%r : f32[a, b, c] = aten.mul.Tensor(%x, %z)\n%s : f32[a, b, c] = aten.add.Tensor(%z, %x)",
    "rows and gradients": "%r : f32[a, b, c] = aten._softmax_backward_data.default(%x, %y, 2, torch.float32)\n"
                          "%s : f32[a, b, c] = aten.neg.default(%r)",
    "norms": "%r : f32[a, b, c] = aten.layer_norm.default(%x, [8])\n%s : f32[a, b, c] = aten.neg.default(%r)",
    "sums over two": "%r : f32[1, b, 1] = aten.sum.dim_IntList(%x, [0, 2], True)\n"
                     "%s : f32[1, b, 1] = aten.neg.default(%r)",
    "numbers of the largest": "%r : i64[a, b] = aten.argmax.default(%x, 2)\n%s : i64[a, b] = aten.neg.default(%r)",
    "itself": "%r : f32[a, b, c] = aten.neg.default(%x)\n%s : f32[a, b, c] = aten.detach.default(%x)",
}


def _program(body: str, sizes: str) -> str:
    text = BODIES[body].replace("2 c", "d")
    if sizes == "known":
        for letter, size in zip("abcd", (4, 6, 8, 16)):
            text = text.replace(f"[{letter}, ", f"[{size}, ").replace(f", {letter}]", f", {size}]")
            text = text.replace(f", {letter}, ", f", {size}, ")
    dims = "4, 6, 8" if sizes == "known" or "4" in text else "a, b, c"
    kinds = [line.split(" = ")[0] for line in text.splitlines()]
    return (f'program "f" {{\n  input %x : f32[{dims}] = "x"\n  input %y : f32[{dims}] = "y"\n'
            f'  input %z : f32[{dims.rpartition(", ")[0]}, 1] = "z"\n  {text}\n'
            f"  return {', '.join(kind.split(' : ')[0] for kind in kinds)} as ($0, $1)\n}}")  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize("sizes", ["known", "open"])
@pytest.mark.parametrize("body", BODIES)
@pytest.mark.parametrize("way", WAYS)
def test_as_the_interpreter(way: str, body: str, sizes: str) -> None:
    """Values, strides, which results are views, whether the layout comes first, or after another."""
    rows, thin, other = torch.randn(4, 6, 8), torch.randn(4, 6, 1), torch.randn(6, 4, 8).transpose(0, 1)
    text = _program(body, sizes)
    x = WAYS[way]()
    pairs = (x, rows), (rows, x), (x, x), (x, other), (rows, rows), (x, rows)
    made = agree(text, *[[one, two, thin] for one, two in pairs], rounding=2e-5)
    for _ in range(6):
        made.run([x, rows, thin], [])
    if layout_of(x) is not None or way == "rows":
        assert not gave_up(made)


@pytest.mark.parametrize("way", [way for way in WAYS if way != "rows"])
def test_a_view_of_an_argument_has_its_memory(way: str) -> None:
    """A result that eager makes a view of the argument is one, wherever the argument's elements lie."""
    x = WAYS[way]()
    made = compiled(_program("views", "known"))
    for number in range(5):
        turned, negative = made.run([x, torch.randn(4, 6, 8), torch.randn(4, 6, 1)], [])
        assert turned.untyped_storage().data_ptr() == x.untyped_storage().data_ptr()
        assert turned.storage_offset() == x.storage_offset() and turned.stride() == x.transpose(1, 2).stride()
        assert torch.equal(negative, -x.transpose(1, 2)), number


@pytest.mark.parametrize("way", WAYS)
def test_what_is_said_of_memory(way: str) -> None:
    """The order has the strides in descending order; what is said to lie side by side does."""
    x = WAYS[way]()
    layout = layout_of(x)
    if x.is_contiguous():
        assert layout is None
    elif layout is not None:
        assert sorted(layout.order) == [0, 1, 2]
        moving = [x.stride(dim) for dim in layout.order if x.stride(dim)]
        assert moving == sorted(moving, reverse=True)
        assert layout.strided != x.permute(layout.order).is_contiguous()
        assert layout.unit == (layout.strided and x.stride(layout.order[-1]) == 1)
        assert all(x.stride(dim) == 0 for dim in layout.still)


def test_where_the_order_is_not_certain() -> None:
    """Windows have two dimensions with one stride: that is nobody's order."""
    assert order_of((4, 4), (1, 1)) is None and layout_of(torch.randn(13).unfold(0, 8, 1)) is None
    assert layout_of(torch.randn(3, 1, 4).transpose(0, 1)[:, 1:]) is None  # dense, as PyTorch says: one row less
    assert layout_of(torch.randn(3, 5).t()) == Layout((1, 0))
    assert layout_of(torch.randn(3, 5)[:, :4]) == Layout((0, 1), True, True)
    assert layout_of(torch.randn(3, 8)[:, ::2]) == Layout((0, 1), True, False)


def test_strides_that_differ_from_call_to_call() -> None:
    """One C serves rows with any distance between them."""
    wide = [torch.randn(4, 6, 8 + more)[:, :, :8] for more in range(1, 5)]
    rest = [torch.randn(4, 6, 8), torch.randn(4, 6, 1)]
    made = agree(_program("elements", "open"), *[[one, *rest] for one in wide], rounding=1e-6)
    (one,) = made.written.compiled
    assert len(one.variants) == 1
