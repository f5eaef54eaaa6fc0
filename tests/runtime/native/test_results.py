"""Results of regions: lists that only backward halves read have one room, which the call before has measured."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from runtime.native.serving import SMALL
from runtime.native.stack import Stack, listed
from tests.oracle import same
from tests.runtime.native.programs import compiled, gave_up

_TWO = """program "f" {
  input %x : f32[n, m] = "x"
  input %y : f64[k] = "y"
  %z : int = scalar.size(%x, 0)
  %more : bool = scalar.lt(0, %z)
  %e : list<f32[m]> = array.new([])
  %d : list<f64[k]> = array.new([])
  %f : bool, %i : int, %es : list<f32[m]>, %ds : list<f64[k]>, %u : f64[k] = while_loop(%more, 0, %e, %d, %y) {
    ^(%g : bool, %j : int, %s : list<f32[m]>, %r : list<f64[k]>, %v : f64[k]):
      yield %g
  } {
    ^(%h : bool, %o : int, %t : list<f32[m]>, %q : list<f64[k]>, %w : f64[k]):
      %row : f32[m] = aten.select.int(%x, 0, %o)
      %a : f32[m] = aten.neg.default(%row)
      %b : list<f32[m]> = array.append(%t, %a)
      %c : f64[k] = aten.add.Tensor(%w, 1.0)
      %p : list<f64[k]> = array.append(%q, %c)
      %l : int = scalar.add(%o, 1)
      %last : bool = scalar.lt(%l, %z)
      yield %last, %l, %b, %p, %c
  }
  return %es, %u, %ds, %i as ($0, $1, $2, $3)
}"""


def _require_right(found: list[Any], x: torch.Tensor, y: torch.Tensor) -> None:
    count = x.shape[0]
    same(list(listed(found[0])), list(-x))
    same(list(listed(found[2])), [y + step + 1 for step in range(count)])
    same(found[1], y + count)
    assert found[3] == count


def test_small_lists_share_one_memory() -> None:
    """However many items there are, more or fewer than in the call before, and what was given out stays as it was."""
    made = compiled(_TWO, kept=[0, 2])
    generator = torch.Generator().manual_seed(0)
    seen: list[tuple[list[Any], torch.Tensor, torch.Tensor]] = []
    for (before, count), (m, k) in itertools.product(
        itertools.pairwise((3, 3, 9, 9, 2, 2, 0, 5, 5)), ((3, 5), (0, 2), (SMALL // 36, 7))
    ):  # fmt: skip
        for rows in (before, count):
            x = torch.randn(rows, m, generator=generator)
            y = torch.randint(9, (k,), generator=generator, dtype=torch.float64)
            seen.append((made.run([x, y], []), x, y))
        stacks = [one for one in seen[-1][0] if type(one) is Stack]
        small = count and m and 4 * m * count < SMALL
        if small and before == count:
            assert len(stacks) == 2 and stacks[0]._memory is stacks[1]._memory
            assert all(one.address % 64 == 0 for one in stacks)
    for found, x, y in seen:
        _require_right(found, x, y)
    assert not gave_up(made)


@pytest.mark.parametrize("calls", [1, 3])
def test_hooks_on_saved_tensors_hear_of_each_item(calls: int) -> None:
    """Under them there are lists, also where there was room for stacks before."""
    made = compiled(_TWO, kept=[0, 2])
    x, y = torch.randn(4, 3), torch.tensor([2.0, 7.0], dtype=torch.float64)
    for _ in range(calls):
        made.run([x, y], [])
    with torch.autograd.graph.saved_tensors_hooks(lambda one: one, lambda one: one):
        found = made.run([x, y], [])
    assert type(found[0]) is type(found[2]) is list
    _require_right(found, x, y)
    _require_right(made.run([x, y], []), x, y)
