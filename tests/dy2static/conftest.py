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

import pytest

PROGRAMS = Path(__file__).parent / "programs"


def load_programs(stem: str) -> ModuleType:
    """One module of sample programs, imported from its file (once)."""
    name = f"dy2static_programs_{stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, PROGRAMS / f"{stem}.py")
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
        except Exception as error:  # noqa: BLE001 # any exception is an outcome
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
            assert actual == expected, f"{original.__name__}{args}\n{source}"

    return check
