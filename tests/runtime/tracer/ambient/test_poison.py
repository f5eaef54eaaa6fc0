"""Stand-ins inside of containers answer nothing that Python asks: every protocol method raises a located error."""

from __future__ import annotations

import copy
import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch

from dy2static import TraceError, not_to_static, to_static
from dy2static.operators.calls import boundary
from dy2static.operators.provenance import chosen
from runtime.tracer.ambient.poison import PROTOCOL, Key, Poison, keys_answer
from runtime.tracer.numbers.scalars import StagedBool, StagedFloat, StagedInt, StagedStr
from runtime.tracer.python_state.held import RowField, RowKey
from runtime.tracer.values.containers import Several
from runtime.tracer.values.structure import Choice, Growing, Row

MARKERS = (Growing, Row, Several, RowKey, RowField)

ASKS: dict[str, Callable[[Any], Any]] = {
    "hash": hash, "key": lambda one: {one: 1}, "member": lambda one: {one}, "eq": lambda one: one == 1,
    "ne": lambda one: one != 1, "eq itself": lambda one: one == one, "lt": lambda one: one < 1, "bool": bool,
    "len": len, "length hint": operator.length_hint, "iter": iter, "reversed": reversed, "next": next,
    "contains": lambda one: 1 in one, "getitem": lambda one: one[0], "setitem": lambda one: operator.setitem(one, 0, 1),
    "delitem": lambda one: operator.delitem(one, 0), "call": lambda one: one(), "index": operator.index, "int": int,
    "float": float, "complex": complex, "str": str, "repr": repr, "format": format, "bytes": bytes,
    "add": lambda one: one + 1, "radd": lambda one: [1] + one, "mul": lambda one: one * 2, "neg": operator.neg,
    "iadd": lambda one: operator.iadd(one, 1), "round": round, "copy": copy.copy, "deepcopy": copy.deepcopy,
    "pickle": pickle.dumps, "divmod": lambda one: divmod(one, 2), "tensor": lambda one: torch.ones(1) * one,
}  # fmt: skip


@pytest.mark.parametrize("cls", MARKERS, ids=lambda cls: cls.__name__)
def test_no_protocol_method_is_left_to_a_default(cls: type) -> None:
    allowed: dict[str, type] = {"__hash__": Key, "__eq__": Key, "__ne__": Key} if issubclass(cls, Key) else {}
    if issubclass(cls, Growing):
        allowed["__deepcopy__"] = Growing  # which copies numbers and texts, and refuses all else
    for name in PROTOCOL:
        owner = next(base for base in cls.__mro__ if f"__{name}__" in base.__dict__)
        assert owner is allowed.get(f"__{name}__", Poison), name
    assert cls.__repr__ is Poison.__repr__


@pytest.mark.parametrize("cls", [StagedInt, StagedBool, StagedFloat, StagedStr, Choice], ids=lambda cls: cls.__name__)
def test_numbers_and_choices_answer_what_the_run_says_or_nothing(cls: type) -> None:
    for name in ("hash", "eq", "ne", "lt", "bool", "iter", "str", "repr", "format", "reduce"):
        owner = next(base for base in cls.__mro__ if f"__{name}__" in base.__dict__)
        assert owner is not object and (name == "lt" or owner.__module__.startswith("runtime.")), name


@not_to_static
def ask(value: Any) -> None:
    """Ask what stands in a container or object everything, inside of the trace."""
    held = [*dict.__iter__(value), *dict.values(value)] if isinstance(value, dict) else (
        list(value) if isinstance(value, (list, set)) else list(vars(value).values()))
    for marker in held:
        if not isinstance(marker, Poison):
            continue
        ASKED.append(type(marker).__name__)
        for name, one in ASKS.items():
            try:
                one(marker)
            except TraceError as error:
                assert error.code in ("D2S253", "D2S254") and error.location is not None
            else:
                ANSWERED.append(f"{type(marker).__name__}, {name}")
        if isinstance(marker, Key):
            with keys_answer():
                assert {marker: 1}[marker] == 1 and marker == marker and not marker != marker


ASKED: list[str] = []
ANSWERED: list[str] = []


class Node:
    def __init__(self, k: Any) -> None:
        self.k = k


def grown(x: torch.Tensor, n: torch.Tensor) -> Any:
    xs = []
    i = 0
    while i < n:
        xs.append(x)
        i += 1
    ask(xs)
    return x


def several(x: torch.Tensor, n: torch.Tensor) -> Any:
    d = {"a": x}
    if n > 1:
        d["b"] = x
    ask(d)
    return x


def several_members(x: torch.Tensor, n: torch.Tensor) -> Any:
    s = {1}
    if n > 1:
        s.add(2)
    ask(s)
    return x


def row_of_dict(x: torch.Tensor, n: torch.Tensor) -> Any:
    rows = []
    i = 0
    while i < n:
        rows.append({"k": i})
        rows[-1]["k"] += 1
        i += 1
    ask(rows[0])
    return x


def row_of_object(x: torch.Tensor, n: torch.Tensor) -> Any:
    rows = []
    i = 0
    while i < n:
        rows.append(Node(i))
        rows[-1].k += 1
        i += 1
    ask(rows[0])
    return x


def row_of_list(x: torch.Tensor, n: torch.Tensor) -> Any:
    rows = []
    i = 0
    while i < n:
        rows.append([i])
        rows[-1].append(i)
        i += 1
    ask(rows[0])
    return x


@pytest.mark.parametrize("function, marker", [
    (grown, "Growing"), (several, "Several"), (several_members, "Several"), (row_of_dict, "RowKey"),
    (row_of_object, "RowField"), (row_of_list, "Row"),
], ids=lambda one: getattr(one, "__name__", ""))  # fmt: skip
def test_everything_that_is_asked_of_one_in_a_trace_is_refused(
    function: Callable[..., Any], marker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    look = chosen._look
    monkeypatch.setitem(boundary._BY_ID, id(ask), boundary.Takes.BOTH)  # as if it only kept what it is given
    monkeypatch.setattr(chosen, "_look", lambda f: chosen._NOTHING if f is ask else look(f))
    ASKED.clear()
    ANSWERED.clear()
    to_static(function)(torch.ones(2), torch.tensor(3))
    assert marker in ASKED and not ANSWERED
