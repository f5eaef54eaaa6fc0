"""The way into C and back: whose memory a result is, which object, what is no plain memory, what gives up."""

from __future__ import annotations

import threading
import traceback

import pytest
import torch

from runtime.executor import compile_program as interpreted
from runtime.ir.parser import parse_program
from runtime.native import build, region
from runtime.native.region import MOST_VARIANTS
from tests.runtime.native.programs import agree, compiled, gave_up

_PATHS = """program "f" {
  input %x : f32[3] = "x"
  input %n : int = "n"
  %flag : bool = scalar.gt(%n, 0)
  %row : f32[3] = aten.mul.Tensor(%x, 2)
  %y : f32[3] = cond(%flag) { yield %x } { yield %row }
  return %y, %row as ($0, $1)
}"""


def test_an_argument_comes_back_as_that_very_object() -> None:
    made = compiled(_PATHS)
    x = torch.ones(3)
    assert made.run([x, 1], [])[0] is x
    y, row = made.run([x, 0], [])
    assert y is row and y is not x


def test_a_view_of_an_argument_shares_its_memory() -> None:
    text = """program "f" {
      input %x : f32[4, 3] = "x"
      input %n : int = "n"
      %flag : bool = scalar.gt(%n, 0)
      %y : f32[3] = cond(%flag) {
        %r : f32[3] = aten.select.int(%x, 0, %n)
        yield %r
      } {
        %z : f32[3] = aten.select.int(%x, 0, 0)
        %w : f32[3] = aten.neg.default(%z)
        yield %w
      }
      return %y as $0
    }"""
    made = agree(text, [torch.randn(4, 3), 2], [torch.randn(4, 3), 0], [torch.randn(4, 3), 7])
    x = torch.zeros(4, 3)
    (row,) = made.run([x, 2], [])
    x[2] = 5.0
    assert row.tolist() == [5.0, 5.0, 5.0]


def test_what_is_no_plain_memory_is_left_to_python() -> None:
    made = compiled(_PATHS)
    before = gave_up(made)
    strided = torch.randn(6)[::2]
    assert torch.equal(made.run([strided, 0], [])[0], strided * 2)
    class Own(torch.Tensor):
        pass

    own = torch.ones(3).as_subclass(Own)
    assert type(made.run([own, 0], [])[0]) is Own
    assert made.run([torch.ones(3), 2**70], [])[0].tolist() == [1.0, 1.0, 1.0]
    with torch.enable_grad():
        x = torch.ones(3, requires_grad=True)
        assert made.run([x, 0], [])[0].requires_grad
    assert gave_up(made) == before


def test_an_exception_stands_at_the_users_line() -> None:
    text = """program "f" {
      input %x : f32[4] = "x"
      input %n : int = "n"
      %more : bool = scalar.gt(%n, 0)
      %f : bool, %i : int, %s : f32[] = while_loop(%more, 0, 0.0) {
        ^(%g : bool, %j : int, %t : f32[]):
          yield %g
      } {
        ^(%h : bool, %k : int, %u : f32[]):
          %v : f32[] = aten.select.int(%x, 0, %k)               @ "user.py":7:9 in "f" "    s = x[k]"
          %l : int = scalar.add(%k, 1)
          %m : bool = scalar.lt(%l, %n)
          yield %m, %l, %v
      }
      return %s as $0
    }""".replace("while_loop(%more, 0, 0.0)", "while_loop(%more, 0, undef)")
    made = compiled(text)
    assert made.run([torch.arange(4.0), 3], [])[0] == 2.0
    with pytest.raises(IndexError) as caught:
        made.run([torch.arange(4.0), 5], [])
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert (frames[-1].filename, frames[-1].lineno) == ("user.py", 7)


def test_random_numbers_are_eagers_also_where_c_gives_up() -> None:
    text = """program "f" {
      input %n : int = "n"
      input %p : int = "p"
      %more : bool = scalar.gt(%n, 0)
      %f : bool, %i : int, %q : int, %s : f32[2] = while_loop(%more, 0, %p, undef) {
        ^(%g : bool, %j : int, %r : int, %t : f32[2]):
          yield %g
      } {
        ^(%h : bool, %k : int, %u : int, %v : f32[2]):
          %w : f32[2] = aten.rand.default([2])
          %l : int = scalar.add(%k, 1)
          %m : bool = scalar.lt(%l, %n)
          %x : int = scalar.mul(%u, 2)
          yield %m, %l, %x, %w
      }
      return %s as $0
    }"""
    made = compiled(text)
    assert made.share().called == 1
    for p in (1, 2**61):
        torch.manual_seed(3)
        (got,) = made.run([5, p], [])
        after = torch.rand(1)
        torch.manual_seed(3)
        expected = [torch.rand(2) for _ in range(5)][-1]
        assert torch.equal(got, expected) and torch.equal(after, torch.rand(1))


