"""Lists of lists and of dicts that grow, and instances of subclasses of ``list``."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import torch
class Stack(list):
    def push(self, t):
        self.append(t)
        return self
    def top(self, default):
        return self[-1] if self else default
    @property
    def depth(self):
        return len(self)
class Named(list):
    name = "plain"
    def total(self):
        return sum(t.sum() for t in self)
def row_of(t, n):
    row = []
    for i in range(n + 1):
        row.append(t * i)
    return row
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    g, rows, s, m = [[p]], [{"n": 1, "t": p}], Stack([p]), Named()
"""


class Nested(Mode):
    """Growth on two levels: of what a list holds, and of the list."""

    head = _HEAD
    tail = "    return p, q, n, g, rows, list(s), list(m), m.name, s.depth\n"

    def simple(self) -> str:
        """A row that is put in or changed, a subclass's method, or a value."""
        rng = self.rng
        one, value = self.name(), self.value()
        if rng.random() < 0.04:
            return rng.choice((
                "g.append([])",
                f"g[-1].append({value})",
                f"for row in g:\n    row.append({value})",
                f"cur = []\ng.append(cur)\ncur.append({value})",
                'rows[-1]["n"] += 1',
                f'rows[-1]["t"] = {value}',
                'for row in rows:\n    row["n"] += 1',
            ))  # fmt: skip
        return rng.choice((
            f"g.append([{value}])", f"g.append([{value}, {one}])",
            f"for row in g:\n    {one} = {one} + sum(row) * 0.1",
            f"cur = []\ncur.append({value})\ng.append(cur)",
            f"g.append(row_of({value}, 1))", f"g[-1] = [{value}]", f"g[0] = g[0] + [{value}]",
            "g = [[t * 0.5 for t in row] for row in g]", f"g = [row + [{value}] for row in g]",
            "n = n + sum(len(row) for row in g)", "n = n + len(g)", f"g = [[{value}]]",
            f"{one} = {one} + g[-1][0] if g[-1] else {one}", f'rows.append({{"n": n, "t": {value}}})',
            f'{one} = rows[-1]["t"] * 0.5', 'n = rows[0]["n"]',
            f'for row in rows:\n    {one} = {one} + row["t"] * row["n"]',
            'rows = [{"n": row["n"] + 1, "t": row["t"]} for row in rows]', f"s.push({value})", f"s.append({value})",
            f"{one} = s.top({value})", "n = n + s.depth", f"if s:\n    {one} = s.pop()", f"m.append({value})",
            f"{one} = {one} * m.total()", 'm.name = "other"', f"m = Named([{value}])", f"s = Stack([{value}, p])",
            f"for t in s:\n    {one} = {one} + t * 0.1", f"s.extend([{value}])", "n = n + len(m)",
            f"{one} = {one} + sum(m)", f"s[-1] = {value}" if rng.random() < 0.5 else f"s.insert(0, {value})",
        ))  # fmt: skip

    def value(self) -> str:
        """A tensor to put in."""
        return self.rng.choice(("p", "q", "r", "p + 1", "q * 2"))
