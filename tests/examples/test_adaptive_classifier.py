"""The model of the demonstration: static and eager agree in everything, on every path through its forward."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from adaptive_classifier import AdaptiveClassifier
from torch import Tensor

import dy2static


@pytest.fixture(autouse=True)
def static_again() -> Iterator[None]:
    yield
    dy2static.enable_to_static(True)


def outcome(model: AdaptiveClassifier, images: Tensor, static: bool) -> tuple[Tensor, int, list[Tensor | None]]:
    """Logits, steps and gradients, from one seed."""
    dy2static.enable_to_static(static)
    torch.manual_seed(7)
    model.zero_grad()
    logits, steps = model(images)
    logits.square().sum().backward()
    return logits.detach(), steps, [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("confidence", [0.0, 0.12, 0.13, 0.14, 0.999])
def test_static_equals_eager(training: bool, confidence: float) -> None:
    """Nothing unsure, a few unsure, many unsure, patience run out; one converted model for all sizes and scales."""
    model = AdaptiveClassifier(hidden=32, patience=5).train(training)
    model.confidence = confidence
    for batch in (5, 1, 64, 2):
        for scale in (1, 16):
            images = torch.rand(batch, 64) * scale
            logits, steps, gradients = outcome(model, images, static=True)
            expected, expected_steps, expected_gradients = outcome(model, images, static=False)
            assert torch.equal(logits, expected)
            assert (type(steps), steps) == (int, expected_steps)
            for gradient, expected_gradient in zip(gradients, expected_gradients):
                torch.testing.assert_close(gradient, expected_gradient, rtol=0, atol=0)


def test_the_confidences_above_reach_every_path() -> None:
    """So that equality says something: no step, the cheap one, both kinds, until patience runs out."""
    dy2static.enable_to_static(False)
    model = AdaptiveClassifier(hidden=32, patience=5).eval()
    images, taken = torch.rand(64, 64), []
    calls = {"think": 0, "touch_up": 0}
    for name in calls:
        getattr(model, name).register_forward_hook(lambda *_, name=name: calls.update({name: calls[name] + 1}))
    for confidence in (0.0, 0.12, 0.13, 0.14, 0.999):
        model.confidence = confidence
        taken.append(model(images)[1])
    assert taken[0] == 0
    assert taken[-1] == 5
    assert len(set(taken)) >= 4
    assert min(calls.values()) > 0
