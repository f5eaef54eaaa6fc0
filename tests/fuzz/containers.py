"""Random programs that give lists or dicts several names, change them through each, and compare them with ``is``.

What a change of one must do to another depends on the path and on the iteration. About one program in seven is refused.
Run as many as you like: ``python -m tests.fuzz.containers --seed 0 --count 500``.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable

import torch

from tests.fuzz.judging import judge
from tests.fuzz.run import FAILURES

NAMES = ("p", "q", "r")
_HEAD = {
    "lists": '''import torch
def grow(items, t):
    if t.sum() > 0:
        items.append(t)
    else:
        items = items + [t]
    return items
def f(x, y, k):
    a, b = x * 0.5, y * 2
    p, q, r = [], [a], [b, a]
    box = [p]
''',
    "dicts": '''import torch
def put(d, t):
    if t.sum() > 0:
        d["z"] = t
def f(x, y, k):
    a, b = x * 0.5, y * 2
    p, q, r = {}, {"a": a}, {"a": b, "b": a}
    box = [p]
''',
}  # fmt: skip
_TAIL = "\n    return p, q, r, p is q, q is r, len(box)\n"


class Containers:
    """One program of a seed."""

    def __init__(self, seed: int, kind: str) -> None:
        self._rng = random.Random(seed)
        self._kind = kind

    def source(self) -> str:
        """Its text."""
        return _HEAD[self._kind] + "\n".join(self._block(3, "    ", False)) + _TAIL

    def _block(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        lines: list[str] = []
        for _ in range(self._rng.randint(1, 3)):
            nested = depth > 0 and self._rng.random() < 0.3
            lines += self._nested(depth - 1, pad, in_loop) if nested else self._simple(pad, in_loop)
        return lines

    def _simple(self, pad: str, in_loop: bool) -> list[str]:
        rng = self._rng
        one, other = rng.choice(NAMES), rng.choice(NAMES)
        common = [f"{one} = {other}", f"{one}, {other} = {other}, {one}", f"box[0] = {one}", f"{one} = box[0]",
                  "a = a + 1", f"if {self._condition(one)}:\n{pad}    return {one}, {other}"]  # fmt: skip
        if in_loop:
            common.append(f"if {self._condition(one)}:\n{pad}    break")
        own = self._of_lists if self._kind == "lists" else self._of_dicts
        return [pad + rng.choice(own(one, other, pad) if rng.random() < 0.65 else common)]

    def _of_lists(self, one: str, other: str, pad: str) -> list[str]:
        value = self._value()
        return [f"{one}.append({value})", f"{one}.append({value})", f"{one} = [t * 2 for t in {other}]",
                f"{one} = {other} + [{value}]", f"if len({one}) > 0:\n{pad}    {one}[0] = {value}",
                f"{one} = grow({other}, a)"]  # fmt: skip

    def _of_dicts(self, one: str, other: str, pad: str) -> list[str]:
        rng = self._rng
        value, key = self._value(), rng.choice("abc")
        value = rng.choice((value, value, f'{other}.get("{key}", a)', f"sum({other}.values())"))
        return [f'{one}["{key}"] = {value}', f'{one}["{key}"] = {value}', f'{one}.pop("{key}", None)',
                f"{one} = {{k: t * 2 for k, t in {other}.items()}}", f"{one}.update({key}=a)",
                f'{one}.setdefault("{key}", b)', f"for k, t in {one}.items():\n{pad}    a = a + t * 0.1",
                f"a = a + len({one})", f"put({one}, a)",
                f'{one} = {{k: t for k, t in zip("ab", (a, b)) if t.sum() > 0}}']  # fmt: skip

    def _nested(self, depth: int, pad: str, in_loop: bool) -> list[str]:
        rng = self._rng
        condition, inner = self._condition(rng.choice(NAMES)), pad + "    "
        if rng.random() < 0.6:
            lines = [f"{pad}if {condition}:", *self._block(depth, inner, in_loop)]
            return [*lines, f"{pad}else:", *self._block(depth, inner, in_loop)] if rng.random() < 0.5 else lines
        if rng.random() < 0.5:
            return [f"{pad}for _ in range(int((a > 0).sum())):", *self._block(depth, inner, True)]
        count = f"n{rng.randint(0, 999)}"
        return [f"{pad}{count} = 0", f"{pad}while {count} < 2 and {condition}:", f"{inner}{count} = {count} + 1",
                *self._block(depth, inner, True)]  # fmt: skip

    def _value(self) -> str:
        return self._rng.choice(("a", "b", "a + 1", "b * 2"))

    def _condition(self, name: str) -> str:
        tests = ["a.sum() > 0", "b.sum() > 0", "(a > 0).any()", "a.sum() < 1.5", f"len({name}) > 1"]
        if self._kind == "dicts":
            tests.append(f'"{self._rng.choice("abc")}" in {name}')
        return self._rng.choice(tests)


def main(arguments: list[str] | None = None, say: Callable[[str], None] = print) -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--loaded", action="store_true", help="save each program, and run what is loaded")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    failed = False
    for kind in _HEAD:
        found: Counter[str] = Counter()
        for seed in range(options.seed, options.seed + options.count):
            outcome = judge(Containers(seed, kind).source(), seed, loaded=options.loaded)
            found[f"{outcome.kind} {outcome.code}".strip()] += 1
            if outcome.kind in FAILURES:
                failed = True
                say(f"{kind}, seed {seed}: {outcome.kind} {outcome.code}\n{outcome.detail}")
        say(f"{kind}: " + ", ".join(f"{count} {what}" for what, count in found.most_common()))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
