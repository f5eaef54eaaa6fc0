"""Results in the place of operands that die: which are, with eager's values and layouts, and that nobody can tell."""

import itertools

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from runtime.executor import compile_program, reuse
from runtime.ir import Operator
from runtime.ops import aten


class Writes(TorchDispatchMode):
    """Counts the operators that write an operand, ``out=`` among them."""

    count = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count += bool(aten.announces_writes(func))
        return func(*args, **(kwargs or {}))


def run(program, *inputs, grad=False, consuming=False):
    """How many operands were overwritten, and the results."""
    executable = compile_program(program, consuming=consuming)
    with torch.set_grad_enabled(grad), Writes() as counter:
        results = executable.run(list(inputs), [])
    return counter.count, results


# -- the tables --------------------------------------------------------------------------------------------------------

LAYOUTS = {
    "contiguous": lambda *sizes: torch.rand(*sizes),
    "transposed": lambda *sizes: torch.rand(*sizes[::-1]).permute(*reversed(range(len(sizes)))),
    "channels last": lambda *sizes: torch.rand(*sizes).to(memory_format=torch.channels_last),
    "strided": lambda *sizes: torch.rand(*sizes[:-1], sizes[-1] * 2)[..., ::2],
    "expanded": lambda *sizes: torch.rand(1, *sizes[1:]).expand(*sizes),
}
SIZES = [(2, 3, 5, 37), (2, 1, 5, 3), (1, 3, 1, 1), (4, 4, 4, 4), (2, 0, 3, 3)]
OTHERS = [*itertools.product(LAYOUTS, [True]), ("contiguous", False)]
"""The layouts of further operands, and whether they have the sizes of the first or are broadcast to them."""


def cast(name, tensor):
    if name.startswith("aten.bitwise"):
        return (tensor * 100).to(torch.int32)
    return tensor > 0.5 if "logical" in name else tensor


def rows(name):
    """Calls of a row: the sample of each operand, made anew by a function of a tensor and the sizes."""
    overload = aten.resolve(name)
    kinds = [str(one.type) for one in overload._schema.arguments if not one.kwarg_only]
    tensors = sum(kind == "Tensor" for kind in kinds)
    for sizes, own in itertools.product(SIZES, LAYOUTS):
        for other, whole in OTHERS if tensors > 1 else [("contiguous", True)]:
            torch.manual_seed(0)
            made = cast(name, LAYOUTS[own](*sizes) + 0.5)  # + makes new memory, dense in the order of what it is given
            args = [made]
            for kind in kinds[1:]:
                if kind == "Tensor":
                    further = LAYOUTS[other](*(sizes if whole else sizes[2:3] + sizes[3:])) + 0.25
                    args.append(cast(name, further if whole else further[:1]))
                elif kind == "Optional[Tensor]":
                    args.append(None)
                else:
                    args.append(0.75)
            yield args


def bits(tensor):
    return tensor.contiguous().numpy().tobytes()


@pytest.mark.parametrize("name", sorted(reuse.POINTWISE))
def test_a_row_gives_the_same_bits_and_layout_in_the_place_of_its_operand(name):
    for args in rows(name):
        way = reuse.written(Operator(name, tuple(args), {}, ()))
        expected = aten.resolve(name)(*args)
        if expected.dtype != args[0].dtype or expected.shape != args[0].shape:
            continue
        target = args[0].clone()
        assert target.stride() == args[0].stride()
        given = [target, *args[1:]]
        result = way.function(*given) if way.keyword is None else way.function(*given, **{way.keyword: target})
        assert result is target
        assert bits(result) == bits(expected)
        real = [size > 1 for size in expected.shape]
        if expected.numel():
            assert list(itertools.compress(result.stride(), real)) == list(itertools.compress(expected.stride(), real))


