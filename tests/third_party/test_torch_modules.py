"""Every module of ``torch.nn`` with the samples of PyTorch's own tests: training and evaluating, with and without
gradients, each called twice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
import torch

from runtime.errors import Dy2StaticError
from tests.oracle import check_module

pytest.importorskip("expecttest", reason="needs the third-party extra: pip install dy2static[third-party]")

with mock.patch("torch.backends.disable_global_flags"):  # its import forbids every other test to set these flags
    from torch.testing._internal.common_modules import module_db
from torch.utils._pytree import tree_map_only

MODULES = {info.name: info for info in module_db if "Lazy" not in info.name}  # a lazy one becomes another class
REFUSED: dict[str, str] = {}
"""Modules of which some samples are refused: the code."""


class WithKeywords(torch.nn.Module):
    """A module, called with some keywords."""

    def __init__(self, inner: torch.nn.Module, keywords: dict[str, Any]) -> None:
        super().__init__()
        self.inner, self.keywords = inner, keywords

    def forward(self, *args: Any) -> Any:
        return self.inner(*args, **self.keywords)


def samples(
    info: Any, training: bool, dtype: torch.dtype
) -> Iterator[tuple[Any, tuple[Any, ...], dict[str, Any]]]:
    for one in info.module_inputs_func(info, device="cpu", dtype=dtype, requires_grad=True, training=training):
        if one.forward_input is not None:
            made = one.constructor_input
            args, keywords = tree_map_only(torch.Tensor, _leaf, (one.forward_input.args, one.forward_input.kwargs))
            yield (lambda made=made: info.module_cls(*made.args, **made.kwargs).train(training)), args, keywords


def _leaf(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().requires_grad_(tensor.requires_grad)


@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
@pytest.mark.parametrize("name", MODULES)
def test_as_eager(name: str, training: bool) -> None:
    assert ran(name, training, torch.float32) or ran(name, training, torch.float64)  # some samples are for the second


def ran(name: str, training: bool, dtype: torch.dtype) -> int:
    """How many samples did as eager does, those that eager refuses apart."""
    count = 0
    for make, args, keywords in samples(MODULES[name], training, dtype):
        for gradients in (True, False):
            with torch.set_grad_enabled(gradients):
                try:
                    make()(*args, **keywords)
                except Exception:  # a sample of what eager refuses, which other tests of PyTorch's are about
                    continue
                try:
                    check_module(lambda: WithKeywords(make(), keywords).train(training), args, args, tolerance=1e-5,
                                 gradient_tolerance=1e-3)  # fmt: skip
                except Dy2StaticError as error:
                    assert REFUSED.get(name) == error.code, error
                count += 1
    return count
