"""What leaves loops, and what stays, as text; and every operator of PyTorch's on tensors, in and before a loop."""

from __future__ import annotations

import copy
import re
import warnings
from typing import Any

import pytest
import torch
from torch import nn

from dy2static import BuildStrategy, to_static
from runtime.executor import compile_program
from runtime.ir.parser import parse_program
from runtime.ir.printer import print_program
from runtime.ir.verify import verify
from runtime.passes import PassManager, hoist
from tests import oracle

HEAD = """program "p" {
  input %x : f32[2, 2] = "x"
  input %y : f32[2, 2] = "y"
  input %i0 : i64[2] = "i"
  input %n : int = "n"
  %go : bool = scalar.lt(0, %n)
"""


def text(body: str) -> str:
    return HEAD + "\n".join(f"  {line}" for line in body.strip("\n").splitlines()) + "\n}\n"


def loop(inside: str, then: str = "aten.add.Tensor(%h, %v)", test: str = "", before: str = "", end: str = "%last",
         outs: str = "") -> str:  # fmt: skip
    lines = "".join(f"    {line}\n" for line in inside.strip("\n").splitlines())
    going = f"    {test}\n    yield %t" if test else "    yield %f"
    return f"""
{before}{outs}%flag : bool, %number : int, %last : f32[2, 2] = while_loop(%go, 0, %x) {{
  ^(%f : bool, %k : int, %g : f32[2, 2]):
{going}
}} {{
  ^(%f1 : bool, %j : int, %h : f32[2, 2]):
{lines}    %w : f32[2, 2] = {then}
    %next : int = scalar.add(%j, 1)
    %again : bool = scalar.lt(%next, %n)
    yield %again, %next, %w
}}
return {end} as $0
"""


def guarded(inside: str, results: str, names: str) -> str:
    lines = "".join(f"  {line}\n" for line in inside.strip("\n").splitlines())
    undef = ", ".join(["undef"] * len(names.split(", ")))
    return f"{results} = cond(%go) {{\n{lines}  yield {names}\n}} {{\n  yield {undef}\n}}\n"


ADD = "%v : f32[2, 2] = aten.add.Tensor(%x, %y)\n"
SOLVE = "%v : f32[2, 2] = aten.inverse.default(%y)\n"
SOLVED = guarded(SOLVE.replace("%v", "%v.1"), "%v : f32[2, 2]", "%v.1")
PICK = "%p : f32[2, 2] = aten.index_select.default(%h, 0, %i0)\n"
FEW = "%few : bool = scalar.lt(%n, 2)\n"
CHOICE = "%m : int, %e : f32[2, 2] = cond(%few) {\n  yield 0, undef\n} {\n  yield 1, %y\n}\n"
QUESTION = "%o : bool = scalar.ne(%m, 0)\n"
ASSERTION = 'assert(%o) attrs {exception: "ValueError", message: "nothing"}\n'
READ = ADD.replace("%y", "%e")


def inner(lines: str) -> str:
    """The names that a copy of these lines has."""
    for name in ("m", "e", "o", "v"):
        lines = re.sub(rf"%{name}\b", f"%{name}.1", lines)
    return lines


