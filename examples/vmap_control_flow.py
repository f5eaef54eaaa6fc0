"""Many small problems at once, each with its own number of steps: Newton's method on the rows of a batch.

Run: python examples/vmap_control_flow.py
"""

from __future__ import annotations

import torch

import dy2static


def solve(a: torch.Tensor, start: torch.Tensor) -> tuple[torch.Tensor, int]:
    """A root of ``x ** 3 - a * x - 1``, and how many steps it took."""
    x, steps = start, 0
    while steps < 50:
        value = x**3 - a * x - 1
        if value.abs() < 1e-6:
            break
        slope = 3 * x**2 - a
        if slope.abs() < 1e-3:  # too flat to step along
            x = x + 0.5
        else:
            x = x - value / slope
        steps += 1
    return x, steps


def main() -> None:
    """Solve eight equations; then differentiate the roots."""
    a = torch.linspace(-2, 5, 8, dtype=torch.float64, requires_grad=True)
    start = torch.full((8,), 2.0, dtype=torch.float64)

    roots, steps = dy2static.vmap(solve)(a, start)
    by_row = [solve(one, first) for one, first in zip(a, start)]
    print("steps:", steps.tolist())
    print("as row by row:", steps.tolist() == [count for _, count in by_row],
          torch.allclose(roots, torch.stack([root for root, _ in by_row])))

    (slopes,) = torch.autograd.grad(roots.sum(), a)
    exact = roots / (3 * roots**2 - a)  # by the implicit function theorem
    print("gradient:", torch.allclose(slopes, exact, atol=1e-4))


if __name__ == "__main__":
    main()
