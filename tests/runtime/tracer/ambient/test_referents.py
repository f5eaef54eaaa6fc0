"""What an object leads to, in whatever way it holds it."""

from __future__ import annotations

import functools
import itertools
import operator
import types
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy
import pytest
import torch

from runtime.tracer.ambient.referents import led_to, referents


class Box:
    def __init__(self, held: Any) -> None:
        self.held = held


class Slotted:
    __slots__ = ("held", "never_set")

    def __init__(self, held: Any) -> None:
        self.held = held


class Refusing:
    def __init__(self, held: Any) -> None:
        self.held = held

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("nobody asks")


def of_objects(held: Any) -> numpy.ndarray:
    found = numpy.empty(1, dtype=object)
    found[0] = held
    return found


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda held: held, "a list": lambda held: [1, held], "a key": lambda held: {held: 1},
    "a deque": lambda held: deque([held]), "a default": lambda held: (lambda one=held: one),
    "a keyword": lambda held: (lambda *, one=held: one), "a closure": lambda held: (lambda: held),
    "a partial": lambda held: functools.partial(len, held), "a method": lambda held: held.__init__,
    "a view": lambda held: {1: held}.values(), "a proxy": lambda held: types.MappingProxyType({1: held}),
    "an iterator": lambda held: itertools.chain(iter([held])), "a generator": lambda held: (1 for _ in [held]),
    "an exception": ValueError, "a cause": lambda held: set_cause(ValueError(held)), "a slice": slice,
    "an object": Box, "slots": Slotted, "one that refuses": Refusing, "a namespace": lambda held: namespace(a=held),
    "an array": of_objects, "a weak reference": weakref.ref, "a cell": types.CellType,
    "a getter": lambda held: operator.itemgetter(held), "a module": lambda held: torch.nn.Sequential(Module(held)),
}  # fmt: skip
namespace = types.SimpleNamespace


def set_cause(error: Exception) -> Exception:
    outer = KeyError(1)
    outer.__cause__ = error
    return outer


class Module(torch.nn.Module):
    def __init__(self, held: Any) -> None:
        super().__init__()
        self.held = held


@pytest.mark.parametrize("kind", HOLDERS)
def test_what_is_held(kind: str) -> None:
    held = Box(1)
    for around in (HOLDERS[kind](held), [[[[[[[[[[HOLDERS[kind](held)]]]]]]]]]]):
        assert any(one is held for one in led_to([around], (), ()))


def test_what_is_not_entered() -> None:
    held = Box(1)
    old = Box(held)
    assert not any(one is held for one in led_to([[old]], {id(old)}, ()))
    assert any(one is old for one in led_to([[old]], {id(old)}, ())), "it is led to"
    for other in (torch, torch.ones(1), Box, test_a_class_that_was_made, len):
        assert len(list(led_to([other], (), ()))) < 10


def test_a_class_that_was_made() -> None:
    held = Box(1)
    kind = type("Own", (), {"held": held})
    assert any(one is held for one in led_to([kind()], (), {id(kind)}))
    assert not any(one is held for one in led_to([kind()], (), ()))


def test_a_function_leads_to_no_module() -> None:
    assert not any(one is globals() for one in referents(test_a_class_that_was_made))
