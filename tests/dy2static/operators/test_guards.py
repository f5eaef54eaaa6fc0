"""Python facts that a trace read are guards; what it changed in the caller's objects happens at every run."""

from __future__ import annotations

import enum

import pytest
import torch

import dy2static
from runtime.tracer import flatten
from tests.dy2static.operators.conftest import ready

X = torch.arange(4.0)
LIMIT = 2
OPTIONS = {"scale": 3, "names": ["a"]}
COUNTER = 0
WEIGHT = torch.ones(4)


class Config:
    def __init__(self):
        self.flag = True
        self.inner = {"k": [1, 2]}
        self.log = []
        self.seen = 0


def helper(x):
    return x * LIMIT


def reads(x):
    return helper(x) * OPTIONS["scale"] + len(OPTIONS["names"]) + WEIGHT


def changed(program):
    return [guard.description for guard in program.guards if not guard.holds()]


def test_globals(traced, monkeypatch):
    program = traced(reads, X)
    assert changed(program) == []
    monkeypatch.setitem(globals(), "LIMIT", 3)
    assert changed(program) == ["global 'LIMIT'"]
    monkeypatch.undo()
    monkeypatch.setitem(globals(), "helper", lambda x: x)
    assert changed(program) == ["global 'helper'"]
    monkeypatch.undo()
    OPTIONS["names"].append("b")
    try:
        assert changed(program) == ["global 'OPTIONS'"]
    finally:
        OPTIONS["names"].pop()
    WEIGHT.mul_(5)
    try:
        assert torch.equal(ready(program).call(flatten({"x": X})), reads(X))
    finally:
        WEIGHT.div_(5)


def test_closure_values_and_defaults(traced):
    factor = 2

    def inner(x, items=[1]):
        return x * factor + len(items)

    program = traced(lambda x: inner(x), X)
    assert changed(program) == []
    factor = 3
    assert changed(program) == ["closure variable 'factor'"]
    factor = 2
    inner.__defaults__[0].append(2)
    assert any("defaults of" in description for description in changed(program))


def test_attributes(traced):
    config = Config()

    def read(x):
        if config.flag:
            return x * config.inner["k"][0]
        return x

    program = traced(read, X)
    assert changed(program) == []
    config.flag = 1
    assert changed(program) == ["attribute 'flag' of Config"]
    config.flag = True
    config.inner["k"][0] = 9
    assert changed(program) == ["attribute 'inner' of Config"]


def test_presence_of_an_attribute(traced):
    config = Config()
    program = traced(lambda x: x * getattr(config, "factor", 2) if not hasattr(config, "other") else x, X)
    assert changed(program) == []
    config.factor = 3
    assert changed(program) == ["whether a Config has 'factor'"]
    config.other = 1
    assert len(changed(program)) == 2


def test_a_guard_on_what_a_branch_overwrites(traced):
    """The value from before is what the other path leaves."""
    config = Config()

    def store(x):
        if x.sum() > 100:
            config.seen = 5
        return x + config.seen

    program = traced(store, X)
    config.seen = 3
    assert changed(program) == ["attribute 'seen' of Config"]


def test_stores_happen_at_every_run(traced):
    config = Config()

    def store(x):
        config.log = [x.sum()]
        config.seen = int(x.sum())
        if x.sum() > 10:
            config.flag = "large"
        return x

    program = traced(store, X)
    assert config.log == [] and config.seen == 0 and config.flag is True
    ready(program).call(flatten({"x": X}))
    assert config.log == [X.sum()] and config.seen == 6 and config.flag is True
    ready(program).call(flatten({"x": X * 2}))
    assert config.log == [X.sum() * 2] and config.seen == 12 and config.flag == "large"


def test_containers_of_the_caller_are_changed_in_place(traced):
    config = Config()
    log = config.log

    def store(x):
        config.log.append(x.sum())
        return x

    program = traced(store, X)
    assert log == []
    ready(program).call(flatten({"x": X}))
    assert config.log is log and log == [X.sum()]


def test_globals_that_are_stored(traced):
    def store(x):
        global COUNTER
        COUNTER = int(x.sum())
        return x

    program = traced(store, X)
    assert COUNTER == 0
    ready(program).call(flatten({"x": X}))
    assert COUNTER == 6


def test_closure_variables_that_are_stored(traced):
    count = 0

    def store(x):
        nonlocal count
        if x.sum() > 3:
            count = count + 1
        return x

    program = traced(store, X)
    assert count == 0
    ready(program).call(flatten({"x": X}))
    assert count == 1


@pytest.mark.parametrize("settings", [{"p": 0.5}, {"p": 0.25}])
def test_settings_of_torch_modules(traced, settings):
    dropout = torch.nn.Dropout(0.5)
    program = traced(lambda x: dropout(x), X)
    dropout.p = settings["p"]
    assert bool(changed(program)) == (settings["p"] != 0.5)


class Kind(enum.Enum):
    DOUBLE = 2
    TRIPLE = 3


class Table:
    scale = 2

    @classmethod
    def scaled(cls, x):
        return x * cls.scale

    @staticmethod
    def plain(x):
        return x + 1


class Derived(Table):
    pass


def test_what_a_class_holds_is_guarded_without_tracing_each_call(monkeypatch):
    static = dy2static.to_static(lambda x: Derived.scaled(x) + Table.plain(x) + len(Kind.__members__))
    for _ in range(3):
        assert torch.equal(static(X), X * 2 + X + 3)
    assert len(static.programs) == 1
    monkeypatch.setattr(Table, "scaled", classmethod(lambda cls, x: x * 5))
    assert torch.equal(static(X), X * 5 + X + 3)
    monkeypatch.setattr(Derived, "scaled", classmethod(lambda cls, x: x * 7), raising=False)
    assert torch.equal(static(X), X * 7 + X + 3)
