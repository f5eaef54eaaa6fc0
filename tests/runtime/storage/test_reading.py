"""Documents of artefacts: what comes out can be called, or the place that is wrong is named."""

from __future__ import annotations

import copy
import inspect
import io
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.errors import StorageError
from runtime.ir.parser import parse_program
from runtime.ir.template import TensorSlot
from runtime.ir.tree import Leaf, Record
from runtime.ir.verify import verify
from runtime.ir.views import HOLE, View, ViewStep
from runtime.storage.artefact import (
    Argument,
    Artefact,
    Attribute,
    Constant,
    Method,
    ModuleEntry,
    Passed,
    State,
    Store,
    TensorRef,
    Variant,
)
from runtime.storage.document import Node, read_json, write_json
from runtime.storage.reading import from_document, signature_of
from runtime.storage.table import read_table, write_table
from runtime.storage.writing import to_document

TEXT = """program "forward" {
  input %x : f32[2] = "batch['x']"
  param %w : f32[2] = "a.weight" parameter requires_grad
  param %c : f32[2] = "a.count" buffer
  param %k : f32[2] = "constant_2" constant
  %y : f32[2] = aten.add.Tensor(%x, %w)
  %z : f32[2] = aten.mul.Tensor(%y, %k)
  return %y, %z, %x, %z, %y
}"""


def rich() -> Artefact:
    """An artefact with one of everything."""
    program = parse_program(TEXT)
    shared: list[Any] = [Leaf(0)]
    record = Record(
        "namedtuple", "m.Result", (("keys", ("a", "b")), ("a", shared), ("b", Record("object", "size", ())))
    )
    program.output = (record, {"again": shared, "first": Leaf(2)})
    view = View(program.inputs[0].var, (ViewStep("aten.slice.Tensor", (HOLE, 0, 0, 1), (), 0),))
    variant = Variant(
        program,
        (State("a.weight"), State("a.count"), Constant(0)),
        (("batch", {"x": TensorSlot(0)}), ("flag", True), ("rest", ())),
        views={2: view},
        stores=(
            Store(State("a.count"), Leaf(1)),
            Store(Constant(0), Leaf(3)),
            Store(Attribute("a", "last"), shared),
            Store(Passed(("batch",)), {"x": Leaf(4)}),
        ),
        same=(((4,), ("batch",)),),
        objects={"size": ("torch.Size", (2, 3))},
        exceptions={"m.Bad": "ValueError"},
        stopped=frozenset({0}),
        device="cpu",
    )
    eval_program = parse_program(TEXT)
    eval_program.output = [Leaf(index) for index in range(5)]
    evaluated = Variant(eval_program, variant.params, variant.template)
    signature = (
        Argument("batch", "positional_or_keyword"),
        Argument("flag", "keyword_only", True),
        Argument("rest", "var_keyword"),
    )
    signature = (signature[0], Argument("rest", "var_positional"), Argument("flag", "keyword_only", TensorRef(0)))
    variant.template = (variant.template[0], ("rest", ()), ("flag", True))
    evaluated.template = variant.template
    modules = [
        ModuleEntry("", "Net", [("w", 0)]),
        ModuleEntry("a", "Layer", [("weight", 0)], [("count", 1, True), ("none", None, False)]),
        ModuleEntry("b", "Layer", same_as="a"),
    ]
    tensors = [torch.ones(2, requires_grad=True), torch.zeros(2)]
    method = Method("forward", signature, {"train": variant, "eval": evaluated})
    return Artefact("Net", modules, tensors, [torch.full((2,), 3.0)], {"forward": method})


def document_of(artefact: Artefact) -> tuple[Any, Any]:
    document, table = to_document(artefact)
    stream = io.BytesIO()
    write_table(stream, table)
    node = read_json(write_json(document), "program.json")
    return node.value, read_table(memoryview(bytearray(stream.getvalue())), "table")


def test_everything_survives() -> None:
    artefact = rich()
    document, table = document_of(artefact)
    again = from_document(Node(document, "program.json"), table)
    assert write_json(to_document(again)[0]) == write_json(to_document(artefact)[0])
    assert again.modules == artefact.modules and again.state() == artefact.state() == {
        "w": 0,
        "a.weight": 0,
        "a.count": 1,
    }
    method = again.methods["forward"]
    variant = method.variants["train"]
    assert method.variants["eval"] is not variant
    saved = artefact.methods["forward"].variants["train"]
    for name in ("params", "template", "same", "objects", "exceptions", "stopped", "device"):
        assert getattr(variant, name) == getattr(saved, name), name
    assert variant.views[2].source is variant.program.inputs[0].var and variant.views[2].steps == saved.views[2].steps
    assert [store.target for store in variant.stores] == [store.target for store in saved.stores]
    shared = variant.stores[2].tree
    assert variant.program.output[1]["again"] is shared and variant.program.output[0].fields[1][1] is shared
    assert str(signature_of(method, again.constants)) == "(batch, *rest, flag=tensor([3., 3.]))"
    verify(variant.program, [1, 3, 4])


