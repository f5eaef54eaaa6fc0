"""The text of what an operator gives names the node of autograd's graph that eager names, for all operators.

Every differentiable operator of the allow-list that calls are known for is run converted and not. The slow test runs
all of them, the other one every tenth; both print how many.
"""

from __future__ import annotations

import re
import warnings
from typing import Any

import pytest
import torch

import dy2static
from dy2static.errors import Dy2StaticError
from runtime.errors import ProgramError
from runtime.ops import aten
from runtime.storage.allowed import allowed_operators
from tests.runtime.ops.calls import CALLS, UNARY, S

from .operator_calls import call_of, composites

_NOT_TRIED = (
    "backward", "mkldnn", "cudnn", "miopen", "embedding", "quant", "fbgemm", "sparse", "coo", "nested", "q_",
    "int_repr", "geqrf", "ormqr", "lu_", "im2col", "grid_sampler", "native_", "batch_norm",
)  # fmt: skip
"""Operators that read past the end of arguments that do not fit each other; calls of many are in ``CALLS``."""

_INTERNAL = frozenset({"aten.lift.default", "aten.lift_fresh.default", "aten.slice_inverse.default",
                       "aten._saturate_weight_to_fp16.default", "aten._shape_as_tensor.default"})  # fmt: skip
"""PyTorch's own plumbing: no function or method of torch that a program calls."""

_NOT_IMPLEMENTED = frozenset({"aten.randint_like.default", "aten.dequantize.self"})
"""Whole numbers by nature: eager gives them a node that only raises, converted code none."""


def calls(step: int = 1) -> list[tuple[str, Any, Any]]:
    """Operators with arguments that eager takes, or every so many of them."""
    whole = set(composites())
    found: list[tuple[str, Any, Any]] = []
    for name in sorted(allowed_operators())[::step]:
        known = name.startswith("aten.") and not name.startswith("aten._") and not any(w in name for w in _NOT_TRIED)
        try:
            args = call_of(name) if name in whole or known and aten.resolve(name) else None
        except ProgramError:  # of another version of torch
            continue
        if args is not None:
            found.append((name, tuple(args), {}))
    found += [(f"aten.{row[0]}", row[1], row[2] if len(row) > 2 else {}) for row in CALLS[::step]]
    found += [(f"aten.{name}.default", (S,), {}) for name in UNARY[::step]]
    return [call for call in found if call[0] not in _INTERNAL | _NOT_IMPLEMENTED]


def _flat(value: Any) -> list[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        return [value]
    return [one for item in value for one in _flat(item)] if isinstance(value, (list, tuple)) else []


def texts(overload, args, kwargs):
    mine = []
    for arg in args:
        if isinstance(arg, torch.Tensor):
            mine.append(arg.clone())
        elif isinstance(arg, list) and arg and isinstance(arg[0], torch.Tensor):
            mine.append([one.clone() for one in arg])
        else:
            mine.append(arg)
    result = overload(*mine, **kwargs)
    found = []
    for one in _flat(result):
        found.append(f"{one!r}")
    for one in _flat(mine):
        found.append(f"{one!r}")
    return found


def _leaves(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        made = value.detach().clone()
        return made.requires_grad_() if made.is_floating_point() or made.is_complex() else made
    if isinstance(value, (list, tuple)):
        return type(value)(map(_leaves, value))
    return {key: _leaves(item) for key, item in value.items()} if isinstance(value, dict) else value


def _names(function: Any, *args: Any) -> list[list[str]]:
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [re.findall(r"grad_fn=<\w+>|requires_grad=True", text) for text in function(*args)]


def _compare(some: list[tuple[str, Any, Any]], least: int) -> None:
    counts = {"same": 0, "refused": 0}
    different = []
    for name, args, kwargs in some:
        try:
            overload = aten.resolve(name)
            given = _leaves(args), _leaves(kwargs)
            expected = _names(texts, overload, *given)
        except (ProgramError, RuntimeError, IndexError, TypeError, ValueError, NotImplementedError):
            continue  # eager has no gradient there, or torch has no such operator
        if not any("grad_fn" in one for names in expected for one in names if "Clone" not in one):
            continue
        try:
            found = _names(dy2static.to_static(texts), overload, *given)
        except Dy2StaticError as error:
            assert error.code not in ("D2S243", "D2S290"), (name, str(error))
            counts["refused"] += 1
            continue
        counts["same"] += found == expected
        if found != expected:
            different.append((name, expected, found))
    print(f"texts of operators: {counts['same']} as in eager, {counts['refused']} refused, {len(different)} different")
    assert not different
    assert counts["same"] >= least


def test_some_operators():
    _compare(calls(30), 25)


@pytest.mark.parametrize("name", ["lstm", "gru", "rnn_tanh", "rnn_relu"])
def test_packed_sequences(name):
    """These read the numbers of rows, so a stand-in needs some that fit."""
    _compare([call for call in calls() if call[0] == f"aten.{name}.data"], 1)


@pytest.mark.slow
def test_all_operators():
    _compare(calls(), 1000)
