"""A converted module copied, pickled, replicated, given another class: never the tensors or the code of another."""

from __future__ import annotations

import copy
import functools
import gc
import os
import pickle
import subprocess
import sys
import weakref
from pathlib import Path

import pytest
import torch
from torch import nn

from dy2static import InputSpec, to_static
from dy2static.bound_methods import _without_dict
from dy2static.static_function import StaticFunction

X = torch.tensor([1.0, -2.0, 4.0])


class Net(nn.Module):
    def __init__(self, factor=2.0):
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), factor))

    def forward(self, x):
        return x * self.weight if x.sum() > 0 else x - self.weight


class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = to_static(Net(3.0))

    def forward(self, x):
        return self.inner(x) + 1


class Minus(Net):
    def forward(self, x, extra=0.0):
        return x - 10 * self.weight + extra


class Stateful(Net):
    def __getstate__(self):
        state = dict(self.__dict__)
        state["note"] = "kept"
        return state


class Methods:
    def __init__(self, factor=2.0):
        self.factor = factor

    @to_static
    def scale(self, x):
        return x * self.factor if x.sum() > 0 else x

    def plain(self, x):
        return x + self.factor

    @classmethod
    def make(cls, x):
        return x * 2, cls.__name__


class Slots:
    __slots__ = ("factor",)

    @to_static
    def scale(self, x):
        return x * self.factor


def give(module, value):
    """Tensors of its own for a module that shares them with the one it is a copy of."""
    module._parameters = {"weight": nn.Parameter(torch.full((3,), value))}


def hold(module, factor):
    assert torch.equal(module(X), X * factor) and torch.equal(module(-X), -X - factor)


@pytest.mark.parametrize("kind", [Net, Stateful])
def test_shallow_copy(kind):
    net = to_static(kind())
    hold(net, 2.0)
    twin = copy.copy(net)
    give(twin, 5.0)
    hold(twin, 5.0)
    hold(net, 2.0)
    assert "forward" not in vars(twin) and not any(name.startswith("_dy2static") for name in vars(twin))
    hold(to_static(twin), 5.0)
    hold(net, 2.0)
    assert hasattr(twin, "note") == (kind is Stateful)


def test_shallow_copy_of_a_holder():
    holder = to_static(Holder())
    twin = copy.copy(holder)
    twin._modules = {"inner": to_static(Net(7.0))}
    assert torch.equal(twin(X), X * 7 + 1) and torch.equal(holder(X), X * 3 + 1)


def test_a_dict_taken_over_by_hand_can_be_converted_again():
    net = to_static(Net())
    twin = Net.__new__(Net)
    twin.__dict__ = dict(net.__dict__)
    to_static(twin)
    give(twin, 5.0)
    hold(twin, 5.0)
    hold(net, 2.0)


@pytest.mark.parametrize("kind", [Net, Stateful])
def test_deep_copy_is_converted_and_its_own(kind):
    net = to_static(kind())
    hold(net, 2.0)
    twin = copy.deepcopy(copy.deepcopy(net))
    assert isinstance(twin.forward, StaticFunction) and twin.forward.__self__ is twin
    with torch.no_grad():
        twin.weight.fill_(5.0)
    hold(twin, 5.0)
    hold(net, 2.0)
    again = copy.copy(twin)
    give(again, 6.0)
    hold(again, 6.0)
    assert twin.forward.rollback() is twin and "forward" not in vars(twin) and "__getstate__" not in vars(twin)
    hold(twin, 5.0)


def test_deep_copy_of_the_method_alone():
    net = to_static(Net())
    forward = copy.deepcopy(net.forward)
    twin = forward.__self__
    assert twin is not net and twin.forward is forward
    with torch.no_grad():
        twin.weight.fill_(5.0)
    assert torch.equal(forward(X), X * 5) and torch.equal(net(X), X * 2)


def test_own_forward_comes_back():
    net = Net()
    net.forward = functools.partial(Net.forward, net)
    to_static(to_static(net))
    hold(net, 2.0)
    assert isinstance(copy.copy(net).forward, functools.partial)
    assert isinstance(net.forward.rollback().forward, functools.partial)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("kind", [Net, Stateful, Holder])
def test_pickle_holds_the_module_as_it_was(kind, protocol):
    net = to_static(kind())
    net(X)
    data = pickle.dumps(net, protocol)
    assert b"dy2static" not in data.replace(__name__.encode(), b"")
    loaded = pickle.loads(data)
    assert not isinstance(loaded.forward, StaticFunction)
    assert torch.equal(loaded(X), net(X)) and torch.equal(to_static(loaded)(-X), net(-X))


def test_pickle_of_functions_and_methods():
    net = to_static(Net())
    forward = pickle.loads(pickle.dumps(net.forward))
    assert torch.equal(forward(X), X * 2) and forward.__self__ is not net
    objects = Methods(3.0)
    bound = pickle.loads(pickle.dumps(objects.scale))
    assert torch.equal(bound(X), X * 3)
    other_name = to_static(shift, input_spec=[InputSpec([None])])
    loaded = pickle.loads(pickle.dumps(other_name))
    assert isinstance(loaded, StaticFunction) and torch.equal(loaded(X), X + 1) and loaded.input_spec is not None
    partial = pickle.loads(pickle.dumps(to_static(functools.partial(shift, by=4.0))))
    assert torch.equal(partial(X), X + 4)


