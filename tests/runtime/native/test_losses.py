"""Losses of classes in C: reductions, classes that do not count or do not exist, both gradient roads."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from dy2static import to_static
from tests.runtime.native.programs import agree

HEAD = """program "f" {
  input %x : DTYPE[n, 5] = "x"
  input %t : i64[n] = "t"
  input %g : DTYPE[] = "g"
"""
NLL = HEAD + """  %y : DTYPE[], %c : DTYPE[] = aten.nll_loss_forward.default(%x, %t, None, REDUCTION, IGNORED)
  %d : DTYPE[n, 5] = aten.nll_loss_backward.default(%g, %x, %t, None, REDUCTION, IGNORED, %c)
  return %y, %c, %d as ($0, $1, $2)
}"""
CROSS = HEAD + """  %y : DTYPE[SIZES] = aten.cross_entropy_loss.default(%x, %t, None, REDUCTION, IGNORED)
  return %y as $0
}"""
TARGETS = [[0, 4, 2, 1], [-100, 3, 3, -100], [-100, -100], [2, 5], [-1, 0], [0], []]


def calls(dtype: torch.dtype) -> list[list[torch.Tensor]]:
    generator = torch.Generator().manual_seed(0)
    made = [[3 * torch.randn(len(one), 5, generator=generator, dtype=dtype), torch.tensor(one, dtype=torch.int64),
             torch.tensor(0.7, dtype=dtype)] for one in TARGETS]  # fmt: skip
    special = made[0][0].clone()
    special[0, 1], special[1, 2], special[2] = float("inf"), float("nan"), float("-inf")
    return [*made, [special, *made[0][1:]]]


@pytest.mark.sample(3)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("reduction", [0, 1, 2])
@pytest.mark.parametrize("ignored", [-100, 3, -1])
@pytest.mark.parametrize("text", [NLL, CROSS])
def test_classes(dtype: torch.dtype, reduction: int, ignored: int, text: str) -> None:
    """Where a class does not exist Python raises what eager raises."""
    if text is NLL and not reduction:
        return
    for old, new in (("DTYPE", "f32" if dtype is torch.float32 else "f64"), ("REDUCTION", str(reduction)),
                     ("IGNORED", str(ignored)), ("SIZES", "" if reduction else "n")):  # fmt: skip
        text = text.replace(old, new)
    agree(text, *calls(dtype), rounding=1e-5 if dtype is torch.float32 else 1e-12)


@pytest.mark.parametrize("text", [
    CROSS.replace("%t, None", "%t, %w").replace('"g"', '"g"\n  input %w : DTYPE[5] = "w"'),
    CROSS.replace("IGNORED)", "IGNORED, 0.1)"),
])  # fmt: skip
def test_others_are_pythons(text: str) -> None:
    for old, new in (("DTYPE", "f32"), ("REDUCTION", "1"), ("IGNORED", "-100"), ("SIZES", "")):
        text = text.replace(old, new)
    given = [[*one, torch.rand(5)] if "%w" in text else one for one in calls(torch.float32)[:3]]
    agree(text, *given, rounding=1e-5, in_c=0)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_gradients(reduction: str) -> None:
    def loss(x: torch.Tensor, t: torch.Tensor) -> torch.Tensor:
        y = F.cross_entropy(x * 2.0, t, reduction=reduction)
        if y > 0:
            y = y * 3.0
        return y

    static = to_static(loss, backend="c")
    x, t = torch.randn(6, 5, requires_grad=True), torch.tensor([0, 1, -100, 4, 2, 2])
    for _ in range(3):
        got, expected = (torch.autograd.grad(run(x, t), [x])[0] for run in (static, loss))
        torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
