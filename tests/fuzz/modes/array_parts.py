"""Parts of NumPy's arrays that a function makes or finds: by several names, stored, changed on paths and at places that
only a run knows, given back.

The caller writes to the arrays that it gets, as it may: what else shares their memory changes with them, and what does
not stays as it is. Two copies of a program are held against each other, with what is beside the function.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch

import dy2static
from tests import devices
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import Terms, copied, hold, run, same

_HEAD = """import numpy as np
import torch
G = np.arange(6.0)
H = {}
class Box:
    pass
BOX = Box()
def begin():
    G[...] = np.arange(6.0)
    H.clear()
    H.update(k=np.ones(3), l=[])
    BOX.a = np.ones((2, 3))
    BOX.v, BOX.w, BOX.only = BOX.a[1], None, np.ones(5)[1:4]
def beside():
    shared = BOX.w is not None and np.shares_memory(BOX.w, BOX.a)
    return G, H, BOX.a, BOX.v, BOX.w, BOX.only, BOX.v.base is BOX.a, shared
def change(a):
    a[-1] = 9
def f(x):
    log, t, c, d = [], None, None, None
    x = x * 1
    i, j = int((x > 0).sum()) - 1, int(x[0] > 0)
"""
_MADE = (
    "np.ones((2, 3))", "np.stack([np.ones(3), np.ones(3) * 2])", "np.arange(6.0).reshape(2, 3)",
    "np.linspace(0, 1, 6).reshape(2, 3)", "np.tile(np.ones(3), (2, 1))", "np.array([[1.0, 2, 3], [4, 5, 6]])",
    "np.stack([x.detach().numpy(), np.ones(3)])", "np.zeros((3, 2)).T",
    "np.vstack([np.ones(3), np.arange(3.0)])",
)  # fmt: skip
_FOUND = ("np.full((2, 3), x[0].item())", "BOX.a", "G.reshape(2, 3)", "np.stack([H['k'], BOX.v])",
          "np.array([BOX.only, BOX.only])")  # fmt: skip
_TAKEN = (
    "a = b[0]", "a = b[:, 1:][1]", "a = b.T[:, 0]", "a = b.ravel()", "a = b[0].copy()", "a = list(b)[0]",
    "a = {'k': b[1]}['k']", "a = b[np.array([0])][0]", "a, b = b", "a = b[0]; b = None", "a = [row for row in b][1]",
    "a = b[::-1][0]", "a = b.reshape(-1)[1:4]", "a = np.atleast_1d(b[1])", "a = b.flat[:3]", "a = np.split(b[0], 1)[0]",
    "a = b[j]", "a = b[j, :]", "a = b[j:, 1:][0]", "a = b[j, ::-1]", "a = b[:, [i, 0]][j]",
)  # fmt: skip
_TAKEN_OUTSIDE = ("a = BOX.only", "a = BOX.v", "a = H['k'][:2]", "a = G[1:4]")
_STORES = ("BOX.w = a", "H['l'].append(a)", "H['k'] = a", "log.append(a)", "d = a[1:]", "t = torch.from_numpy(a)",
           "c = [a, a]", "BOX.w = a.copy()", "d = a", "log.append(a[:1])")  # fmt: skip
_CHANGES = (
    "a *= 2", "a[0] = 5", "a[1:] += a[:-1]", "a.fill(3)", "np.add(a, 1, out=a)", "a[0] = x[0].item()",
    "change(a)", "a = a + 1", "b = a", "a = a + 0", "a[...] = 1",
    "a[i] = 7", "a[j] += 2", "a[i:] = 4", "a[[j, -1]] = 3", "a[[i, j]] += 1", "np.add.at(a, [j, 0], 1)",
    "a[j] = x[0].item()", "a[-1], a[j] = a[j], a[-1]", "if b is not None:\n    b[j - 1, ...] = 6",
    "if d is not None:\n    d[-1:] = 4", "if t is not None:\n    t.add_(1)", "if c is not None:\n    c[0][0] = 8",
)  # fmt: skip
_CHANGES_OUTSIDE = ("a += x.detach().numpy()[: len(a)][:1]", "BOX.v[0] += 1", "BOX.only *= 2", "H['k'] += 1",
                    "G[0] += 1")  # fmt: skip
_READS = ("x = x + float(a.sum())", "x = x * torch.from_numpy(np.ascontiguousarray(a))[:1]", "x = x + a[0]",
          "if a.sum() > 4:\n    x = x + 1", "x = x + len(a)", "log.append(a.tolist())",
          "x = x + a[i]", "log.append(a[j])", "x = a[j] * x", "log.append(a[j:])", "x = x + float(a[[i, j]].sum())",
          "log.append(type(a[i]).__name__)")  # fmt: skip
_RETURNS = (
    "return x, a, b", "return x, a.sum(), log, None if b is None else b.tolist()",
    "return x, a is BOX.w, np.shares_memory(a, BOX.a)", "return x, a, log", "return x, BOX.w, a", "return x, d, a, c",
    "return x, t, a",
)  # fmt: skip
_TERMS = Terms(TOLERANCE, none_is_zero=True, separate_gradients=True, by_name=True)


def _arrays(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays in a result that may be written to."""
    if isinstance(value, np.ndarray) and value.flags.writeable:
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from _arrays(one)


