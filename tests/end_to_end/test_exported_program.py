"""Exported programs, on inputs that take every path, against eager; from files; compiled ahead of time."""

from __future__ import annotations

import shutil

import pytest
import torch

import dy2static
from dy2static import InputSpec
from tests.end_to_end import test_onnx as models
from tests.end_to_end.test_onnx import DOWN, MIXED, UP, X, vec
from tests.runtime.export.torch_export.harness import check, compiled, export, functional, held, loaded, operators

CALLS = [(UP,), (DOWN,), (MIXED,), (vec(0.1, 0.2, 0.05),)]
CONSTRUCTS = [one for one in models.CONSTRUCTS if one not in (models.appending, models.stacking)]
"""Without those whose lists a loop makes."""


@pytest.mark.sample(2)
@pytest.mark.parametrize("function", CONSTRUCTS, ids=lambda one: getattr(one, "__name__", type(one).__name__))
def test_constructs(function, tmp_path):
    model = check(function, X, *CALLS)
    for other in (loaded(model, tmp_path), functional(model)):
        for call in CALLS:
            held(other, function, call)


@pytest.mark.parametrize("function", [models.appending, models.stacking])
def test_lists_are_refused(function):
    with pytest.raises(dy2static.StorageError, match="D2S550"):
        export(function, X)


def test_mixture_of_experts():
    torch.manual_seed(0)
    calls = [(torch.randn(n, 4) * 3,) for n in (1, 2, 5, 16)]
    check(models.Experts().eval(), [InputSpec([None, 4], "float32", "x")], *calls)


def test_a_recurrent_network_is_one_loop():
    torch.manual_seed(3)
    calls = [(torch.randn(t, b, 4),) for t, b in ((1, 2), (7, 2), (20, 3))]
    model = check(models.Recurrent().eval(), [InputSpec([None, None, 4], "float32", "x")], *calls)
    assert operators(model).count("while_loop") == 1
    with pytest.raises(AssertionError, match="Guard failed"):  # PyTorch's rule for the cell, not ours
        model.run(torch.randn(4, 1, 4))


def test_nested_arguments_and_results():
    model = check(models.nested, models.NESTED, *models.NESTED_CALLS)
    assert model.exported.inputs == ("batch_ids", "batch_mask", "pair_0", "pair_1")


def test_a_loop_with_a_limit():
    model = check(models.limited, X, (vec(1, 1, 1),), (vec(0, 0, 0),))
    with pytest.raises(RuntimeError, match="the loop has not ended after 3 iterations"):
        model.run(vec(100, 100, 100))


def test_a_loop_on_nan_ends_as_in_eager():
    check(models.halving, X, (vec(4, 1, 1),), (vec(4, float("nan"), 1),))


needs_compiler = pytest.mark.skipif(shutil.which("c++") is None and shutil.which("g++") is None,
                                    reason="there is no C++ compiler")  # fmt: skip


def twice(x):
    y, z, n = x, x, 0
    while y.abs().max() < 20:
        y = y + x
        z = y
        n += 1
    return y, z, x * 2, n


@pytest.mark.slow
@needs_compiler
@pytest.mark.parametrize("function", [models.branch, models.halving, models.deep, models.branch_in_loop,
                                      models.raising, twice], ids=lambda one: one.__name__)  # fmt: skip
def test_compiled_ahead_of_time(function, tmp_path):
    model = compiled(export(function, X), tmp_path)
    for call in CALLS:
        held(model, function, call)
