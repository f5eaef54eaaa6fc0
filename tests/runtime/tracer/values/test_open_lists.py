"""Lists of tensors among the arguments that can be open: which can be, what is left of the arguments, and the input."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch

from runtime.ir import ArrayType, TensorType
from runtime.ir.template import TensorSlot
from runtime.tracer.ambient.closing import CannotBeOpen
from runtime.tracer.values import array, open_lists
from runtime.tracer.values.arguments import Container, flatten
from runtime.tracer.values.structure import Tensor
from tests.runtime.tracer.control.staging import Local, Staging


def two(**options: Any) -> list[torch.Tensor]:
    return [torch.ones(2, **options), torch.zeros(2, **options)]


class Other(torch.Tensor):
    pass


CAN_BE: dict[str, Callable[[], Any]] = {
    "a list": two,
    "a tuple": lambda: tuple(two()),
    "one tensor": lambda: [torch.ones(2)],
    "with gradients": lambda: two(requires_grad=True),
    "of no leaves": lambda: [one * 2 for one in two(requires_grad=True)],
    "ints": lambda: two(dtype=torch.int64),
    "in a dict": lambda: {"k": two()},
    "in a list": lambda: [two()],
}
CANNOT_BE: dict[str, Callable[[], Any]] = {
    "no tensors": lambda: [],
    "numbers": lambda: [1, 2],
    "a tensor and a number": lambda: [torch.ones(2), 1],
    "two sizes": lambda: [torch.ones(2), torch.ones(3)],
    "two dtypes": lambda: [torch.ones(2), torch.ones(2, dtype=torch.int64)],
    "one with a gradient": lambda: [torch.ones(2), torch.ones(2, requires_grad=True)],
    "a leaf and another": lambda: [torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True) * 2],
    "a parameter": lambda: [torch.nn.Parameter(torch.ones(2))],
    "a class of its own": lambda: [torch.ones(2).as_subclass(Other)],
    "views": lambda: [torch.ones(2, 3).t()],
    "conjugates": lambda: [torch.ones(2, dtype=torch.complex64).conj()],
    "negatives": lambda: [torch.ones(2, dtype=torch.complex64).conj().imag],
    "sparse ones": lambda: [torch.eye(2).to_sparse()],
    "a dict": lambda: {"k": torch.ones(2)},
}


@pytest.mark.parametrize("kind", CAN_BE)
def test_lists_that_can_be_open(kind: str) -> None:
    value = CAN_BE[kind]()
    arguments = flatten({"n": 1, "xs": value})
    (path,) = open_lists.lists(arguments)
    found = open_lists.lists(arguments)[path]
    assert path[0] == "xs" and open_lists.is_kind(found) and found[0] in (list, tuple)
    own = value
    for step in path[1:]:
        own = own[step]
    assert open_lists.lengths(arguments) == {path: (found, len(own))}
    again = flatten({"n": 2, "xs": CAN_BE[kind]()})
    assert open_lists.lists(again) == {path: found}, "the kind is what they look like"


@pytest.mark.parametrize("kind", CANNOT_BE)
@pytest.mark.filterwarnings("ignore:Sparse:UserWarning")
def test_lists_that_cannot(kind: str) -> None:
    assert open_lists.lists(flatten({"n": 1, "xs": CANNOT_BE[kind]()})) == {}


def test_tensors_that_stand_elsewhere_too() -> None:
    x, y = two()
    assert open_lists.lists(flatten({"x": x, "xs": [x, y]})) == {}
    assert open_lists.lists(flatten({"ys": [y], "xs": [x, y]})) == {}
    assert list(open_lists.lists(flatten({"ys": [y], "xs": [x]}))) == [("ys",), ("xs",)]
    assert list(open_lists.lists(flatten({"xs": [x, x]}))) == [("xs",)], "in the list itself"


def test_kinds() -> None:
    for kind in ((list, 1), (tuple, None)):
        assert open_lists.is_kind(kind)
    for other in (int, (torch.Generator, "cpu"), str, list):
        assert not open_lists.is_kind(other)


def test_arguments_without_some_tensors() -> None:
    x, y, z = torch.ones(1), torch.ones(2), torch.ones(3)
    arguments = flatten({"a": x, "b": {"c": [y, 1], "s": {1}}, "d": (z, x)})
    node = arguments.template["b"]
    inner = dataclasses.replace(node.items[0], items=(1,))
    changed = dataclasses.replace(
        arguments, template={**arguments.template, "b": dataclasses.replace(node, items=(inner, node.items[1]))})
    made = open_lists.without_tensors(changed, {1})
    assert len(made.tensors) == 2 and made.tensors[0] is x and made.tensors[1] is z and made.labels == ["a", "d[0]"]
    assert made.template["a"] == TensorSlot(0) and made.only_tensors is None
    last = made.template["d"]
    assert isinstance(last, Container) and last.items == (TensorSlot(1), TensorSlot(0))
    bound = made.rebuild(made.tensors)[0]
    assert bound["d"][0] is z and bound["d"][1] is x and bound["b"]["c"] == [1] and bound["b"]["s"] == {1}


@pytest.mark.parametrize("needs", [True, False])
def test_the_input_of_a_program(needs: bool, staging: Staging) -> None:
    session = staging.session
    grown = open_lists.enter(session, staging_values(staging, needs), "xs")
    assert isinstance(grown.item, Tensor) and grown.item.shape == (2, 3) and grown.item.requires_grad is needs
    (var,) = grown.variables
    assert var.type == ArrayType(TensorType(torch.float32, (2, 3), None)) and session.containers.has_growing
    assert session.program.inputs[-1].var is var and session.program.inputs[-1].name == "xs"
    assert session.containers.open_alias_sets == [(grown.alias_set, needs)]


def staging_values(staging: Staging, needs: bool) -> list[torch.Tensor]:
    """Tensors of the caller's: calls in a trace would be recorded."""
    staging._stack.close()
    made = [torch.ones(2, 3, requires_grad=needs) for _ in range(2)]
    staging.enter()
    return made


def opened(staging: Staging, needs: bool = False) -> list[Any]:
    return [open_lists.enter(staging.session, staging_values(staging, needs), "xs")]


def test_what_is_only_read(staging: Staging) -> None:
    session = staging.session
    xs = opened(staging)
    open_lists.require_only_read(session, xs, [])
    item = array.get(session, xs, 0)
    (item * 2).add_(1)
    staging.branch(item.sum() > 0, Local(), lambda: (item * 3).mul_(2), lambda: item * 4)
    open_lists.require_only_read(session, xs, [])
    open_lists.require_only_read(session, [1, "a"], ["written"])
    with pytest.raises(CannotBeOpen):
        open_lists.require_only_read(session, xs, ["written"])


def test_an_item_that_is_written(staging: Staging) -> None:
    session = staging.session
    xs = opened(staging)
    array.get(session, xs, 0).add_(1)
    with pytest.raises(CannotBeOpen):
        open_lists.require_only_read(session, xs, [])


def test_gradients_that_an_item_may_get(staging: Staging) -> None:
    session = staging.session
    plain = opened(staging)
    session.emit("gradients", [], types=[])
    open_lists.require_only_read(session, plain, [])
    with pytest.raises(CannotBeOpen):
        open_lists.require_only_read(session, opened(staging, needs=True), [])
