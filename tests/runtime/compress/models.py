"""Models that are compressed in tests: what channels go through in them."""

from __future__ import annotations

import torch
from torch import nn

from dy2static import InputSpec

ROWS = [InputSpec([None, 6], "float32", "x")]
IMAGES = [InputSpec([None, 1, 8, 8], "float32", "x")]


class Residual(nn.Module):
    """Convolutions with a residual sum, batch norm, a branch and a loop that tensors decide."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 8, 3, padding=1)
        self.norm = nn.BatchNorm2d(8)
        self.second = nn.Conv2d(8, 8, 3, padding=1)
        self.hidden = nn.Linear(8, 16)
        self.out = nn.Linear(16, 5)

    def forward(self, x):
        x = torch.relu(self.norm(self.first(x)))
        x = x + torch.relu(self.second(x))
        h = torch.relu(self.hidden(x.mean((2, 3))))
        if h.sum() > 1:
            h = h * 2
        while h.abs().max() > 0.5:
            h = h / 2
        return self.out(h)


class Recurrent(nn.Module):
    """A state that goes round a loop: axis 0 and axis 1 of ``step`` are the same channel."""

    def __init__(self):
        super().__init__()
        self.begin = nn.Linear(6, 12)
        self.step = nn.Linear(12, 12)
        self.out = nn.Linear(12, 3)

    def forward(self, x):
        h = torch.tanh(self.begin(x))
        n = 0
        while n < 5 and h.norm() > 0.1:
            h = torch.tanh(self.step(h)) + h / 2
            n += 1
        return self.out(h)


class Rows(nn.Module):
    """A loop over rows that makes a list of results, which becomes a ``scan``."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(6, 8)
        self.again = nn.Linear(8, 8, bias=False)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        seen = self.enter(x)
        h = torch.relu(seen.sum(0))
        found = []
        for row in seen:
            h = torch.relu(self.again(h) + row)
            found.append(self.out(h))
        return torch.stack(found)


class Separable(nn.Module):
    """A depthwise convolution, and a pooled image that becomes a row."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(1, 6, 3, bias=False)
        self.depth = nn.Conv2d(6, 6, 3, groups=6)
        self.point = nn.Conv2d(6, 10, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.out = nn.Linear(10, 3)

    def forward(self, x):
        x = torch.relu(self.point(torch.relu(self.depth(self.first(x)))))
        return self.out(self.pool(x).view(-1, 10))


class Written(nn.Module):
    """Products written out, a mean of its own that each call changes, and weights that two layers share."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Parameter(torch.randn(9, 6) / 3)
        self.inner = nn.Linear(9, 9)
        self.same = self.inner
        self.out = nn.Parameter(torch.randn(9, 2) / 3)
        self.register_buffer("seen", torch.zeros(9))

    def forward(self, x):
        h = torch.relu(x @ self.enter.t())
        if self.training:
            self.seen += h.mean(0).detach()
        h = torch.relu(self.same(torch.relu(self.inner(h))))
        return torch.matmul(h, self.out)


class Gates(nn.Module):
    """An activation that is not zero at zero."""

    def __init__(self, width=10):
        super().__init__()
        self.enter = nn.Linear(6, width)
        self.out = nn.Linear(width, 2)

    def forward(self, x):
        return self.out(torch.sigmoid(self.enter(x)) + 1)


class Encoder(nn.Module):
    """A transformer's layer in a loop; without gradients in eval PyTorch has one operator for it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x):
        n = 0
        while n < 2 and x.norm() > 1:
            x = self.layer(x) / 2
            n += 1
        return self.out(x.mean(1))


class TwoMethods(nn.Module):
    """``features`` gives away what ``forward`` keeps to itself."""

    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(6, 8)
        self.inner = nn.Linear(8, 8)
        self.out = nn.Linear(8, 2)

    def features(self, x):
        return torch.relu(self.enter(x))

    def forward(self, x):
        return self.out(torch.relu(self.inner(torch.relu(self.enter(x)))))