def is_dense(tensor):
    """Whether the dimensions longer than 1 fill memory without gaps, each with a stride of its own."""
    expected = 1
    for stride, size in sorted((stride, size) for stride, size in zip(tensor.stride(), tensor.shape) if size > 1):
        if stride != expected:
            return False
        expected *= size
    return tensor.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()


def made(name, layout):
    """What an operator of ``LAID_OUT`` gives for operands of a layout."""
    a = LAYOUTS[layout](2, 3, 4, 4)
    if name in reuse.POINTWISE:
        yield from (aten.resolve(name)(*args) for args in rows(name))
        return
    m = a[0, 0]
    v = m[0]
    calls = {
        "aten.zeros.default": [([2, 3],)], "aten.ones.default": [([2, 3],)], "aten.full.default": [([2, 3], 2.0)],
        "aten.arange.default": [(5,)], "aten.arange.start": [(1, 5)], "aten.rand.default": [([2, 3],)],
        "aten.randn.default": [([2, 3],)], "aten.full_like.default": [(a, 1.0)], "aten.rsub.Scalar": [(a, 1.0)],
        "aten.mm.default": [(m, m), (m, m.t()), (m.t(), m)],
        "aten.bmm.default": [(a[0], a[0]), (a[0].mT, a[0])],
        "aten.addmm.default": [(v, m, m), (m.t(), m, m), (m, m, m.t())], "aten.mv.default": [(m, v)],
        "aten.sum.default": [(a,)], "aten.mean.default": [(a,)],
        "aten.sum.dim_IntList": [(a, [1]), (a, [0, 2], True), (a, [3])],
        "aten.mean.dim": [(a, [1]), (a, [0, 2], True), (a, [3])],
        "aten.cat.default": [([a, a],), ([a, a], 1), ([a, a], 3)], "aten.stack.default": [([a, a],), ([a, a], 4)],
        "aten.matmul.default": [(m, m), (a, m), (m, a), (a, a), (a[0], m.t()), (v, m), (m, v), (a, v), (v, a), (v, v)],
        "aten.linear.default": [(m, m), (a, m), (a[0], m.t()), (v, m), (m, m, v), (a, m, v), (a.mT, m, v)],
    }  # fmt: skip
    compared = [(a, 0.5)] if name.endswith(".Scalar") else [(a, a), (a, m)]
    single = name in ("aten.zeros_like.default", "aten.ones_like.default", "aten.clone.default", "aten.gelu.default")
    for args in calls.get(name) or ([(a,)] if single else compared):
        yield aten.resolve(name)(*args)


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", sorted(reuse.LAID_OUT))
def test_a_row_makes_dense_memory_of_its_own(name):
    found = [result for layout in LAYOUTS for result in made(name, layout)]
    assert found and all(map(is_dense, found))


# -- what is overwritten -----------------------------------------------------------------------------------------------

X = 'input %x : f32[4, 4] = "x"\n'


def test_a_chain_of_operators_lives_in_one_tensor(program):
    count, (out,) = run(program(X + """
      %a : f32[4, 4] = aten.mul.Tensor(%x, 1.5)
      %b : f32[4, 4] = aten.add.Tensor(%a, 0.1, alpha=2)
      %c : f32[4, 4] = aten.tanh.default(%b)
      %d : f32[4, 4] = aten.tanh_backward.default(%c, %x)
      return %d as $0
    """), x := torch.rand(4, 4))
    assert count == 3
    assert torch.equal(out, torch.ops.aten.tanh_backward(torch.tanh(torch.add(x * 1.5, 0.1, alpha=2)), x))


LOOP = X + """
  input %n : int = "n"
  {start}
  %i1 : int, %h1 : f32[4, 4] = while_loop(0, {first}) {{
    ^(%i : int, %h : f32[4, 4]):
      %c : bool = scalar.lt(%i, %n)
      yield %c
  }} {{
    ^(%j : int, %g : f32[4, 4]):
      {body}
      %k : int = scalar.add(%j, 1)
      yield %k, %next
  }}
  return {results}
"""


