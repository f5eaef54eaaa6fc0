"""``scan`` as Python code: lengths, directions, columns, and what is dropped when."""

from __future__ import annotations

import pytest
import torch

from runtime.executor import compile_program

SUMS = """
  input %h : f32[2] = "h"
  input %x : f32[*] = "x"
  input %l : list<int> = "l"
  input %n : int = "n"
  %a : f32[2], %b : f32[*], %c : list<int>, %d : list<f32[2]> = scan(%n, %h, %x, %l) {
    ^(%i : int, %g : f32[2], %r : f32[2], %k : int):
      %s : f32[2] = aten.add.Tensor(%g, %r)
      %t : f32[2] = aten.add.Tensor(%s, %k)
      %m : int = scalar.mul(%i, 10)
      yield %t, %s, %m, %g
  } attrs {carried: 1REVERSE}
  return %a, %b, %c, %d as ($0, $1, $2, $3)
"""


def expected(h, x, items, n, reverse):
    rows, numbers, states = [], [], []
    for i in reversed(range(n)) if reverse else range(n):
        rows.append(h + x[i])
        numbers.append(i * 10)
        states.append(h)
        h = rows[-1] + items[i]
    for made in (rows, numbers, states) if reverse else ():
        made.reverse()
    return [h, torch.stack(rows) if rows else None, numbers, states]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [-2, 0, 1, 2, 4])
@pytest.mark.parametrize("grad", [False, True])
def test_what_a_scan_gives(program, n, reverse, grad):
    made = program(SUMS.replace("REVERSE", ", reverse: True" if reverse else ""))
    h, x, items = torch.randn(2, requires_grad=grad), torch.randn(4, 2, requires_grad=grad), [3, 1, 4, 1]
    found = compile_program(made).run([h, x, items, n], [])
    wanted = expected(h, x, items, n, reverse)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    assert items == [3, 1, 4, 1]
    if grad and n > 0:
        grads = [torch.autograd.grad((one[0] * one[1]).sum(), [h, x]) for one in (found, wanted)]
        torch.testing.assert_close(grads[0], grads[1], rtol=0, atol=0)


MANY = """
  input %x : f32[*] = "x"
  input %n : int = "n"
  %all : ?[*] = scan(%n, %x) {
    ^(%i : int, %r : f32[*]):
      %s : f32[*] = aten.mul.Tensor(%r, 2)
      yield %s
  } attrs {carried: 0REVERSE}
  return %all
"""


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("n", [31, 32, 33, 64, 70])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 1, 3), (4, 3, 2, 5)])
def test_many_rows(program, n, reverse, shape):
    run = compile_program(program(MANY.replace("REVERSE", ", reverse: True" if reverse else ""))).run
    x = torch.randn(n, *shape)
    for one in (x, x.transpose(1, -1) if shape else x, x.to(memory_format=torch.channels_last) if x.dim() == 4 else x):
        wanted = torch.stack([row * 2 for row in one.unbind(0)])
        for grad in (False, True):
            with torch.set_grad_enabled(grad):
                (found,) = run([one, n], [])
            assert torch.equal(found, wanted) and found.stride() == wanted.stride() and found.is_contiguous() == (
                wanted.is_contiguous())  # fmt: skip


def test_the_length_must_be_there(program):
    made = program(SUMS.replace("REVERSE", ""))
    with pytest.raises(IndexError):
        compile_program(made).run([torch.zeros(2), torch.zeros(3, 2), [0] * 4, 4], [])


TAKEN = """
  input %l : list<f32[2]> = "l"
  input %n : int = "n"
  %own : list<f32[2]> = grad.take(%l)
  %h : f32[2] = scan(%n, undef, %own) {
    ^(%i : int, %g : f32[2], %r : f32[2]):
      %s : f32[2] = aten.mul.Tensor(%r, 2)
      yield %s
  } attrs {carried: 1, reverse: True}
  return %hSEEN
"""


def test_a_list_that_nobody_else_has_is_emptied_on_the_way_back(program):
    items = [torch.ones(2), torch.zeros(2)]
    with torch.no_grad():
        compile_program(program(TAKEN.replace("SEEN", "")), consuming=True).run([items, 2], [])
    assert items == []


def test_a_list_that_is_read_later_stays(program):
    items = [torch.ones(2), torch.zeros(2)]
    with torch.no_grad():
        found = compile_program(program(TAKEN.replace("SEEN", ", %own")), consuming=True).run([items, 2], [])
    assert len(items) == 2 and found[1] is items and found[0].tolist() == [2, 2]


WRITES = """
  input %x : f32[2] = "x"
  input %n : int = "n"
  %h : f32[2], %all : list<f32[2]> = scan(%n, %x) {
    ^(%i : int, %g : f32[2]):
      %s : f32[2] = update(%g) {
        ^(%b : f32[2]):
          %w : f32[2] = aten.add_.Scalar(%b, 1)
          yield %b
      }
      yield %s, ITEM
  } attrs {carried: 1}
  return %h, %all
"""


@pytest.mark.parametrize(("item", "wanted"), [("%s", [[1, 1], [2, 2], [3, 3]]), ("%g", [[0, 0], [1, 1], [2, 2]])])
def test_items_are_not_written_by_later_iterations(program, item, wanted):
    x = torch.zeros(2)
    with torch.no_grad():
        found = compile_program(program(WRITES.replace("ITEM", item))).run([x, 3], [])
    assert [one.tolist() for one in found[1]] == wanted and x.tolist() == [0, 0] and found[0].tolist() == [3, 3]


def test_what_is_carried_alone_is_written_in_place(program):
    made = program(WRITES.replace("ITEM", "%i").replace("list<f32[2]>", "list<int>"))
    source = compile_program(made).source(grad=False)
    assert " if own_" in source  # the caller's tensor is copied once
