"""A module that is imported for the first time on a path is no change of state that the path must undo."""

from __future__ import annotations

import importlib
import sys

import pytest
import torch

import dy2static
from dy2static import to_static

X = torch.ones(3)


@pytest.fixture
def name(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "imported_on_a_path.py").write_text("VALUE = 2.0\n")
    yield "imported_on_a_path"
    sys.modules.pop("imported_on_a_path", None)


@dy2static.not_to_static
def _value(name):
    return importlib.import_module(name).VALUE


def _branch(x, name):
    modules = sys.modules
    if "torch" in modules and x.sum() > 0:
        x = x * _value(name)
    return x


def _loop(x, name):
    modules = sys.modules
    while "torch" in modules and x.sum() < 20:
        x = x * _value(name)
    return x


def _global(x, name):
    if "torch" in sys.modules and x.sum() > 0:
        x = x * _value(name)
    return x


@pytest.mark.parametrize("function", [_branch, _loop, _global])
def test_an_import_on_a_path(function, name):
    converted = to_static(function)
    for x in (X, X * 3, X * 10, X):
        assert torch.equal(converted(x, name), function(x, name))
    assert name in sys.modules


MODULE = """
import torch
SCALE = torch.tensor(2.0)
LAYER = torch.nn.Linear(3, 3)
HALF = torch.autograd.grad((LAYER(torch.ones(3)) / 2).sum(), LAYER.bias)[0]
def scaled(x):
    return LAYER(x * SCALE) * HALF
"""


def _inside(x):
    import imported_with_tensors

    return imported_with_tensors.scaled(x)


def _by_name(x):
    return importlib.import_module("imported_with_tensors").scaled(x)


def _on_a_path(x):
    if x.sum() > 0:
        from imported_with_tensors import scaled
        return scaled(x)
    return x


def _in_a_loop(x):
    count = 0
    while count < 3 and x.sum() > -100:
        from imported_with_tensors import scaled
        x, count = scaled(x), count + 1
    return x


@pytest.mark.parametrize("function", [_inside, _by_name, _on_a_path, _in_a_loop])
def test_what_a_file_makes_when_it_is_imported_is_real(function, tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "imported_with_tensors.py").write_text(MODULE)
    try:
        converted = to_static(function)
        found = converted(X)
        module = sys.modules["imported_with_tensors"]
        assert type(module.SCALE) is torch.Tensor and type(module.LAYER.weight) is torch.nn.Parameter
        torch.testing.assert_close(found, function(X))
        torch.testing.assert_close(converted(X * 2), function(X * 2))
    finally:
        sys.modules.pop("imported_with_tensors", None)