def loop(program, start="", first="%x", body="%next : f32[4, 4] = aten.mul.Tensor(%g, 0.5)", results="%h1 as $0"):
    return program(LOOP.format(start=start, first=first, body=body, results=results))


def test_a_loop_over_an_argument_makes_one_tensor(program):
    x = torch.ones(4, 4)
    count, (out,) = run(loop(program), x, 5)
    assert count == 4 and (x == 1).all() and (out == 0.5**5).all()
    count, (out,) = run(loop(program), x, 0)
    assert count == 0 and out is x


def test_a_branch_that_ends_a_value_overwrites_it(program):
    text = X + """
      input %c : bool = "c"
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %b : f32[4, 4] = cond(%c) {
        %d : f32[4, 4] = aten.add.Tensor(%a, 1)
        yield %d
      } { yield %x }
      %e : f32[4, 4] = aten.mul.Tensor(%b, 3)
      return %e as $0
    """
    x = torch.ones(4, 4)
    count, (out,) = run(program(text), x, True)
    assert count == 2 and (out == 9).all() and (x == 1).all()
    count, (out,) = run(program(text), x, False)
    assert count == 0 and (out == 3).all() and (x == 1).all()


# -- what is not -------------------------------------------------------------------------------------------------------

SEEN = {
    "argument": ("%r : f32[4, 4] = aten.neg.default(%x)", "%r as $0"),
    "argument that a branch gives": ("""
      %t : bool = scalar.lt(1, 2)
      %m : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %a : f32[4, 4] = cond(%t) { yield %x } { yield %m }
      %r : f32[4, 4] = aten.neg.default(%a)
    """, "%r as $0"),
    "view of an argument": ("""
      %a : f32[4, 4] = aten.t.default(%x)
      %r : f32[4, 4] = aten.neg.default(%a)
    """, "%r as $0"),
    "result": ("""
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %r : f32[4, 4] = aten.neg.default(%a)
    """, "(%a, %r) as ($0, $1)"),
    "read later": ("""
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %b : f32[4, 4] = aten.neg.default(%a)
      %r : f32[4, 4] = aten.mm.default(%a, %b)
    """, "%r as $0"),
    "a view is read later": ("""
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %v : f32[4] = aten.select.int(%a, 0, 0)
      %r : f32[4, 4] = aten.neg.default(%a)
    """, "(%v, %r) as ($0, $1)"),
    "a view is an operand": ("""
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %v : f32[4, 4] = aten.t.default(%a)
      %r : f32[4, 4] = aten.add.Tensor(%a, %v)
    """, "%r as $0"),
    "twice an operand": ("""
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %r : f32[4, 4] = aten.add.Tensor(%a, %a)
    """, "%r as $0"),
    "item of a list": ("""
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %l : list<f32[4, 4]> = array.new([%a])
      %r : f32[4, 4] = aten.neg.default(%a)
      %b : f32[4, 4] = array.get(%l, 0)
      %s : f32[4, 4] = aten.neg.default(%b)
    """, "(%r, %s, %l) as ($0, $1, $2)"),
    "the same value by another name": ("""
      %t : bool = scalar.lt(1, 2)
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %b : f32[4, 4] = aten.mul.Tensor(%x, 3)
      %c : f32[4, 4] = cond(%t) { yield %a } { yield %b }
      %r : f32[4, 4] = aten.neg.default(%c)
    """, "(%a, %r) as ($0, $1)"),
    "another dtype": ("""
      %a : i64[4, 4] = aten.ones.default([4, 4], dtype=torch.int64)
      %r : f32[4, 4] = aten.div.Tensor(%a, %a)
    """, "%r as $0"),
    "broadcast": ("""
      %a : f32[4] = aten.sum.dim_IntList(%x, [0])
      %r : f32[4, 4] = aten.add.Tensor(%a, %x)
    """, "%r as $0"),
    "the layout is that of another operand": ("""
      %v : f32[4, 4] = aten.t.default(%x)
      %a : f32[4, 4] = aten.ones.default([4, 4])
      %r : f32[4, 4] = aten.add.Tensor(%v, %a)
    """, "%r as $0"),
    "a layout that nobody knows": ("""
      %a : f32[4, 4] = aten.new_empty_strided.default(%x, [4, 4], [8, 2])
      %b : f32[4, 4] = update(%a) {
        ^(%z : f32[4, 4]):
          %w : f32[4, 4] = aten.copy_.default(%z, %x)
          yield %z
      }
      %r : f32[4, 4] = aten.neg.default(%b)
    """, "%r as $0"),
}