class ArrayParts(Mode):
    """An array of two dimensions, a part of it, and what becomes of both.

    Programs that may have what is refused for good change arrays from outside as well.
    """

    names = ("x",)
    depth = 1
    stays = True
    refusals = frozenset({"D2S213", "D2S214", "D2S227", "D2S264", "D2S277"})

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.head = f"{_HEAD}    b = {self.rng.choice((*_MADE, *_FOUND) if self.free else _MADE)}\n"
        self.head += f"    {self.rng.choice((*_TAKEN, *_TAKEN_OUTSIDE) if self.free else _TAKEN)}\n"
        self.tail = f"    {self.rng.choice(_RETURNS)}\n"

    def simple(self) -> str:
        """A name for an array, a change of one, or a value from one."""
        changes = (*_CHANGES, *_CHANGES_OUTSIDE) if self.free else _CHANGES
        return self.rng.choice(self.rng.choices((_STORES, changes, _READS), (2, 4, 1))[0])

    def condition(self) -> str:
        """A condition on the tensor or an array."""
        return self.rng.choice(("x.sum() > 0", "x[0] > 0", "(x > 0).any()", "x.sum() > 0", "a.sum() > 4"))

    def calls(self, seed: int) -> list[tuple[Any, ...]]:
        """Five calls, the last two with gradients."""
        generator = devices.generator(seed)
        shifts = (0.5, -1.0, 1.0, 0.0, -0.5)
        found = [torch.randn(3, generator=generator, dtype=torch.float64) + shift for shift in shifts]
        return [(x.requires_grad_(number > 2),) for number, x in enumerate(found)]

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Each call of both copies, what is beside them, and both once more after the caller wrote to what it got."""
        theirs, mine = load_program(), load_program()
        static = dy2static.to_static(mine.f)
        raised, begin, calls = 0, True, self.calls(seed)
        for number, call in enumerate(calls):
            if begin:
                theirs.begin()
                mine.begin()
            expected, got = (run(f, copied(call), number) for f in (theirs.f, static))
            begin = not hold(got, expected, f"call {number}", _TERMS, [("state", mine.beside(), theirs.beside())])
            raised += begin
            if begin:
                continue
            both = [(outcome.result, module.beside()) for outcome, module in ((got, mine), (expected, theirs))]
            for result, _ in both:
                for array in _arrays(result):
                    array += 1
            same(*both, f"call {number} state after writes to the result", TOLERANCE, by_name=True)
        self.told = "raising" if raised == len(calls) else ""
