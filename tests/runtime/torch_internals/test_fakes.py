"""What a shape environment takes for true about sizes is put back, in every version of torch."""

from __future__ import annotations

import gc

import pytest
import torch
from torch.fx.experimental.symbolic_shapes import guard_or_false, statically_known_true

from runtime import torch_internals

# Attributes that say nothing about sizes: which step of a trace said what, caches that their versions guard, and logs.
NO_FACTS = {
    "replacements_slocs", "var_to_range_sloc", "_symop_cache", "_prev_cache_key", "_version_counter",
    "_replacements_version_counter", "_resimplify_floor_div_axioms", "log", "events", "counter",
}  # fmt: skip

ASSUMED = {
    "an equality": lambda u, v: torch._check(u == 4),
    "a bound": lambda u, v: torch._check(v >= 7),
    "a sum": lambda u, v: torch._check(u + v == 30),
    "a bound of a sum": lambda u, v: torch._check(u + v >= 30),
    "another size": lambda u, v: torch._check(u == v),
    "a multiple": lambda u, v: torch._check(u % 4 == 0),
    "not one": lambda u, v: torch._check(v != 1),
}
QUESTIONS = {
    "an equality": lambda u, v: u == 4,
    "a bound": lambda u, v: v >= 7,
    "a sum": lambda u, v: u + v == 30,
    "a bound of a sum": lambda u, v: u + v >= 30,
    "another size": lambda u, v: u == v,
    "a multiple": lambda u, v: u % 4 == 0,
    "not one": lambda u, v: v != 1,
}


def sizes():
    """A shape environment, and two sizes of which nothing is known."""
    _, env = torch_internals.make_fake_mode()
    return env, torch_internals.new_symbol(env, size=True), torch_internals.new_symbol(env, size=True)


def said(env):
    """Everything that an environment holds, as text."""
    return {name: repr(value) for name, value in vars(env).items() if name not in NO_FACTS}


@pytest.mark.parametrize("name", ASSUMED)
def test_all_that_was_assumed_is_forgotten(name):
    env, u, v = sizes()
    facts, before = torch_internals.SizeFacts(env), said(env)
    ASSUMED[name](u, v)
    assert statically_known_true(QUESTIONS[name](u, v))
    facts.put_back()
    assert said(env) == before
    assert not statically_known_true(QUESTIONS[name](u, v))


@pytest.mark.parametrize("second", ASSUMED)
@pytest.mark.parametrize("first", ASSUMED)
def test_what_is_assumed_afterwards_is_believed(first, second):
    env, u, v = sizes()
    facts = torch_internals.SizeFacts(env)
    ASSUMED[first](u, v)
    facts.put_back()
    assert not statically_known_true(QUESTIONS[second](u, v))
    ASSUMED[second](u, v)
    assert statically_known_true(QUESTIONS[second](u, v))


@pytest.mark.parametrize("name", ASSUMED)
def test_what_was_asked_meanwhile_is_forgotten(name):
    env, u, v = sizes()
    facts = torch_internals.SizeFacts(env)
    ASSUMED[name](u, v)
    assert guard_or_false(QUESTIONS[name](u, v)) and bool(QUESTIONS[name](u, v))
    facts.put_back()
    assert not guard_or_false(QUESTIONS[name](u, v))
    with pytest.raises(torch_internals.shape_errors()):
        bool(QUESTIONS[name](u, v))


def test_the_collector_is_as_it_was():
    for enabled in (False, True):
        (gc.enable if enabled else gc.disable)()
        try:
            torch_internals.make_fake_mode()
            assert gc.isenabled() is enabled
        finally:
            gc.enable()