def variant_of(document: Any) -> Any:
    return document["methods"]["forward"]["variants"][0]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda d: d.update(format="zip"), r"program\.json\.format: expected 'dy2static artefact'"),
        (lambda d: d.update(libraries=["mylib"]), r"library 'mylib'(.|\n)*allow=\['mylib'\]"),
        (lambda d: d.update(methods={}), "needs a method"),
        (lambda d: d["methods"].update({"a b": d["methods"]["forward"]}), "'a b' cannot be the name of a method"),
        (lambda d: d["methods"].update({"eval": d["methods"]["forward"]}), "'eval' would hide that of torch.nn.Module"),
        (lambda d: d["methods"].update({"__reduce__": d["methods"]["forward"]}), "'__reduce__' cannot be the name"),
        (lambda d: d["modules"].pop(0), "'a' is not where a module can be"),
        (lambda d: d["modules"].append({"path": "c.d", "same_as": "a"}), "'c.d' is not where a module can be"),
        (lambda d: d["modules"].append({"path": "a.d", "same_as": "a"}), "no module 'a' that could be at 'a.d'"),
        (lambda d: d["modules"].append(d["modules"][1]), "'a' is not where a module can be"),
        (lambda d: d["modules"][0]["parameters"].append(["w", 0]), "'w' cannot be a name here"),
        (lambda d: d["modules"][0]["parameters"].append(["a.b", 0]), "'a.b' cannot be a name here"),
        (lambda d: d["modules"][0]["parameters"].append(["__class__", 0]), "'__class__' cannot be a name here"),
        (lambda d: d["modules"][0]["parameters"].append(["v", 7]), "there are only 2 tensors"),
        (lambda d: d["methods"]["forward"]["signature"][0].update(name=""), "'' cannot be the name of an argument"),
        (lambda d: d["methods"]["forward"]["signature"].reverse(), "no function has this signature"),
        (lambda d: d["methods"]["forward"]["signature"][0].update(kind="star"), r"signature\[0\]\.kind: expected"),
        (lambda d: d["methods"]["forward"]["signature"][2].update(default={"tensor": 9}), "there are only 1 constants"),
        (lambda d: d["methods"]["forward"]["signature"][2].update(default={"slot": 0}), "no default of an argument"),
        (lambda d: d["methods"]["forward"]["modes"].pop("eval"), "some of these are for no mode"),
        (lambda d: d["methods"]["forward"].update(modes={}), "a method needs a mode"),
        (lambda d: d["methods"]["forward"].update(modes={"eval without gradients": [0]}), "'eval' is missing beside"),
        (lambda d: d["methods"]["forward"]["modes"].update(eval=[5]), "there are only 2 variants"),
        (lambda d: d["methods"]["forward"]["modes"].update(eval=5), "modes.eval: expected a list"),
        (lambda d: d["methods"]["forward"]["modes"].update(eval=[]), "expected at least one variant, and each once"),
        (lambda d: d["methods"]["forward"]["modes"].update(eval=[0, 0]), "at least one variant, and each once"),
        (lambda d: d.update(metadata=[]), r"program\.json\.metadata: metadata is of type list"),
        (lambda d: d.update(metadata={"a": "\ud800"}), r"metadata\['a'\] has a string with half a character"),
        (lambda d: variant_of(d).update(answers=[[9, "is_leaf", True]]), r"answers\[0\]\[0\]: there are only"),
        (lambda d: variant_of(d).update(answers=[[0, "colour", True]]), "'colour' is no question to a tensor"),
        (lambda d: variant_of(d).update(answers=[[0, ".data", True]]), "'.data' is no question to a tensor"),
        (lambda d: variant_of(d).update(answers=[[0, "is_leaf", "yes"]]), r"answers\[0\]\[2\]: expected"),
        (lambda d: variant_of(d).update(settings=[["torch.load()", 1]]), r"'torch.load\(\)' is no setting of PyTorch"),
        (lambda d: variant_of(d).update(settings=[["torch.backends.cpu.x", [1]]]), "expected a plain value"),
        (lambda d: variant_of(d)["params"].pop(), r"params: expected 3 items, found 2"),
        (lambda d: variant_of(d)["params"].__setitem__(0, {"state": "z"}), "no parameter, buffer or constant is there"),
        (
            lambda d: variant_of(d)["params"].__setitem__(0, {"constant": 1}),
            "no parameter, buffer or constant is there",
        ),
        (
            lambda d: variant_of(d)["params"].__setitem__(0, {"attribute": ["a", "b"]}),
            "no parameter, buffer or constant",
        ),
        (lambda d: variant_of(d)["template"].pop(), "not the arguments of the signature"),
        (lambda d: variant_of(d)["template"][0].__setitem__(1, {"slot": 1}), "not the inputs of the program"),
        (lambda d: variant_of(d)["template"][1].__setitem__(1, {"hole": True}), "no part of an argument"),
        (lambda d: variant_of(d)["views"][0].__setitem__(0, 9), "there are only 5 results"),
        (lambda d: variant_of(d)["views"][0].__setitem__(1, "y"), "%y is no input or parameter"),
        (lambda d: variant_of(d)["views"][0][2][0].__setitem__(0, "aten.add_.Tensor"), "is no operator of a view"),
        (
            lambda d: variant_of(d)["views"][0][2][0].__setitem__(0, "aten.from_file.default"),
            "is no operator of a view",
        ),
        (lambda d: variant_of(d)["stores"][0].__setitem__(0, {"state": "a.weight"}), "there is no buffer 'a.weight'"),
        (lambda d: variant_of(d)["stores"][0].__setitem__(0, {"global": "x"}), "unknown kind of place 'global'"),
        (lambda d: variant_of(d)["stores"][2].__setitem__(0, {"attribute": ["z", "b"]}), "there is no module 'z'"),
        (
            lambda d: variant_of(d)["stores"][2].__setitem__(0, {"attribute": ["a", "__class__"]}),
            "cannot be an attribute",
        ),
        (
            lambda d: variant_of(d)["stores"][2].__setitem__(0, {"attribute": ["a", "forward"]}),
            "cannot be an attribute",
        ),
        (
            lambda d: variant_of(d)["stores"][2].__setitem__(0, {"attribute": ["a", "_buffers"]}),
            "cannot be an attribute",
        ),
        (lambda d: variant_of(d)["stores"][3].__setitem__(0, {"passed": [["zap"], ""]}), "nothing at this path"),
        (lambda d: variant_of(d)["stores"][0].__setitem__(1, [{"leaf": 1}, {"leaf": 50}]), "refers to result 50 of 5"),
        (lambda d: variant_of(d)["same"][0].__setitem__(0, [9]), "nothing at this path"),
        (lambda d: variant_of(d)["shared"][0].__setitem__(0, [0, 0, "zap"]), "nothing at this path"),
        (lambda d: variant_of(d).update(objects=[]), "holds a object 'size' that is not described"),
        (
            lambda d: variant_of(d).update(objects=[["size", "torch.Size", {"tuple": ["a"]}]]),
            "not the items of a torch.Size",
        ),
        (lambda d: variant_of(d).update(objects=[["size", "module", {"tuple": []}]]), "expected 'torch.Size' or"),
        (lambda d: variant_of(d).update(exceptions=[["m.Bad", "SystemExit"]]), "expected "),
        (lambda d: variant_of(d).update(exceptions=[["m.import os", "ValueError"]]), "no name of a class"),
        (lambda d: variant_of(d).update(device="abacus"), "'abacus' is no device"),
        (
            lambda d: variant_of(d)["program"]["ops"][0].update(op={"codes": [*b"aten.mul.Tensor", 0xD800]}),
            "unknown operator 'aten.mul.Tensor",
        ),
        (
            lambda d: variant_of(d)["program"]["ops"][0].update(op="aten.set_.source_Tensor"),
            "malformed|not among those",
        ),
    ],
)
def test_edited_document_is_refused_at_its_place(change: Callable[[Any], Any], problem: str) -> None:
    document, table = document_of(rich())
    document = copy.deepcopy(document)
    change(document)
    with pytest.raises(StorageError, match=problem):
        from_document(Node(document, "program.json"), table)


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        (Record("namedtuple", "m.class", (("keys", ("a",)), ("a", 1))), "whose names are no names"),
        (Record("namedtuple", "m.P", (("keys", ("a b",)), ("x", 1))), "whose names are no names"),
        (Record("namedtuple", "m.P", (("keys", ("_a",)), ("_a", 1))), "cannot be those of a named tuple"),
        (Record("namedtuple", "m.P", (("a", 1),)), "without the names of its fields"),
        (Record("namedtuple", "torch.return_types.max", (("keys", ("a",)), ("a", 1))), "others in this version"),
        (Record("choice", "", (("selector", 1), ("option0", 2))), "without selector and options"),
        (Record("known", "", (("other", 2),)), "without a value"),
        (Record("exec", "os.system", ()), "of an unknown kind"),
    ],
)
def test_wrong_record_in_the_output_is_refused(record: Record, problem: str) -> None:
    artefact = rich()
    artefact.methods["forward"].variants["eval"].program.output.append(record)
    document, table = document_of(artefact)
    with pytest.raises(StorageError, match=problem):
        from_document(Node(document, "program.json"), table)


def test_signature_is_pythons_own() -> None:
    signature = signature_of(rich().methods["forward"], [torch.ones(1)])
    assert [parameter.kind for parameter in signature.parameters.values()] == [
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
        inspect.Parameter.VAR_POSITIONAL,
        inspect.Parameter.KEYWORD_ONLY,
    ]
