"""Programs become documents and come back the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from runtime.errors import StorageError
from runtime.ir import Operator, Program, ScalarType, TensorType, Variable
from runtime.ir.compare import difference
from runtime.ir.parser import parse_program
from runtime.ir.tree import Leaf
from runtime.ops.host import Made, MadeTorch
from runtime.storage.document import Node, read_json, write_json
from runtime.storage.serde import program_from_document, program_to_document

VALID = sorted((Path(__file__).parents[1] / "ir" / "valid").glob("*.txt"))

EVERYTHING = r"""program "every\"thing\n" {
  input %x : f32[s0, 4] "the x" = "batch['x'][0]"
  input %n : i64[] = "n"
  param %w : bf16[4] = "0.weight" parameter requires_grad
  param %b : f32[] = "0.count" buffer
  param %c : c64[0, 3] = "constant_2" constant
  assume "s0 >= 2" where s0 = "batch['x'][0]"[0] @ "user.py":3:4 in "f" "x = 1"
  %i : int = scalar.item(%n)
  %z : f32[s0, 4] = aten.mul.Tensor(%x, -0.0) grad off autocast [("cpu", True, "bfloat16")]
  %t : bool = scalar.lt(%i, 170141183460469231731687303715884105727)
  %q : f32[s0, 4], %m : int, %u : ?[*] = cond(%t) {
    %e : f32[s0, 4] = aten.exp.default(%z) @ "user.py":5:0
    yield %e, 3, undef
  } {
    yield %z, %i, %x
  }
  %j : int, %a : list<f32[*]> = while_loop(0, []) {
    ^(%j1 : int, %a1 : list<f32[*]>):
      %go : bool = scalar.lt(%j1, %m)
      yield %go
  } {
    ^(%j2 : int, %a2 : list<f32[*]>):
      %j3 : int = scalar.add(%j2, 1)
      %a3 : list<f32[*]> = array.append(%a2, %q)
      yield %j3, %a3
  } attrs {max_iterations: 10}
  %b2 : f32[] = update(%b) {
    ^(%b1 : f32[]):
      %b3 : f32[] = aten.add_.Tensor(%b1, 1)
      yield %b1
  }
  %full : f32[2] = aten.full.default([2], nan, dtype=torch.float32, layout=torch.strided, device=device("cpu"))
  assert(%t, "size ", %m) attrs {exception: "ValueError", message: None}
  return %q, %j, %b2, %full, %u as {"out": ($0, [$1]), "rec": record "namedtuple" "m.P" {keys: ("a",), a: $3}, "u": $4}
  write %b = 2
}"""


def round_trip(program: Any, source_locations: bool = True) -> Any:
    return program_from_document(read_json(write_json(program_to_document(program, source_locations)), "program"))


def test_program_with_everything_survives() -> None:
    program = parse_program(EVERYTHING)
    again = round_trip(program)
    assert difference(program, again) is None
    assert str(again) == str(program)


def test_locations_may_be_left_out() -> None:
    program = parse_program(EVERYTHING)
    data = write_json(program_to_document(program, source_locations=False))
    assert b"user.py" not in data and b"x = 1" not in data
    again = program_from_document(read_json(data, "program"))
    assert difference(program, again, locations=False) is None
    assert all(op.location is None for op in again.block.walk())


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_sample_program_survives(path: Path) -> None:
    program = parse_program(path.read_text())
    assert difference(program, round_trip(program)) is None


def edited(change: Callable[[dict[str, Any]], None]) -> None:
    document = read_json(write_json(program_to_document(parse_program(EVERYTHING))), "program").value
    change(document)
    program_from_document(Node(document, "program"))


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d.pop("name"), "program: 'name' is missing"),
        (lambda d: d.update(code="print()"), "program: unknown key 'code'"),
        (lambda d: d["ops"][0].update(eval="1"), r"program\.ops\[0\]: unknown key 'eval'"),
        (lambda d: d["ops"][1]["args"].append({"var": "later"}), r"ops\[1\]\.args\[2\]\.var: %later is read before"),
        (lambda d: d["ops"][0].update(op="aten.nonsense.default"), "malformed: .*unknown operator 'aten.nonsense"),
        (lambda d: d["ops"][0]["outputs"].append(["i", "object"]), r"outputs\[1\]: %i is assigned twice"),
        (lambda d: d["ops"][0].update(at=99), r"ops\[0\]\.at: there are only \d locations"),
        (lambda d: d["inputs"][0]["var"].__setitem__(1, {"tensor": ["f32", []]}), "no dtype 'f32'"),
        (lambda d: d["inputs"][0]["var"].__setitem__(1, {"tenser": 1}), "unknown type 'tenser'"),
        (lambda d: d["inputs"][0]["var"].__setitem__(1, {"tensor": ["float32", [-1]]}), "at least 0"),
        (lambda d: d["params"][0].update(kind="file"), "expected 'parameter' or 'buffer' or 'constant'"),
        (lambda d: d["writes"].append(["nobody", 0]), r"writes\[1\]\[0\]: there is no %nobody"),
        (lambda d: d["writes"].append(["x", 77]), "written with result 77"),
        (lambda d: d["assumes"][0].update(expr="__import__('os')"), "outside the language"),
        (lambda d: d["ops"][1].update(grad="maybe"), r"grad: expected 'on' or 'off'"),
        (lambda d: d["ops"][1].update(kwargs=[["out", {"var": "x"}], ["out", 1]]), "'out' is given twice"),
        (lambda d: d["ops"][3]["blocks"][0]["yields"].pop(), "malformed"),
    ],
)
def test_edited_document_is_refused_at_its_place(change: Callable[[dict[str, Any]], None], problem: str) -> None:
    with pytest.raises(StorageError, match=problem):
        edited(change)


def test_constant_that_cannot_be_saved_is_located() -> None:
    program = parse_program(EVERYTHING)
    op = next(op for op in program.block.walk() if op.name == "aten.exp.default")
    op.args = (object(),)
    with pytest.raises(StorageError, match=r"type builtins\.object cannot be saved\n  at user\.py:5"):
        program_to_document(program)


def drawing() -> Program:
    """A Program that draws from three generators, from one of them twice."""
    made, other, own = Made("random"), Made("random"), MadeTorch(torch.device("cpu"))
    program = Program("draws")
    a, b = Variable("a", ScalarType("float")), Variable("b", TensorType(torch.float32, (2,)))
    program.block.ops = [
        Operator("host.random.new", (3,), {"generator": made}), Operator("host.random.new", (4,), {"generator": other}),
        Operator("host.random.random", (), {"generator": made}, outputs=(a,)),
        Operator("host.torch_generator.manual_seed", (5,), {"generator": own}),
        Operator("aten.rand.generator", ([2],), {"generator": own}, outputs=(b,)),
    ]
    program.block.yields, program.output = [a, b], (Leaf(0), Leaf(1))
    return program


def test_generators_that_a_run_makes() -> None:
    """Each is one object, in whatever operators it stands."""
    found = [op.kwargs["generator"] for op in round_trip(drawing()).block.ops]
    assert found[0] is found[2] and found[3] is found[4] and len(set(map(id, found))) == 3
    assert (found[0].family, found[3].device) == ("random", torch.device("cpu"))


@pytest.mark.parametrize(("generator", "problem"), [
    ({"generator": [0, "os"]}, "random"), ({"generator": [-1, "random"]}, "0"), ({"generator": "random"}, "list"),
    ({"torch_generator": [0, "nowhere"]}, "device"), ({"function": [0, "random"]}, "unknown kind of operand"),
])  # fmt: skip
def test_generators_that_no_run_makes(generator: Any, problem: str) -> None:
    document = program_to_document(drawing())
    document["ops"][0]["kwargs"] = [["generator", generator]]
    with pytest.raises(StorageError, match=problem):
        program_from_document(Node(document, "program"))
