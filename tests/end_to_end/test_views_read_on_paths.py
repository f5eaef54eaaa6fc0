"""A view that is older than its memory's history: PyTorch takes it for a leaf until it is read, on some paths only.

``r.add_(q); p.add_(q)`` raises where ``p`` is a view of ``r`` from before, unless something read ``p`` in between.
"""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.oracle import check, check_saved

MADE = """def f(x, y):
    q = x * 0.5
    r = torch.zeros(3)
    p = r.view(3)
"""
BODIES = {
    "a loop writes it twice": """
    for _ in range(int((y > 0).sum())):
        p[1:].sub_(q[:2])
        p += q
    return p * 1
""",
    "a loop writes its base, then it": """
    n = 0
    while n < y.sum():
        n = n + 1
        r.add_(q)
        p.add_(q)
    return p * 1
""",
    "a loop writes it, then its base": """
    n = 0
    while n < y.sum():
        if n > 0:
            p.add_(q)
        r.add_(q)
        n = n + 1
    return p * 1, r * 1
""",
    "one path reads it": """
    r.add_(q)
    if y.sum() > 0:
        z = p * 1
    else:
        z = q
    p.add_(q)
    return p * 1, z
""",
    "the other path reads it": """
    r.add_(q)
    if y.sum() > 0:
        z = q
    else:
        z = p * 1
    p.add_(q)
    return p * 1, z
""",
    "one path reads it, the other one writes it": """
    r.add_(q)
    if y.sum() > 0:
        z = p * 1
    else:
        z = p.add_(q) * 1
    return p * 1, z
""",
    "one path writes its base": """
    if y.sum() > 0:
        r.add_(q)
    else:
        z = p * 1
    p.add_(q)
    return p * 1
""",
    "one path writes its base and reads it": """
    if y.sum() > 0:
        r.add_(q)
        z = p * 1
    else:
        z = q
    p.add_(q)
    return p * 1, z
""",
    "a loop reads it": """
    r.add_(q)
    n, z = 0, q
    while n < y.sum():
        z, n = z + p, n + 1
    p.add_(q)
    return p * 1, z
""",
    "a loop reads it first and writes it later": """
    r.add_(q)
    n, z = 0, q
    while n < y.sum():
        if n < 1:
            z = z + p
        else:
            p.add_(q)
        n = n + 1
    return p * 1, z
""",
    "a loop in a branch reads it": """
    r.add_(q)
    n, z = 0, q
    if y[0] > 0:
        while n < y.sum():
            z, n = z + p, n + 1
    else:
        z = z * 2
    p.add_(q)
    return p * 1, z
""",
    "a branch in a loop reads it": """
    r.add_(q)
    n, z = 0, q
    while n < y.sum():
        if y[n] < 0.8:
            z = z + p
        n = n + 1
    p.add_(q)
    return p * 1, z
""",
    "asked for its history on a path": """
    r.add_(q)
    if y.sum() > 0:
        z = q if p.grad_fn is None else q * 2
    else:
        z = q * 3
    p.add_(q)
    return p * 1, z
""",
}
CALLS = [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [0.5, 0.1, -0.2], [0.9, 0.9, -0.2]]


@pytest.mark.parametrize("needs", [True, False])
@pytest.mark.parametrize("body", BODIES)
def test_as_in_eager(body: str, needs: bool, tmp_path: Path) -> None:
    text, file = MADE + BODIES[body].lstrip("\n"), f"<view, {body}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"torch": torch, "__name__": __name__}
    exec(compile(text, file, "exec"), scope)
    calls = [(torch.tensor([1.0, 2.0, -3.0]).requires_grad_(needs), torch.tensor(y)) for y in CALLS]
    static = check(scope["f"], *calls)
    if not needs:
        check_saved(scope["f"], static, tmp_path / "f.d2s", *calls)