CASES = [
    pytest.param(loop(ADD), loop("", before=ADD), id="cheap, and surely raises nothing"),
    pytest.param(loop(SOLVE), loop("", before=SOLVED), id="may raise: under the first test"),
    pytest.param(loop(PICK + SOLVE), None, id="may raise after what may raise"),
    pytest.param(loop("print(%j)\n" + SOLVE), None, id="may raise after an effect"),
    pytest.param(loop("print(%j)\n" + ADD), loop("print(%j)\n", before=ADD), id="raises nothing: over effects"),
    pytest.param(loop("%v : f32[2, 2] = aten.add.Tensor(%x, %h)"), None, id="of what is carried"),
    pytest.param(loop("%v : f32[2, 2] = aten.mul.Tensor(%x, %j)"), None, id="of a counter"),
    pytest.param(loop("%v : f32[2, 2] = aten.rand_like.default(%x)"), None, id="random numbers"),
    pytest.param(loop("%v : f32[2, 2] = aten.dropout.default(%x, 0.5, True)"), None, id="a dropout"),
    pytest.param(loop(ADD, then="aten.alias.default(%v)"), None, id="a view of it leaves the loop"),
    pytest.param(loop("%v : f32[2, 2] = aten.t.default(%y)"), loop("", before="%v : f32[2, 2] = aten.t.default(%y)\n"),
                 id="a view that is read"),
    pytest.param(loop("""
%v : f32[2, 2] = aten.add.Tensor(%x, %y)
%u : f32[2, 2] = update(%v) {
  ^(%m : f32[2, 2]):
    %r : f32[2, 2] = aten.add_.Tensor(%m, %h)
    yield %m
}
""", then="aten.neg.default(%u)"), None, id="what is written"),
    pytest.param(loop("""
%v : f32[2, 2] = aten.t.default(%y)
%s : f32[2, 2] = aten.slice.Tensor(%v, 0, 0, 2)
%u : f32[2, 2] = update(%y) {
  ^(%m : f32[2, 2]):
    %r : f32[2, 2] = aten.add_.Tensor(%m, %h)
    yield %m
}
""", then="aten.add.Tensor(%u, %s)"), loop("""
%u : f32[2, 2] = update(%y) {
  ^(%m : f32[2, 2]):
    %r : f32[2, 2] = aten.add_.Tensor(%m, %h)
    yield %m
}
""", then="aten.add.Tensor(%u, %s)", before="""%v : f32[2, 2] = aten.t.default(%y)
%s : f32[2, 2] = aten.slice.Tensor(%v, 0, 0, 2)
"""), id="a view of what is written: it stays what it was"),
    pytest.param(loop("""
%c : f32[2, 2] = cond(%go) {
  %v : f32[2, 2] = aten.inverse.default(%y)
  yield %v
} {
  yield %h
}
""", then="aten.neg.default(%c)"), None, id="on some paths only"),
    pytest.param(loop("""
%c : f32[2, 2] = cond(%go) {
  %v : f32[2, 2] = aten.inverse.default(%y)
  yield %v
} {
  %z : f32[2, 2] = aten.neg.default(%y)
  yield %z
}
""", then="aten.add.Tensor(%c, %h)"), loop("", then="aten.add.Tensor(%c, %h)", before="""\
%c : f32[2, 2] = cond(%go) {
  %c.1 : f32[2, 2] = cond(%go) {
    %v.1 : f32[2, 2] = aten.inverse.default(%y)
    yield %v.1
  } {
    %z.1 : f32[2, 2] = aten.neg.default(%y)
    yield %z.1
  }
  yield %c.1
} {
  yield undef
}
"""), id="a whole branch"),
    pytest.param(loop("print(%j)\n" + CHOICE + QUESTION + ASSERTION + READ, before=FEW), loop(
        "print(%j)\n" + ASSERTION + READ, before=FEW + guarded(
            inner(CHOICE + QUESTION), "%e : f32[2, 2], %o : bool", "%e.1, %o.1")), id="of what some paths do not have"),
    pytest.param(loop(CHOICE + QUESTION + ASSERTION + READ, before=FEW), loop("", before=FEW + guarded(
        inner(CHOICE + QUESTION + ASSERTION + READ), "%v : f32[2, 2]", "%v.1")), id="with its assertion"),
    pytest.param(loop(SOLVE, test="%t : bool = scalar.lt(%k, %n)"), None, id="a test that is computed: no first test"),
    pytest.param(loop(ADD, test="%t : bool = scalar.lt(%k, %n)"),
                 loop("", test="%t : bool = scalar.lt(%k, %n)", before=ADD), id="which what is cheap does not need"),
    pytest.param(loop(SOLVE).replace("\n}\nreturn", "\n} attrs {max_iterations: 0}\nreturn"), None,
                 id="a loop that may not run"),
    pytest.param(loop("%a : list<f32[2, 2]> = array.new([%y])\n" + ADD), loop(
        "%a : list<f32[2, 2]> = array.new([%y])", before=ADD), id="a list stays"),
    pytest.param(loop("""
%m : f32[2, 2] = aten.mm.default(%x, %y)
%v : f32[2, 2] = aten.exp.default(%m)
%q : int = scalar.mul(%n, 2)
""", then="aten.add.Tensor(%h, %v, alpha=%q)"), loop("", then="aten.add.Tensor(%h, %v, alpha=%q)", before="""\
%q : int = scalar.mul(%n, 2)
%v : f32[2, 2] = cond(%go) {
  %m.1 : f32[2, 2] = aten.mm.default(%x, %y)
  %v.1 : f32[2, 2] = aten.exp.default(%m.1)
  yield %v.1
} {
  yield undef
}
"""), id="one of another"),
    pytest.param(loop("""
%v : f32[2, 2] = scan(%n, %h) {
  ^(%l : int, %b : f32[2, 2]):
    %s : f32[2, 2] = aten.inverse.default(%y)
    %d : f32[2, 2] = aten.add.Tensor(%b, %s)
    yield %d
} attrs {carried: 1}
""", then="aten.neg.default(%v)"), loop("""
%v : f32[2, 2] = scan(%n, %h) {
  ^(%l : int, %b : f32[2, 2]):
    %d : f32[2, 2] = aten.add.Tensor(%b, %s)
    yield %d
} attrs {carried: 1}
""", then="aten.neg.default(%v)", before="""\
%0 : bool = scalar.gt(%n, 0)
%s : f32[2, 2] = cond(%go) {
  %s.2 : f32[2, 2] = cond(%0) {
    %s.1.1 : f32[2, 2] = aten.inverse.default(%y)
    yield %s.1.1
  } {
    yield undef
  }
  yield %s.2
} {
  yield undef
}
"""), id="out of two loops"),
]  # fmt: skip