def test_many_threads_at_once() -> None:
    text = """program "f" {
      input %x : f32[n] = "x"
      input %n : int = "n"
      %more : bool = scalar.gt(%n, 0)
      %f : bool, %i : int, %s : f32[n] = while_loop(%more, 0, %x) {
        ^(%g : bool, %j : int, %t : f32[n]):
          yield %g
      } {
        ^(%h : bool, %k : int, %u : f32[n]):
          %v : f32[n] = aten.add.Tensor(%u, 1)
          %l : int = scalar.add(%k, 1)
          %m : bool = scalar.lt(%l, %n)
          yield %m, %l, %v
      }
      return %s as $0
    }"""
    made = compiled(text)
    wrong: list[int] = []

    def work(number: int) -> None:
        x = torch.full((number + 1,), float(number))
        for count in range(1, 300):
            (got,) = made.run([x, count], [])
            if got.tolist() != [float(number + count)] * (number + 1):
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong and not gave_up(made)


def test_big_results_are_not_copied_and_own_their_memory() -> None:
    text = """program "f" {
      input %x : f32[n] = "x"
      %y : f32[n] = aten.neg.default(%x)
      %z : f32[n] = aten.exp.default(%y)
      return %z, %y as ($0, $1)
    }"""
    made = agree(text, [torch.randn(100_000)], [torch.randn(3)], [torch.randn(0)], rounding=1e-6)
    z, y = made.run([torch.zeros(200_000)], [])
    assert z.numel() == 200_000 and not z._is_view() and z.data_ptr() != y.data_ptr()


def test_a_region_that_gives_up_again_and_again_is_left_to_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(region, "PATIENCE", 20)
    text = """program "f" {
      input %a : f32[n] = "a"
      input %b : f32[m] = "b"
      %y : f32[k] = aten.add.Tensor(%a, %b)
      return %y as $0
    }"""
    made = compiled(text)
    for _ in range(30):
        assert made.run([torch.ones(3), torch.ones(1)], [])[0].tolist() == [2.0, 2.0, 2.0]
    assert gave_up(made) == 21


def test_without_a_compiler_the_interpreter_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "compiler", lambda: None)
    build._announce.cache_clear()
    with pytest.warns(RuntimeWarning, match="no C compiler"):
        made = build.available()
    assert not made


def test_a_compiler_that_refuses_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "strict", False)
    monkeypatch.setattr(build, "EXTRA", ("-no-such-flag-of-any-compiler",))
    made = compiled(_PATHS)
    with pytest.warns(RuntimeWarning, match="the C compiler refuses"):
        assert made.run([torch.ones(3), 0], [])[0].tolist() == [2.0, 2.0, 2.0]
    assert made.run([torch.ones(3), 0], [])[0].tolist() == [2.0, 2.0, 2.0]


_LAYOUTS = """program "f" {
  input %x : f32[a, b] = "x"
  input %y : f32[c, d, e] = "y"
  input %n : int = "n"
  %more : bool = scalar.lt(0, %n)
  %f : bool, %i : int, %s : f32[a, b], %t : f32[c, d, e] = while_loop(%more, %n, %x, %y) {
    ^(%f1 : bool, %i1 : int, %s1 : f32[a, b], %t1 : f32[c, d, e]):
      yield %f1
  } {
    ^(%f2 : bool, %i2 : int, %s2 : f32[a, b], %t2 : f32[c, d, e]):
      %p : f32[a, b] = aten.exp.default(%s2)
      %q : f32[c, d, e] = aten.mul.Scalar(%t2, 0.5)
      %j : int = scalar.sub(%i2, 1)
      %l : bool = scalar.lt(0, %j)
      yield %l, %j, %p, %q
  }
  %v : f32[b, a] = aten.t.default(%x)
  return %s, %t, %v as ($0, $1, $2)
}"""


