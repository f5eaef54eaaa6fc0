"""Where a module keeps an attribute: what is found, taken out and put back, as Python and ``nn.Module`` have it."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch import nn

from runtime.tracer.ambient import module_slots
from runtime.tracer.ambient.module_slots import found_in, hides, take_out, take_own, to_fill


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(2))
        self.register_buffer("mean", torch.zeros(2))
        self.inner = nn.Identity()
        self.register_parameter("bias", None)
        self.register_buffer("nothing", None)
        self.own = 1


class Plain:
    def __init__(self) -> None:
        self.own = 1


SLOTS = {"weight": "_parameters", "bias": "_parameters", "mean": "_buffers", "nothing": "_buffers", "inner": "_modules"}


@pytest.mark.parametrize("name", SLOTS)
def test_what_is_registered_is_found(name: str) -> None:
    net = Net()
    found = found_in(net, name)
    assert found is net.__dict__[SLOTS[name]] and found[name] is getattr(net, name)
    assert to_fill(net, name) is found and not hides(net, name)


@pytest.mark.parametrize("owner, name", [
    (Net(), "own"), (Net(), "unknown"), (Net(), "_parameters"), (Net(), "forward"), (Net.__new__(Net), "weight"),
    (Net, "weight"), (Plain(), "own"), (object(), "own"), (None, "own"), (torch, "nn"), (torch.ones(1), "grad"),
], ids=lambda one: one if isinstance(one, str) else type(one).__name__)  # fmt: skip
def test_everything_else_is_not(owner: Any, name: str) -> None:
    assert found_in(owner, name) is None and to_fill(owner, name) is None and hides(owner, name) is False


@pytest.mark.parametrize("name", SLOTS)
def test_an_attribute_of_its_own_is_asked_first(name: str) -> None:
    net = Net()
    net.__dict__[name] = "own"
    assert getattr(net, name) == "own" and found_in(net, name) is None
    assert hides(net, name) and to_fill(net, name) is None


def test_a_name_in_two_dicts_is_found_where_python_finds_it() -> None:
    net = Net()
    for earlier, later in (("_parameters", "_buffers"), ("_buffers", "_modules")):
        net.__dict__[later]["both"], net.__dict__[earlier]["both"] = "later", "earlier"
        assert net.both == "earlier" and found_in(net, "both") is net.__dict__[earlier]
        del net.__dict__[later]["both"], net.__dict__[earlier]["both"]


@pytest.mark.parametrize("name", SLOTS)
def test_what_is_taken_out_goes_back_there(name: str) -> None:
    net, other = Net(), Net()
    before = getattr(net, name)
    take_out(net, name)
    assert not hasattr(net, name) and name not in net.__dict__[SLOTS[name]] and hasattr(other, name)
    slot = to_fill(net, name)
    assert slot is net.__dict__[SLOTS[name]] and found_in(net, name) is None
    slot[name] = before
    assert getattr(net, name) is before and name not in net.__dict__


def test_it_belongs_there_whatever_it_is() -> None:
    """Also a plain value, or one that another dict is for."""
    net = Net()
    take_out(net, "inner")
    slot = to_fill(net, "inner")
    assert slot is net._modules
    slot["inner"] = None
    assert net.inner is None


def test_only_what_was_taken_out_of_this_module() -> None:
    net, other = Net(), Net()
    take_out(net, "weight")
    assert to_fill(other, "weight") is other._parameters and to_fill(net, "mean") is net._buffers
    del other._parameters["weight"]
    assert to_fill(other, "weight") is None, "nobody took it out"


def test_the_last_of_two_counts() -> None:
    net = Net()
    take_out(net, "inner")
    net._buffers["inner"] = torch.ones(1)
    take_out(net, "inner")
    assert to_fill(net, "inner") is net._buffers
    net.__dict__["inner"] = 1
    assert to_fill(net, "inner") is None, "it has one of its own now"
    take_own(net, "inner")
    assert not hasattr(net, "inner") and to_fill(net, "inner") is None, "what is put back is one of its own"


def test_an_attribute_of_any_objects_own() -> None:
    plain, net = Plain(), Net()
    take_own(plain, "own")
    take_own(net, "own")
    assert vars(plain) == {} and not hasattr(net, "own") and to_fill(net, "own") is None
    with pytest.raises(KeyError):
        take_own(plain, "own")


def test_a_module_that_asks_nothing_of_its_class() -> None:
    class Asked(Net):
        def __getattr__(self, name: str) -> Any:
            raise RuntimeError(name)

        def __getattribute__(self, name: str) -> Any:
            if name in ("weight", "unknown"):
                raise RuntimeError(name)
            return super().__getattribute__(name)

    net = Net()
    net.__class__ = Asked
    assert found_in(net, "weight") is net._parameters and found_in(net, "unknown") is None


def test_modules_are_not_kept_alive() -> None:
    net = Net()
    take_out(net, "weight")
    count = len(module_slots._taken_out)
    del net
    gc.collect()
    assert len(module_slots._taken_out) == count - 1


def test_what_is_not_registered_cannot_be_taken_out() -> None:
    with pytest.raises(AssertionError):
        take_out(Net(), "own")
