"""The gradient of the negative log likelihood: a stage of the kernel that reads it; run on the CPU."""

from __future__ import annotations

import pytest
import torch

from tests import devices
from tests.runtime.kernels.host import Host
from tests.runtime.kernels.programs import agree, compiled, randoms

_TEXT = """program "f" {
  input %g : KIND[] = "g"
  input %y : KIND[a, n] = "y"
  input %t : i64[a] = "t"
  input %c : KIND[] = "c"
  %d : KIND[a, n] = aten.nll_loss_backward.default(%g, %y, %t, None, HOW, 1, %c)
  %e : KIND[a, n] = aten._log_softmax_backward_data.default(%d, %y, 1, torch.DTYPE)
  return %d, %e as ($0, $1)
}"""


def _text(dtype: torch.dtype, how: int) -> str:
    kind = {torch.float32: "f32", torch.float64: "f64", torch.bfloat16: "bf16"}[dtype]
    return _TEXT.replace("KIND", kind).replace("HOW", str(how)).replace("torch.DTYPE", str(dtype))


@pytest.mark.parametrize("how", [1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_nll_backward(host: Host, dtype: torch.dtype, how: int) -> None:
    """Rows of class 1 do not count; one kernel does both Operators."""
    calls = []
    for a, n in [(5, 3), (1, 2), (40, 70)]:
        g, y = randoms(dtype, (), (a, n))
        target = torch.arange(a) % n
        calls.append([g, y.log_softmax(1), target, (target != 1).sum().to(dtype)])
    agree(_text(dtype, how), *calls, rounding={torch.float32: 1e-6, torch.bfloat16: 1e-2}.get(dtype, 1e-12), kernels=1)


@pytest.mark.skipif(devices.on_cuda(), reason="the device would be lost for the tests that follow in the process")
@pytest.mark.parametrize("wrong", [3, -1])
def test_a_class_that_there_is_not(host: Host, wrong: int) -> None:
    """The device stops, as with PyTorch's kernel."""
    g, y = randoms(torch.float32, (), (2, 3))
    with pytest.raises(RuntimeError, match="device-side assert"):
        compiled(_text(torch.float32, 1)).run([g, y, torch.tensor([0, wrong]), torch.tensor(2.0)], [])