def hoisted(source: str) -> Any:
    program = parse_program(source)
    verify(program)
    PassManager([hoist.PASS], verify=True).run(program)
    return program


@pytest.mark.parametrize(("before", "after"), CASES)
def test_as_text(before: str, after: str | None) -> None:
    after = text(before if after is None else after)
    expected = print_program(parse_program(after), locations=False)
    assert print_program(hoisted(text(before)), locations=False) == expected


def outcome(program: Any, arguments: list[Any]) -> list[Any]:
    """What a run gives or raises, what it leaves of its arguments, and of the random numbers."""
    given = copy.deepcopy(arguments)
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        try:
            found: list[Any] = list(compile_program(program).run(given, []))
        except Exception as error:  # what one raises the other has to raise
            found = [type(error), str(error)]
        return [*found, given, torch.get_rng_state()]


@pytest.mark.parametrize(("before", "after"), CASES)
@pytest.mark.parametrize("count", [-1, 0, 1, 3])
@pytest.mark.parametrize("singular", [False, True])
def test_results_and_errors_stay(before: str, after: str | None, count: int, singular: bool) -> None:
    y = torch.zeros(2, 2) if singular else torch.tensor([[2.0, 1.0], [0.5, 3.0]])
    arguments = [torch.tensor([[0.5, -1.0], [2.0, 1.0]]), y, torch.tensor([0, 1 + singular]), count]
    source = text(before)
    oracle.same(outcome(hoisted(source), arguments), outcome(parse_program(source), arguments), strides=True)


# --- every operator of PyTorch's that takes one to three tensors and needs nothing else

