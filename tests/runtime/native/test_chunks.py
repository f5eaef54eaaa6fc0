"""Products of rows, computed ahead of the loop that takes them: every form, both directions, all lengths."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from dy2static import InputSpec, to_static
from runtime.ir.parser import parse_program
from runtime.native import chunks, compile_program
from runtime.native.executable import NativeExecutable
from tests.runtime.native.programs import agree

HEAD = """program "f" {
  input %x : f32[s0, 2, 5] = "x"
  input %h : f32[2, 7] = "h"
  input %w : f32[5, 7] = "w"
  input %v : f32[7, 5] = "v"
  input %b : f32[7] = "b"
  input %n : int = "n"
  input %m : int = "m"
"""
FORMS = {
    "mm": "%y : f32[2, 7] = aten.mm.default(%row, %w)",
    "matmul": "%y : f32[2, 7] = aten.matmul.default(%row, %w)",
    "addmm": "%y : f32[2, 7] = aten.addmm.default(%b, %row, %w)",
    "linear": "%y : f32[2, 7] = aten.linear.default(%row, %v, %b)",
    "linear without bias": "%y : f32[2, 7] = aten.linear.default(%row, %v)",
}


def counted(form: str, step: str = "scalar.add(%j, 1)", more: str = "scalar.lt(%next, %n)", first: str = "0",
            end: str = "%z", also: str = "") -> str:  # fmt: skip
    return f"""{HEAD}
  %go : bool = scalar.lt(0, %n)
  %flag : bool, %number : int, %last : f32[2, 7] = while_loop(%go, {first}, %h) {{
    ^(%f : bool, %k : int, %g0 : f32[2, 7]):
      yield %f
  }} {{
    ^(%f1 : bool, %j : int, %g : f32[2, 7]):
      %row : f32[2, 5] = aten.select.int(%x, 0, %j)
      {form}
{also}      %u : f32[2, 7] = aten.tanh.default(%g)
      %z : f32[2, 7] = aten.add.Tensor(%y, %u)
      %next : int = {step}
      %again : bool = {more}
      yield %again, %next, {end}
  }}
  return %last as $0
}}"""


def scanned(form: str, attrs: str) -> str:
    return f"""{HEAD}
  %last : f32[2, 7], %all : f32[s1, 2, 7] = scan(%n, %h, %x) {{
    ^(%j : int, %g : f32[2, 7], %row : f32[2, 5]):
      {form}
      %u : f32[2, 7] = aten.tanh.default(%g)
      %z : f32[2, 7] = aten.add.Tensor(%y, %u)
      yield %z, %z
  }} attrs {{carried: 1{attrs}}}
  return %last, %all as ($0, $1)
}}"""


def calls(*pairs: tuple[int, int]) -> list[Any]:
    generator = torch.Generator().manual_seed(0)

    def made(*sizes: int) -> torch.Tensor:
        return torch.randn(*sizes, generator=generator)

    return [[made(rows, 2, 5), made(2, 7), made(5, 7), made(7, 5), made(7), count, 1] for rows, count in pairs]


LENGTHS = [(1, 1), (3, 3), (4, 4), (5, 5), (12, 12), (13, 13), (40, 40), (40, 7), (3, 0), (3, -1), (3, 4), (0, 0),
           (30, 31)]  # fmt: skip


def ahead(executable: NativeExecutable) -> bool:
    """Whether products are computed ahead: that asks for the memory of more than one row."""
    return f"+ {2 * chunks.FIRST}" in executable.c_source() or f": {chunks.FIRST})" in executable.c_source()


@pytest.mark.parametrize("form", list(FORMS))
def test_forwards(form: str) -> None:
    """As many rows as there are, fewer, and more: an index that is out of range is Python's to refuse."""
    assert ahead(agree(counted(FORMS[form]), *calls(*LENGTHS), rounding=1e-5))


@pytest.mark.parametrize("form", list(FORMS))
def test_backwards(form: str) -> None:
    text = counted(FORMS[form], "scalar.sub(%j, 1)", "scalar.ge(%next, 0)", "%m")
    given = calls(*LENGTHS)
    for one in given:
        one[-1] = one[-2] - 1
    assert ahead(agree(text, *given, rounding=1e-5))


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("attrs", ["", ", reverse: True"])
def test_scans(form: str, attrs: str) -> None:
    lengths = [pair for pair in LENGTHS if pair[1] > 0 and pair[1] <= pair[0]]
    assert ahead(agree(scanned(FORMS[form], attrs), *calls(*lengths), rounding=1e-5))


