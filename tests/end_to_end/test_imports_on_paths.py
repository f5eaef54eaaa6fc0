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
