"""Gradients of lists that loops and branches pass on as they are, and read as well."""

from __future__ import annotations

import linecache

import pytest
import torch

from dy2static import to_static

BODIES = {
    "a copy of a list from outside": "for _ in range(n):\n    h = list(w)",
    "the list itself": "for _ in range(n):\n    h = w",
    "a copy, and an item": "for _ in range(n):\n    h = list(w)\n    t = t + w[0] * 2",
    "two copies, and items": "for _ in range(n):\n    h = list(w)\n    g = w[:]\n    t = t + h[0] + g[-1] * 3",
    "a loop in a loop": (
        "for i in range(n):\n    for j in range(n):\n        h = list(w)\n        w = w + [t * j]\n    g = list(h)"
    ),
    "a list that is emptied": (
        "for i in range(n):\n    if len(h) > 1:\n        w.clear()\n    for j in range(n):\n        h = list(w)"
    ),
    "a branch in a loop": (
        "for i in range(n):\n    if t.sum() > i:\n        h = list(w)\n    else:\n"
        "        g = h + w\n        t = t + g[0]"
    ),
    "names that change places": "for i in range(n):\n    h, g = g, list(w)\n    w = h + g[:1]",
}
INPUTS = (([0.5, -1.0, -2.0], [1.0, 2.0, 3.0]), ([0.5, 1.0, -2.0], [1.0, -2.0, 0.3]), ([-1.0] * 3, [0.2, 0.3, 0.4]))


def function(body: str, grown: bool):
    lines = ["def f(p, q):", "    n = int((p > 0).sum())", "    t = p * q"]
    lines += ["    h, w, g = [p * 1], [q * 1, p * 2], [q * 3]"]
    lines += ["    for i in range(n):", "        w.append(t + i)"] if grown else []
    lines += ["    " + line for line in body.splitlines()]
    lines += ["    out = t", "    for part in (h, w, g):", "        for k, v in enumerate(part):"]
    lines += ["            out = out + v * (k + 1)", "    return out"]
    source = "\n".join(lines) + "\n"
    name = f"<lists passed on {abs(hash(source))}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict = {}
    exec(compile(source, name, "exec"), namespace)
    return namespace["f"]


def gradients(f, p, q):
    p, q = torch.tensor(p, requires_grad=True), torch.tensor(q, requires_grad=True)
    out = f(p, q)
    out.square().sum().backward()
    return out.detach(), p.grad, q.grad


@pytest.mark.parametrize("grown", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_gradients(name, grown):
    f = function(BODIES[name], grown)
    static = to_static(f)
    for p, q in INPUTS:
        torch.testing.assert_close(gradients(static, p, q), gradients(f, p, q))
