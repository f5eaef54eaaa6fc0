"""Gradients inside a loop that go through memory which iterations write: a buffer, statistics, a view of a tensor.

What the next iteration finds there is what this one left, and may lead to more leaves.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import same

BEFORE = {
    "no leaf": "b = torch.zeros(3)",
    "one leaf": "b = w * 2",
    "a view": "whole = torch.zeros(2, 3)\n    b = whole[0]",
    "a buffer": "b = m.buffer",
    "statistics": "b = m.norm(torch.stack([x, w])).sum(0)",
}
FIRST = {
    "nothing": "pass", "one leaf": "b.add_(x * w)", "another leaf": "b = b * v", "the layer": "b = b + used(m, x, w)",
}  # fmt: skip
LATER = {
    "numbers": "b.mul_(x)", "another leaf": "b.mul_(v)", "only another": "b.copy_(v * x)", "nothing": "b.zero_()",
    "on one path": "if n > 0:\n            b.add_(v)", "the layer": "used(m, x, v)",
    "unseen": "with torch.no_grad():\n            b.add_(v)",
}  # fmt: skip
LOOPS = {"while": "n = 0\n    while n < (x > 0).sum():", "for": "for n in range(int((x > 0).sum())):"}
ASKED = {
    "grad": "gs = torch.autograd.grad(loss, [w, v], retain_graph=True, allow_unused=True, materialize_grads=True)",
    "backward": "loss.backward(retain_graph=True)\n        gs = [0 if t.grad is None else t.grad for t in (w, v)]",
}
PROGRAM = """
import torch

class M(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.register_buffer("buffer", torch.zeros(3))

def used(m, x, w):
    return m.norm(torch.stack([x * w, x - 1])).sum(0)

def f(x, m):
    w, v, total = torch.ones(3, requires_grad=True), torch.ones(3, requires_grad=True), x * 0
    {before}
    {loop}
        {first}
        loss = (b * x).sum() + w.sum() * 0.5
        {asked}
        total = total + gs[0] + gs[1]
        {later}
        {count}
    return total, b.detach()
"""
CASES = [*itertools.product(BEFORE, FIRST, LATER, LOOPS, ASKED)]


def _program(case: tuple[str, ...], folder: Path) -> types.ModuleType:
    before, first, later, loop, asked = case
    source = PROGRAM.format(
        before=BEFORE[before], first=FIRST[first], later=LATER[later], loop=LOOPS[loop], asked=ASKED[asked],
        count="n += 1" if loop == "while" else "pass")  # fmt: skip
    file = folder / f"memory_{CASES.index(case)}.py"
    file.write_text(source)
    return module_of(file, file.stem)


def _outcomes(module: types.ModuleType, convert: Callable[..., Any]) -> list[Any]:
    torch.manual_seed(0)
    layer, found, called = module.M(), [], convert(module.f)
    for values in ((1.0, 2.0, 3.0), (1.0, -2.0, 0.5), (-1.0, -2.0, -3.0)):
        try:
            found.append(called(torch.tensor(values), layer))
        except RuntimeError as error:
            if isinstance(error, Dy2StaticError):
                raise
            found.append(type(error))
        found.append([one.detach().clone() for one in layer.state_dict().values()])
        layer.load_state_dict(module.M().state_dict())
        layer.buffer = torch.zeros(3)
    return found


@pytest.mark.sample(40)
@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(case).replace(" ", "_"))
def test_what_iterations_leave_in_memory(case: tuple[str, ...], tmp_path: Path) -> None:
    module = _program(case, tmp_path)
    try:
        got = _outcomes(module, to_static)
    except Dy2StaticError as error:
        assert error.code in ("D2S213", "D2S222"), error
        return
    same(got, _outcomes(module, lambda one: one), tolerance=1e-5)
