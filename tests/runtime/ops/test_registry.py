"""Definitions by name, and the rules attached to them."""

from __future__ import annotations

import pytest
import torch

from runtime.errors import ProgramError
from runtime.ops.assertion import exception_class
from runtime.ops.registry import STRUCTURAL, definition


def test_every_definition_is_found_under_its_name_and_says_what_it_is():
    for name, one in STRUCTURAL.items():
        assert definition(name) is one and one.name == name and one.doc


def test_an_overload_is_defined_by_its_schema():
    one = definition("aten.add.Tensor")
    assert one.doc.startswith("aten::add.Tensor(Tensor self, Tensor other")
    assert one.evaluate is torch.ops.aten.add.Tensor
    assert definition("aten.bernoulli.default").random and not one.random


def test_a_custom_operator_is_defined_too():
    library = torch.library.Library("registry_test", "DEF")
    library.define("scale(Tensor x, float by) -> Tensor")
    assert definition("registry_test.scale.default").name == "registry_test.scale.default"
    with pytest.raises(ProgramError, match="unknown operator 'registry_test.shift.default'"):
        definition("registry_test.shift.default")


@pytest.mark.parametrize("name", ["", "until", "scalar.eval", "array.sort", "aten.add", "a..b", "os.system.default"])
def test_an_unknown_name_is_a_named_error(name):
    with pytest.raises(ProgramError) as caught:
        definition(name)
    assert repr(name) in str(caught.value)


def test_similar_names_are_offered():
    with pytest.raises(ProgramError, match=r"Known: array.new, array.append"):
        definition("array.sort")
    with pytest.raises(ProgramError, match=r"Known: cond, while_loop, scan, switch"):
        definition("loop")


def test_exceptions_are_builtin_ones_only():
    assert exception_class("UnboundLocalError") is UnboundLocalError
    for name in ("print", "Tensor", "__import__", ""):
        with pytest.raises(ProgramError):
            exception_class(name)
