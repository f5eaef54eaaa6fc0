"""The watch for leaks finds what it is for."""

from __future__ import annotations

import torch

import dy2static
from dy2static.static_function import StaticFunction
from runtime.tracer.values.structure import Undefined
from tests.leaks import stand_in, watching


class Box:
    def __init__(self, value):
        self.value = value


class Items(list):  # type: ignore[type-arg]
    def __iter__(self):
        raise AssertionError("asked for by a user's method")


def test_a_stand_in_is_found_inside():
    unbound = Undefined("x")
    held = ([1, unbound], {"a": unbound}, Box((unbound,)), Items([unbound]), {"a": [{"b": unbound}]})
    assert all(stand_in(value) is unbound for value in held)
    assert stand_in([1, "a", torch.ones(2), {"a": None}, Box([3]), torch.nn.Linear(1, 1)]) is None


def test_what_leaves_a_call_is_watched(monkeypatch):
    monkeypatch.setattr(StaticFunction, "_call", lambda self, args, kwargs: [Undefined("x")])
    with watching() as found:
        dy2static.to_static(lambda x: x)(torch.ones(1))
    assert found == ["the result of <lambda> holds a Undefined"]
