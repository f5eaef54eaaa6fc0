"""Runs a function and its conversion side by side: same result or exception, same log, same effect on arguments."""

from __future__ import annotations

import contextlib
import copy
import importlib.util
import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gast
import pytest

from dy2static.pipeline import STEPS
from dy2static.source import get_source
from tests.dy2static.steps import convert_with
from tests.oracle import difference

PROGRAMS = Path(__file__).parent / "programs"
STEMS = ("loops", "branches", "functions")


def load_programs(stem: str) -> ModuleType:
    """One module of sample programs, imported from its file (once)."""
    name = f"dy2static_programs_{stem}"
    if name not in sys.modules:
        load_file(name, PROGRAMS / f"{stem}.py")
    return sys.modules[name]


def load_file(name: str, path: Path) -> ModuleType:
    """The module in a file, under a name of its own."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def outcome(function: Callable[..., Any], module: ModuleType, args: tuple[Any, ...]) -> dict[str, Any]:
    """All that a call does: value or exception, log, printed text, globals stored, arguments afterwards."""
    module.LOG.clear()
    before = copy.deepcopy({name: value for name, value in vars(module).items() if name.isupper() and name != "CASES"})
    args = copy.deepcopy(args)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        try:
            result = ("returned", function(*args))
        except Exception as error:  # any exception is an outcome
            result = ("raised", type(error), str(error))
    state = {name: copy.deepcopy(vars(module)[name]) for name in before}
    vars(module).update(before)
    return {"result": result, "printed": printed.getvalue(), "globals": state, "args": args}


@pytest.fixture
def same_outcome() -> Callable[..., None]:
    """Check that two functions do the same for each of some argument tuples."""

    def check(original: Any, converted: Any, module: ModuleType, cases: list[tuple[Any, ...]]) -> None:
        for args in cases:
            expected, actual = outcome(original, module, args), outcome(converted, module, args)
            source = getattr(converted, "__dy2static_source__", "")
            wrong = difference(actual, expected, by_name=True)
            assert not wrong, f"{original.__name__}{args}: {wrong}\n{source}"

    return check


@pytest.fixture
def alone(same_outcome: Callable[..., None]) -> Callable[..., None]:
    """Check some steps of the pipeline, without the others, on every sample program that has one of these nodes."""

    def check(steps: set[str], *nodes: type[gast.AST], without: tuple[str, ...] = ()) -> None:
        named = steps | {"prepare", "locals_call"}  # what other steps take for done
        chosen = [step for step in STEPS if step.name in named]
        assert len(chosen) == len(named)
        count = 0
        for stem in STEMS:
            module = load_programs(stem)
            for function, cases in module.CASES.items():
                tree = get_source(function).tree
                if function.__name__ not in without and any(isinstance(node, nodes) for node in gast.walk(tree)):
                    same_outcome(function, convert_with(function, chosen), module, cases)
                    count += 1
        assert count >= 1

    return check


@pytest.fixture
def programs() -> Callable[[str], ModuleType]:
    return load_programs


@pytest.fixture
def program_file() -> Callable[[str, Path], ModuleType]:
    return load_file