@pytest.mark.parametrize("case", SEEN)
def test_what_somebody_else_can_see_is_left_alone(program, naive, case):
    body, results = SEEN[case]
    results = results if "(" not in results else results.replace("(%", "%", 1).replace(") as", " as", 1)
    p = program(f"{X}{body}\nreturn {results}")
    x = torch.rand(4, 4)
    given = x.clone()
    expected = naive(p).run([x.clone()])
    count, found = run(p, given)
    assert count == ("update" in body)
    assert torch.equal(given, x)
    for a, b in zip(found, expected):
        a, b = (a[0], b[0]) if isinstance(a, list) else (a, b)
        assert torch.equal(a, b) and a.stride() == b.stride()


def test_arguments_that_are_handed_over_are_left_alone(program):
    p = program(X + "%r : f32[4, 4] = aten.neg.default(%x)\nreturn %r as $0")
    saved = torch.ones(4, 4)
    count, (out,) = run(p, saved, consuming=True)
    assert count == 0 and (saved == 1).all() and (out == -1).all()


def test_an_item_that_the_caller_holds_is_left_alone(program):
    p = program("""
      input %l : list<f32[4, 4]> = "l"
      %m : list<f32[4, 4]> = grad.take(%l)
      %rest : list<f32[4, 4]>, %a : f32[4, 4] = array.pop(%m, -1)
      %r : f32[4, 4] = aten.neg.default(%a)
      return %r as $0
    """)
    saved = torch.ones(4, 4)
    count, (out,) = run(p, [saved])
    assert count == 0 and (saved == 1).all() and (out == -1).all()


def test_values_that_an_iteration_leaves_in_a_list_are_left_alone(program):
    body = """
      %a : f32[4, 4] = aten.add.Tensor(%g, 1)
      %l : list<f32[4, 4]> = array.new([%a])
      %b : f32[4, 4] = array.get(%l, 0)
      %next : f32[4, 4] = aten.add.Tensor(%b, %a)
    """
    count, (out,) = run(loop(program, body=body), torch.ones(4, 4), 2)
    assert (out == 10).all()


def test_a_value_from_outside_a_loop_is_left_for_the_next_iteration(program):
    start = "%a : f32[4, 4] = aten.mul.Tensor(%x, 2)"
    body = """
      %b : f32[4, 4] = aten.neg.default(%a)
      %next : f32[4, 4] = aten.add.Tensor(%g, %b)
    """
    count, (out,) = run(loop(program, start, body=body), torch.ones(4, 4), 3)
    assert count == 2 and (out == -5).all()


def test_a_value_carried_at_two_places_is_left_for_the_other(program):
    p = program(X + """
      input %n : int = "n"
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %i1 : int, %g1 : f32[4, 4], %h1 : f32[4, 4] = while_loop(0, %a, %a) {
        ^(%i : int, %g : f32[4, 4], %h : f32[4, 4]):
          %c : bool = scalar.lt(%i, %n)
          yield %c
      } {
        ^(%j : int, %e : f32[4, 4], %f : f32[4, 4]):
          %o : f32[4, 4] = aten.add.Tensor(%e, 1)
          %k : int = scalar.add(%j, 1)
          yield %k, %o, %f
      }
      return %g1, %h1 as ($0, $1)
    """)
    _, (g, h) = run(p, torch.ones(4, 4), 3)
    assert (g == 5).all() and (h == 2).all()


