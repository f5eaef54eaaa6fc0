"""The whole pipeline: every sample program and many random ones do the same before and after."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import gast
import pytest

from dy2static.conversion import convert
from dy2static.generate import to_source
from dy2static.pipeline import STEPS, convert_tree
from dy2static.source import get_source
from tests.dy2static.steps import convert_with

_UNBOUND = {"unreachable": "return_stmt", "while_walrus_comprehension": "comprehension",
            "walrus_in_comprehension": "comprehension"}  # fmt: skip
"""Programs that are not whole after a step: what a dropped or moved statement bound is local again only once it is
declared."""
STEMS = ("loops", "branches", "functions")


def test_step_names_are_unique_and_reasons_are_sentences() -> None:
    assert len({step.name for step in STEPS}) == len(STEPS)
    assert all(step.reason.endswith(".") for step in STEPS)


@pytest.mark.parametrize("stem", STEMS)
def test_programs_convert_whole(stem: str, programs: Any, same_outcome: Any) -> None:
    module = programs(stem)
    for function, cases in module.CASES.items():
        same_outcome(function, convert(function), module, cases)


@pytest.mark.parametrize("stem", STEMS)
def test_programs_convert_control_flow_only(stem: str, programs: Any, same_outcome: Any) -> None:
    module = programs(stem)
    for function, cases in module.CASES.items():
        same_outcome(function, convert_with(function, STEPS, "control_flow"), module, cases)


@pytest.mark.slow
@pytest.mark.parametrize("count", range(2, len(STEPS)))
def test_programs_after_every_step(count: int, programs: Any, same_outcome: Any) -> None:
    names = {step.name for step in STEPS[:count]}
    for stem in STEMS:
        module = programs(stem)
        for function, cases in module.CASES.items():
            if _UNBOUND.get(function.__name__) not in names or "local_names" in names:
                same_outcome(function, convert_with(function, STEPS[:count]), module, cases)


@pytest.mark.parametrize(
    "seeds", [range(0, 25), pytest.param(range(10_000, 12_000), marks=pytest.mark.slow)], ids=["some", "many"]
)
@pytest.mark.parametrize("level", ["full", "control_flow"])
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_programs(
    seeds: range, level: Any, programs: Any, program_file: Callable[[str, Path], ModuleType], same_outcome: Any,
    tmp_path: Path,
) -> None:  # fmt: skip
    path = tmp_path / "random_module.py"
    path.write_text(programs("random_programs").module_text(seeds))
    module = program_file(f"random_{level}_{seeds.start}", path)
    assert len(module.CASES) > len(seeds) * 0.9
    for function, cases in module.CASES.items():
        same_outcome(function, convert_with(function, STEPS, level), module, cases)


def plain(x):
    y = [x, x.real]
    y[0] = x
    return len(y), f"{x}"


def only_calls(x):
    with open(x) as f:
        return f.read()


@pytest.mark.parametrize("function", [plain, only_calls])
def test_control_flow_level_leaves_other_code_alone(function: Any) -> None:
    source = get_source(function)
    before = to_source(source.tree)
    assert to_source(convert_tree(source.tree, source, "control_flow")) == before


def branchy(x):
    a = x.real
    if a > 0:
        b = [a][0]
        a = b
    print(a)
    return a


def test_control_flow_level_keeps_untouched_statements_and_places() -> None:
    source = get_source(branchy)
    lines = inspect.getsource(branchy).splitlines()
    tree = convert_tree(source.tree, source, "control_flow")
    text = to_source(tree)
    for line in (lines[1], lines[3], lines[4], lines[5], lines[6]):
        assert line.strip() in text
    kept = [node for node in gast.walk(tree) if isinstance(node, gast.Expr) and "print" in to_source(node)]
    first = branchy.__code__.co_firstlineno
    assert kept[0].lineno == first + 5


def nested_generator(xs):
    def gen():
        for x in xs:
            if x:
                yield x

    if xs:
        return list(gen())


def test_a_generator_has_two_forms() -> None:
    text = convert(nested_generator).__dy2static_source__
    assert "if _d2s.decided(x):\n" in text
    assert "yield x" in text and "_d2s.call(give, x)" in text
    assert "return _d2s.if_expr(xs" in text


def test_the_same_source_twice_gives_the_same_text() -> None:
    source = get_source(branchy)
    first = to_source(convert_tree(source.tree, source))
    source = get_source(branchy)
    assert to_source(convert_tree(source.tree, source)) == first