def test_arguments_that_lie_otherwise_in_memory() -> None:
    """Dense memory in any order has a C of its own, for so many orders; strides are the interpreter's."""
    x, y = torch.randn(4, 5) / 9, torch.randn(2, 3, 4)
    calls = []
    for first in (x, torch.randn(5, 4).t() / 9):
        for other in (y, torch.randn(4, 2, 3).permute(1, 2, 0), torch.randn(3, 2, 4).transpose(0, 1)):
            calls += [[first, other, count] for count in (0, 3)]
    made = agree(_LAYOUTS, *calls, rounding=2e-6)
    (one,) = made.written.compiled
    assert len(one.variants) == MOST_VARIANTS and all(found is not None for found in one.variants.values())
    assert not gave_up(made)
    with_gaps = [x[:, ::2], y, 2]
    for got, expected in zip(made.run(with_gaps, []), interpreted(parse_program(_LAYOUTS)).run(with_gaps, [])):
        torch.testing.assert_close(got, expected)


def test_calls_that_come_again() -> None:
    """Tensors like those of an earlier call are held against them in one go; all others are served as before."""
    text = _LAYOUTS.replace("f32[c, d, e]", "f32[a, b]")
    made, reference = compiled(text), interpreted(parse_program(text))
    (one,) = made.written.compiled
    for number in range(30):
        x, y = torch.randn(3, 2) / 9, torch.randn(3, 2)
        if number in (7, 25):
            x, y = x[:2].clone(), y[:2].clone()
        if number in (9, 27):
            y.requires_grad_()
        results = made.run([x, y, number % 4], [])
        for got, expected in zip(results, reference.run([x, y, number % 4], [])):
            torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-6)
            assert got.requires_grad == expected.requires_grad
        assert (one._run is not one._slow) == (number >= 2)
    assert one._served > 24


_STRAIGHT = """program "f" {
  input %x : f32[64, 128] = "x"
  input %y : f32[64, 128] = "y"
  %a : f32[64, 128] = aten.mul.Tensor(%x, %y)
  %b : f32[64, 128] = aten.exp.default(%a)
  %c : f32[64] = aten.sum.dim_IntList(%b, [1])
  %v : f32[128, 64] = aten.t.default(%b)
  %w : f32[128, 64] = aten.neg.default(%v)
  return %a, %b, %c, %v, %w, %a as ($0, $1, $2, $3, $4, $5)
}"""


def test_results_are_computed_in_memory_of_their_own() -> None:
    """Not copied, of no other call's, and what is one object is one; small ones and views among them."""
    made = compiled(_STRAIGHT)
    (one,) = made.written.compiled
    assert sum(shape is not None for shape in one.shapes) >= 2
    x, y = torch.randn(64, 128), torch.randn(64, 128)
    first = made.run([x, y], [])
    kept = [tensor.clone() for tensor in first]
    second = made.run([y, y], [])
    agree(_STRAIGHT, [x, y], [y, y], rounding=2e-6)
    for tensor, before in zip(first, kept):
        assert torch.equal(tensor, before)
    assert first[0] is first[5] and first[3]._base is first[1]
    storages = {tensor.untyped_storage().data_ptr() for tensor in (*first, *second)}
    assert len(storages) == 8 and not gave_up(made)
    assert first[0].untyped_storage().nbytes() == 64 * 128 * 4


def test_straight_lines_in_another_layout() -> None:
    """C is written for the layout that comes, and asked first as long as it comes."""
    made = compiled(_STRAIGHT)
    (one,) = made.written.compiled
    x, y = torch.randn(64, 128), torch.randn(128, 64).t()
    agree(_STRAIGHT, [x, y], [y, y], [x, x], [x, y], rounding=2e-6)
    for _ in range(3):
        made.run([x, y], [])
    (found,) = one.variants.values()
    assert found is not None and one._favourite is found and found._served == 3 and not one._served
    made.run([x, x], [])
    assert one._favourite is None and one._served == 1


@pytest.mark.parametrize("shape", [(5, 4), (1, 4), (1, 5, 4)])
def test_a_lone_argument_that_lies_otherwise(shape: tuple[int, ...]) -> None:
    """A region with one argument, written once more for its layout."""
    dims = ", ".join("nmk"[: len(shape)])
    text = f"""program "f" {{
      input %x : f32[{dims}] = "x"
      %y : f32[{dims}] = aten.exp.default(%x)
      %z : f32[{dims}] = aten.mul.Tensor(%y, %x)
      return %z as $0
    }}"""
    x = torch.randn(shape)
    agree(text, [x], [x.transpose(-1, -2)], [torch.randn(shape).transpose(-1, -2)], rounding=1e-6)
