"""Exported programs, held against eager."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static.errors import Dy2StaticError
from dy2static.exporting import artefact_to_export
from runtime.export.torch_export import Exported, export_artefact
from runtime.ir.tree import Record
from runtime.torch_internals.export_settings import any_size
from tests import oracle
from tests.oracle import copied


@dataclass
class Model:
    """An exported program that can be run."""

    exported: Exported
    call: Any

    @property
    def tree(self) -> Any:
        return self.exported.program.output

    def run(self, *inputs: torch.Tensor) -> Any:
        """What it returns."""
        return self.call(*(one.detach().clone() for one in inputs))


def export(function: Any, specs: Any = None) -> Model:
    """Export it, and make it callable."""
    made = export_artefact(artefact_to_export(function, specs, "forward"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Model(made, made.exported.module())


def loaded(model: Model, folder: Path) -> Model:
    """The same, from a .pt2 file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.export.save(model.exported.exported, folder / "model.pt2")
        return Model(model.exported, torch.export.load(folder / "model.pt2").module())


def functional(model: Model) -> Model:
    """The same, after PyTorch has made it functional, for sizes of 0 and 1 as well."""
    with warnings.catch_warnings(), any_size():
        warnings.simplefilter("ignore")
        return Model(model.exported, model.exported.exported.run_decompositions({}).module())


def compiled(model: Model, folder: Path) -> Model:
    """The same, compiled ahead of time by AOTInductor."""
    from torch._inductor import aoti_compile_and_package, aoti_load_package

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = aoti_compile_and_package(model.exported.exported, package_path=str(folder / "model.pt2"))
        return Model(model.exported, aoti_load_package(path))


def tensors_of(value: Any) -> list[torch.Tensor]:
    """The tensors of an argument, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for item in items for tensor in tensors_of(item)]


def same(got: Any, wanted: Any, tree: Any, tolerance: float) -> None:
    """AssertionError if a result is not eager's, in the form that exported programs give it.

    It walks by itself, as they have dicts in place of classes and tensors in place of numbers.
    """
    if isinstance(tree, Record) and tree.kind == "choice":
        options = list(tree.fields)[1:]
        at = int(got["which"])
        same(got[f"if{at}"], wanted, options[at][1], tolerance)
    elif isinstance(wanted, torch.Tensor):
        oracle.same(got, wanted.detach(), tolerance=tolerance)
    elif type(wanted) in (bool, int, float):
        if isinstance(got, torch.Tensor):
            assert got.dtype is {bool: torch.bool, int: torch.int64, float: torch.float64}[type(wanted)], got.dtype
            got = got.item()
        oracle.same(got, wanted, tolerance=tolerance)
    elif isinstance(wanted, dict) or dataclasses.is_dataclass(wanted):
        fields = dict(wanted) if isinstance(wanted, dict) else {
            one.name: getattr(wanted, one.name) for one in dataclasses.fields(wanted)}
        assert set(got) == set(fields)
        inside = tree if isinstance(tree, dict) else dict(zip(fields, [one for name, one in getattr(
            tree, "fields", ()) if name != "keys"]))
        for key, one in fields.items():
            same(got[key], one, inside.get(key), tolerance)
    elif isinstance(wanted, (list, tuple)):
        assert len(got) == len(wanted), f"{got} in place of {wanted}"
        parts = tree if isinstance(tree, (list, tuple)) else [None] * len(wanted)
        if isinstance(tree, Record) and tree.kind in ("namedtuple", "structseq", "size"):
            parts = [one for name, one in tree.fields if name != "keys"]
        for one, other, part in zip(got, wanted, parts):
            same(one, other, part, tolerance)
    else:
        assert got == wanted or not isinstance(wanted, (str, type(None))), f"{got!r} in place of {wanted!r}"


BEYOND = ("OverflowError: an int beyond", )
"""What a program says where it cannot hold a number that Python holds."""


def held(model: Model, eager: Any, call: Sequence[Any], tolerance: float = 1e-5) -> None:
    """AssertionError if a call does not end as eager's, or says that a number is beyond what it holds."""
    torch.manual_seed(77)
    given = copied(call)
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            wanted = eager(*given)
    except Exception as error:
        try:
            got = model.run(*tensors_of(list(call)))
        except Exception:
            return
        raise AssertionError(f"the program gives {got}, and eager raises {error!r}") from error
    torch.manual_seed(77)
    inputs = [one.detach().clone() for one in tensors_of(list(call))]
    try:
        got = model.call(*inputs)
    except Exception as error:
        assert any(one in str(error) for one in BEYOND), error
        return
    same(got, wanted, model.tree, tolerance)
    oracle.same(inputs, [one.detach() for one in tensors_of(list(given))], "arguments", tolerance)


def check(function: Any, specs: Any, *calls: Sequence[Any], tolerance: float = 1e-5) -> Model:
    """Export and compare each call's results with eager's; where eager raises, the program's run fails."""
    eager = copy.deepcopy(function).eval() if isinstance(function, torch.nn.Module) else function
    model = export(function, specs)
    for call in calls:
        held(model, eager, call, tolerance)
    return model


def refused(function: Any, specs: Any, code: str) -> Dy2StaticError:
    """The error with which an export is refused."""
    with pytest.raises(Dy2StaticError) as raised:
        export_artefact(artefact_to_export(function, specs, "forward"))
    assert raised.value.code == code, str(raised.value)
    return raised.value


def operators(model: Model) -> list[str]:
    """The operator of every node, those of graphs inside included."""
    found = []
    for graph in model.exported.exported.graph_module.modules():
        if isinstance(graph, torch.fx.GraphModule):
            found += [str(node.target) for node in graph.graph.nodes if node.op == "call_function"]
    return found
