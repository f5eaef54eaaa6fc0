"""Products in C: every kernel, sizes around the vectors' widths, transposed operands."""

from __future__ import annotations

import pytest
import torch

from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.native import NativeExecutable, compile_program

_TEXT = """program "f" {
  input %a : DTYPE[SA] = "a"
  input %b : DTYPE[SB] = "b"
  input %c : DTYPE[n] = "c"
  %x : DTYPE[m, k] = LEFT
  %y : DTYPE[k, n] = RIGHT
  %z : DTYPE[m, n] = aten.mm.default(%x, %y)
  %s : DTYPE[m, n] = aten.addmm.default(%c, %x, %y)
  return %z, %s as ($0, $1)
}"""


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("right", [False, True])
def test_matrices(dtype: torch.dtype, left: bool, right: bool) -> None:
    """One library serves all sizes."""
    turned = "aten.t.default({})"
    text = _TEXT.replace("DTYPE", "f32" if dtype is torch.float32 else "f64")
    text = text.replace("SA", "k, m" if left else "m, k").replace("SB", "n, k" if right else "k, n")
    text = text.replace("LEFT", turned.format("%a") if left else "aten.neg.default(%a)")
    text = text.replace("RIGHT", turned.format("%b") if right else "aten.neg.default(%b)")
    program = parse_program(text)
    mine, reference = compile_program(program), interpreted(program)
    assert isinstance(mine, NativeExecutable) and mine.share().in_c == 4
    generator = torch.Generator().manual_seed(0)
    for m, k, n in [(1, 1, 1), (1, 64, 70), (4, 16, 48), (3, 5, 7), (5, 33, 65), (2, 100, 130), (40, 50, 60), (0, 3, 2),
                    (3, 0, 2), (9, 70, 200), (37, 21, 1),
                    (5, 300, 10), (2, 70, 33)]:  # fmt: skip
        a = torch.randn((k, m) if left else (m, k), generator=generator, dtype=dtype)
        b = torch.randn((n, k) if right else (k, n), generator=generator, dtype=dtype)
        c = torch.randn(n, generator=generator, dtype=dtype)
        for got, expected in zip(mine.run([a, b, c], []), reference.run([a, b, c], [])):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)
    assert all(not region.failures for region in mine.written.compiled)
