"""What an iteration leaves in a list, or for backward, stays as it is, whatever another path of the loop makes.

Results may be written in the place of operands that nobody else sees; what nobody else sees depends on the path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check

MAKES: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "itself": lambda y: y, "view": lambda y: y.view(3), "clone": lambda y: y.clone(), "sum": lambda y: y + 1,
    "where": lambda y: torch.where(y > 0, y, -y), "flip": lambda y: y.flip(0), "roll": lambda y: y.roll(1),
    "cumsum": lambda y: y.cumsum(0), "gather": lambda y: y.gather(0, torch.tensor([2, 0, 1])),
    "index": lambda y: y[torch.tensor([2, 0, 1])], "sort": lambda y: y.sort().values,
    "linear": lambda y: y @ torch.ones(3, 3),
    "softmax": lambda y: y.softmax(0), "expand": lambda y: y.sum().expand(3), "mm": lambda y: torch.ones(3, 3).mv(y),
    "cat": lambda y: torch.cat([y[:1], y[1:]]), "fill": lambda y: torch.full((3,), 2.0), "norm": lambda y: y / y.norm(),
    "pad": lambda y: torch.nn.functional.pad(y[1:], (1, 0)), "in place": lambda y: y.clone().mul_(2),
}  # fmt: skip
CALLS = [
    (torch.tensor([1.0, 2.0, 3.0]), torch.tensor(values))
    for values in ([0.5, 0.1, 0.2], [-0.5, 0.1, -0.2], [0.1, -3.0, 0.2])
]


def left_in_a_list(make: Callable[[Any], Any]) -> Callable[..., Any]:
    def f(x, y):
        c, out, n = torch.zeros(3), [y * 0], torch.tensor(0)
        while n < 4:
            n = n + 1
            c = c + x
            if y.sum() > 0:
                out.append(c)
            else:
                c = make(y)
        return torch.stack(out), c

    return f


def left_for_backward(make: Callable[[Any], Any]) -> Callable[..., Any]:
    def f(x, y):
        a, c, n = y * y, torch.zeros(3), torch.tensor(0)
        while n < 4:
            n = n + 1
            c = c + x
            if y.sum() > 0.1:
                a = a + c * y
            else:
                c = make(y)
        return a, c

    return f


def changing_sides(make: Callable[[Any], Any]) -> Callable[..., Any]:
    def f(x, y):
        a, c, n = y * y, x * 2, torch.tensor(0)
        while n < 5:
            n = n + 1
            c = c * 1.25
            if c.sum() < 12:
                a = a + c.exp() * y
            else:
                c = make(a)
            c = c + 0.5
        return a, c

    return f


def in_an_inner_loop(make: Callable[[Any], Any]) -> Callable[..., Any]:
    def f(x, y):
        c, last, n = torch.zeros(3), y, torch.tensor(0)
        while n < 3:
            n = n + 1
            m = torch.tensor(0)
            while m < n:
                m = m + 1
                c = c + x
                if (c + y).sum() > 8:
                    last = c
                else:
                    c = make(last)
            c = c * 0.5
        return last, c

    return f


@pytest.mark.parametrize("name", MAKES)
@pytest.mark.parametrize("program", [left_in_a_list, left_for_backward, changing_sides, in_an_inner_loop],
                         ids=lambda one: one.__name__)  # fmt: skip
@pytest.mark.parametrize("gradients", [False, True], ids=["without", "gradients"])
def test_kept(program: Callable[..., Any], name: str, gradients: bool) -> None:
    calls = [tuple(one.clone().requires_grad_(gradients) for one in call) for call in CALLS]
    check(program(MAKES[name]), *calls, tolerance=1e-6, paths=("program",))
