"""Every kind of change of Python state, in straight code, in branches and in loops: as in eager, or a located error."""

from __future__ import annotations

import gc
import importlib.util
import io
import random
import sys
import tempfile
import textwrap
import types
import warnings
from collections import Counter
from typing import Any

import numpy
import pytest
import torch

import dy2static
from dy2static import Dy2StaticError
from tests.end_to_end.state_changes import CHANGES, HEAD
from tests.oracle import same

UP, DOWN = torch.ones(2), -torch.ones(2)
CALLS = {
    "straight": [UP] * 4,
    "branch taken first": [UP, DOWN, DOWN, UP],
    "branch not taken first": [DOWN, DOWN, UP, DOWN],
    "loop": [torch.zeros(2), UP * 4, DOWN, torch.zeros(2)],
}
EQUAL = {"straight": 148, "branch taken first": 92, "branch not taken first": 92, "loop": 75}
"""How many of the kinds do what eager does; the others are refused."""
FUNCTIONS = """
def straight(x):
    CHANGE
    return x * 2

def branch(x):
    if x.sum() > 0:
        CHANGE
        x = x + 1
    return x * 2

def loop(x):
    while x.sum() < 3:
        CHANGE
        x = x + 1
    return x * 2

def picture():
    return PICTURE
"""


def program(name: str) -> str:
    """The text of a module with the change in each position."""
    setup, change, picture = CHANGES[name]
    text = "\n".join(
        textwrap.indent(change, line[: len(line) - len(line.lstrip())]) if line.strip() == "CHANGE" else line
        for line in FUNCTIONS.splitlines()
    )
    return f"{HEAD}{setup}\n{text.replace('PICTURE', picture)}\n"


def load(name: str, folder: Any) -> types.ModuleType:
    """A fresh module; its globals are the state."""
    path = folder / f"{name}.py"
    path.write_text(program(name))
    spec = importlib.util.spec_from_file_location(f"state_changes_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def run(module: types.ModuleType, position: str, static: bool) -> list[Any]:
    """What each call gives, and what the state is after it."""
    random.seed(5)
    numpy.random.seed(5)
    function = getattr(module, position.partition(" ")[0])
    if static:
        function = dy2static.to_static(function)
    found: list[Any] = []
    try:
        for x in CALLS[position]:
            try:
                result: Any = function(x.clone())
            except Dy2StaticError:
                raise
            except Exception as error:
                result = f"{type(error).__name__}: {error}"
            found.append((result, plain(module.picture())))
    finally:
        for value in list(vars(module).values()):
            if isinstance(value, io.IOBase):
                value.close()
        del sys.modules[module.__name__]
    return found


def plain(value: Any) -> Any:
    """A copy to compare: functions and other objects by their names."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(plain, value)]
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    return value if isinstance(value, (int, float, str, bytes, type(None))) else repr(value)


@pytest.fixture(autouse=True)
def as_before(tmp_path, monkeypatch):
    """The process is put back as it was."""
    states = random.getstate(), numpy.random.get_state()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    yield
    random.setstate(states[0])
    numpy.random.set_state(states[1])
    gc.enable()


SLOW = ("taken first", "loop")


@pytest.mark.parametrize("position", [
    pytest.param(name, marks=[pytest.mark.slow] if any(word in name for word in SLOW) else []) for name in CALLS
])
def test_changes(position, tmp_path):
    """Four calls of each: the same results and the same state after each, or one refusal that says where."""
    counts: Counter[str] = Counter()
    different = []
    limit = sys.getrecursionlimit()
    for name in CHANGES:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # files left open, Programs for one call alone
            eager = run(load(name, tmp_path), position, static=False)
            sys.setrecursionlimit(limit)
            try:
                mine = run(load(name, tmp_path), position, static=True)
            except Dy2StaticError as error:
                counts[error.code] += 1
                if error.location is None or error.location.file != str(tmp_path / f"{name}.py"):
                    different.append(f"{name}: refused, but not where: {error}")
                continue
            finally:
                sys.setrecursionlimit(limit)
            try:
                same(mine, eager, name)
                counts["equal"] += 1
            except AssertionError as error:
                different.append(f"{name}: {error}")
    print(position, len(CHANGES), dict(counts.most_common()))
    assert not different, "\n".join(different)
    assert "D2S290" not in counts and counts["equal"] >= EQUAL[position]
