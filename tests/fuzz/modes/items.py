"""Tensors that are items of several lists that grow, moved between these, and written in place."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    g, h, rows, hit = [p], [q], [], []
    for _ in range(int((x.abs() >= 0).sum()) - 1):
        g.append(q)
        h.append(r * 2)
"""


class Items(Mode):
    """Two lists of tensors, one of tuples or lists, writes, and questions about identity."""

    refusals = frozenset({"D2S222", "D2S264", "D2S265", "D2S229"})
    head = _HEAD
    tail = "    return p * 1, q * 1, r * 1, n, [t * 1 for t in g], [t * 1 for t in h], rows, hit\n"

    def simple(self) -> str:
        """An item that goes from one list to another, a write, or a value."""
        rng = self.rng
        one, value = self.name(), self.value()
        a, b = rng.sample(("g", "h"), 2)
        if rng.random() < 0.08:
            return rng.choice((
                f"{one}.add_(0.5)", f"{a}[0].mul_(0.5)", f"{a}[-1][:1].add_(1)", f"{one}.view(3).mul_(2)",
                f"for t in {a}:\n    t.add_(0.25)", f"{one} = {a}[0]\n{one}.add_(1)", f"hit.append({a}[-1] is {one})",
                f"n = n + ({a}[0] is {b}[0])", f"hit.append(sum(t is {one} for t in {a}))",
                "if rows:\n    rows[0][0].add_(1)",
            ))  # fmt: skip
        return rng.choice((
            f"{a}.append({one})", f"{a}.append({value})", f"{a}.append({b}[-1])", f"{a}.extend({b}[:2])",
            f"{a} = [t for t in {b}]", f"{a} = [t * 0.5 for t in {b}]", f"{a} = {a} + [{b}[0]]", f"{a}[0] = {b}[-1]",
            f"for t in {b}[:2]:\n    {a}.append(t)", f"{one} = {a}[-1]", f"{one} = {a}[0] * 0.5",
            f"{one} = {a}[-1].view(3)", f"rows.append(({a}[0], n))", f"rows = [(t, 1) for t in {a}]",
            f"for t, _ in rows:\n    {a}.append(t)", f"if len({a}) > 1:\n    {one} = {a}.pop()", f"{a}, {b} = {b}, {a}",
            f"{one} = {value}", f"{one} = {one}.clone()", f"n = n + len({a})", f"{a} = list({b})",
            f"{a} = [{one}, {value}]",
        ))  # fmt: skip

    def value(self) -> str:
        """A tensor to put in."""
        return self.rng.choice(("p", "q", "r", "p + 1", "q * 2"))
