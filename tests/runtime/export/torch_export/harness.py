"""Exported programs, held against eager."""

from __future__ import annotations

import contextlib
import copy
import io
import itertools
import warnings
from collections.abc import Iterable, Sequence
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
from tests.oracle import copied, tensors
from tests.runtime.export.c.harness import BEYOND


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


def same(got: Any, wanted: Any, tree: Any, tolerance: float) -> None:
    """AssertionError if a result is not eager's, in the form that exported programs give it.

    A tensor that eager gives twice may be two: what PyTorch puts together has no identities.
    """
    oracle.same(got, in_form(wanted, tree, got), tolerance=tolerance, apart=True)


NUMBERS = {bool: torch.bool, int: torch.int64, float: torch.float64}
"""The dtype of a number that is a tensor."""


def in_form(wanted: Any, tree: Any, got: Any) -> Any:
    """What eager gives in the form that an exported program gives, by the output tree of its Program.

    ``got`` tells only which path was taken, and which numbers are tensors. What is neither a tensor, a number, a text
    nor a container of them is nothing in such programs: None, and an object of Python's an empty dict.
    """
    if isinstance(tree, Record) and tree.kind == "choice":
        options = dict(list(tree.fields)[1:])
        at = int(got["which"])
        form = {"which": got["which"], **{f"if{number}": got[f"if{number}"] for number in range(len(options))}}
        return {**form, f"if{at}": in_form(wanted, options[f"option{at}"], got[f"if{at}"])}
    if isinstance(wanted, torch.Tensor):
        return wanted.detach()
    if type(wanted) in NUMBERS:
        return torch.tensor(wanted, dtype=NUMBERS[type(wanted)]) if isinstance(got, torch.Tensor) else wanted
    if type(wanted) in (list, tuple):
        return type(wanted)(_items_in_form(wanted, tree, got))
    if type(wanted) is dict:
        return dict(zip(wanted, _items_in_form(wanted.values(), tree, got)))
    if not isinstance(tree, Record):
        return wanted if isinstance(wanted, str) else None
    if tree.kind in ("namedtuple", "structseq", "size"):
        return tuple(_items_in_form(wanted, tree, got))
    names = [name for name, _ in tree.fields if name != "keys"]
    values = wanted if isinstance(wanted, (set, frozenset)) else [getattr(wanted, name) for name in names]
    return dict(zip(names, _items_in_form(values, tree, got)))


def _items_in_form(wanted: Iterable[Any], tree: Any, got: Any) -> list[Any]:
    """As many as eager gives, so that the oracle sees where there are more or less of them."""
    values = list(wanted)
    parts, given = _items(tree)[: len(values)], _items(got)[: len(values)]
    return [in_form(one, part, other) for one, part, other in itertools.zip_longest(values, parts, given)]


def _items(value: Any) -> list[Any]:
    """What is in a container or an output tree; nothing is in what is none."""
    if isinstance(value, Record):
        return [one for name, one in value.fields if name != "keys"]
    return list(value.values()) if isinstance(value, dict) else list(value) if isinstance(value, (list, tuple)) else []


def held(model: Model, eager: Any, call: Sequence[Any], tolerance: float = 1e-5) -> None:
    """AssertionError if a call does not end as eager's, or says that a number is beyond what it holds."""
    torch.manual_seed(77)
    given = copied(call)
    try:
        with torch.no_grad(), contextlib.redirect_stdout(io.StringIO()):
            wanted = eager(*given)
    except Exception as error:
        try:
            got = model.run(*tensors(call))
        except Exception:
            return
        raise AssertionError(f"the program gives {got}, and eager raises {error!r}") from error
    torch.manual_seed(77)
    inputs = [one.detach().clone() for one in tensors(call)]
    try:
        got = model.call(*inputs)
    except Exception as error:
        assert BEYOND in str(error), error
        return
    same(got, wanted, model.tree, tolerance)
    oracle.same(inputs, [one.detach() for one in tensors(given)], "arguments", tolerance)


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
