"""A tensor that holds another one's values, and is returned beside it: each has its own memory, history and gradient.

The gradients' Program takes both for one value as long as nothing writes either.
"""

from __future__ import annotations

import itertools
import linecache
from typing import Any

import pytest
import torch

from tests.oracle import check

COPIES = {
    "copy_ under no_grad": "with torch.no_grad():\n        p.copy_(q)",
    "copy_": "p.copy_(q)",
    "copy_ of data": "p.data.copy_(q)",
    "copy_ of a detached one": "p.detach().copy_(q)",
    "item set under no_grad": "with torch.no_grad():\n        p[:] = q",
    "clone": "p = q.clone()",
    "clone under no_grad": "with torch.no_grad():\n        p = q.clone()",
    "clone of a detached one": "p = q.detach().clone()",
    "written": "with torch.no_grad():\n        p.mul_(2)",
}
USES = {
    "the other one first": """
    w = p
    if q[0] < q[1]:
        w = q
    return q, w
""",
    "the other one last": """
    w = q
    if q[0] < q[1]:
        w = p
    return w, q
""",
    "one of both": """
    w = p if q[0] < q[1] else q
    return p, q, w
""",
    "a list": """
    kept = [p]
    for t in q:
        if t > 1.5:
            kept.append(q)
    return q, kept
""",
    "a loop": """
    w, n = p, 0
    while n < q[0]:
        w, n = w * 2, n + 1
    return q, w, p
""",
    "computed from it": """
    w = p if q[0] < q[1] else p * 2
    return q, p, w, w * q
""",
    "views": """
    w = p.view(3) if q[0] < q[1] else q.view(3)
    return q, w, p
""",
    "chosen twice": """
    u = p
    if q[0] < q[1]:
        u = q
    v = u
    if q[1] < q[2]:
        v = p
    return u, v, q
""",
}
ORDERS = [[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [-1.0, 0.5, 0.2]]


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("copy", COPIES)
def test_as_in_eager(copy: str, use: str) -> None:
    text = f"def f(x, y):\n    p, q = x * 0.5, y * 2\n    {COPIES[copy]}{USES[use]}"
    file = f"<{copy}, {use}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    scope: dict[str, Any] = {"torch": torch, "__name__": __name__}
    exec(compile(text, file, "exec"), scope)
    calls = [
        (torch.tensor([1.0, 2.0, -3.0]).requires_grad_(), torch.tensor(order).requires_grad_(needs))
        for order, needs in itertools.product(ORDERS, (True, False))
    ]
    check(scope["f"], *calls)
