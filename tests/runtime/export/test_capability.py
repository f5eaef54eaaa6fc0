"""Every row of the capability table on every target: what has a form runs as eager does, what has none is refused."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static.errors import StorageError
from runtime.export.capability import TABLE, TARGETS, Form
from tests.oracle import copied
from tests.runtime.export import runtimes
from tests.runtime.export.c import harness as c_harness
from tests.runtime.export.onnx import harness as onnx_harness
from tests.runtime.export.rows import ROWS, Row
from tests.runtime.export.torch_export import harness as torch_harness

WITHOUT_EXAMPLE = {"Python function"}
"""A Program with one cannot be saved."""


def _run(name: str, target: str, folder: Path) -> None:
    row = ROWS[name]
    made = row.make()
    function = made.eval() if isinstance(made, torch.nn.Module) else made
    if target == "torch":
        torch_harness.check(function, row.specs, *row.calls)
    elif target == "onnx":
        onnx_harness.check(function, folder, row.specs, *row.calls)
    elif target == "openvino":
        _run_in_openvino(function, folder, row)
    else:
        eager = copy.deepcopy(function)
        c_harness.hold(c_harness.exported(function, folder / "net", row.specs), eager, row.calls)


def _run_in_openvino(function: Any, folder: Path, row: Row) -> None:
    """Export for it, and run the calls in which eager does not raise, where OpenVINO is installed."""
    eager = copy.deepcopy(function)
    model = onnx_harness.export(function, folder, row.specs, runtime="openvino")
    if not runtimes.installed("OpenVINO"):
        return
    model.session = runtimes.OpenVINO(model.exported.path)
    for call in row.calls:
        if not isinstance(_ended(eager, call), Exception):
            onnx_harness.held(model, eager, call, 1e-4)


def _ended(eager: Any, call: tuple[Any, ...]) -> Any:
    try:
        return eager(*copied(call))
    except Exception as error:
        return error


def test_every_row_has_an_example() -> None:
    assert [row.title for row in TABLE if row.title not in WITHOUT_EXAMPLE] == [
        name for name in (row.title for row in TABLE) if name in ROWS]
    assert set(ROWS) <= {row.title for row in TABLE} | {"list of other length on paths", "dtype differs on paths",
                                                       "rank differs on paths", "None on one path"}


CASES = [(row.title, target) for row in TABLE for target in TARGETS if row.title in ROWS]


@pytest.mark.sample(5)
@pytest.mark.parametrize(("title", "target"), CASES, ids=lambda one: one)
def test_row(title: str, target: str, tmp_path: Path) -> None:
    if target == "c" and c_harness.CC is None:
        pytest.skip("there is no C compiler")
    (row,) = (one for one in TABLE if one.title == title)
    answer = row.answers[target]
    if isinstance(answer, Form):
        _run(title, target, tmp_path)
        return
    with pytest.raises(StorageError) as raised:
        _run(title, target, tmp_path)
    codes = TARGETS[target]
    assert raised.value.code == (codes.boundary if row.boundary else codes.operators)
    assert answer.reason in raised.value.summary and raised.value.hint == row.instead != ""
    assert not list(tmp_path.iterdir()), "something was written"
    if not row.boundary:
        assert raised.value.location is not None and raised.value.location.file.endswith("rows.py")


@pytest.mark.sample(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("title", ["dtype differs on paths", "rank differs on paths", "None on one path"])
def test_what_a_path_decides_becomes_a_path_of_its_own(title: str, target: str, tmp_path: Path) -> None:
    if target == "c" and c_harness.CC is None:
        pytest.skip("there is no C compiler")
    _run(title, target, tmp_path)
