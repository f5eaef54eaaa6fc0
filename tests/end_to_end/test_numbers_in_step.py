"""Loops in which a number or size changes, in step with others or not, beside objects that the iterations make.

What grows alike is guessed by an attempt to trace the body, and the next attempt has to find out where that is wrong,
whatever else of the loop is not settled then.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.from_files import module_of
from tests.oracle import check

HEAD = """import collections
import torch

class Box:
    def __init__(self, value):
        self.value = value
"""
CHANGES = {
    "fixed": "n = 3", "step": "n = n + 2", "alternates": "n = 5 - n", "doubles": "n = n * 2", "place": "n = i",
    "limited": "n = min(n + 2, 4)", "largest": "n = max(n, 3)", "as before": "n = k", "swapped": "n, m = m, n",
    "behind": "n, m = m, m + 2", "reset": "n = 0 if i == 1 else n + 2", "once": "n = n + 2 if i < 1 else n",
    "size": "t = torch.cat([t, x[:1]])\n        n = t.shape[0]", "same size": "t = x[:3]\n        n = len(t)",
    "size once": "t = x[:2] if i == 0 else x[:3]\n        n = t.shape[0]",
}  # fmt: skip
MADE = {
    "list": "w = [x * n, x]", "tuple": "w = (x * n, n)", "dict": "w = {'a': x * n}", "object": "w = Box(x * n)",
    "deque": "w = collections.deque([x * n, x], maxlen=2)", "nested": "w = [[x * n], n]", "list of it": "w = [n, i]",
    "stored": "w[0] = x * n", "grown": "w.append(x * n)", "copied": "v = w.copy()\n        w = [*v[:1], x * n]",
    "attribute": "b.value = x * n", "new and stored": "b = Box(n)\n        b.value = x * b.value", "none": "pass",
}  # fmt: skip
ORDERS = {"made first": "{made}\n        {change}", "changed first": "{change}\n        {made}",
          "both ways": "{made}\n        {change}\n        u = [x[:1] * n]"}  # fmt: skip
LOOPS = {"for": "for i in range(int((x > 0).sum())):", "while": "while i < int((x > 0).sum()):"}


def source(change: str, made: str, order: str, loop: str) -> str:
    body = ORDERS[order].format(change=CHANGES[change], made=MADE[made]) + ("\n        i += 1" * (loop == "while"))
    return (
        f"{HEAD}\ndef f(x, k):\n    i = 0\n    n, m = k, k + 1\n    w, u, t, b = [x], [x], x[:1], Box(x)\n"
        f"    {LOOPS[loop]}\n        {body}\n"
        "    return (w.value if isinstance(w, Box) else w), b.value, u, t, n, m, i\n"
    )


def calls(k: int) -> list[Any]:
    return [(torch.tensor(signs).requires_grad_(), k) for signs in (
        [1.0, 2.0, 3.0, 4.0], [1.0, -1.0, -1.0, -1.0], [1.0, 1.0, -1.0, -1.0], [-1.0] * 4, [2.0, 1.0, 1.0, -1.0])]


@pytest.mark.sample(80)
@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("k", [1, 0])
def test_numbers_are_those_of_eager(
    change: str, made: str, order: str, loop: str, k: int, tmp_path: Path
) -> None:  # fmt: skip
    (tmp_path / "one.py").write_text(source(change, made, order, loop))
    check(module_of(tmp_path / "one.py").f, *calls(k), paths=("program",), tolerance=1e-6, none_is_zero=True)


NUMBERS = ("3", "n", "m", "j", "i", "n + 1", "m + 2", "n - m", "n * 2", "min(n, 4)", "max(m, 2)", "n % 3", "len(w)",
           "x.shape[0]", "n // 2", "int(h.shape[0])")  # fmt: skip
TENSORS = ("x * n", "x + m", "h * 0.5 + n", "x", "h[:1] + j", "torch.full((2,), float(n))", "x[:2] * m",
           "torch.ones(3) * j")  # fmt: skip
SIZES = ("x * n", "h + m", "torch.cat([h, x[:1]])", "h[:2] * 1", "x[:3] + j", "h * len(d)")


def statement(rng: random.Random) -> str:
    """A change of a number, of a size, or of something that holds one."""
    name, number, tensor = rng.choice("nmj"), rng.choice(NUMBERS), rng.choice(TENSORS)
    return rng.choice([
        *[f"{name} = {number}"] * 4, f"w = [{tensor}, x]", f"w.append({tensor})", f"d['n'] = {number}",
        f"d = {{'a': {tensor}, 'n': {number}}}", f"b = Box({tensor})", f"b.value = {tensor}", f"t = (n, {number})",
        f"h = {rng.choice(SIZES)}", f"if x[0] > {rng.choice('012')}:\n            {name} = {number}", "n, m = m, n",
    ])  # fmt: skip


@pytest.mark.sample(40)
@pytest.mark.parametrize("seed", range(300))
def test_random_bodies(seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    body = "\n        ".join(statement(rng) for _ in range(rng.randint(2, 6)))
    (tmp_path / "one.py").write_text(
        f"{HEAD}\ndef f(x, k):\n    n, m, j, i = k, k + 1, 0, 0\n    w, d, b = [x], {{'a': x, 'n': 1}}, Box(x)\n"
        "    h, t = x, (1, 2)\n"
        f"    for i in range(int((x > 0).sum())):\n        {body}\n    return n, m, j, w, d, b.value, h, t\n")
    check(module_of(tmp_path / "one.py").f, *calls(1), paths=("program",), tolerance=1e-5, none_is_zero=True,
          separate_gradients=True)  # fmt: skip
