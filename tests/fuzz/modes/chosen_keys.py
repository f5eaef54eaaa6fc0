"""Strings, members of an Enum, dtypes, ints and None that a branch chose, as keys."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import collections
import enum
import torch
class Side(enum.Enum):
    LEFT = "left"
    RIGHT = "right"
SCALE = {"up": 2.0, "down": 0.5, "none": 0.0}
OF_SIDE = {Side.LEFT: 1.5, Side.RIGHT: -1.0}
OF_DTYPE = {torch.float32: 0.25, torch.float64: 4.0}
OF_ANY = {None: 3.0, 0: 1.0, 1: 0.75, "up": 2.5}
TABLE = {("up", 0): 1.0, ("up", 1): 2.0, ("down", 0): 3.0, ("down", 1): 4.0}
def double(t):
    return t * 2
def half(t):
    return t * 0.5
CALLS = {"up": double, "down": half}
def scaled(t, name="up"):
    return t * SCALE.get(name, 1.0)
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    name, side, dtype, maybe, number = "up", Side.LEFT, torch.float32, None, 1
    d, e, count = {"up": p}, {}, collections.Counter()
"""
_KEYS = {
    "name": ('"up"', '"down"', '"none"'), "side": ("Side.LEFT", "Side.RIGHT"),
    "dtype": ("torch.float32", "torch.float64"), "maybe": ("None", "0", '"up"'), "number": ("0", "1"),
}  # fmt: skip


class ChosenKeys(Mode):
    """What is chosen is looked up, put in, and counted."""

    head = _HEAD
    refusals = frozenset({"D2S210", "D2S265"})
    tail = "    return p, q, n, name, side, dtype, maybe, number, d, e, count\n"
    depth = 1

    def simple(self) -> str:
        """A choice, a look-up, or a change of a dict."""
        rng = self.rng
        if rng.random() < 0.35:
            return self.choose()
        one, value = self.name(), self.value()
        key = rng.choice(("name", "name", "name", "side", "side", "maybe", "maybe", "dtype", "dtype", "number"))
        if key == "number" and rng.random() < 0.7:
            key = "name"
        table = {"name": "SCALE", "side": "OF_SIDE", "dtype": "OF_DTYPE", "maybe": "OF_ANY", "number": "OF_ANY"}[key]
        return rng.choice((
            f"{one} = {one} * {table}[{key}]", f"{one} = {one} * {table}.get({key}, 1.0)",
            f"{one} = {one} + {table}[{key}]", f"if {key} in {table}:\n    {one} = {one} + 1",
            f"if {key} in d:\n    {one} = {one} - 1", f"d[{key}] = {value}", f"d[{key}] = n",
            f"{one} = d.get({key}, {value})", f"{one} = d.setdefault({key}, {value})", f"d.pop({key}, None)",
            f"{one} = d.pop({key}, {value})", f"e = {{{key}: {value}}}", f'e = {{{key}: {value}, "z": n}}',
            f"e = dict.fromkeys([{key}, 'z'], 0)", f"e = dict([({key}, n)])", f"d.update({{{key}: {value}}})",
            f"d |= {{{key}: {value}}}", f"e = {{**d, {key}: {value}}}", f"count[{key}] += 1",
            f"count.update([{key}, 'up'])", f"count = collections.Counter([{key}, 'up', {key}])",
            f"n = n + count[{key}]", f"{one} = collections.ChainMap({{{key}: {value}}}, d).get('up', {one})",
            f"{one} = {one} * collections.ChainMap({{'z': 2.0}}, {table})[{key}]",
            f"e = collections.defaultdict(int)\ne[{key}] += 1",
            f"e = {{v: w for v, w in [({key}, n), ('z', 0)]}}", f"{one} = CALLS.get(name, half)({one})",
            f"{one} = scaled({one}, name)", f"{one} = scaled({one}, name=name)",
            f"{one} = {one} * TABLE.get((name, 0), 0.5)",
            f"e = {{(name, side): {value}}}", f"del e[{key}]" if rng.random() < 0.2 else f"e.pop({key}, None)",
            f"n = n + len({{{key}, 'z'}})", f"if {key} in {{'up', 0, Side.LEFT}}:\n    n = n + 1",
            f"if name == 'up':\n    {one} = {value}", f"if maybe is None:\n    {one} = {one} * 2",
            f"{one} = {one} + len(d)", f"for key in ('up', 'down'):\n    if key == name:\n        {one} = {one} + 1",
        ))  # fmt: skip

    def choose(self) -> str:
        """A key that depends on a tensor."""
        name = self.rng.choice((*_KEYS, "name"))
        a, b = self.rng.sample(_KEYS[name], 2)
        if self.rng.random() < 0.5:
            return f"{name} = {a} if {self.condition()} else {b}"
        return f"if {self.condition()}:\n    {name} = {a}"

    def value(self) -> str:
        """A tensor to put in."""
        return self.rng.choice(("p", "q", "p + 1", "q * 2"))
