"""Containers of which a path decides how many lists, dicts or other things they hold, in everything that takes items.

Each use gives what eager gives, or is refused with a code; none sees what stands for the container while tracing.
"""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest
import torch

from runtime.errors import Dy2StaticError
from tests.from_files import module_of
from tests.oracle import check

ITEMS = {
    "list": ("[x]", "[x * 2, x]"), "dict": ("{'a': x}", "{'a': x * 2, 'b': x}"), "tuple": ("(x,)", "(x * 2, x)"),
    "set": ("{1}", "{2, 3}"), "mixed": ("x", "'s'"), "numbers": ("[1]", "[2]"), "tensor": ("x", "x * 2"),
}  # fmt: skip
GROWN = {
    "list": "xs = [{0}]\n    if x.sum() > 0: xs.append({1})",
    "deque": "xs = deque([{0}])\n    if x.sum() > 0: xs.appendleft({1})",
    "loop": "xs = [{0}]\n    for i in range(2):\n        if x[i] > 0: xs.append({1})",
    "one of two": "xs = ({0},)\n    if x.sum() > 0: xs = ({0}, {1})",
    "values": "d = {{'p': {0}}}\n    if x.sum() > 0: d['q'] = {1}\n    xs = d.values()",
    "keys": "d = {{'p': {0}}}\n    if x.sum() > 0: d['q'] = {1}\n    xs = d",
}
USES = {
    "enumerate": "return [(i, v) for i, v in enumerate(xs)]",
    "enumerate in a loop": "n = 0\n    for i, v in enumerate(xs): n = n + i + 1\n    return n",
    "changed in a loop": "for i, v in enumerate(xs):\n        if isinstance(v, list): v.append(x * i)\n"
                         "    return list(xs)",
    "zip": "return [(v, k) for v, k in zip(xs, [1, 2, 3])]",
    "zip with itself": "return list(zip(xs, xs))",
    "reversed": "return [v for v in reversed(list(xs))]",
    "starred call": "return (lambda *a: len(a))(*xs)",
    "starred tuple": "return (*xs,)",
    "starred list": "return [*xs, 1]",
    "starred zip": "return list(zip(*[list(xs), list(xs)]))",
    "first and rest": "a, *r = xs\n    return a, r",
    "map of two": "return list(map(lambda a, b: (a, b), xs, xs))",
    "pairwise": "return list(itertools.pairwise(xs)) if hasattr(itertools, 'pairwise') else 0",
    "chain": "return list(itertools.chain(xs, [1]))",
    "max of numbers": "return max(i for i, _ in enumerate(xs))",
    "tuple": "return tuple(xs)",
    "tuple of a generator": "return tuple(v for v in xs)",
    "list of a generator": "return list(v for v in xs)",
    "deque of a generator": "return deque(v for v in xs)",
    "Counter of a generator": "return Counter('n' for _ in xs)",
    "fsum of a generator": "return math.fsum(1.0 for _ in xs)",
    "fromkeys of a generator": "return dict.fromkeys(str(i) for i, _ in enumerate(xs))",
    "fromkeys of constants": "return dict.fromkeys('k' for _ in xs)",
    "starred generator": "return [*(1 for _ in xs)]",
    "zip of a generator": "return list(zip((1 for _ in xs), range(5)))",
    "first of a generator": "a, *b = (1 for _ in xs)\n    return a, b",
    "next of a generator": "return next(1 for _ in xs)",
    "sum of a generator": "return sum(1 for _ in xs)",
    "extend by a generator": "out = [0]\n    out.extend(1 for _ in xs)\n    return out",
    "extendleft by a generator": "out = deque([0])\n    out.extendleft(1 for _ in xs)\n    return out",
    "slice set to a generator": "out = [0, 1]\n    out[1:] = (5 for _ in xs)\n    return out",
    "set of a generator": "return set(i for i, _ in enumerate(xs))",
    "set of the items": "return set(v for v in xs)",
    "yield from": "def g():\n        yield from xs\n    return len(list(g())), sum(1 for _ in g())",
    "yield from, unpacked": "def g():\n        yield from xs\n    a, *b = g()\n    return len(b)",
    "generator with a handler": "def g():\n        try:\n            for v in xs: yield 1\n        except ValueError:\n"
                                "            yield 2\n    return list(g())",
    "any": "return any(isinstance(v, str) for v in xs), all(v is not None for v in xs)",
    "sorted": "return sorted((i for i, _ in enumerate(xs)), reverse=True)",
    "join": "return '-'.join('k' for _ in xs)",
    "length": "return len(xs), len(list(xs)), len([0 for _ in xs])",
    "membership": "return 7 in [i for i, _ in enumerate(xs)]",
    "reduce": "return functools.reduce(lambda a, b: a + 1, (0 for _ in xs), 10)",
}  # fmt: skip
REFUSED = {"D2S210", "D2S212", "D2S220", "D2S226", "D2S253", "D2S254", "D2S261", "D2S265", "D2S266", "D2S276"}
_HEAD = "import functools, itertools, math\nfrom collections import Counter, deque\nimport torch\n\n\n"


def _source(grown: str, item: str, use: str) -> str:
    return f"def f(x):\n    {GROWN[grown].format(*ITEMS[item])}\n    {USES[use]}\n\n\n"


@pytest.mark.parametrize("use", USES)
def test_uses(use: str, tmp_path: Path) -> None:
    counts: Counter[str] = Counter()
    for number, (grown, item) in enumerate(itertools.product(GROWN, ITEMS)):
        path = tmp_path / f"uses_{number}.py"
        path.write_text(_HEAD + _source(grown, item, use))
        module = module_of(path)
        try:
            check(module.f, *((sign * torch.tensor([1.0, 2.0]),) for sign in (1, -1)), paths=("program",))
            counts["same"] += 1
        except Dy2StaticError as error:
            assert error.code in REFUSED, f"{grown}, {item}: {error}"
            counts[str(error.code)] += 1
        except AssertionError as error:
            raise AssertionError(f"{error}\n{_source(grown, item, use)}") from None
    print(dict(counts))
