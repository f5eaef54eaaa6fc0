"""Functions of ours on floats: relative errors over all of float32 by sampling, and exact values at the edges."""

from __future__ import annotations

import pytest
import torch

from tests.runtime.native.programs import compiled

_TEXT = """program "f" {
  input %a : f32[n] = "a"
  %z : f32[n] = aten.NAME.default(%a)
  return %z as $0
}"""
_EDGES = {
    "exp": [(0.0, 1.0), (-0.0, 1.0), (float("inf"), float("inf")), (float("-inf"), 0.0), (88.8, float("inf")),
            (-104.0, 0.0)],
    "tanh": [(0.0, 0.0), (-0.0, -0.0), (float("inf"), 1.0), (float("-inf"), -1.0), (20.0, 1.0), (1e-45, 1e-45)],
    "erf": [(0.0, 0.0), (-0.0, -0.0), (float("inf"), 1.0), (float("-inf"), -1.0), (5.0, 1.0)],
    "sigmoid": [(0.0, 0.5), (float("inf"), 1.0), (float("-inf"), 0.0)],
}  # fmt: skip


def _samples(step: int) -> torch.Tensor:
    """Every so manieth float32 there is, by its bits."""
    return torch.arange(-(2**31), 2**31, step).to(torch.int32).view(torch.float32)


@pytest.mark.parametrize("name", _EDGES)
def test_errors(name: str) -> None:
    """At most 2e-7 where the result is a normal number, in whole vectors and in what is left over."""
    program = compiled(_TEXT.replace("NAME", name))
    x = _samples(1499)
    (got,) = program.run([x], [])
    expected = getattr(torch, name)(x.double())
    assert torch.equal(got.isnan(), x.isnan())
    normal = (expected.abs() >= 2.0**-126) & (expected.abs() < 2.0**127) & ~x.isnan()
    if name == "sigmoid":  # as eager's formula has it: exp(-x) is infinite below
        normal &= x > -88.0
    error = ((got.double() - expected).abs() / expected.abs())[normal]
    assert error.numel() > 500_000 and error.max() <= 2e-7
    small = (expected.abs() < 2.0**-126) & ~x.isnan() & (name != "sigmoid")
    assert ((got.double() - expected).abs()[small] <= 2.0**-149).all()
    for count in (1, 3, 7, 17, 40):
        (part,) = program.run([x[:count].contiguous()], [])
        torch.testing.assert_close(part, got[:count], rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("name", _EDGES)
def test_edges(name: str) -> None:
    """Exact, the sign of zero included."""
    program = compiled(_TEXT.replace("NAME", name))
    given, expected = (torch.tensor(column) for column in zip(*_EDGES[name]))
    (got,) = program.run([given], [])
    assert torch.equal(got, expected) and torch.equal(got.signbit(), expected.signbit())
    assert program.run([torch.tensor([float("nan")])], [])[0].isnan().all()
