"""Control flow and Python values: each construct against what Python does."""

import io
import math
from contextlib import redirect_stdout

import pytest
import torch

from runtime.errors import ProgramError
from runtime.executor import compile_program
from runtime.ops.scalar import result_kind
from tests.oracle import same


def run(program, *inputs, **kwargs):
    return compile_program(program, **kwargs).run(list(inputs), [])


def test_cond_joins_values_constants_and_undef(program):
    p = program("""
      input %x : f32[2] = "x"
      input %flag : bool = "flag"
      %a : f32[2], %b : int, %c : f32[2] = cond(%flag) {
        %y : f32[2] = aten.neg.default(%x)
        yield %y, 1, undef
      } {
        yield %x, 2, %x
      }
      return %a, %b, %c as ($0, $1, $2)
    """)
    x = torch.randn(2)
    a, b, c = run(p, x, True)
    assert torch.equal(a, -x) and b == 1 and c is None
    a, b, c = run(p, x, False)
    assert a is x and b == 2 and c is x


def test_a_tensor_flag_follows_torchs_truth(program):
    p = program("""
      input %t : f32[*] = "t"
      %y : int = cond(%t) { yield 1 } { yield 2 }
      return %y as $0
    """)
    assert run(p, torch.tensor([[3.0]])) == [1] and run(p, torch.tensor(0.0)) == [2]
    with pytest.raises(RuntimeError, match="more than one value is ambiguous"):
        run(p, torch.ones(2))


SWITCH = """
  input %i : int = "i"
  %y : str = switch(%i) { yield "a" } { yield "b" } { yield "c" }
  return %y as $0
"""


@pytest.mark.parametrize("index", [-3, -1, 0, 2, True])
def test_switch_counts_like_a_sequence(program, index):
    assert run(program(SWITCH), index) == ["abc"[index]]


@pytest.mark.parametrize("index", [3, -4])
def test_switch_out_of_range(program, index):
    with pytest.raises(IndexError, match="^list index out of range$"):
        run(program(SWITCH), index)


def test_while_swaps_what_it_carries(program):
    p = program("""
      input %n : int = "n"
      %i1 : int, %a1 : int, %b1 : int = while_loop(0, 1, 2) {
        ^(%i : int, %a : int, %b : int):
          %c : bool = scalar.lt(%i, %n)
          yield %c
      } {
        ^(%j : int, %d : int, %e : int):
          %k : int = scalar.add(%j, 1)
          yield %k, %e, %d
      }
      return %a1, %b1, %i1 as ($0, $1, $2)
    """)
    assert run(p, 0) == [1, 2, 0] and run(p, 3) == [2, 1, 3] and run(p, 4) == [1, 2, 4]


def test_while_with_a_tensor_flag_and_values_first_made_inside(program):
    p = program("""
      input %x : f32[] = "x"
      %h1 : f32[], %last1 : f32[] = while_loop(%x, undef) {
        ^(%h : f32[], %last : f32[]):
          %c : bool[] = aten.lt.Scalar(%h, 10)
          yield %c
      } {
        ^(%g : f32[], %old : f32[]):
          %d : f32[] = aten.mul.Scalar(%g, 2)
          yield %d, %g
      }
      return %h1, %last1 as ($0, $1)
    """.replace("undef", "None"))
    h, last = run(p, torch.tensor(3.0))
    assert h.item() == 12.0 and last.item() == 6.0
    h, last = run(p, torch.tensor(30.0))
    assert h.item() == 30.0 and last is None


def test_the_bound_of_a_loop_changes_nothing(program):
    p = program("""
      %i1 : int = while_loop(0) {
        ^(%i : int):
          %c : bool = scalar.lt(%i, 7)
          yield %c
      } {
        ^(%j : int):
          %k : int = scalar.add(%j, 1)
          yield %k
      } attrs {max_iterations: 10}
      return %i1 as $0
    """)
    assert run(p) == [7]
    p.block.ops[0].attrs = {"max_iterations": 7}
    assert run(p) == [7]
    p.block.ops[0].attrs = {"max_iterations": 6, "already": 3}
    with pytest.raises(RuntimeError, match="this loop goes on after max_iterations=9 iterations"):
        run(p)


