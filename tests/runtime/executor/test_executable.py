"""Straight lines of ATen calls: results, argument forms, re-entrancy."""

import threading

import pytest
import torch

from runtime.errors import ProgramError
from runtime.executor import compile_program


def run(program, inputs=(), params=(), **kwargs):
    return compile_program(program, **kwargs).run(list(inputs), list(params))


def test_results_come_in_the_order_of_the_yields(program):
    p = program("""
      input %x : f32[2, 3] = "x"
      param %w : f32[3, 3] = "w" parameter
      %y : f32[2, 3] = aten.matmul.default(%x, %w)
      %z : f32[2, 3] = aten.relu.default(%y)
      return %z, %x, 3, %y as ($0, $1, $2, $3)
    """)
    x, w = torch.randn(2, 3), torch.randn(3, 3)
    z, same, three, y = run(p, [x], [w])
    assert same is x and three == 3
    assert torch.equal(y, x @ w) and torch.equal(z, (x @ w).relu())


def test_keyword_and_container_arguments(program):
    p = program("""
      input %x : f32[2, 3] = "x"
      input %n : int = "n"
      %a : f32[] = aten.zeros.default([%n, 2], dtype=torch.float64)
      %b : f32[] = aten.cat.default([%x, %x], 1)
      %c : f32[] = aten.sum.dim_IntList(%x, [0], True, dtype=torch.float64)
      %d : f32[] = aten.full.default([2], -inf)
      %e : f32[] = aten.mul.Scalar(%x, -0.5)
      return %a, %b, %c, %d, %e as ($0, $1, $2, $3, $4)
    """)
    x = torch.randn(2, 3)
    a, b, c, d, e = run(p, [x, 4])
    assert a.shape == (4, 2) and a.dtype == torch.float64
    assert torch.equal(b, torch.cat([x, x], 1))
    assert torch.equal(c, x.sum(0, keepdim=True, dtype=torch.float64))
    assert torch.equal(d, torch.full((2,), float("-inf")))
    assert torch.equal(e, x * -0.5)


def test_an_argument_called_from(program):
    p = program("""
      input %x : f32[50] = "x"
      %y : f32[50] = update(%x) {
        ^(%b : f32[50]):
          %r : f32[50] = aten.random_.from(%b, from=3, to=5)
          yield %b
      }
      return %y as $0
    """)
    x = torch.zeros(50)
    (y,) = run(p, [x])
    assert set(y.tolist()) == {3.0, 4.0} and not x.any()


def test_several_results_and_lists_are_unpacked(program):
    p = program("""
      input %x : f32[4, 3] = "x"
      %v : f32[4], %i : i64[4] = aten.max.dim(%x, 1)
      %a : f32[2, 3], %b : f32[2, 3] = aten.split.Tensor(%x, 2)
      %whole : list<f32[]> = aten.unbind.int(%x)
      %s : f32[4, 3] = aten.stack.default(%whole)
      %one : f32[4, 3] = aten.split.Tensor(%x, 4)
      return %v, %i, %a, %b, %s, %one as ($0, $1, $2, $3, $4, $5)
    """)
    x = torch.randn(4, 3)
    v, i, a, b, s, one = run(p, [x])
    assert torch.equal(v, x.max(1).values) and torch.equal(i, x.max(1).indices)
    assert torch.equal(a, x[:2]) and torch.equal(b, x[2:]) and torch.equal(s, x) and torch.equal(one, x)


def test_a_list_beside_a_tensor(program):
    p = program("""
      input %x : f32[10, 2] = "x"
      %h : f32[2, 2], %e : list<f32[3]> = aten.histogramdd.default(%x, [2, 2])
      return %h, %e as ($0, $1)
    """)
    x = torch.rand(10, 2)
    h, edges = run(p, [x])
    wanted = torch.histogramdd(x, [2, 2])
    assert torch.equal(h, wanted.hist) and all(map(torch.equal, edges, wanted.bin_edges))


def test_a_result_that_is_a_python_value(program):
    p = program("""
      input %x : f32[3] = "x"
      %same : bool = aten.equal.default(%x, %x)
      return %same as $0
    """)
    assert run(p, [torch.ones(3)]) == [True]


def test_strings_and_names_of_the_user_never_enter_the_source(program):
    p = program("""
      input %os_system : f32[1] = "__import__('os')"
      print("'); raise SystemExit #", %os_system) attrs {sep: "\\n", end: ""}
      return %os_system as $0
    """)
    executable = compile_program(p)
    assert "SystemExit" not in executable.source() and "os" not in executable.source()


def test_gradients_are_torchs(program):
    p = program("""
      input %x : f32[4, 3] = "x"
      param %w : f32[2, 3] = "w" parameter requires_grad
      param %b : f32[2] = "b" parameter requires_grad
      %y : f32[4, 2] = aten.linear.default(%x, %w, %b)
      %l : f32[] = aten.sum.default(%y)
      return %l as $0
    """)
    layer = torch.nn.Linear(3, 2)
    x = torch.randn(4, 3, requires_grad=True)
    (loss,) = run(p, [x], [layer.weight, layer.bias])
    got = torch.autograd.grad(loss, [x, layer.weight, layer.bias])
    wanted = torch.autograd.grad(layer(x).sum(), [x, layer.weight, layer.bias])
    assert all(map(torch.equal, got, wanted))
    with torch.no_grad():
        assert not run(p, [x], [layer.weight, layer.bias])[0].requires_grad


def test_unknown_operator_is_named(program):
    from runtime.ir.parser import parse_program

    p = parse_program('program "p" { input %x : f32[1] = "x" %y : f32[1] = aten.nonsense.default(%x) return %y as $0 }')
    with pytest.raises(ProgramError, match="nonsense"):
        compile_program(p)


def test_many_threads_share_one_executable(program):
    p = program("""
      input %n : int = "n"
      %i1 : int, %a1 : list<int> = while_loop(0, None) {
        ^(%i : int, %a : list<int>):
          %c : bool = scalar.lt(%i, %n)
          yield %c
      } {
        ^(%j : int, %b : list<int>):
          %first : bool = scalar.eq(%j, 0)
          %start : list<int> = cond(%first) {
            %new : list<int> = array.new([])
            yield %new
          } { yield %b }
          %more : list<int> = array.append(%start, %j)
          %k : int = scalar.add(%j, 1)
          yield %k, %more
      }
      return %a1 as $0
    """)
    executable = compile_program(p)
    failures = []

    def work(n):
        for _ in range(50):
            if executable.run([n], []) != [list(range(n))]:
                failures.append(n)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
