"""A whole training run as one call: the loop, the gradients and the optimizer's steps are one Program.

    python examples/training_inside.py

prints what plain Python prints, as ``fit`` is plain Python: only ``to_static`` makes a Program of it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from dy2static import to_static


def fit(model: nn.Module, optimizer: torch.optim.Optimizer, x: Tensor, y: Tensor) -> tuple[Tensor, int]:
    """At most a thousand steps, fewer where the loss hardly falls any more; steps that give no number are left out."""
    skipped = 0
    best = torch.tensor(float("inf"))
    for step in range(1000):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        if torch.isfinite(nn.utils.clip_grad_norm_(model.parameters(), 1.0)):
            optimizer.step()
        else:
            skipped += 1
        if step % 100 == 99:
            if loss > best * 0.99:
                break
            best = loss.detach()
    return loss.detach(), skipped


def run(static: bool) -> tuple[float, int, float]:
    """The loss after training, the steps left out, and what the optimizer has counted."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    x = torch.randn(64, 2)
    y = (x[:, :1] * x[:, 1:]).tanh()
    loss, skipped = (to_static(fit) if static else fit)(model, optimizer, x, y)
    return loss.item(), skipped, sum(one.abs().sum().item() for one in model.parameters())


def main() -> None:
    """Train once in plain Python and once as a Program."""
    eager, program = run(static=False), run(static=True)
    print(f"eager:   loss {eager[0]:.5f}, {eager[1]} steps left out")
    print(f"program: loss {program[0]:.5f}, {program[1]} steps left out")
    print("the same weights" if eager == program else "other weights")


if __name__ == "__main__":
    main()