def shift(x, by=1.0):
    return x + by


SPAWNED = """
import sys, torch
sys.path.insert(0, {folder!r})
import multiprocessing
import {name} as here

def main():
    net = here.to_static(here.Net(4.0))
    net(here.X)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(pool.apply(here.ask, (net, net.forward, here.Methods(3.0).scale)))

if __name__ == "__main__":
    main()
"""


def ask(net, forward, scale):
    """What another process finds."""
    static = to_static(net)
    return [f(X).tolist() for f in (static, forward, scale)], len(static.forward.programs)


@pytest.mark.slow
def test_spawned_processes(tmp_path):
    file = tmp_path / "spawned.py"
    file.write_text(SPAWNED.format(folder=str(Path(__file__).parent), name=Path(__file__).stem), "utf-8")
    done = subprocess.run(
        [sys.executable, str(file)], capture_output=True, text=True, timeout=240, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    values = [(X * factor).tolist() for factor in (4, 4, 3)]
    assert done.stdout.strip() == str((values, 1)), done.stderr


# -- classes


def test_another_class():
    net, eager = to_static(Net()), Net()
    for kind in (Net, Minus, Net, Minus):
        for one in (net, eager):
            one.__class__ = kind
        assert torch.equal(net(X), eager(X)) and torch.equal(net(-X), eager(-X))
        assert net.forward.function == net.__class__.forward.__get__(net)
    assert torch.equal(net(X, extra=3.0), eager(X, extra=3.0))
    assert torch.equal(copy.deepcopy(net)(X), eager(X))


def test_another_forward_of_the_class():
    class Mine(Net):
        pass

    net, lenient = to_static(Mine()), to_static(Mine(), full_graph=False)
    hold(net, 2.0)
    Mine.forward = lambda self, x: x + self.weight
    for one in (net, lenient):
        assert torch.equal(one(X), X + 2)
    Mine.forward = lambda self, x, y: x + y
    assert torch.equal(net(X, X), X + X)
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        net(X)
    del Mine.forward
    hold(net, 2.0)


def test_subclass_of_a_converted_base():
    class Base(Net):
        @to_static
        def forward(self, x):
            return x * self.weight if x.sum() > 0 else x

    class Child(Base):
        def forward(self, x):
            return super().forward(x) + 1

    child = Child()
    assert torch.equal(child(X), X * 2 + 1) and torch.equal(to_static(child)(-X), -X + 1)
    instance = to_static(Base())
    assert torch.equal(instance(X), X * 2)
    twin = copy.copy(instance)
    give(twin, 5.0)
    assert torch.equal(twin(X), X * 5) and torch.equal(instance(X), X * 2)


# -- plain objects


def test_copies_of_objects_have_methods_of_their_own():
    one = Methods(2.0)
    assert torch.equal(one.scale(X), X * 2)
    two = copy.copy(one)
    two.factor = 5.0
    for _ in range(2):
        assert torch.equal(one.scale(X), X * 2) and torch.equal(two.scale(X), X * 5)
    assert one.scale is one.scale and two.scale is two.scale and len(two.scale.programs) == 1


def test_bound_methods_class_methods_partials():
    one = Methods(2.0)
    plain = to_static(one.plain)
    assert torch.equal(plain(X), X + 2)
    one.factor = 4.0
    assert torch.equal(plain(X), X + 4) and torch.equal(copy.deepcopy(plain)(X), X + 4)
    assert to_static(Methods.make)(X)[1] == "Methods"
    assert torch.equal(to_static(functools.partial(one.plain))(X), X + 4)
    assert torch.equal(to_static(to_static(functools.partial(shift, by=2.0)))(X), X + 2)


# -- nothing stays


def test_dropped_modules_and_objects_go():
    def modules():
        net = to_static(Net())
        net(X).sum().backward()
        return weakref.ref(net)

    def objects():
        one = Methods()
        one.scale(X)
        return weakref.ref(one)

    def classes():
        class Local(Methods):
            @to_static
            @classmethod
            def both(cls, x):
                return x + 1

        Local.both(X)
        return weakref.ref(Local)

    for make in (modules, objects, classes):
        refs = [make() for _ in range(5)]
        gc.collect()
        assert [ref() for ref in refs] == [None] * 5, make.__name__


def test_objects_without_a_dict_are_kept_in_number():
    for factor in range(70):
        one = Slots()
        one.factor = float(factor)
        assert torch.equal(one.scale(X), X * factor)
    assert len(_without_dict) <= 64


@pytest.mark.slow
def test_a_thousand_modules_leave_no_memory():
    def run(times):
        for _ in range(times):
            net = to_static(Net())
            net(X).sum().backward()
        gc.collect()
        return len(gc.get_objects())

    before = run(20)
    assert run(1000) - before < 200
