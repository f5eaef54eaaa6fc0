"""Answers of a user's ``__getattribute__`` that are kept: whatever it reads may change between two reads."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static import to_static
from dy2static.errors import Dy2StaticError
from dy2static.operators.values import traced_attribute
from tests.from_files import module_of

HEAD = """
import contextvars
import itertools
import os
import types

import numpy as np

TABLE = {"scale": "k", "other": "m"}
FACTOR = 2.0
VARIABLE = contextvars.ContextVar("variable", default=2.0)
COUNT = itertools.count(1)
ARRAY = np.array([2.0, 3.0])
SPACE = types.SimpleNamespace(factor=2.0)


def closed():
    factor = 2.0

    def get():
        return factor

    def put(value):
        nonlocal factor
        factor = value

    return get, put


GET, PUT = closed()


class Inner:
    def __init__(self, factor):
        self.factor = factor


class Base:
    default = 5.0

    def __init__(self):
        self.k, self.m, self.table, self.inner, self.items = 1.5, 2.5, dict(TABLE), Inner(2.0), [2.0]
        self.reads = 0


class Config(Base):
    def __getattribute__(self, key):
        if key == "scale":
            {body}
        return super().__getattribute__(key)


def f(x, c):
    y = x * c.scale
    {change}
    return y + c.scale
"""
BODIES = {
    "table": "key = super().__getattribute__('table')[key]",
    "table in": "key = 'm' if 'm' in super().__getattribute__('table') else 'k'",
    "table get": "key = super().__getattribute__('table').get('m', 'k')",
    "global table": "key = TABLE[key]",
    "global": "return FACTOR * super().__getattribute__('k')",
    "space": "return SPACE.factor",
    "closure": "return GET()",
    "context": "return VARIABLE.get()",
    "class": "return type(self).default",
    "count": "return float(next(COUNT))",
    "array": "return float(ARRAY[0])",
    "environment": "return float(os.environ.get('DY2STATIC_TEST_FACTOR', '2'))",
    "inner": "return super().__getattribute__('inner').factor",
    "item": "return super().__getattribute__('items')[0]",
    "length": "return float(len(super().__getattribute__('items')))",
    "own": "key = 'k'",
    "reads": "self.reads += 1\n            return super().__getattribute__('reads') * 1.0",
    "has": "return 4.0 if hasattr(self, 'fresh') else 3.0",
}
CHANGES = {
    "nothing": "pass",
    "own": "c.k = 7.0",
    "other": "c.m = 7.0",
    "table": "c.table['scale'] = 'm'",
    "table added": "c.table['m'] = 'm'",
    "table removed": "c.table.pop('scale')\n    c.table['scale'] = 'm'",
    "global table": "TABLE['scale'] = 'm'",
    "global": "global FACTOR\n    FACTOR = 3.0",
    "space": "SPACE.factor = 3.0",
    "closure": "PUT(9.0)",
    "context": "VARIABLE.set(4.0)",
    "class": "Base.default = 6.0",
    "array": "ARRAY[0] = 4.0",
    "environment": "os.environ['DY2STATIC_TEST_FACTOR'] = '3'",
    "inner": "c.inner.factor = 8.0",
    "new inner": "c.inner = Inner(4.0)\n    y = y * c.scale\n    c.inner.factor = 9.0",
    "item": "c.items[0] = 4.0",
    "append": "c.items.append(1.0)",
    "new items": "c.items = [3.0]\n    y = y * c.scale\n    c.items.append(2.0)\n    c.items[0] = 6.0",
    "fresh": "c.fresh = 1",
    "setattr": "setattr(c, 'k', 7.0)",
    "dict": "c.__dict__['k'] = 7.0",
    "vars": "vars(c).update(k=7.0)",
    "object": "object.__setattr__(c, 'k', 7.0)",
    "on a path": "if x.sum() > 0:\n        c.k = 7.0",
    "back": "before = c.k\n    c.k = 9.0\n    y = y * c.scale\n    c.k = before",
    "in a loop": "n = 0\n    while n < x.sum() and n < 2:\n        c.k = c.k + c.scale\n        n += 1",
}
REFUSED = ("D2S210", "D2S212", "D2S213", "D2S214", "D2S226", "D2S227", "D2S254", "D2S266", "D2S277", "D2S278")


def outcomes(file: Path, static: bool) -> list[Any]:
    module = module_of(file)
    function, found = to_static(module.f) if static else module.f, []
    config = module.Config()
    for x in (torch.ones(2), -torch.ones(2), torch.full((2,), 2.0)):
        result = function(x, config)
        state = {name: copy.deepcopy(value) for name, value in object.__getattribute__(config, "__dict__").items()}
        state["inner"] = vars(state["inner"])
        found.append((result.tolist(), state, module.FACTOR, module.Base.default, module.GET()))
    return found


@pytest.mark.filterwarnings("ignore::dy2static.program_cache.RetraceWarning")
@pytest.mark.sample(4)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("body", BODIES)
def test_what_is_read_may_change(body: str, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = HEAD.replace("{body}", BODIES[body]).replace("{change}", CHANGES[change])
    (tmp_path / "one.py").write_text(text)
    monkeypatch.setenv("DY2STATIC_TEST_FACTOR", "2")
    expected = outcomes(tmp_path / "one.py", static=False)
    monkeypatch.setenv("DY2STATIC_TEST_FACTOR", "2")
    try:
        found = outcomes(tmp_path / "one.py", static=True)
    except Dy2StaticError as error:
        assert error.code in REFUSED
        return
    assert found == expected


def test_it_is_run_once_for_each_name(monkeypatch: pytest.MonkeyPatch) -> None:
    class Config:
        def __init__(self) -> None:
            self.k, self.m = 2.0, 3.0

        def __getattribute__(self, name: str) -> Any:
            return super().__getattribute__(name)

    def function(x: Any, c: Any) -> Any:
        for _ in range(5):
            x = x * c.k + c.m
        return x

    asked: list[str] = []

    def counted(method: Any, *args: Any) -> Any:
        if method is Config.__getattribute__:
            asked.append(args[1])
        return before(method, *args)

    before: Any = traced_attribute.call
    monkeypatch.setattr(traced_attribute, "call", counted)
    config = Config()
    assert torch.equal(to_static(function)(torch.ones(2), config), function(torch.ones(2), config))
    assert sorted(asked) == ["k", "m"]
