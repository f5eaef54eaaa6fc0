"""A container that is given to a method of its own, with an item that another one is on some paths."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest
import torch

from tests.oracle import check

_HEAD = """
import torch
from collections import deque
def f(x):
    p, q = x * 0.5, x * 2
    d = deque(maxlen=2)
    if p.sum() > 0:
        d.append(p)
    r = sum(d) / len(d) if d else q
    s = 1 if x.sum() > 0 else 2.5
"""
_LISTS = ["w.extend(w)", "w += w", "w.extend(list(w))", "list.extend(w, w)", "w *= 2", "w.extend(reversed(w))"]
_PROGRAMS = [
    *(f"w = [p]; w.append({item}); {act}; return w" for item in ("r", "s", "p if r is p else None")
      for act in (*_LISTS, "w[1:] = w", "w[:0] = w", "w.append(w[:])")),
    *(f"w = deque([p]{most}); w.append({item}); {act}; return list(w)" for item in ("r", "s")
      for most in ("", ", maxlen=3", ", maxlen=9")
      for act in ("w.extend(w)", "w += w", "w.extendleft(w)", "deque.extend(w, w)", "w.extend(deque(w))")),
    "w = {1: p}; w[2] = r; w.update(w); return w",
    "w = {1: p}; w[2] = s; w |= w; return w",
    "w = {1}; w.add(3); w.update(w); return len(w)",
]  # fmt: skip


def _made(text: str) -> Callable[..., Any]:
    source = _HEAD + "".join(f"    {line.strip()}\n" for line in text.split(";"))
    name = f"<items into themselves: {text}>"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(source, name, "exec"), space)
    made: Callable[..., Any] = space["f"]
    return made


@pytest.mark.parametrize("text", _PROGRAMS)
def test_items_into_themselves(text: str) -> None:
    check(_made(text), [torch.tensor([1.0, 2.0])], [torch.tensor([-1.0, 0.5])])


@pytest.mark.parametrize("given", ["zip([p], [q])", "enumerate([p, q])", "reversed(w)", "zip(w, reversed(w))",
                                   "zip(range(2), enumerate(w))", "reversed(list(w))"])  # fmt: skip
@pytest.mark.parametrize("item", ["p", "r", "s"])
def test_iterators_made_for_it_cost_no_trace(given: str, item: str) -> None:
    """Each call was traced: the iterators that a zip makes of lists were taken for somebody's."""
    f = _made(f"w = [p]; w.append({item}); w.extend({given}); return w")
    check(f, *([torch.tensor([1.0, 2.0 * number])] for number in (1, -1, 2, -2)))
