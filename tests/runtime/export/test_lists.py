"""Every list Operator in every target: eager's result on all calls, or refused at the user's line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import InputSpec
from dy2static.errors import StorageError
from dy2static.exporting import artefact_to_export
from runtime.export.c.library import variant_for_inference
from runtime.ops.array import FUNCTIONS
from tests.runtime.export.c import harness as c_harness
from tests.runtime.export.onnx import harness as onnx_harness
from tests.runtime.export.torch_export import harness as torch_harness

SPECS = [InputSpec([None], "float32", "x"), InputSpec([], "int64", "n")]
CALLS = [(torch.tensor([1.0, 2.0]), torch.tensor(n)) for n in (0, 1, 2, 3, 5)] + [
    (torch.tensor([-1.0, 0.5, 3.0, 4.0]), torch.tensor(2))]
HOLDS: dict[Callable[..., Any], set[str]] = {}
"""Operators that the Program of each function has, beside those of most lists."""
KNOWN = {"new", "append", "get", "len"}
REFUSED: dict[Callable[..., Any], str] = {}
"""Why no target has a form for a function."""


def holds(*operators: str, refused: str = "") -> Callable[..., Any]:
    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        HOLDS[function] = set(operators)
        if refused:
            REFUSED[function] = refused
        return function

    return add


def upto(n):
    made = []
    i = 0
    while i < n:
        made.append(i)
        i += 1
    return made


@holds("new", "append", "len", "get")
def kinds_of_tuples(x, n):
    items = []
    for i in range(n.item()):
        if x.sum() > i:
            items.append((1, i))
        else:
            items.append((2.5, i, i))
    for one in items:
        x = x + one[1] if len(one) == 2 else x * one[0] + one[2]
    return x, len(items)


@holds("append", "get")
def numbers_or_none(x, n):
    items = []
    for i in range(n.item()):
        items.append(i if i % 2 else None)
    for one in items:
        x = x * 2 if one is None else x + one
    return x


@holds("append", "get")
def ints_or_floats_or_flags(x, n):
    items = [1]
    for i in range(n.item()):
        if x.sum() > i:
            items.append(i * 2.5)
        elif i % 2:
            items.append(i > 1)
        else:
            items.append(i)
    for one in items:
        x = x * 0.5 + one
    return x


@holds("append", "get")
def tensors_or_none(x, n):
    items = []
    for i in range(n.item()):
        items.append(x * i if i % 2 else None)
    for one in items:
        if one is not None:
            x = x + one
    return x


@holds("fill")
def another_kind_later(x, n):
    items = []
    i = 0
    while i < n:
        items.append(i if i % 2 else None)
        i += 1
    while i < 2 * n:
        items.append((i,) if i % 2 else None)
        i += 1
    for one in items:
        if one is None:
            x = x * 2
        else:
            x = x + one if isinstance(one, int) else x - one[0]
    return x


@holds("fill", "lookup", "concat")
def two_orders_of_kinds(x, n):
    items = [None, 3]
    while len(items) < n:
        items.append(len(items))
    others = [4, None, (1, 2)]
    while len(others) < n:
        others.append((len(others), 1))
    for one in items + others:
        if one is None:
            x = x * 2
        else:
            x = x + one if isinstance(one, int) else x - one[0]
    return x


@holds("lookup", "extend", "concat")
def one_more_kind(x, n):
    items = upto(n)
    others = []
    while len(others) < n:
        others.append(None if len(others) % 2 else 2.5)
    both = items + others
    both += [(1, 2)]
    for one in both:
        if one is None:
            x = x * 2
        else:
            x = x - one[0] if isinstance(one, tuple) else x + one
    return x


@holds("slice")
def slices_with_steps(x, n):
    items = upto(n)
    return items[::2], items[::-1], items[3:0:-2], items[-2::-1], items[1:-1:3], items[-9:9:2], x


@holds("slice")
def slices_of_tensors_with_steps(x, n):
    items = [x * i for i in upto(n)]
    return items[::2], items[::-1], items[n.item() : 0 : -2], x


@holds("slice")
def a_part_of_a_tuple(x, n):
    return (1, 2, 3)[n.item() :], (x, x + 1, x + 2)[: n.item()]


@holds("slice", "get")
def a_part_that_a_size_ends(x, n):
    for one in [x, x + 1, x + 2][: x.shape[0]]:
        x = x + one
    return x


@holds("pop", "set", "slice")
def changed(x, n):
    items = [x, *(x * i for i in upto(n))]
    items[0] = x + 7
    last = items.pop()
    items.insert(0, last)
    return items, last


@holds("load", "store")
def rows_of_dicts(x, n):
    rows = []
    i = 0
    while i < n:
        rows.append({"x": x, "k": 1})
        rows[-1]["k"] += i
        i += 1
    for row in rows:
        x = x * row["k"] + row["x"]
    return x


@holds("set")
def keyed(x, n):
    counts = {3: 0}
    for i in range(n.item()):
        counts[i % 2] = counts.get(i % 2, 0) + i
    return list(counts), list(counts.values()), x


@holds("set_order", refused="hashes")
def in_the_order_of_a_set(x, n):
    for key in {n.item(), 8, 16}:
        x = x * 0.5 + key
    return x


@holds("set_order", refused="hashes")
def in_the_order_of_a_set_of_sizes(x, n):
    return list({x.shape[0] * 8 + 1, 8, x.shape[0] + 1}), x


@holds("set_order", refused="hashes")
def in_the_order_of_a_set_that_grows(x, n):
    seen = set()
    for i in range(n.item()):
        seen.add((i * 7) % 5)
    return list(seen), x


@holds("rows", "pick", "lookup", refused="list")
def tuples_of_any_length(x, n):
    items = []
    i = 0
    while i < n:
        if i % 3 == 0:
            items.append((1, 2))
        else:
            items.append((1, 2, 3) if i % 3 == 1 else None)
        i += 1
    for j in range(n.item()):
        row = ()
        for k in range(j):
            row = (*row, k)
        items.append(row)
    for one in items:
        x = x * 2 if one is None else x + len(one)
    return x


@holds("fill_each", refused="list")
def lists_whose_items_get_another_kind(x, n):
    groups = []
    i = 0
    while i < n:
        groups.append(upto(i))
        i += 1
    while i < 2 * n:
        row = []
        while len(row) < i:
            row.append(i if len(row) % 2 else None)
        groups.append(row)
        i += 1
    for row in groups:
        for one in row:
            x = x * 2 if one is None else x + one
    return x


def _operators(function: Callable[..., Any]) -> set[str]:
    program = variant_for_inference(artefact_to_export(function, SPECS, "forward"), "forward").program
    return {op.name.removeprefix("array.") for op in program.block.walk() if op.name.startswith("array.")}


def test_every_operator_is_in_a_program() -> None:
    assert KNOWN.union(*HOLDS.values()) == {name.removeprefix("array.") for name in FUNCTIONS}


def _hold(function: Callable[..., Any], target: str, folder: Path) -> None:
    if target == "torch":
        torch_harness.check(function, SPECS, *CALLS)
    elif target == "onnx":
        onnx_harness.check(function, folder, SPECS, *CALLS)
    else:
        c_harness.hold(c_harness.exported(function, folder / "net", SPECS), function, CALLS)


@pytest.mark.sample(8)
@pytest.mark.parametrize("target", ["c", "onnx", "torch"])
@pytest.mark.parametrize("function", HOLDS, ids=lambda one: one.__name__)
def test_as_eager_or_refused(function: Callable[..., Any], target: str, tmp_path: Path) -> None:
    """PyTorch's exported programs have no lists that the run makes."""
    if target == "c" and c_harness.CC is None:
        pytest.skip("there is no C compiler")
    assert HOLDS[function] <= _operators(function)
    if target != "torch" and function not in REFUSED:
        _hold(function, target, tmp_path)
        return
    with pytest.raises(StorageError) as raised:
        _hold(function, target, tmp_path)
    assert raised.value.code == {"c": "D2S530", "onnx": "D2S540", "torch": "D2S550"}[target]
    assert REFUSED.get(function, "list") in raised.value.summary and "says" not in raised.value.summary
    assert raised.value.location is not None and raised.value.location.file.endswith("test_lists.py")
    assert not list(tmp_path.iterdir()), "something was written"
