"""Attributes of a class that change between calls, read of objects that are made inside and of older ones.

Each class looks attributes up in its own way; each way of reading is called after each change.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from dy2static import to_static
from tests.from_files import module_of
from tests.oracle import difference

CLASS = """
import torch


class C:
    k = 2.0
    l = [1, 2]
    d = {}
    t = torch.ones(1)

    @property
    def p(self):
        return 1.0

    def m(self):
        return 2.0

    @classmethod
    def cm(cls):
        return 3.0
"""
LOOKUPS = {
    "as Python does": "",
    "getattribute": """
    def __getattribute__(self, name):
        return 5.0 if name == "zz" else object.__getattribute__(self, name)
""",
    "super": """
    def __getattribute__(self, name):
        return super().__getattribute__(name)
""",
    "counted": """
    n = 0

    def __getattribute__(self, name):
        C.n += 1
        return object.__getattribute__(self, name)
""",
    "getattr": """
    def __getattr__(self, name):
        if name == "zz":
            return 7.0
        raise AttributeError(name)
""",
    "constructor": """
    def __init__(self):
        self.own = 1
""",
}
REST = """

OLDER = C()


def changed(c):
    c.j = 1
    return c


def f(x):
    return {expression}
"""
READS = ["x * C().k", "x * getattr(C(), 'k')", "x * sum(C().l)", "x * C().t", "x * C().p", "x * C().m()",
         "x * C().cm()", "hasattr(C(), 'new')", "x * getattr(C(), 'new', 2.0)", "x * OLDER.k", "x * sum(OLDER.l)",
         "x * OLDER.t", "x * OLDER.p", "x * OLDER.m()", "hasattr(OLDER, 'new')", "x * getattr(OLDER, 'new', 2.0)",
         "x * len(C().d)", "x * C().d.get('a', 1)", "[v for v in C().l]", "3 in C().l",
         "x * changed(C()).k"]  # fmt: skip


def _new_lookup(self: Any, name: str) -> Any:
    return 6.5 if name == "k" else object.__getattribute__(self, name)


def _new_constructor(self: Any) -> None:
    self.k = 13.0


def _set(of: str, name: str, value: Any) -> Callable[[ModuleType], None]:
    return lambda module: setattr(getattr(module, of), name, value)


CHANGES: list[Callable[[ModuleType], Any]] = [
    lambda module: None, lambda module: None, _set("C", "k", 5.0), lambda module: module.C.l.append(3),
    _set("C", "l", [9]), _set("C", "t", torch.ones(1) * 4), lambda module: module.C.t.mul_(2),
    _set("C", "p", property(lambda self: 8.0)), _set("C", "m", lambda self: 9.0),
    _set("C", "cm", classmethod(lambda cls: 11.0)), _set("C", "new", 3.0), lambda module: delattr(module.C, "new"),
    lambda module: module.C.d.update(a=4), _set("C", "d", {"a": 6}), _set("OLDER", "k", 12.0),
    _set("OLDER", "l", [1]), _set("OLDER", "new", 5), _set("C", "__getattribute__", _new_lookup), _set("C", "k", 1.0),
    lambda module: delattr(module.C, "__getattribute__"), _set("C", "__getattr__", lambda self, name: 3.5),
    _set("C", "__init__", _new_constructor),
]  # fmt: skip


def _outcome(function: Any) -> Any:
    try:
        return function(torch.ones(2))
    except AttributeError as error:
        return str(error)


@pytest.mark.filterwarnings("ignore::dy2static.RetraceWarning")
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("lookup", LOOKUPS)
def test_each_read_after_each_change(lookup: str, read: str, tmp_path: Path) -> None:
    (tmp_path / "classes_that_change.py").write_text(CLASS + LOOKUPS[lookup] + REST.format(expression=read))
    module = module_of(tmp_path / "classes_that_change.py")
    converted: Any = to_static(module.f)
    for change in CHANGES:
        change(module)
        assert not difference(_outcome(converted), _outcome(module.f))
