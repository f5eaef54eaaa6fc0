"""State that a call leaves in another form than it found: calls that are answered quickly look at it, too."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from dy2static import to_static


class Ends(nn.Module):
    """A sequence's state, None after its end."""

    def __init__(self):
        super().__init__()
        self.h = None

    def forward(self, x):
        self.h = x * 2 if self.h is None else self.h + x
        y = self.h * 1
        if x.sum() > 0:
            self.h = None
        return y


class Widens(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = torch.ones(3)

    def forward(self, x):
        y = (self.h * x).sum() * (100 if self.h.dtype is torch.float64 else 1)
        self.h = (self.h + 1).double()
        return y


class Grows(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = torch.ones(3)

    def forward(self, x):
        y = self.h.sum() * x.sum() * (100 if self.h.shape[0] == 4 else 1)
        self.h = torch.cat([self.h, self.h[:1]])
        return y


class Needs(nn.Module):
    def __init__(self):
        super().__init__()
        self.h = torch.ones(3)
        self.w = nn.Parameter(torch.ones(3))

    def forward(self, x):
        y = (self.h * x).sum() * (100 if self.h.requires_grad else 1)
        self.h = self.h * self.w
        return y.detach()


class Steps(nn.Module):
    """Gradients that only some calls use, and let go."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(3))
        self.optimizer = [torch.optim.SGD([self.w], 0.1)]

    def forward(self, x):
        loss = (self.w * x).sum()
        loss.backward()
        if loss > 0:
            self.optimizer[0].step()
            self.optimizer[0].zero_grad()
        return loss.detach()


@pytest.mark.parametrize("cls", [Ends, Widens, Grows, Needs, Steps])
@pytest.mark.parametrize("every", [2, 3, 4, 7])
def test_state_of_another_form(cls, every):
    found = []
    for convert in (False, True):
        module = cls()
        call = to_static(module) if convert else module
        outputs = []
        for number in range(30):
            if number % every and hasattr(module, "h") and cls is not Ends:
                module.h = torch.ones(3)
            x = torch.ones(3) * (1.0 if number % every == every - 1 else -1.0)
            outputs.append(call(x))
            outputs.append(getattr(module, "h", None))
        found.append(outputs)
    torch.testing.assert_close(found[1], found[0])