_TENSORS = [torch.tensor([[2.0, 1.0], [0.5, 3.0]]), torch.tensor([[0.5, -1.0], [2.0, 1.0]]), torch.ones(2, 2)]
_LEFT_OUT = (
    "_cuda", "empty", "cudnn", "miopen", "mps", "mkldnn", "_nested", "_jagged", "sparse", "quant", "_coalesce",
    "rename", "_use_cudnn", "_fw_primal", "_make_dual", "_pin_memory", "pin_memory", "is_pinned", "record_stream",
    "_assert", "_efficient", "_flash", "_foreach", "_functional", "_test", "resize", "set_", "_cslt", "xnnpack",
    "_debug", "_lazy", "batch_norm_stats", "_weight_int", "_wrapped", "_choose_qparams", "fbgemm", "data",
    "output_nr", "_version", "is_leaf", "retain_grad", "_backward", "_dimI", "_dimV", "_nnz", "requires_grad",
    "_to_cpu", "_spdiags", "values", "indices", "_values", "_indices", "crow_", "col_", "row_", "ccol_",
)  # fmt: skip


def overloads() -> list[tuple[str, int]]:
    """Names, and how many tensors each takes."""
    found = []
    for name in sorted(dir(torch.ops.aten)):
        if name.startswith("__") or any(word in name for word in _LEFT_OUT):
            continue
        packet = getattr(torch.ops.aten, name)
        for kind in packet.overloads() if hasattr(packet, "overloads") else ():
            schema = getattr(packet, kind)._schema
            kinds = [str(one.type) for one in schema.arguments if not one.has_default_value()]
            returned = [str(one.type) for one in schema.returns]
            if 1 <= len(kinds) <= 3 and set(kinds) == {"Tensor"} and returned == ["Tensor"]:
                found.append((f"aten.{name}.{kind}", len(kinds)))
    return found


