"""Dicts and sets that are changed in branches and loops: keys added, removed and counted."""

from __future__ import annotations

from typing import Any

import torch

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import collections
import torch
CONFIG = {"a": 1.0, "b": 2.0}
class Store:
    def __init__(self):
        self.data = {}
        self.names = set()
    def put(self, key, t):
        self.data[key] = t
        self.names.add(key)
    def total(self, t):
        for value in self.data.values():
            t = t + value * 0.1
        return t
def f(x, y, k, given):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    d, c, s = {"a": p, "b": q}, {"n": 0}, {"a", 1}
    store, groups = Store(), collections.defaultdict(list)
"""


class DictSetChanges(Mode):
    """Changes of dicts and sets, and what reads them afterwards."""

    head = _HEAD
    tail = "    return p, q, n, d, c, s, store.data, store.names, dict(groups), given\n"
    depth = 1

    def simple(self) -> str:
        """A change, a look, or a value."""
        rng = self.rng
        one, value, key = self.name(), self.value(), rng.choice(('"a"', '"b"', '"c"'))
        d = rng.choice(("d", "d", "d", "given", "store.data"))
        return rng.choice((
            f"{d}[{key}] = {value}", f"{d}[{key}] = {value}", f"{d}.pop({key}, None)",
            f"if {key} in {d}:\n    del {d}[{key}]",
            f"{d}.update({{{key}: {value}}})", f"{d}.update(a={value})", f"{one} = {d}.setdefault({key}, {value})",
            f"{d} |= {{{key}: {value}}}", f"d = {{**{d}, {key}: {value}}}", f"d = {{v: w * 2 for v, w in {d}.items()}}",
            f'd = {{v: w for v, w in {d}.items() if v != {key}}}', f"{one} = {d}.get({key}, {value})",
            f"if {key} in {d}:\n    {one} = {one} + {d}[{key}]",
            f"for v, w in {d}.items():\n    {one} = {one} + w * 0.1",
            f"for w in {d}.values():\n    {one} = {one} - w * 0.1",
            f"for v in sorted({d}):\n    {one} = {one} * CONFIG.get(v, 0.5)",
            f"n = n + len({d})", f"{one} = {one} + sum({d}.values())", f"{d}.clear()", f"d = dict({d})",
            f"d = {d}.copy()",
            f"s.add({key})", f"s.add({rng.randint(0, 3)})", f"s.discard({key})", f"s.update([{key}, 2])",
            f"s |= {{{key}}}", "s &= {'a', 'b', 1}", f"s -= {{{key}}}", f"if {key} in s:\n    {one} = {one} + 1",
            "n = n + len(s)",
            f"s = {{v for v in s if v != {key}}}", f"s = s | {{{key}}}", "if s:\n    n = n + 1",
            f"if not {d}:\n    {one} = {value}",
            'c["n"] += 1', 'c["n"] = n', 'c["m"] = c.get("m", 0) + 1', 'n = c["n"]', f"store.put({key}, {value})",
            f"{one} = store.total({one})", f"groups[{key}].append({value})",
            "for v, w in groups.items():\n    n = n + len(w)",
            f"d, old = {{{key}: {value}}}, d", f"{one} = {d}.pop({key}, {value})", f"n = n + ({key} in store.names)",
            f"for v in list({d}):\n    if v == {key}:\n        del {d}[v]", f"d[{key}], d['a'] = {value}, p",
            f"for v in {d}:\n    {d}[v] = {d}[v] * 0.5", f"{d}[{key}] = {d}.get({key}, 0) + {value}",
        ))  # fmt: skip

    def value(self) -> str:
        """A tensor to put in."""
        return self.rng.choice(("p", "q", "r", "p + 1", "q * 2"))

    def condition(self) -> str:
        """A condition, of keys too."""
        if self.rng.random() < 0.2:
            return f"'{self.rng.choice('ac')}' in {self.rng.choice(('d', 's', 'given'))}"
        return super().condition()

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """A dict is given, too."""
        return [(*call, {"a": torch.full((3,), 0.5)}) for call in super().calls(seed)]
