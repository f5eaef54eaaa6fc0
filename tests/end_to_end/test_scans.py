"""Loops that append one item in each iteration: equal to eager in every length, live and loaded, on both paths.

A body is Python over the rows of ``x`` (any number of them), ``y`` (as many), a state ``h`` and a weight ``w``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from tests.end_to_end.grown_uses import load
from tests.oracle import check

LENGTHS = (0, 1, 3)

SCANS = {
    "rows": "for row in x: xs.append(row * w)",
    "rows of another": "for row in x: xs.append(torch.tanh(row @ w @ w))",
    "state": "for row in x:\n  h = torch.tanh(row @ w + h)\n  xs.append(h)",
    "state with gradient": "h = h + w.sum()\nfor row in x:\n  h = torch.tanh(row @ w + h)\n  xs.append(h)",
    "state before": "h = h + w.sum()\nfor row in x:\n  xs.append(h)\n  h = torch.tanh(row @ w + h)",
    "state that starts without a history": "for row in x:\n  xs.append(h)\n  h = torch.tanh(row @ w + h)",
    "state alone": "for row in x:\n  h = torch.tanh(h * 2)\n  xs.append(h + row)",
    "two states": "g = h * 2\nfor row in x:\n  h, g = g + row, torch.sin(h) @ w\n  xs.append(h * g)",
    "state that is cut": "for row in x:\n  h = (h.detach() + row) @ w\n  xs.append(h)",
    "state is used after": "for row in x:\n  h = h * w[0] + row\n  xs.append(h.sum())\nx = h * 2",
    "range": "for i in range(len(x)): xs.append(x[i] * w)",
    "range of a size": "for i in range(x.shape[0]): xs.append(x[i] * i)",
    "range from": "for i in range(1, x.shape[0]): xs.append(x[i] - x[i - 1])",
    "range back": "for i in range(x.shape[0] - 1, -1, -1): xs.append(x[i] @ w)",
    "range with steps": "for i in range(0, x.shape[0], 2): xs.append(x[i] @ w)",
    "number of rows": "n = x.shape[0]\nfor i in range(n * 2): xs.append(h * i + w[0])",
    "enumerate": "for i, row in enumerate(x): xs.append(row * i + w[0])",
    "enumerate from": "for i, row in enumerate(x, 3): xs.append(row * i + w[0])",
    "zip": "for a, b in zip(x, y): xs.append(a * b @ w)",
    "zip of three": "for a, b, c in zip(x, y, x): xs.append(a * b @ w - c)",
    "zip of fewer": "for a, b in zip(x, y[1:]): xs.append(a * b @ w)",
    "enumerate of zip": "for i, (a, b) in enumerate(zip(x, y)): xs.append(a * b + i)",
    "reversed": "for row in reversed(x): xs.append(row @ w)",
    "a comprehension": "xs = [row @ w for row in x]",
    "a comprehension of sums": "xs = [(row @ w).sum() for row in x]",
    "several lists": "ys = []\nfor row in x:\n  xs.append(row @ w)\n  ys.append(row.sum())\nx = torch.stack(ys)",
    "one item in two lists": "ys = []\nfor row in x:\n  r = row @ w\n  xs.append(r)\n  ys.append(r)\n"
    "x = torch.stack(ys)",
    "branch inside": "for row in x:\n  if row.sum() > 0: r = row @ w\n  else: r = row * 2\n  xs.append(r)",
    "branch of the state": "for row in x:\n  if row.sum() > 0: h = h @ w\n  else: h = h + row\n  xs.append(h)",
    "loop inside": "for row in x:\n  r = row\n  while r.sum().abs() < 3: r = r * 2 + w[0].abs() + 0.5\n  xs.append(r)",
    "scan inside": "for row in x:\n  ys = []\n  for q in y: ys.append(q * row)\n"
    "  xs.append(torch.stack(ys).sum(0) @ w)",
    "scan of scans": "for row in x:\n  ys = []\n  for q in x: ys.append(q @ w + row)\n  xs.append(torch.stack(ys))",
    "weight of some rows": "for i, row in enumerate(x):\n  if i == 0: row = row @ w\n  xs.append(row * 2)",
    "weight of no row": "for i, row in enumerate(x):\n  if i > 9: row = row @ w\n  xs.append(row * 2)",
    "a view as item": "for row in x: xs.append(row)",
    "a part of a row": "for row in x: xs.append(row[:2] * w[0, 0])",
    "a transposed item": "for row in x: xs.append((row[:, None] * w).t())",
    "item of outside": "for row in x: xs.append(w)",
    "item of numbers": "for i, row in enumerate(x): xs.append(torch.full((3,), 1.0) * i + w[0])",
    "ints": "for row in x: xs.append((row * 10).long())",
    "no gradient inside": "for row in x:\n  with torch.no_grad(): r = row @ w\n  xs.append(r)",
    "no gradient around": "with torch.no_grad():\n  for row in x: xs.append(row @ w)",
    "random": "for row in x: xs.append(torch.nn.functional.dropout(row @ w, 0.5))",
    "length too": "for row in x: xs.append(row @ w)\nx = x.sum() * len(xs)",
    "loop twice": "for row in x: xs.append(row @ w)\nys = xs\nxs = []\nfor row in y: xs.append(row * 2)\n"
    "x = torch.stack(ys)",
    "scan of a scan": "for row in x: xs.append(row @ w)\nz = torch.stack(xs)\nxs = []\nfor row in z:\n"
    "  h = h + row\n  xs.append(h)",
    "scan of rows again": "for row in x: xs.append(row @ w + x.sum())",
    "recomputed": "with runtime.recompute():\n  for row in x:\n    h = torch.tanh(row @ w + h)\n    xs.append(h)",
    "max": "for row in x:\n  h = torch.maximum(h, row)\n  xs.append(h @ w)",
    "python numbers": "n = 0\nfor row in x:\n  n = n + 1\n  xs.append(row * n)",
    "carried numbers of tensors": "n = 0.5\nfor row in x:\n  n = n + row.sum().item()\n  xs.append(row * n)",
    "tuple of state": "s = (h, h)\nfor row in x:\n  s = (s[1] + row, torch.tanh(s[0] @ w))\n  xs.append(s[0])",
    "print of a size": "for row in x:\n  assert row.shape == (3,)\n  xs.append(row @ w)",
}
"""Loops that become scans where the list is stacked."""

LOOPS = {
    "break": "for row in x:\n  if row.sum() > 1: break\n  xs.append(row @ w)",
    "on a path": "for row in x:\n  if row.sum() > 0: xs.append(row @ w)",
    "twice": "for row in x:\n  xs.append(row @ w)\n  xs.append(row)",
    "read inside": "for row in x:\n  xs.append(row + xs[-1] if len(xs) else row @ w)",
    "not empty": "xs.append(h)\nfor row in x: xs.append(row @ w)",
    "written rows": "z = x.detach() * 1\nfor row in z:\n  row.mul_(2)\n  xs.append(row @ w)",
    "written items": "z = w * 1\nfor row in x:\n  z.add_(row)\n  xs.append(z.clone())",
    "written after": "for row in x: xs.append(row @ w)\nz = h * 1\nz.add_(1)\nx = z",
    "items of changing sizes": "for i, row in enumerate(x): xs.append(torch.ones(2 - i % 2) * w[0, 0])",
    "count": "n = 0\nwhile n < 2 * len(x):\n  xs.append(w[0] * n)\n  n += 2",
    "two counters": "for i in range(1, len(x) + 1):\n  xs.append(w[0] * i)",
    "raises inside": "for row in x:\n  if row.sum() > 50: raise ValueError('too much')\n  xs.append(row @ w)",
    "other rows": "for i in range(len(x)):\n  xs.append(y[i // 2] @ w)",
    "too many rows": "for i in range(len(x) + 1): xs.append(x[i] @ w)",
}
"""Loops that look like scans; some are."""

ENDS = {
    "stacked": "return torch.stack(xs), x",
    "a list": "return xs, len(xs), x",
    "an item": "return xs[0] * 2, x",
    "the last item and all": "return xs[-1], torch.stack(xs)",
    "stacked elsewhere": "r = x.sum()\nif x.sum() > 0: r = torch.stack(xs)\nreturn r",
    "stacked otherwise": "return torch.stack(xs, -1), torch.stack(xs)",
    "joined": "return torch.stack(xs).sum(0), len(xs)",
}
"""What is done with the list."""


def source(body: str, end: str) -> str:
    lines = "\n".join(f"  {line}" for line in f"xs = []\n{body}\n{end}".splitlines())
    return f"import runtime\ndef f(x, y, h, w):\n{lines}\n"


def inputs(length: int, gradients: str) -> tuple[torch.Tensor, ...]:
    torch.manual_seed(length)
    made = {"x": torch.randn(length, 3), "y": torch.randn(length, 3), "h": torch.randn(3), "w": torch.randn(3, 3)}
    return tuple(value.requires_grad_(name in gradients) for name, value in made.items())


SPEC = [dy2static.InputSpec([None, 3]), dy2static.InputSpec([None, 3]), dy2static.InputSpec([3]),
        dy2static.InputSpec([3, 3])]  # fmt: skip


def judge(function, folder: Path | None, gradients=("", "w", "xyhw"), lengths=LENGTHS) -> dy2static.StaticFunction:
    static = dy2static.to_static(function, input_spec=SPEC)
    calls = [inputs(length, wanted) for length in lengths for wanted in gradients]
    check(function, *calls, static=static, tolerance=1e-6, gradient_tolerance=1e-5)
    if folder is not None:
        dy2static.save(static, folder / "saved", input_spec=SPEC)
        calls = [call for call in calls if len(call[0]) > 1]  # a file may be for so many rows only, and says so
        check(function, *calls, static=dy2static.load(folder / "saved"), tolerance=1e-6, gradient_tolerance=1e-5)
    return static


def names(static: dy2static.StaticFunction) -> set[str]:
    return {op.name for program in static.programs for op in program.block.walk()}


FEW = ("rows", "state", "state that starts without a history", "two states", "zip of fewer", "several lists",
       "scan of scans", "weight of some rows", "random")  # fmt: skip


def marked(names: Iterable[str], few: Collection[str]) -> list[Any]:
    """Parameters, those that are not among the few slow."""
    return [pytest.param(name, marks=[] if name in few else pytest.mark.slow) for name in names]


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", marked(SCANS, FEW))
def test_stacked(name: str, tmp_path: Path) -> None:
    (function,) = load([source(SCANS[name], ENDS["stacked"])], tmp_path)
    static = judge(function, tmp_path)
    assert "scan" in names(static)


@pytest.mark.parametrize("name", marked(LOOPS, ("read inside", "too many rows")))
def test_what_looks_like_one(name: str, tmp_path: Path) -> None:
    (function,) = load([source(LOOPS[name], ENDS["stacked"])], tmp_path)
    judge(function, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("end", ENDS)
@pytest.mark.parametrize("name", [*SCANS, *LOOPS])
def test_every_use(name: str, end: str, tmp_path: Path) -> None:
    (function,) = load([source({**SCANS, **LOOPS}[name], ENDS[end])], tmp_path)
    judge(function, tmp_path, ("", "xyhw"), (0, 1, 3))
