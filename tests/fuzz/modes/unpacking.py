"""Lists that grew and tuples, unpacked into names, calls and displays, and given to ``zip`` and ``itertools``."""

from __future__ import annotations

from tests.fuzz.modes.skeleton import Mode

_HEAD = """import functools
import itertools
import operator
import torch
def total(*ts, scale=1.0):
    out = torch.zeros(3)
    for t in ts:
        out = out + t * scale
    return out
def pair(a, b=None, *rest, **more):
    return a if b is None else a + b * len(rest)
def keywords(a=None, b=None):
    return a * 0.5 if b is None else a - b
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    xs, ys, fixed, named = [p, q], [r], (p, q, r), {"a": p}
"""


class Unpacking(Mode):
    """Everything that takes a sequence apart."""

    head = _HEAD
    refusals = frozenset({"D2S210", "D2S212", "D2S253", "D2S261", "D2S266", "D2S267"})
    tail = "    return p, q, r, n, xs, ys, fixed, named\n"

    def simple(self) -> str:
        """Growth, or something that takes a sequence apart."""
        rng = self.rng
        one, other, value = self.name(), self.name(), self.value()
        s = rng.choice(("xs", "xs", "ys", "fixed"))
        grown = rng.choice(("xs", "ys"))
        if rng.random() < 0.02:
            return rng.choice((
                f"{one} = total(*{s})",
                f"{one} = total({value}, *{s}, scale=0.5)",
                f"both = (*{s},)\nn = n + len(both)",
                f"a, b = zip(*[(t, i) for i, t in enumerate({s})])\nn = n + len(b)",
                f"for t in itertools.chain({s}, {grown}):\n    {one} = {one} + t * 0.1",
                f"for t in itertools.islice({s}, 2):\n    {one} = {one} + t",
                f"{grown} = list(itertools.chain(xs, ys))",
                f"for a, b in itertools.zip_longest({s}, fixed, fillvalue=r):\n    {one} = {one} + a * b",
                f"for a, b in itertools.pairwise({s}):\n    {one} = {one} + a - b",
                f"{one} = functools.reduce(operator.add, {s})",
                f"for t, m in zip({s}, itertools.count(1)):\n    {one} = {one} + t * m",
                f"for t in itertools.takewhile(lambda t: t.sum() > 0, {s}):\n    {one} = {one} + t",
                f"first, *_ = sorted({s}, key=lambda t: t.sum().item())\n{one} = first * 2",
                f"{one} = max({s}, key=lambda t: t.sum())",
            ))  # fmt: skip
        return rng.choice((
            f"{one} = total(*fixed)",
            f"{one} = total({value}, *fixed, scale=0.5)",
            "both = (*fixed,)\nn = n + len(both)",
            "a, b = zip(*[(t, i) for i, t in enumerate(fixed)])\nn = n + len(b)",
            f"for t in itertools.chain(fixed, fixed):\n    {one} = {one} + t * 0.1",
            f"for t in itertools.islice(fixed, 2):\n    {one} = {one} + t",
            "ys = list(itertools.chain(fixed, [p]))",
            f"for a, b in itertools.zip_longest(fixed, fixed, fillvalue=r):\n    {one} = {one} + a * b",
            f"for a, b in itertools.pairwise(fixed):\n    {one} = {one} + a - b",
            f"{one} = functools.reduce(operator.add, fixed)",
            f"for t, m in zip(fixed, itertools.count(1)):\n    {one} = {one} + t * m",
            f"{grown}.append({value})", f"{grown}.append({value})", f"{grown} = {grown} + [{value}]",
            f"{one}, *rest = {s}\nn = n + len(rest)", f"*rest, {one} = {s}\nys = rest",
            f"if len({s}) > 1:\n    {one}, {other}, *rest = {s}", f"if len({s}) == 2:\n    {one}, {other} = {s}",
            f"{one}, {other} = {other}, {one}", f"({one}, {other}), n = fixed[:2], n + 1", f"{one} = total(*fixed)",
            f"{one} = pair(*fixed[:2], {value})",
            f"fixed = (*fixed[:2], {value})", f"fixed = ({value}, *fixed[1:])", f"{grown} = [*{s}, {value}]",
            f"{grown} = [{value}, *{s}]", f"{grown} = [*xs, *ys]", f"{grown} = list({s})",
            f"named = {{**named, 'b': {value}}}", "named = {**named, 'a': q}", f"{one} = keywords(**named)",
            f"for a, b in zip({s}, {grown}):\n    {one} = {one} + a * b",
            f"for i, t in enumerate({s}):\n    {one} = {one} + t * i",
            f"for a, (b, c) in zip(fixed, zip(fixed, fixed)):\n    {one} = {one} + a * b - c",
            f"for a, b in zip({s}, {s}[1:]):\n    {one} = {one} + b - a",
            f"a, b = zip(*[(t, t * 2) for t in fixed])\n{one} = total(*a) + b[0]",


            f"for t in itertools.chain(fixed, [{value}]):\n    {one} = {one} - t * 0.1",



            f"for a, b in itertools.product(fixed, fixed[:2]):\n    {one} = {one} + a * b",
            f"{grown} = list(itertools.accumulate(fixed))",
            f"{grown} = list(map(lambda t: t * 2, {s}))", f"{grown} = [t for t in {s} if t.sum() > 0] or [{value}]",
            f"{grown} = list(reversed({s}))", f"{one} = sum({s}, {value})", f"n = n + len({s})",
            f"if {grown}:\n    {one} = {grown}.pop()", f"{one} = torch.stack([*{s}, {value}]).sum(0)",



            "xs, ys = ys, xs", f"{one} = {s}[0]",
        ))  # fmt: skip

    def value(self) -> str:
        """A tensor to put in."""
        return self.rng.choice(("p", "q", "r", "p + 1", "q * 2"))
