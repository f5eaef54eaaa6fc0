"""``is``: whether items, tuples and containers are the same objects after branches and loops."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import dataclasses
import torch
from typing import Any, NamedTuple
class Pair(NamedTuple):
    a: Any
    b: Any
@dataclasses.dataclass(frozen=True)
class Frozen:
    a: Any
    b: Any
class Node:
    def __init__(self, value, parent=None):
        self.value = value
        self.parent = parent
def pick(items, t):
    return items[0] if t.sum() > 0 else items[-1]
def best_of(items):
    best = items[0]
    for t in items:
        if t.sum() > best.sum():
            best = t
    return best
def same(a, b):
    return a is b
def first(*values):
    return values[0]
def kept(pair, t):
    if t.sum() > 0:
        return pair
    return (pair[0], pair[1])
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    a, b, d, e = [p, q], [q], {"t": p, "l": [r]}, {"t": q}
    cur, item, key = a, p, d
    root = Node(p)
    node, leaf = root, Node(q, root)
    seen = []
    t, u = (p, 1), (q, 1)
    w, pair, fz, named = t, (t, u), Frozen(p, t), Pair(u, t)
"""


class Identity(Mode):
    """Names of lists, dicts, objects and tensors that are exchanged, and questions which is which."""

    head = _HEAD
    tail = (
        "    return (p, q, n, seen, cur is a, cur is b, key is d, key is e, node is root,\n"
        "            node is leaf, leaf.parent is root, a is b, item, w, w is t, w is u, pair[0] is t, pair[1] is w,\n"
        "            fz.b is w, named.a is u, named.b is pair[0], item is p)\n"
    )

    refusals = frozenset({"D2S264", "D2S266"})

    def leaving(self, in_loop: bool) -> str:
        """A return of one line."""
        line = "return (p, q, n, cur is a, key is d, node is root, item)"
        return self.rng.choice(("break", "continue")) if in_loop else line

    def simple(self) -> str:
        """A name for something else, a change, or a question."""
        rng = self.rng
        one, value = self.name(), self.value()
        test = self.test()
        cur = rng.choice(("a", "b", "cur"))
        if rng.random() < 0.4:
            return self.of_tuples(one, value)
        return rng.choice((
            "cur = b", "cur = a", "a, b = b, a", "key = e", "key = d", "node = leaf", "node = node.parent or root",
            "item = p", "item = q", "item = a[0]", "item = best_of([p, q, r])",
            f"item = pick({cur}, {one})", f"cur.append({value})", f"{cur}[0] = {value}", f"{cur}[0] = item",
            f'key["t"] = {value}', 'item = key["t"]', f"seen.append({test})", f"seen.append({test})",
            f"if {test}:\n    {one} = {one} + 1", f"if {test}:\n    {one} = {one} * 0.5\nelse:\n    n = n + 1",
            f"{one} = {one} * 2 if {test} else {one}", f"n = n + ({test})",
            "for c in (a, b):\n    if c is cur:\n        n = n + 1",
            "n = n + sum(c is cur for c in (a, b))", f"cur = {cur} if {test} else [{value}]", f"cur = list({cur})",
            f"cur = [{value}]", f"node = Node({value}, root)", "leaf.parent = node", f"node.value = {value}",
            "item = node.value", f"{one} = item", "cur = b if cur is a else a",
            "n = n + any(c is cur for c in (a, b))", f"e = d if {test} else e", 'd["l"] = a', 'cur = d.get("l", a)',
            f"item = None if {test} else p\nitem = p if item is None else item", f"if same({cur}, cur):\n    n = n + 1",
        ))  # fmt: skip

    def of_tuples(self, one: str, value: str) -> str:
        """A name for a tuple, another tuple, or a question."""
        rng, test = self.rng, self.test()
        which = rng.choice(("t", "u", "w", "pair[0]", "pair[1]", "fz.b", "named.a", "first(w, t)"))
        return rng.choice((
            f"w = {which}", f"w = {which}", f"t = {which}", "t, u = u, t", f"u = ({value}, 1)", f"w = ({one}, 1)",
            "t = (p, 1)", f"pair = ({which}, w)", "pair = pair[1], pair[0]", f"fz = Frozen({one}, {which})",
            f"named = Pair({which}, named.a)", "named = named._replace(a=w)", f"w = kept({which}, {one})",
            f"w = pick([t, u], {one})", f"node.pair = {which}", 'w = getattr(node, "pair", w)',
            f"seen.append({test})", f"n = n + sum(v is w for v in (t, u, {which}))",
            f"if {test}:\n    w = {which}\nelse:\n    n = n + 1", f"w = t if {test} else {which}",
            f"{one} = {one} * 2 if {test} else {one}", "for v in pair:\n    if v is w:\n        n = n + 1",
        ))  # fmt: skip

    def test(self) -> str:
        """A question which is which."""
        if self.rng.random() < 0.35:
            return self.rng.choice((
                "w is t", "w is u", "w is not t", "t is u", "pair[0] is w", "pair[1] is t", "fz.b is t", "fz.b is w",
                "named.a is u", "named.b is w", "named.a is named.b", "same(w, u)", "first(w, u) is t",
                "pair is (t, u)", "t is tuple(t)", "w[0] is t[0]", "w[0] is p", "kept(w, p) is w",
            ))  # fmt: skip
        if self.rng.random() < 0.15:  # of tensors
            return self.rng.choice((
                "item is p", "item is a[0]", "item is not q", 'd["t"] is item', "b[-1] is item", "a[-1] is q",
                "node.value is p", "same(item, q)", "p is q",
            ))  # fmt: skip
        return self.rng.choice((
            "cur is a", "cur is b", "a is not b", "item is None", "key is d", "key is not e",
            "node is root", "node.parent is root", "leaf.parent is node", "leaf.parent is None",
            'd.get("l") is a', 'd.get("l") is cur', "same(cur, b)", "same(node, leaf)", "cur is not None",
        ))  # fmt: skip

    def value(self) -> str:
        """A tensor to put in."""
        return self.rng.choice(("p", "q", "r", "p + 1", "q * 2", "item"))
