"""Values among the arguments taken out of their places, and put back."""

from __future__ import annotations

import dataclasses

import pytest
import torch

from runtime.ir.template import TensorSlot
from runtime.tracer.values import open_lists, open_values
from runtime.tracer.values.arguments import Open, flatten
from runtime.tracer.values.open_generators import Exchange, StandIn, is_default, same_generator

X = torch.ones(2)


def all_of(arguments):
    return {(path, open_values.kind_of(value)) for path, value in open_values.plain_values(arguments).items()}


def test_plain_values_and_their_places():
    arguments = flatten({"x": X, "n": 3, "more": {"lr": 0.5, "deep": (1, [True, "a", None]), "set": {1}}, "big": 2**64})
    assert open_values.plain_values(arguments) == {
        ("n",): 3, ("more", "lr"): 0.5, ("more", "deep", 0): 1, ("more", "deep", 1, 1): "a",
    }  # fmt: skip
    made = open_values.opened(arguments, all_of(arguments))
    assert list(made.opened.values()) == [3, 0.5, 1, "a"] and made.template["n"] == Open(0, int)
    assert set(open_values.which(made)) == all_of(arguments) and not open_values.plain_values(made)
    bound, _ = made.rebuild([X])
    assert bound == {"x": X, "n": 3, "more": {"lr": 0.5, "deep": (1, [True, "a", None]), "set": {1}}, "big": 2**64}
    bound, _ = made.rebuild([X], opened=[1, 2, 3, 4])
    assert bound["more"] == {"lr": 2, "deep": (3, [True, 4, None]), "set": {1}} and bound["n"] == 1


def test_nothing_open_is_the_same_object():
    arguments = flatten({"x": X, "n": 3})
    assert open_values.opened(arguments, {(("n",), float), (("m",), int)}) is arguments


def test_one_generator_in_two_places_is_one():
    g, other = torch.Generator(), torch.Generator()
    arguments = flatten({"a": g, "b": [g, other]})
    made = open_values.opened(arguments, all_of(arguments))
    assert list(made.opened.values()) == [g, other]
    assert made.template["a"] == Open(0, (torch.Generator, torch.device("cpu")))
    assert [item.index for item in made.template["b"].items] == [0, 1]
    assert not open_values.can_be_open(torch.default_generator) and is_default(torch.default_generator)
    assert same_generator(g, g) and not same_generator(g, other)


def test_lists_that_can_be_open():
    y = torch.zeros(3)
    arguments = flatten({
        "xs": [X.clone(), X.clone()], "x": y, "named": {"t": (X.clone(),)}, "shared": [y], "mixed": [X.clone(), y * 2],
        "none": [], "numbers": [X * 2, 1], "views": [torch.ones(2, 2).T], "parameters": [torch.nn.Parameter(X)],
    })  # fmt: skip
    assert set(open_lists.lists(arguments)) == {("xs",), ("named", "t")}
    assert {path: length for path, (_, length) in open_lists.lengths(arguments).items()} == {
        ("xs",): 2, ("named", "t"): 1,
    }  # fmt: skip
    before = arguments.rebuild(arguments.tensors)[0]
    made = open_values.opened(arguments, set(open_lists.lists(arguments).items()))
    assert len(made.tensors) == len(arguments.tensors) - 3 == len(made.labels)
    assert made.template["x"] == TensorSlot(0) and made.labels[0] == "x"
    after = made.rebuild(made.tensors)[0]
    assert [id(one) for one in after["xs"]] == [id(one) for one in before["xs"]]
    assert type(after["named"]["t"]) is tuple and after["named"]["t"][0] is before["named"]["t"][0]
    assert after["x"] is after["shared"][0] is y and after["mixed"][1] is before["mixed"][1]


@dataclasses.dataclass
class Settings:
    lr: float


def test_records_are_taken_apart_if_they_are_to_be():
    one = Settings(0.5)
    assert open_values.records(flatten({"s": {"one": one}})) == {("s", "one"): one}
    arguments = flatten({"s": {"one": one}}, frozenset({Settings}))
    assert not open_values.records(arguments) and open_values.plain_values(arguments) == {("s", "one", "lr"): 0.5}
    assert arguments.rebuild([])[0]["s"]["one"] is not one


def test_what_is_kept_holds_nothing_of_the_callers():
    one = Settings(0.5)
    kept = flatten({"s": [one, X]}, frozenset({Settings})).with_stand_ins(["spec"])
    assert not kept.containers and not kept.originals and kept.tensors == ["spec"]
    assert kept.template["s"].items[0].original is not one
    assert kept.rebuild(kept.tensors)[0] == {"s": [one, "spec"]}


def test_a_stand_in_draws_what_the_generator_would():
    g, stand_in = torch.Generator().manual_seed(3), StandIn()
    stand_in.tracing = False
    with Exchange([(0, stand_in)]).of([g]):
        drawn = torch.rand(3, generator=stand_in)
    again = torch.Generator().manual_seed(3)
    assert torch.equal(drawn, torch.rand(3, generator=again)) and torch.equal(g.get_state(), again.get_state())
    with pytest.raises(ValueError, match="stop"), Exchange([(0, stand_in)]).of([g]):
        torch.rand(1, generator=stand_in)
        raise ValueError("stop")
    torch.rand(1, generator=again)
    assert torch.equal(g.get_state(), again.get_state())