ONE = """program "one" {
  input %a : f32[2, 2] = "a"
  input %b : f32[2, 2] = "b"
  input %c : f32[2, 2] = "c"
  input %n : int = "n"
  %go : bool = scalar.lt(0, %n)
  %flag : bool, %number : int, %last : f32[] = while_loop(%go, 0, undef) {
    ^(%f : bool, %k : int, %g : f32[]):
      yield %f
  } {
    ^(%f1 : bool, %j : int, %h : f32[]):
      %v : TYPE = NAME(GIVEN)
      %w : WIDE = aten.sum.default(%v)
      %u : f32[] = aten._to_copy.default(%w, dtype=torch.float32)
      %next : int = scalar.add(%j, 1)
      %again : bool = scalar.lt(%next, %n)
      yield %again, %next, %u
  }
  return %last as $0
}
"""
_DTYPES = {torch.float32: "f32", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32", torch.bool: "b1"}


def program_of(name: str, count: int) -> str | None:
    """A loop with the operator; None where it does not take such tensors."""
    packet, kind = name.split(".")[1:]
    with torch.random.fork_rng(devices=[]), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            made = getattr(getattr(torch.ops.aten, packet), kind)(*[one.clone() for one in _TENSORS[:count]])
        except Exception:  # another dtype, rank or layout is asked for
            return None
    if not isinstance(made, torch.Tensor) or made.layout is not torch.strided or made.dtype not in _DTYPES:
        return None
    type_ = f"{_DTYPES[made.dtype].replace('b1', 'bool')}[{', '.join(map(str, made.shape))}]"
    wide = made.dtype if made.dtype.is_floating_point else torch.int64
    given = ", ".join(f"%{letter}" for letter in "abc"[:count])
    return (ONE.replace("TYPE", type_).replace("WIDE", f"{_DTYPES[wide]}[]").replace("NAME", name)
            .replace("GIVEN", given))  # fmt: skip


@pytest.mark.slow
def test_every_operator() -> None:
    """Whatever leaves the loop: results, random numbers and arguments stay what they are."""
    moved, random, tried = set(), set(), 0
    for name, count in overloads():
        source = program_of(name, count)
        if source is None:
            continue
        tried += 1
        program = parse_program(source)
        inner = next(op for op in program.block.walk() if op.name == name)
        draws = hoist.does_more(inner)
        PassManager([hoist.PASS], verify=False).run(program)
        (body,) = [op.blocks[1] for op in program.block.ops if op.name == "while_loop"]
        if all(op.name != name for op in body.ops):
            moved.add(name)
        if draws:
            random.add(name)
        print(name)  # seen where it fails
        for runs in (0, 1, 3):
            got, expected = outcome(program, [*_TENSORS, runs]), outcome(parse_program(source), [*_TENSORS, runs])
            oracle.same(got, expected, strides=True)
    assert tried > 250 and len(moved) > 200, (tried, len(moved))
    assert random and not moved & random
    assert not [name for name in moved if name.split(".")[1].endswith("_")]


# --- functions

class Reader(nn.Module):
    """Reads a memory again in each step."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.value = nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, memory: torch.Tensor, x: torch.Tensor, steps: torch.Tensor) -> torch.Tensor:
        """What was read last."""
        i = 0
        while i < steps:
            keys, values = self.key(memory), self.value(memory)
            x = torch.tanh(x + torch.softmax(self.query(x) @ keys.t(), -1) @ values)
            i = i + 1
        return x


@pytest.mark.parametrize("backend", ["interpreter", "c"])
@pytest.mark.parametrize("steps", [0, 1, 3])
def test_gradients_are_eagers(backend: str, steps: int) -> None:
    """No autograd sees that a product is computed once: sums of gradients are those of eager, in its order."""
    torch.manual_seed(0)
    model = Reader()
    static = to_static(model.forward, backend=backend)
    memory, x, count = torch.randn(5, 4), torch.randn(2, 4), torch.tensor(steps)
    wanted = [*model.parameters()]
    close = {"rtol": 0, "atol": 0} if backend == "interpreter" else {"rtol": 1e-5, "atol": 1e-6}
    with torch.no_grad():
        torch.testing.assert_close(static(memory, x, count), model(memory, x, count), **close)
    got, expected = [], []
    for function, found in ((static, got), (model, expected)):
        start = x.clone().requires_grad_()
        result = function(memory, start, count).sum()
        found += torch.autograd.grad(result, [start, *wanted], allow_unused=True)
    for one, other in zip(got, expected, strict=True):
        assert (one is None) == (other is None)
        if one is not None:
            torch.testing.assert_close(one, other, **close)


def test_a_product_is_computed_once() -> None:
    model = Reader()
    plain, left = (to_static(model.forward, backend="interpreter", build_strategy=BuildStrategy(hoist=on))
                   for on in (True, False))  # fmt: skip
    arguments = torch.randn(5, 4), torch.randn(2, 4), torch.tensor(4)
    counts = []
    for function in (plain, left):
        with torch.no_grad():
            function(*arguments)
            with torch.profiler.profile(acc_events=True) as seen:  # without a warning in PyTorch 2.11
                function(*arguments)
        counts.append(sum(event.count for event in seen.key_averages() if event.key == "aten::linear"))
    assert counts == [4 + 2, 4 * 3]


def late(x: torch.Tensor, y: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    i = 0
    while i < n:
        x = x + torch.linalg.cholesky(y)
        i = i + 1
    return x


@pytest.mark.parametrize("count", [0, 2])
def test_an_error_stands_at_its_line(count: int) -> None:
    """And a loop that never runs raises nothing."""
    static = to_static(late, backend="interpreter")
    good, bad = torch.eye(2), -torch.eye(2)
    oracle.same(static(good, good, torch.tensor(3)), late(good, good, torch.tensor(3)))
    if not count:
        oracle.same(static(good, bad, torch.tensor(0)), good)
        return
    with pytest.raises(torch.linalg.LinAlgError) as caught:
        static(good, bad, torch.tensor(count))
    lines = [entry.lineno + 1 for entry in caught.traceback if entry.path.name == "test_hoist.py"]
    assert late.__code__.co_firstlineno + 3 in lines
