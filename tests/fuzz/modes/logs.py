"""Lists and dicts outside the function that calls add to: which items come in, on which paths, call after call."""

from __future__ import annotations

import types
from collections.abc import Callable

import dy2static
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import Terms, copied, hold, run

_HEAD = """import collections
import torch
LOG = []
TABLE = {"log": []}
QUEUE = collections.deque(maxlen=4)
SHARED = [0]
class Holder:
    def __init__(self):
        self.history = []
        self.seen = {}
HOLDER = Holder()
Entry = collections.namedtuple("Entry", "name value")
def note(items, item):
    items.append(item)
    return len(item) if isinstance(item, (list, dict, tuple)) else 1
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
    own = []
"""
_LISTS = ("LOG", "LOG", 'TABLE["log"]', "HOLDER.history", "QUEUE", "own")


class Logs(Mode):
    """Numbers, texts, sizes, tensors and containers of them, put into what is there before and after the call."""

    head = _HEAD
    tail = "    return p, q, r, n, own\n"
    stays = True
    refusals = frozenset({"D2S210", "D2S220", "D2S227", "D2S228", "D2S245", "D2S253", "D2S263", "D2S264", "D2S277"})

    def simple(self) -> str:
        """Something is added, or a value changes."""
        rng = self.rng
        one, other = self.name(), self.name()
        items = rng.choice(_LISTS)
        item = self._item(2)
        adding = (
            f"{items}.append({item})", f"{items}.append({item})", f"{items}.extend([{item}, {self._item(1)}])",
            f"n = n + note({items}, {item})", f"{items}.extend(({item},))",
            f"HOLDER.seen.setdefault('s', []).append({item})", f"(LOG if {self.condition()} else own).append({item})",
            f"made = {item}\n{items}.append(made)\nn = n + (made is {items}[-1])",
        )  # fmt: skip
        values = (
            f"{one} = {other} + 1", f"{one} = {one} * {other}", "n = n + 1", f"{one} = torch.cat([{one}, {one}])[1:4]",
        )  # fmt: skip
        return rng.choice(rng.choices((adding, values), (3, 2))[0])

    def _item(self, depth: int) -> str:
        """An expression for what is added."""
        rng, one = self.rng, self.name()
        plain = (
            "n", "1.5", "'text'", "None", "k", f"float({one}.sum() > 0)", f"{one}.shape", f"len({one})",
            "torch.float32", f"{one}.sum().item() > 0", "SHARED", "Entry('e', n)", f"{one} * 1",
        )  # fmt: skip
        if depth == 0 or rng.random() < 0.4:
            return rng.choice(plain)
        first, second = self._item(depth - 1), self._item(0)
        held = f"{{'a': {first}, 'b': {second}}}", f"Entry('e', {first})", f"[[{first}], {second}]"
        return rng.choice((f"[{first}]", f"({first}, {second})", "[]", "{}", "{1, 2}", *held))

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Two copies of the program, each with lists of its own, through calls on all paths, several times."""
        theirs, mine = load_program(), load_program()
        converted = dy2static.to_static(mine.f)
        calls = self.calls(seed)[3:6]
        for number, place in enumerate((0, 0, 0, 1, 2, 1, 2, 0)):
            expected, got = run(theirs.f, copied(calls[place]), number), run(converted, copied(calls[place]), number)
            names = "LOG", "TABLE", "QUEUE", "SHARED"
            states = [(name, getattr(mine, name), getattr(theirs, name)) for name in names]
            states.append(("HOLDER", vars(mine.HOLDER), vars(theirs.HOLDER)))
            if not hold(got, expected, f"call {number}", Terms(tolerance=TOLERANCE, by_name=True), states):
                return
