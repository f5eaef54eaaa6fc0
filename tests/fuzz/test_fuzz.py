"""A short run of random programs from fixed seeds; ``python -m tests.fuzz.run`` runs as many as you like."""

from __future__ import annotations

import pytest

from tests.fuzz.containers import Containers
from tests.fuzz.generator import Generator
from tests.fuzz.judging import judge
from tests.fuzz.memory import Memory
from tests.fuzz.modes.run import MODES
from tests.fuzz.modes.run import run_one as run_mode
from tests.fuzz.run import FAILURES, report, run_one
from tests.fuzz.writer import NESTED, SIMPLE


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", range(1000, 1015))
def test_random_program(seed):
    _, outcome, _, _ = run_one(seed, depth=2)
    assert outcome.kind not in FAILURES, outcome.detail


@pytest.mark.parametrize("seed", [70000072, 930000013, *(
    pytest.param(seed, marks=pytest.mark.slow) for seed in (211473, 70424249, 1100000108))])
def test_programs_that_once_failed(seed):
    _, outcome, _, _ = run_one(seed, depth=3)
    assert outcome.kind == "same", outcome.detail


@pytest.mark.parametrize(("mode", "seed"), [
    ("identity", 41000008), ("nested", 41000022), ("identity", 155), ("raising", 92000692), ("out", 120000504),
    ("out", 120001311), ("out", 180000256), ("hybrid", 110000081), ("exceptions", 910000068),
    ("host_random", 910000016), ("looking", 910000085),
    *(pytest.param(mode, seed, marks=pytest.mark.slow) for mode, seed in (
        ("inner_gradients", 1020000030), ("carried_losses", 1060000034))),
])  # fmt: skip
def test_programs_about_one_thing_that_once_failed(mode, seed):
    _, outcome = run_mode(mode, seed)
    assert outcome.kind not in FAILURES, outcome.detail


def test_programs_are_repeatable_and_hold_every_construct():
    used = set()
    for seed in range(400):
        generator = Generator(seed)
        text = generator.source()
        compile(text, "program", "exec")
        assert seed % 50 or text == Generator(seed).source()
        used |= set(generator.used)
    assert {kind for kind, _, _ in [*SIMPLE, *NESTED]} <= used


def test_a_report_is_a_table():
    from collections import Counter

    assert report(Counter({"if": 3, "while": 12}), 2) == "    12 while       3 if"


@pytest.mark.sample(2)
@pytest.mark.parametrize("kind", ["lists", "dicts"])
@pytest.mark.parametrize("seed", range(8))
def test_containers_of_several_names(kind, seed):
    outcome = judge(Containers(seed, kind).source(), seed)
    assert outcome.kind not in FAILURES, outcome.detail


@pytest.mark.sample(4)
@pytest.mark.parametrize("seed", range(15))
def test_memory_of_several_names_and_histories(seed):
    outcome = judge(Memory(seed).source(), seed)
    assert outcome.kind not in FAILURES, outcome.detail


def test_memory_whose_gradient_never_came():
    """Memories that change places on many paths, and are written: too many flags, so torch's autograd does it."""
    outcome = judge(Memory(93000237).source(), 93000237)
    assert outcome.kind == "same", outcome.detail


@pytest.mark.parametrize("seed", [2980, 120001787, 140000122, 160000081])
def test_memory_programs_that_once_failed(seed):
    outcome = judge(Memory(seed).source(), seed)
    assert outcome.kind not in FAILURES, outcome.detail


@pytest.mark.parametrize("seed", [120000489, pytest.param(120001649, marks=pytest.mark.slow)])
def test_dicts_that_once_failed(seed):
    outcome = judge(Containers(seed, "dicts").source(), seed)
    assert outcome.kind not in FAILURES, outcome.detail


@pytest.mark.sample(2)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("seed", range(2))
def test_programs_about_one_thing(mode, seed):
    _, outcome = run_mode(mode, seed)
    assert outcome.kind not in FAILURES, outcome.detail
