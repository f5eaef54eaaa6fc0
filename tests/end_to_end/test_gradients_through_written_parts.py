"""Writes to parts of what has a history, and gradients through them: asked for inside, outside, and of each other.

Each program takes a view of what it made by numbers of the run (sizes that calls differ in, numbers of tensors) and
writes it. The calls have several sizes, so all sizes are open in the end. What autograd keeps for a gradient and finds
written makes it raise, whichever gradient was asked for; what it does not see is written past it.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.autodiff import gradient_path
from tests.from_files import module_of
from tests.oracle import PATHS, Terms, copied, hold, run

VIEWS = {
    "a slice": "h[: n // 2 + 1]",
    "a computed slice": "h[k : n - 1 + k]",
    "a row": "h[n - 2]",
    "a given row": "h[i + 1]",
    "a slice of all": "h.view(n * m)[m * k : m * (n - 1)]",
    "rows of other sizes": "h.view(m * n // 2, 2)[k]",
    "strides": "h.as_strided((n, m - 1), (m, 1), k)",
    "unfold": "h.unfold(0, n - 1, n - 1)[0]",
    "a diagonal": "h.diagonal(k - 1)",
    "a column": "h.t()[m - 1, n // 2 :]",
    "split": "h.split(n - 1)[0]",
    "an item of a part": "h[k:][n - 3, m - 1]",
}
WRITES = {
    "mul_": "v.mul_(y.sum())",
    "add_": "v.add_(x.sum(), alpha=2)",
    "copy_": "v.copy_((y * y).sum())",
    "zero_": "v.zero_()",
    "a number": "v.add_(n * 0.5 + i)",
    "an item": "v[...] = v * y.mean()",
    "a mask": "v[v > 0] = y.sum()",
    "data": "v.data.mul_(2)",
    "exp_": "v.exp_()",
}
PLACES = {
    "straight": "    {write}\n",
    "in a branch": "    if y.sum() > 0:\n        {write}\n    else:\n        h = h * 2\n",
    "in a loop": "    c = 0\n    while c < i:\n        {write}\n        c += 1\n",
    "without gradient": "    with torch.no_grad():\n        {write}\n",
}
GRADIENTS = {
    "outside": "    return (h * h).sum(0), n\n",
    "inside": "    g = torch.autograd.grad((h * h).sum(), t, allow_unused=True)[0]\n"
    "    return (h * 1 if g is None else h * g), n\n",
    "of a gradient": "    return torch.autograd.grad((h ** 3).sum(), t, create_graph=True)[0], n\n",
}
def program(view: str, write: str, place: str, gradient: str) -> str:
    line = f"v = {VIEWS[view]}; {WRITES[write]}"
    return (
        "import torch\ndef f(x, y, i):\n    n, m, i = x.shape[0], x.shape[1], int(i)\n    k, t = i - 1, x * 1.5\n"
        f"    h = t * y.sum().tanh()\n{PLACES[place].format(write=line)}{GRADIENTS[gradient]}"
    )


def calls() -> list[tuple[Any, ...]]:
    """Sizes and numbers differ, and whether a gradient is wanted."""
    found: list[tuple[Any, ...]] = []
    for number, (n, m) in enumerate(((4, 4), (5, 4), (6, 2), (4, 6))):
        torch.manual_seed(number)
        x, y = torch.randn(n, m, requires_grad=True), (torch.randn(3) + 1 - number % 2 * 2).requires_grad_()
        found += [(x, y, torch.tensor(1 + number % 2)), (x.detach(), y, torch.tensor(1))]
    return found


TERMS = Terms(tolerance=1e-5, none_is_zero=True)
_WRITTEN = "modified by an inplace operation"


@pytest.mark.sample(14)
@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("view", VIEWS)
def test_gradients(view, write, place, gradient, tmp_path):
    (tmp_path / "one.py").write_text(program(view, write, place, gradient))
    f = module_of(tmp_path / "one.py").f
    static = to_static(f)
    for number, call in enumerate(calls()):
        if gradient != "outside" and not call[0].requires_grad:
            continue
        for path in PATHS:
            mine, theirs = copied(call), copied(call)
            expected = run(f, theirs, number)
            with gradient_path(path):
                got = run(static, mine, number)
            if _WRITTEN in str(expected.error):  # eager's text has the number of the version, and its own nodes
                assert type(got.error) is RuntimeError and _WRITTEN in str(got.error), f"call {number} ({path})"
            else:
                hold(got, expected, f"call {number} ({path})", TERMS, [("arguments", mine, theirs)])