def test_deep_nesting_passes_cpythons_limits(program):
    depth = 60
    text = "%x0 : int = scalar.add(%n, 0)\n"
    for level in range(depth):
        text += f"""
          %a{level} : int, %b{level} : int = while_loop(0, %x{level}) {{
            ^(%i{level} : int, %p{level} : int):
              %c{level} : bool = scalar.lt(%i{level}, 1)
              yield %c{level}
          }} {{
            ^(%j{level} : int, %q{level} : int):
              %f{level} : bool = scalar.ge(%q{level}, 0)
              %r{level} : int = cond(%f{level}) {{
                %x{level + 1} : int = scalar.add(%q{level}, 1)
        """
    result = f"%x{depth}"
    for level in reversed(range(depth)):
        text += f"""
                yield {result}
              }} {{ yield %n }}
              %k{level} : int = scalar.add(%j{level}, 1)
              yield %k{level}, %r{level}
          }}
        """
        result = f"%b{level}"
    p = program(f'input %n : int = "n"\n{text}\nreturn {result} as $0')
    assert run(p, 5) == [5 + depth]


SCALARS = [
    ("add", ["a", "b"], lambda a, b: a + b), ("sub", ["a", "b"], lambda a, b: a - b),
    ("mul", ["a", "b"], lambda a, b: a * b), ("truediv", ["a", "b"], lambda a, b: a / b),
    ("floordiv", ["a", "b"], lambda a, b: a // b), ("mod", ["a", "b"], lambda a, b: a % b),
    ("pow", ["a", "b"], lambda a, b: a**b), ("neg", ["a"], lambda a: -a), ("abs", ["a"], abs),
    ("lt", ["a", "b"], lambda a, b: a < b), ("eq", ["a", "b"], lambda a, b: a == b), ("not_", ["a"], lambda a: not a),
    ("min", ["a", "b"], min), ("max", ["a", "b"], max), ("int", ["a"], int), ("float", ["a"], float),
    ("str", ["a"], str),
    ("round", ["a"], round), ("bool", ["a"], bool), ("is_none", ["a"], lambda a: a is None),
]  # fmt: skip


@pytest.mark.parametrize("name, names, function", SCALARS, ids=[row[0] for row in SCALARS])
@pytest.mark.parametrize(
    "a, b", [(7, 2), (-7, 2), (7.5, -2), (True, 3), (1e16, 1.0), (math.inf, 0), (2, 0), (-8.0, 0.5)]
)
def test_scalars_are_pythons(program, name, names, function, a, b):
    kind = result_kind(f"scalar.{name}", ["float"] * len(names))
    p = program(f"""
      input %a : float = "a"
      input %b : float = "b"
      %y : {kind} = scalar.{name}({", ".join("%" + one for one in names)})
      return %y as $0
    """)
    values = [{"a": a, "b": b}[one] for one in names]
    try:
        wanted = function(*values)
    except Exception as error:
        with pytest.raises(type(error)) as caught:
            run(p, a, b)
        assert str(caught.value) == str(error)
        return
    (got,) = run(p, a, b)
    same(got, wanted, bits=True)


def test_constants_in_expressions_keep_their_sign_and_size(program):
    p = program("""
      input %a : int = "a"
      %b : int = scalar.pow(%a, -2)
      %c : float = scalar.mul(-0.0, %a)
      %d : int = scalar.add(%a, 1267650600228229401496703205376)
      %e : float = scalar.mul(inf, 0)
      return %b, %c, %d, %e as ($0, $1, $2, $3)
    """.replace("%b : int = scalar.pow", "%b : float = scalar.pow"))
    b, c, d, e = run(p, 3)
    assert b == 3**-2 and math.copysign(1, c) == -1 and d == 3 + 2**100 and math.isnan(e)


def test_scalars_from_tensors(program):
    p = program("""
      input %t : f32[*] = "t"
      %size : int = scalar.size(%t, 1)
      %numel : int = scalar.numel(%t)
      %dim : int = scalar.dim(%t)
      %sum : f32[] = aten.sum.default(%t)
      %item : float = scalar.item(%sum)
      %truth : bool = scalar.truth(%sum)
      %text : str = scalar.format(%item, ".2f")
      %both : str = scalar.add("sum=", %text)
      return %size, %numel, %dim, %item, %truth, %both as ($0, $1, $2, $3, $4, $5)
    """)
    assert run(p, torch.ones(2, 3)) == [3, 6, 2, 6.0, True, "sum=6.00"]


def test_arrays_are_values(program):
    p = program("""
      input %x : f32[2] = "x"
      %a : list<f32[2]> = array.new([%x])
      %b : list<f32[2]> = array.append(%a, %x)
      %c : list<f32[2]> = array.set(%b, 0, 5)
      %d : list<f32[2]>, %p : f32[2] = array.pop(%c)
      %e : list<f32[2]> = array.extend(%d, [1, 2])
      %f : list<f32[2]> = array.slice(%e, slice(1, None, None))
      %g : list<f32[2]> = array.concat(%f, %a)
      %n : int = array.len(%g)
      return %a, %b, %c, %d, %e, %f, %g, %n, %p as [$0, $1, $2, $3, $4, $5, $6, $7, $8]
    """)
    x = torch.ones(2)
    a, b, c, d, e, f, g, n, popped = run(p, x)
    assert popped is x and n == 3
    assert [len(one) for one in (a, b, c, d, e, f, g)] == [1, 2, 2, 1, 3, 2, 3]
    assert c[0] == 5 and b[0] is x and e == [5, 1, 2] and f == [1, 2]


def test_array_errors_are_pythons(program):
    p = program("""
      input %i : int = "i"
      %a : list<int> = array.new([1, 2])
      %x : int = array.get(%a, %i)
      return %x as $0
    """)
    assert run(p, -2) == [1]
    with pytest.raises(IndexError, match="list index out of range"):
        run(p, 2)


@pytest.mark.parametrize("args, attrs, wanted", [
    ("%flag", 'exception: "AssertionError", message: None', AssertionError()),
    ("%flag", 'exception: "UnboundLocalError", message: "no x"', UnboundLocalError("no x")),
    ("%flag, %n", 'exception: "AssertionError"', AssertionError(3)),
    ("%flag, \"n = \", %n", 'exception: "AssertionError"', AssertionError("n = 3")),
])  # fmt: skip
def test_assert(program, args, attrs, wanted):
    p = program(f"""
      input %flag : bool = "flag"
      input %n : int = "n"
      assert({args}) attrs {{{attrs}}}
      return %n as $0
    """)
    assert run(p, True, 3) == [3]
    with pytest.raises(type(wanted)) as caught:
        run(p, False, 3)
    assert caught.value.args == wanted.args


def test_raise_only_where_it_stands(program):
    p = program("""
      input %n : int = "n"
      %bad : bool = scalar.gt(%n, 5)
      cond(%bad) {
        raise("too big", %n) attrs {exception: "ValueError"}
        yield
      } { yield }
      return %n as $0
    """)
    assert run(p, 3) == [3]
    with pytest.raises(ValueError) as caught:
        run(p, 6)
    assert caught.value.args == ("too big", 6)


def test_raise_of_a_class_that_the_caller_knows():
    from runtime.ir import Block, Operator, Program

    class Strange(Exception):
        pass

    p = Program("p", Block(ops=[Operator("raise", ("x",), attrs={"exception": "here.Strange"})]))
    with pytest.raises(Strange, match="^x$"):
        run(p, exceptions={"here.Strange": Strange})
    with pytest.raises(RuntimeError, match="^here.Strange: x$"):
        run(p)


def test_print_goes_to_the_stdout_of_the_moment(program):
    p = program("""
      input %n : int = "n"
      print("n", %n) attrs {sep: "=", end: "!"}
      print(%n)
      return %n as $0
    """)
    executable = compile_program(p)
    with redirect_stdout(io.StringIO()) as out:
        executable.run([3], [])
    assert out.getvalue() == "n=3!3\n"


def test_py_func(program):
    p = program("""
      input %x : f32[2] = "x"
      %y : f32[2] = py_func(%x, 2) attrs {function: "scale"}
      %a : f32[2], %b : int = py_func(%y) attrs {function: "pair"}
      return %y, %a, %b as ($0, $1, $2)
    """)
    x = torch.ones(2, requires_grad=True)
    y, a, b = run(p, x, functions={"scale": lambda t, k: t * k, "pair": lambda t: (t, 7)})
    assert torch.equal(y, x * 2) and a is y and b == 7
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    with pytest.raises(ProgramError, match="'scale'"):
        compile_program(p)


def test_unchanged(program):
    p = program("""
      input %x : f32[2] = "x"
      unchanged(%x) attrs {function: "test"}
      return %x as ($0,)
    """)
    seen = []
    x = torch.ones(2)
    run(p, x, functions={"test": seen.append})
    assert seen == [x]
    run(p, x)  # without its functions there is nothing to ask