# -- gradients, and calls that are not ordinary ------------------------------------------------------------------------


def test_with_gradients_nothing_is_overwritten(program):
    text = X + """
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %b : f32[4, 4] = aten.add.Tensor(%a, 1)
      return %b as $0
    """
    count, (out,) = run(program(text), torch.ones(4, 4, requires_grad=True), grad=True)
    assert count == 0 and out.grad_fn is not None
    assert run(program(text), torch.ones(4, 4, requires_grad=True))[0] == 1


def test_what_was_made_with_gradients_keeps_them_from_a_result_made_without(program):
    p = program(X + """
      %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
      %b : f32[4, 4] = aten.add.Tensor(%a, 1) grad off
      %c : f32[4, 4] = aten.add.Tensor(%b, 1) grad off
      return %c as $0
    """)
    count, (out,) = run(p, torch.ones(4, 4, requires_grad=True), grad=True)
    assert count == 1 and not out.requires_grad and (out == 4).all()


Y = 'input %y : f32[4, 4] = "y"\n'
CHAIN = X + """
  %a : f32[4, 4] = aten.mul.Tensor(%x, 2)
  %b : f32[4, 4] = aten.add.Tensor(%a, %x)
  return %b as $0
"""


def test_under_autocast_types_may_be_others(program):
    p = program(X + """
      %a : f32[4, 4] = aten.mm.default(%x, %x)
      %b : f32[4, 4] = aten.add.Tensor(%a, %x)
      return %b as $0
    """)
    x = torch.rand(4, 4)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        count, (out,) = run(p, x)
        assert count == 0 and out.dtype == torch.float32 and torch.equal(out, torch.mm(x, x) + x)
    assert run(p, x)[0] == 1


def test_under_vmap_an_operand_may_lack_a_dimension(program):
    p = program(X + """
      %a : f32[4, 4] = aten.ones.default([4, 4])
      %b : f32[4, 4] = aten.add.Tensor(%a, %x)
      return %b as $0
    """)
    executable = compile_program(p)
    x = torch.rand(3, 4, 4)
    with torch.no_grad():
        assert torch.equal(torch.vmap(lambda one: executable.run([one], [])[0])(x), x + 1)
        assert run(p, x[0])[0] == 1


def test_a_dense_tensor_takes_no_sparse_result(program):
    p = program(CHAIN.replace("aten.add.Tensor(%a, %x)", "aten.mul.Tensor(%a, %y)").replace(X, X + Y))
    x, y = torch.rand(4, 4), torch.eye(4)
    assert run(p, x, y)[0] == 1
    count, (out,) = run(p, x, y.to_sparse())
    assert count == 0 and out.is_sparse and torch.equal(out.to_dense(), 2 * x * y)


def test_sizes_that_are_only_taken_for_equal_may_broadcast(program):
    p = program((X + Y).replace("[4, 4]", "[3]") + """
      %m : bool[3] = aten.gt.Scalar(%x, 0)
      %n : bool[3] = aten.gt.Scalar(%y, 0)
      %a : f32[n0] = aten.index.Tensor(%x, [%m])
      %b : f32[n1] = aten.index.Tensor(%y, [%n])
      %c : f32[n0] = aten.mul.Tensor(%a, 2)
      %d : f32[n0] = aten.add.Tensor(%c, 1)
      %e : f32[n0] = aten.add.Tensor(%d, %b)
      return %e as $0
    """)
    x, y = torch.tensor([1.0, -1, -2]), torch.tensor([1.0, 2, 3])
    count, (out,) = run(p, x, y)
    assert count == 1 and out.tolist() == [4, 5, 6]  # the product is written, its sum with the other sizes is not
