"""Batch normalisation in eval becomes part of the convolution before it, where that is exact but for rounding."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import BuildStrategy, to_static
from runtime.ir.parser import parse_program
from runtime.ir.printer import print_program
from runtime.ir.verify import verify
from runtime.passes import fold_conv_bn

FOLDING = BuildStrategy(fold_conv_bn=True)

BEFORE = """program "p" {
  input %x : f32[n, 3, h, w] = "x"
  param %k : f32[4, 3, 3, 3] "k" = "k" parameter
  param %b : f32[4] "b" = "b" parameter
  param %g : f32[4] "g" = "g" parameter
  param %e : f32[4] "e" = "e" parameter
  param %m : f32[4] "m" = "m" buffer
  param %v : f32[4] "v" = "v" buffer
  %y : f32[n, 4, i, j] = aten.conv2d.default(%x, %k, %b, [1, 1], [1, 1])
  %z : f32[n, 4, i, j] = aten.batch_norm.default(%y, %g, %e, %m, %v, False, 0.1, 1e-05, True)
  return %z as $0
}
"""

AFTER = """program "p" {
  input %x : f32[n, 3, h, w] = "x"
  param %k : f32[4, 3, 3, 3] "k" = "k" parameter
  param %b : f32[4] "b" = "b" parameter
  param %g : f32[4] "g" = "g" parameter
  param %e : f32[4] "e" = "e" parameter
  param %m : f32[4] "m" = "m" buffer
  param %v : f32[4] "v" = "v" buffer
  %0 : f32[4] = aten.add.Scalar(%v, 1e-05)
  %1 : f32[4] = aten.rsqrt.default(%0)
  %2 : f32[4] = aten.mul.Tensor(%1, %g)
  %3 : f32[4, 1, 1, 1] = aten.view.default(%2, [4, 1, 1, 1])
  %4 : f32[4, 3, 3, 3] = aten.mul.Tensor(%k, %3)
  %5 : f32[4] = aten.sub.Tensor(%b, %m)
  %6 : f32[4] = aten.mul.Tensor(%5, %2)
  %7 : f32[4] = aten.add.Tensor(%6, %e)
  %z : f32[n, 4, i, j] = aten.conv2d.default(%x, %4, %7, [1, 1], [1, 1])
  return %z as $0
}
"""


def test_as_text() -> None:
    program = parse_program(BEFORE)
    assert fold_conv_bn.fold(program) == 1
    verify(program)
    assert print_program(program) == print_program(parse_program(AFTER))


@pytest.mark.parametrize(("old", "new"), [
    ("False, 0.1", "True, 0.1"),  # training
    ("return %z as $0", "return %z, %y as ($0, $1)"),  # somebody else reads the convolution
    ("%x : f32[n, 3, h, w]", "%x : f64[n, 3, h, w]"),  # several dtypes
    ("%x : f32[n, 3, h, w]", "%x : f32[3, h, w]"),  # no batch: the norm takes rows for channels
    ("%x : f32[n, 3, h, w]", "%x : f32[*]"),  # of a rank that nobody knows
    ("aten.conv2d.default(%x", "aten.conv_transpose2d.input(%x"),
    ("%m, %v, False", "None, None, False"),  # statistics of the batch
])  # fmt: skip
def test_what_stays(old: str, new: str) -> None:
    assert old in BEFORE
    program = parse_program(BEFORE.replace(old, new))
    text = print_program(program)
    assert fold_conv_bn.fold(program) == 0 and print_program(program) == text


def test_what_the_program_writes_stays() -> None:
    class Moving(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.norm = nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.norm.running_mean.mul_(0.5)  # type: ignore[union-attr, operator]
            return self.norm(self.conv(x))

    torch.manual_seed(0)
    module, twin = Moving().eval(), Moving().eval()
    twin.load_state_dict(module.state_dict())
    static = to_static(module, build_strategy=FOLDING)
    x = torch.randn(2, 3, 6, 6)
    for _ in range(2):
        assert torch.equal(static(x), twin(x))
    assert "aten.batch_norm" in print_program(static.forward.program)


def trained(module: nn.Module) -> nn.Module:
    """With statistics and weights that say something."""
    for one in module.modules():
        if isinstance(one, nn.modules.batchnorm._BatchNorm):
            for tensor in (one.running_mean, one.running_var, one.weight, one.bias):
                if tensor is not None:
                    tensor.data.uniform_(0.3, 2.0)
    return module


MODULES: list[tuple[Callable[[], nn.Module], tuple[int, ...]]] = [
    (lambda: nn.Sequential(nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU()), (2, 3, 9)),
    (lambda: nn.Sequential(nn.Conv2d(4, 4, 3, groups=4, bias=False, stride=2), nn.BatchNorm2d(4)), (2, 4, 9, 8)),
    (lambda: nn.Sequential(nn.Conv3d(2, 3, 2, padding=1), nn.BatchNorm3d(3, affine=False)), (1, 2, 4, 4, 4)),
    (lambda: nn.Sequential(nn.Conv2d(2, 3, 1), nn.BatchNorm2d(3), nn.Conv2d(3, 2, 1), nn.BatchNorm2d(2)).double(),
     (2, 2, 5, 5)),
]  # fmt: skip


@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize(("make", "shape"), MODULES)
def test_values_and_gradients_are_eagers_but_for_rounding(make: Any, shape: tuple[int, ...], backend: str) -> None:
    torch.manual_seed(0)
    module = trained(make()).eval()
    dtype = next(module.parameters()).dtype
    x = torch.randn(shape, dtype=dtype)
    with torch.no_grad():
        expected = module(x)
    module(x).square().sum().backward()
    gradients = {name: one.grad.clone() for name, one in module.named_parameters()}
    module.zero_grad()
    static: Any = to_static(module, build_strategy=FOLDING, backend=backend)
    with torch.no_grad():
        torch.testing.assert_close(static(x), expected, rtol=1e-4, atol=1e-5)
    assert "aten.batch_norm" not in print_program(static.forward.program)
    static(x).square().sum().backward()
    for name, one in static.named_parameters():
        torch.testing.assert_close(one.grad, gradients[name], rtol=1e-3, atol=1e-3)


def test_weights_are_those_of_the_call() -> None:
    torch.manual_seed(0)
    module = trained(nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))).eval()
    static: Any = to_static(module, build_strategy=FOLDING)
    x = torch.randn(1, 2, 5, 5)
    with torch.no_grad():
        static(x)
        static[0].weight.mul_(3.0)
        static[1].running_var.add_(1.0)
        torch.testing.assert_close(static(x), nn.Sequential(*static)(x), rtol=1e-5, atol=1e-5)


def test_training_is_as_it_was_and_off_by_default() -> None:
    torch.manual_seed(0)
    x = torch.randn(4, 2, 5, 5)
    module = nn.Sequential(nn.Conv2d(2, 3, 3), nn.BatchNorm2d(3))
    expected = module(x)
    module[1].reset_running_stats()  # type: ignore[operator]
    static: Any = to_static(module, build_strategy=FOLDING)
    assert torch.equal(static(x), expected)
    module.eval()
    plain: Any = to_static(nn.Sequential(*module))
    with torch.no_grad():
        plain.eval()(x)
    assert "aten.batch_norm" in print_program(plain.forward.program)
