"""Loaded layers without the converter: Programs written by hand."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
import torch

import runtime
from runtime.errors import SignatureError, StorageError
from runtime.ir.parser import parse_program
from runtime.ir.template import TensorSlot
from runtime.ir.tree import Leaf, Record
from runtime.ir.views import HOLE, View, ViewStep
from runtime.storage import Artefact, write_artefact
from runtime.storage.artefact import Argument, Constant, Method, ModuleEntry, State, Variant
from runtime.translated import TranslatedLayer, load
from runtime.translated.fitting import spell_assumption

COUNT = """program "forward" {
  input %x : f32[s0, 2] = "x"
  input %y : f32[s0, 2] = "y"
  param %n : f32[] = "count" buffer
  param %k : f32[2] = "constant" constant
  assume "Eq(Mod(s0, 2), 0)" where s0 = "x"[0] @ "model.py":4:8 in "forward" "return x.view(2, -1)"
  %m : f32[] = update(%n) { ^(%a : f32[]): %b : f32[] = aten.add_.Tensor(%a, 1) yield %a }
  %s : f32[s0, 2] = aten.add.Tensor(%x, %y)
  %z : f32[s0, 2] = aten.mul.Tensor(%s, %k)
  return %z, %m, %x as $0
  write %n = 1
}"""


def counting(output: Any = Leaf(0), **more: Any) -> Artefact:
    program = parse_program(COUNT)
    program.output = output
    variant = Variant(program, (State("part.count"), Constant(0)), (("x", TensorSlot(0)), ("y", TensorSlot(1))), **more)
    if output == Leaf(0):
        program.block.yields.pop()
    modules = [ModuleEntry("", "Net"), ModuleEntry("part", "Counter", [], [("count", 0, False)])]
    arguments = (Argument("x", "positional_or_keyword"), Argument("y", "keyword_only"))
    method = Method("forward", arguments, {"train": variant, "eval": variant})
    return Artefact("Net", modules, [torch.zeros(())], [torch.tensor([2.0, 3.0])], {"forward": method})


def test_it_runs_and_writes_its_buffer() -> None:
    layer = TranslatedLayer(counting())
    x = torch.ones(2, 2, requires_grad=True)
    result = layer(x, y=torch.ones(2, 2))
    assert result.tolist() == [[4.0, 6.0], [4.0, 6.0]] and layer.part.count == 1
    result.sum().backward()
    assert x.grad is not None and x.grad.tolist() == [[2.0, 3.0], [2.0, 3.0]]
    assert list(layer.state_dict()) == []


@pytest.mark.parametrize(
    ("x", "y", "problem"),
    [
        (torch.ones(2, 2), torch.ones(4, 2), r"D2S304. argument 'y' has size 4 in dimension 0, but x\.shape\[0\] is 2"),
        (torch.ones(3, 2), torch.ones(3, 2), r"D2S308.*needs x\.shape\[0\] % 2 == 0\n  at model\.py:4, in forward"),
        (torch.ones(2), torch.ones(2, 2), r"D2S302. argument 'x' has 1 dimension"),
        (torch.ones(2, 2).int(), torch.ones(2, 2), r"D2S303. argument 'x' has dtype torch.int32"),
    ],
)
def test_calls_are_held_against_the_program(x: torch.Tensor, y: torch.Tensor, problem: str) -> None:
    with pytest.raises(SignatureError, match=problem):
        TranslatedLayer(counting())(x, y=y)


def test_an_argument_in_the_memory_of_a_written_buffer_is_refused() -> None:
    layer = TranslatedLayer(counting())
    layer.part._buffers["count"] = (memory := torch.zeros(5))[0]
    with pytest.raises(SignatureError, match="'count' is written in place, and 'x' shares its memory"):
        layer(memory[:4].view(2, 2), y=torch.ones(2, 2))
    layer(memory[1:].view(2, 2), y=torch.ones(2, 2))


def test_views_and_records_of_the_result() -> None:
    record = Record("namedtuple", "m.Result", (("keys", ("sum", "first")), ("sum", Leaf(0)), ("first", Leaf(2))))
    program_view = ViewStep("aten.select.int", (HOLE, 0, 0), (), 0)
    artefact = counting(record)
    variant = artefact.methods["forward"].variants["eval"]
    variant.views[2] = View(variant.program.inputs[0].var, (program_view,))
    x = torch.ones(2, 2)
    result = TranslatedLayer(artefact)(x, y=x)
    assert type(result).__name__ == "Result" and result._fields == ("sum", "first")
    result.first.fill_(9.0)
    assert x.tolist() == [[9.0, 9.0], [1.0, 1.0]]


def test_moved_layer_takes_its_constants_along() -> None:
    artefact = counting()
    artefact.methods["forward"].variants["eval"].device = "cpu"
    layer = TranslatedLayer(artefact).to("meta")
    assert layer._constants.c0.device.type == "meta"
    assert layer(torch.ones(2, 2, device="meta"), y=torch.ones(2, 2, device="meta")).device.type == "meta"


def test_threads_share_a_layer() -> None:
    layer, results = TranslatedLayer(counting()), []

    def run(value: int) -> None:
        x = torch.full((2, 2), float(value))
        results.append((value, layer(x, y=x).tolist()))

    threads = [threading.Thread(target=run, args=(value,)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [(v, [[4.0 * v, 6.0 * v]] * 2) for v in range(8)]


def test_loading_and_saving_need_no_converter(tmp_path: Path) -> None:
    write_artefact(counting(), tmp_path / "a")
    assert runtime.save(runtime.load(tmp_path / "a"), tmp_path / "b").read_bytes() == (tmp_path / "a.d2s").read_bytes()
    with pytest.raises(TypeError, match=r"runtime\.save\(\) saves a loaded layer, not Linear"):
        runtime.save(torch.nn.Linear(1, 1), tmp_path / "c")
    with torch.inference_mode(), torch.device("meta"):
        layer = load(tmp_path / "a")
    assert layer(torch.ones(2, 2), y=torch.ones(2, 2)).device.type == "cpu" and not layer.part.count.is_inference()
    with pytest.raises(StorageError, match="cannot be read"):
        load(tmp_path / "c")


@pytest.mark.parametrize(
    ("expr", "spelled"),
    [
        ("Ne(s0, 1)", "x.shape[0] != 1"),
        ("Eq(Mod(s0, 2), 0) & (s1 >= 2)", "(x.shape[0] % 2 == 0) & (y['a'].shape[1] >= 2)"),
        ("s0 // 2 > 1", "x.shape[0] // 2 > 1"),
        ("unknown + s0", "unknown + x.shape[0]"),
    ],
)
def test_assumptions_are_spelled_as_the_user_would(expr: str, spelled: str) -> None:
    assert spell_assumption(expr, {"s0": "x.shape[0]", "s1": "y['a'].shape[1]"}) == spelled
