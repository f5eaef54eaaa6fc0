"""Artefacts made by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from runtime.ir.parser import parse_program
from runtime.ir.template import TensorSlot
from runtime.storage import Artefact
from runtime.storage.artefact import Argument, Method, ModuleEntry, State, Variant

LINEAR = """program "forward" {
  input %x : f32[s0, 2] = "x"
  param %w : f32[3, 2] = "fc.weight" parameter requires_grad
  %y : f32[s0, 3] = aten.linear.default(%x, %w)  @ "model.py":12:8 in "forward" "return self.fc(x)"
  return %y as $0
}"""


def make(text: str = LINEAR, weight: torch.Tensor | None = None) -> Artefact:
    """A module with a parameter ``fc.weight`` and the given Program as forward."""
    variant = Variant(parse_program(text), (State("fc.weight"),), (("x", TensorSlot(0)),))
    modules = [ModuleEntry("", "Net"), ModuleEntry("fc", "Linear", [("weight", 0), ("bias", None)])]
    weight = torch.arange(6.0).reshape(3, 2).requires_grad_() if weight is None else weight
    method = Method("forward", (Argument("x", "positional_or_keyword"),), {"train": variant, "eval": variant})
    return Artefact("Net", modules, [weight], [], {"forward": method})


@pytest.fixture
def artefact() -> Artefact:
    """A linear layer."""
    return make()


@pytest.fixture
def make_artefact() -> Callable[..., Artefact]:
    """``make``."""
    return make