@pytest.mark.parametrize("text", [
    pytest.param(counted(FORMS["mm"], step="scalar.add(%j, 2)"), id="every second row"),
    pytest.param(counted(FORMS["mm"], end="%y"), id="what leaves the loop is a tensor of its own"),
    pytest.param(counted(FORMS["mm"].replace("%w", "%w2"), also="").replace(
        "      %y :", "      %w2 : f32[5, 7] = aten.mul.Tensor(%w, %j)\n      %y :"), id="a matrix that changes"),
    pytest.param(counted("""%y : f32[2, 7] = cond(%f1) {
        %q : f32[2, 7] = aten.mm.default(%row, %w)
        yield %q
      } {
        yield %g
      }"""), id="on a path"),
    pytest.param(counted("""%y : f32[2, 7] = aten.mm.default(%row, %w)
      %e : f32[2, 7] = update(%y) {
        ^(%a : f32[2, 7]):
          %c : f32[2, 7] = aten.mul_.Scalar(%a, 2.0)
          yield %a
      }""").replace("aten.add.Tensor(%y, %u)", "aten.add.Tensor(%e, %u)"), id="what is written"),
])  # fmt: skip
def test_one_by_one(text: str) -> None:
    lengths = [pair for pair in LENGTHS if pair != (30, 31) and pair != (3, 4)]
    made = agree(text, *calls(*lengths), rounding=1e-5)
    assert not ahead(made)


def test_big_results_are_not_computed_ahead() -> None:
    text = counted(FORMS["mm"]).replace("f32[2, 7]", "f32[2, 70000]").replace("f32[5, 7]", "f32[5, 70000]")
    program = parse_program(text)
    mine = compile_program(program)
    assert isinstance(mine, NativeExecutable) and not ahead(mine)


@pytest.mark.parametrize(("batch", "columns", "most"), [(2, 7, 16), (8, 7, 8), (16, 4096, 0), (32, 7, 2), (40, 7, 0),
                                                      (2, 4096, 8)])  # fmt: skip
def test_how_many_are_computed_at_once(batch: int, columns: int, most: int) -> None:
    """As many as gain something, in memory of C's own."""
    text = counted(FORMS["mm"]).replace("f32[2, 7]", f"f32[{batch}, {columns}]")
    text = text.replace("f32[5, 7]", f"f32[5, {columns}]").replace("[s0, 2, 5]", f"[s0, {batch}, 5]")
    made = compile_program(parse_program(text.replace("f32[2, 5]", f"f32[{batch}, 5]")))
    assert isinstance(made, NativeExecutable)
    if not most:
        assert not ahead(made)
        return
    bytes_ = batch * columns * 4
    assert f"d2s_new(c, {most} * {batch * columns} * 4)" in made.c_source()
    assert most * bytes_ <= chunks.ROOM == 1 << 18 and most * batch <= chunks.ROWS


class Net(nn.Module):
    """A loop that may end early."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.state = nn.Linear(6, 8), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, h: torch.Tensor) -> torch.Tensor:
        """The last state."""
        for row in x:
            h = torch.tanh(self.inner(row) + self.state(h))
            if h.sum() > 3.0:
                break
        return h


@pytest.mark.sample(2)
@pytest.mark.parametrize("batch", [(), (3,), (2, 3)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_functions(batch: tuple[int, ...], dtype: torch.dtype) -> None:
    """Values and gradients, those of the rows among them; rows of any rank, any number of them."""
    torch.manual_seed(1)
    net = Net().to(dtype)
    static = to_static(net.forward, backend="c", input_spec=[InputSpec([None, *batch, 6], dtype),
                                                            InputSpec([*batch, 8], dtype)])  # fmt: skip
    for rows in (1, 2, 9, 33):
        x, h = torch.randn(rows, *batch, 6, dtype=dtype), torch.randn(*batch, 8, dtype=dtype)
        with torch.no_grad():
            torch.testing.assert_close(static(x, h), net(x, h), rtol=1e-5, atol=1e-6)
        given = x.clone().requires_grad_()
        wanted = [given, *net.parameters()]
        got, expected = (torch.autograd.grad(run(given, h).sum(), wanted) for run in (static, net))
        for one, other in zip(got, expected, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)
