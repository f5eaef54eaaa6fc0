"""Attributes that only some paths set, of objects whose class says what the other paths have: ``__getattr__``,
``__getattribute__``, and what the class itself has by that name."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.oracle import check, check_saved

UP, DOWN = torch.ones(2), -torch.ones(2)


class Seven:
    def __getattr__(self, name):
        return 7


class Derived(Seven):
    pass


class Inner:
    b = 4


class Wrapper:
    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        return getattr(self.inner, name)


class Raising:
    def __getattr__(self, name):
        if name == "c":
            return 9
        raise AttributeError(name)


class Trying:
    def __getattribute__(self, name):
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return 7


class TryingAbove:
    def __getattribute__(self, name):
        try:
            return super().__getattribute__(name)
        except AttributeError:
            return 7


class Both:
    def __getattribute__(self, name):
        return object.__getattribute__(self, name)

    def __getattr__(self, name):
        return 8


class Layer(nn.Module):
    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            return 6


class Slotted:
    __slots__ = ("b",)

    def __getattr__(self, name):
        return 5


class OfTensors:
    def __init__(self):
        self.x = torch.full((2,), 2.0)

    def __getattr__(self, name):
        return self.x * 2


class Counting:
    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        self.asked.append(name)
        return len(self.asked)


class OfClass:
    b = 3


class Method:
    def b(self):
        return 3


MAKERS = {
    "__getattr__": Seven, "inherited": Derived, "wrapper": lambda: Wrapper(Inner()), "raises": Raising,
    "wrapper that raises": lambda: Wrapper(object()), "__getattribute__": Trying, "super": TryingAbove, "both": Both,
    "module": Layer, "slot": Slotted, "tensors": OfTensors, "counting": Counting, "class": OfClass, "plain": Inner,
}  # fmt: skip
USES = {
    "read": lambda o: o.b, "twice": lambda o: o.b + o.b, "getattr": lambda o: getattr(o, "b"),
    "default": lambda o: getattr(o, "b", 5), "hasattr": lambda o: 2 if hasattr(o, "b") else 3,
}  # fmt: skip


def set_once(o, x):
    if x.sum() > 0:
        o.b = 3


def set_to_a_tensor(o, x):
    if x.sum() > 0:
        o.b = x + 1


def deleted(o, x):
    o.b = 2
    if x.sum() <= 0:
        del o.b


def set_in_two_ways(o, x):
    if x.sum() > 0:
        if x[0] > 2:
            o.b = 3
        else:
            o.b = 4


@pytest.mark.parametrize("store", (set_once, set_to_a_tensor, deleted, set_in_two_ways))
@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("kind", MAKERS)
def test_the_class_says_what_the_other_paths_have(kind, use, store):
    make, ask = MAKERS[kind], USES[use]

    def asked(x):
        held = make()
        store(held, x)
        return x * ask(held)

    check(asked, (UP,), (DOWN,), (UP * 3,), paths=("program",))


def test_a_method_that_some_paths_replace():
    def called(x):
        held = Method()
        if x.sum() > 0:
            held.b = lambda: 5
        return x * held.b()

    check(called, (UP,), (DOWN,), paths=("program",))


def test_with_gradients_and_from_a_file(tmp_path):
    def asked(x):
        held = OfTensors()
        if x.sum() > 0:
            held.b = x * x
        return x * held.b + getattr(held, "b", 1)

    calls = [(torch.full((2,), value, requires_grad=True),) for value in (1.5, -2.0)]
    static = check(asked, *calls)
    check_saved(asked, static, tmp_path / "asked.pt", *calls, paths=("program",))
