"""Gradients by tensors that a container of an earlier iteration or path holds, read twice, in whatever way.

The steps of a small learner end early, so that only the run knows which container it is; the loss reads the weights in
one way and ``grad`` is given them in another.
"""

from __future__ import annotations

import itertools
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from tests.oracle import check

HOLDERS = {
    "dict": ("{'w': w, 'b': b}", "p['w']", "p['b']", "list(p.values())",
             "{n: v - 0.1 * g for (n, v), g in zip(p.items(), gs)}"),
    "ordered": ("OrderedDict(w=w, b=b)", "p['w']", "p.get('b')", "[*p.values()]",
                "OrderedDict((n, v - 0.1 * g) for (n, v), g in zip(p.items(), gs))"),
    "list": ("[w, b]", "p[0]", "p[-1]", "p", "[v - 0.1 * g for v, g in zip(p, gs)]"),
    "tuple": ("(w, b)", "p[0]", "p[1]", "[v for v in p]", "tuple(v - 0.1 * g for v, g in zip(p, gs))"),
    "nested": ("{'l': [w], 'm': {'b': b}}", "p['l'][0]", "p['m']['b']", "[*p['l'], *p['m'].values()]",
               "{'l': [p['l'][0] - 0.1 * gs[0]], 'm': {'b': p['m']['b'] - 0.1 * gs[1]}}"),
    "object": ("Pair(w, b)", "p.w", "p.b", "list(vars(p).values())", "Pair(p.w - 0.1 * gs[0], p.b - 0.1 * gs[1])"),
    "functional": ("{'weight': w, 'bias': b}", "", "", "list(p.values())",
                   "{n: v - 0.1 * g for (n, v), g in zip(p.items(), gs)}"),
}  # fmt: skip
STEPS = {
    "break": "for step in range(3):\n        {loss}\n        if loss < 0.3:\n            break\n        {step}",
    "if": "for step in range(2):\n        {loss}\n        if loss > 0.3:\n            {step}",
    "worse": "last = None\n    for step in range(3):\n        {loss}\n"
             "        if last is not None and loss > last * 0.9:\n            break\n"
             "        last = loss.item()\n        {step}",
    "before": "if x.sum() > 0:\n        p = {first}\n    {loss}\n    {step}",
}  # fmt: skip
CREATES = ("True", "False")


class Pair:
    def __init__(self, w: torch.Tensor, b: torch.Tensor) -> None:
        self.w, self.b = w, b


@pytest.mark.sample(14)
@pytest.mark.parametrize(("holder", "steps", "creates"), list(itertools.product(HOLDERS, STEPS, CREATES)))
def test_as_eager(holder: str, steps: str, creates: str, tmp_path: Path) -> None:
    first, w, b, wanted, updated = HOLDERS[holder]
    value = "torch.func.functional_call(LAYER, p, (x,))" if holder == "functional" else f"torch.tanh(x @ {w}.T + {b})"
    loss = f"loss = ({value} - y).square().mean()"
    step = f"gs = torch.autograd.grad(loss, {wanted}, create_graph={creates}); p = {updated}"
    body = STEPS[steps].format(loss=loss, step=step, first=first.replace("w,", "w * 2,").replace("w]", "w * 2]"))
    path = tmp_path / "learner.py"
    path.write_text(f"def f(x, y, w, b):\n    p = {first}\n    {body}\n    {loss}\n    return loss, {wanted}\n")
    names: dict[str, Any] = {"torch": torch, "LAYER": nn.Linear(3, 1), "Pair": Pair, "OrderedDict": OrderedDict}
    exec(compile(path.read_text(), str(path), "exec"), names)
    calls = []
    for seed, scale in ((0, 1.0), (1, 4.0), (2, 0.1)):
        torch.manual_seed(seed)
        rows, goal = torch.randn(6, 3) * scale, torch.randn(6, 1) * scale
        calls.append((rows, goal, torch.randn(1, 3).requires_grad_(), torch.randn(1).requires_grad_()))
    check(names["f"], *calls, tolerance=1e-5)
