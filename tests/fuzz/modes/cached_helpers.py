"""Helpers under ``functools.cache``: what they return, how often they ran, and what their caches say afterwards."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable

import dy2static
from tests.fuzz.judging import TOLERANCE
from tests.fuzz.modes.skeleton import Mode
from tests.oracle import Terms, copied, hold, run, same

_HEAD = """import functools
import torch
LOG = []
@functools.lru_cache(maxsize=2)
def scale(n):
    LOG.append(n)
    return n * 0.5
@functools.cache
def noise(n):
    LOG.append("noise")
    return torch.rand(3) * n
@functools.lru_cache(None)
def table(n, name="t"):
    return {name: n, "size": (n, n)}
@functools.cache
def mask(n):
    return torch.arange(3) < n
@functools.lru_cache(maxsize=3)
def half(n):
    return n / 2
@functools.cache
def items(n):
    return [n, 0]
@functools.cache
def rows(n):
    return torch.zeros(3)
class Box:
    @functools.lru_cache
    def width(self, n):
        LOG.append("width")
        return n + 1
    @functools.cached_property
    def depth(self):
        LOG.append("depth")
        return 2
BOX = Box()
def plain(n):
    return scale(n) + 1
def f(x, y, k):
    p, q, r, n = x * 0.5, y * 2, torch.ones(3), k
"""


class CachedHelpers(Mode):
    """Numbers, tensors and random draws that a cache keeps from one call to the next.

    Few programs call what writes a log, or ask a cache how often it was used, in a branch or loop: that is refused.
    """

    head = _HEAD
    stays = True
    refusals = frozenset({"D2S227", "D2S276", "D2S277", "D2S278", "D2S211", "D2S212"})

    def simple(self) -> str:
        """A call of a cached helper, a question to a cache, or a value."""
        one, other = self.name(), self.name()
        number = self.rng.choice(("1", "2", "3", "k", "k + 1", "k"))
        calls = (f"{one} = {one} * scale({number})", f"{one} = {other} + noise({number})", f"n = n + plain({number})",
                 f'{one} = {other} * table({number})["t"]', f"{one} = {other} + mask({number})",
                 f"items({number})[1] += 1", f"n = n + items({number})[1]", f"rows({number}).add_(1)",
                 f"{one} = {other} + rows({number})",
                 f"n = n + BOX.width({number})", "n = n + BOX.depth", f"n = table({number}, name='t')['size'][0]",
                 f"{one} = torch.where(mask({number}), {one}, {other})")  # fmt: skip
        asks = ("n = n + scale.cache_info().hits", "n = n + noise.cache_info().currsize",
                f"n = n + (rows({number}) is rows(k))",
                "n = n + (table(2) is table(2))", f"n = n + (noise({number}) is noise({number}))",
                "scale.cache_clear()" if self.rng.random() < 0.3 else "n = n + scale.cache_info().misses")  # fmt: skip
        if self.inside and not self.free:
            calls = tuple(text for text in (*calls, f"n = n + half({number})", f"{one} = {other} * half({number})")
                          if not any(name in text for name in ("scale(", "noise(", "plain(", "BOX", "items(", "add_(")))
            asks = ("n = n + (table(2) is table(2))", f"n = n + (half({number}) is half({number}))")
        values = (f"{one} = {other} + 1", f"{one} = {one} * {other}", "n = n + 1", f"{one} = {other} + torch.rand(3)")
        return self.rng.choice(self.rng.choices((calls, asks, values), (5, 1, 3))[0])

    def compare(self, load_program: Callable[[], types.ModuleType], seed: int) -> None:
        """Two copies of the program, each with caches of its own, through all calls, some of them twice.

        Then ``k`` changes so often that a Program reads it at each call. Every other program also where plain Python
        may stand in for a call.
        """
        for whole in (False, True) if seed % 2 else (True,):
            self._compare(load_program, seed, whole)

    def _compare(self, load_program: Callable[[], types.ModuleType], seed: int, whole: bool) -> None:
        theirs, mine = load_program(), load_program()
        if not whole and self._only_on_some_paths(theirs, "scale"):  # its cache drops other results then
            return
        converted = dy2static.to_static(mine.f, full_graph=whole)
        calls = self.calls(seed)
        changing = [(*calls[4][:2], k) for k in (5, 7, 5, 9, 7)]
        for number, call in enumerate([calls[0], calls[0], calls[1], calls[4], calls[0], *changing]):
            where = f"call {number}"
            expected, got = run(theirs.f, copied(call), number), run(converted, copied(call), number)
            if not hold(got, expected, where, Terms(tolerance=TOLERANCE), [("log", mine.LOG, theirs.LOG)]):
                return
            for name in ("scale", "noise", "table", "mask") if number < len(calls) - 1 else ():
                if self._only_on_some_paths(theirs, name):  # such calls are not counted (docs/python_state.md)
                    continue
                infos = [tuple(getattr(module, name).cache_info()) for module in (mine, theirs)]
                same(infos[0], infos[1], f"{where} cache of {name}")

    @staticmethod
    def _only_on_some_paths(program: types.ModuleType, name: str) -> bool:
        """Whether a cached function is called inside a branch or loop, or after one that may return."""
        lines = inspect.getsource(program.f).splitlines()
        asked = f"{name}(", *(["plain("] if name == "scale" else [])
        indented = [line for line in lines if line.startswith("        ")]
        return any(one in line for line in indented for one in (*asked, "return"))
