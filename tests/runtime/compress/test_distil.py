"""Distillation: the loss is the formula's, gradients reach the student alone, loaded layers serve as both."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn

import dy2static
from dy2static import compress
from runtime.compress.distil import softened_loss
from tests.runtime.compress.models import ROWS, Gates


def test_the_loss_is_the_formula():
    torch.manual_seed(20)
    student, teacher = torch.randn(4, 3), torch.randn(4, 3)
    p, q = (torch.softmax(one / 3, 1) for one in (teacher, student))
    wanted = (p * (p.log() - q.log())).sum(1).mean() * 9
    torch.testing.assert_close(softened_loss(student, teacher, 3.0), wanted)
    torch.testing.assert_close(softened_loss(student.view(2, 2, 3), teacher.view(2, 2, 3), 3.0), wanted)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_a_step_is_the_eager_step(alpha, tmp_path):
    torch.manual_seed(21)
    teacher, student = Gates(12), Gates(4)
    big = dy2static.load(dy2static.save(teacher, tmp_path / "big", ROWS))
    small = dy2static.load(dy2static.save(student, tmp_path / "small", ROWS))
    batches = [(torch.randn(8, 6), torch.randint(2, (8,))) for _ in range(3)]
    losses = compress.distil(small, big, batches, alpha=alpha, temperature=2.5,
                             optimizer=torch.optim.SGD(small.parameters(), lr=0.2))  # fmt: skip
    eager = copy.deepcopy(student)
    optimizer = torch.optim.SGD(eager.parameters(), lr=0.2)
    for (x, y), found in zip(batches, losses, strict=True):
        scores = eager(x)
        p = torch.softmax(teacher(x).detach() / 2.5, 1)
        log_q = torch.log_softmax(scores / 2.5, 1)
        loss = alpha * 2.5**2 * (p * (p.log() - log_q)).sum(1).mean()
        loss = loss + (1 - alpha) * nn.functional.cross_entropy(scores, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert found == pytest.approx(loss.item(), abs=1e-5)
    for name, parameter in eager.named_parameters():
        torch.testing.assert_close(small.get_parameter(name), parameter, rtol=1e-4, atol=1e-5)
    assert all(parameter.grad is None for parameter in big.parameters())
    assert small.training and not big.training


def test_what_is_refused():
    x, y = torch.randn(2, 6), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match="alpha"):
        compress.distil(Gates(), Gates(), [(x, y)], alpha=1.5)
    with pytest.raises(ValueError, match="temperature"):
        compress.distil(Gates(), Gates(), [(x, y)], temperature=0)
    with pytest.raises(ValueError, match="at least one batch"):
        compress.distil(Gates(), Gates(), [])
    teacher = nn.Linear(6, 3).train()
    with pytest.raises(ValueError, match=r"of the same sizes, not \[2, 2\] and \[2, 3\]"):
        compress.distil(Gates(), teacher, [(x, y)])
    assert teacher.training
