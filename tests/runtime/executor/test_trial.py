"""What is tried before a Program is saved: it keeps the rules that a loader asks for."""

from __future__ import annotations

import pytest
import torch

from runtime.errors import InternalError
from runtime.executor.trial import trial
from runtime.ir.parser import parse_program

GOOD = """program "f" {
  input %x : f32[2] = "x"
  %0 : f32[2] = aten.relu.default(%x)
  return %0 as $0
}"""
BAD = GOOD.replace("relu.default", "relu_.default")


def test_a_program_that_a_loader_takes_passes():
    trial(parse_program(GOOD), [torch.ones(2)], [], {})


def test_one_that_breaks_a_rule_is_an_error_of_ours():
    with pytest.raises(InternalError, match=r"D2S291.*breaks a rule.*writes %x outside an update block"):
        trial(parse_program(BAD), [torch.ones(2)], [], {})
