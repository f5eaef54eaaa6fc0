"""Snippets that cannot be one Program, with ``full_graph=False``: all that eager does, and nothing else."""

from __future__ import annotations

import contextlib
import io
import random
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import torch

from dy2static import EagerWarning, RetraceWarning, to_static
from dy2static.errors import Dy2StaticError
from tests import oracle
from tests.end_to_end import piece_snippets
from tests.end_to_end.piece_snippets import SNIPPETS, Snippet

ROUNDS = 3
WITHOUT_PROGRAMS = {"object_state", "method_with_state", "threads_inside"}
"""Snippets in which nothing is called that could be a Program: one function does it all, or another thread."""

WHOLE = {"host_random", "host_random_branch", "own_random", "shuffled", "seeds_inside", "dropout_around_host_random",
         "timed", "numpy_random", "numpy_generator", "asarray", "counters_as_arguments",
         "to_list_of_unknown_length"}  # fmt: skip
"""Snippets that are one Program by now."""


def seen(watched: Any) -> Any:
    """What is watched, as values to compare."""
    return [one.getvalue() if isinstance(one, io.StringIO) else one for one in watched]


def hold(make: Callable[[], Snippet], rounds: int = ROUNDS) -> Any:
    """Run a snippet converted and in eager, call by call; the converted one."""
    ours, calls, watched = make()
    static = to_static(ours, full_graph=False)
    theirs, _, watched_theirs = make()
    is_module = isinstance(ours, torch.nn.Module)
    for number, call in enumerate(calls * rounds):
        results = []
        for function in (static, theirs):
            if hasattr(piece_snippets, "TOTAL"):
                total = piece_snippets.TOTAL
            args = oracle.copied(call)
            parameters = list(function.parameters()) if is_module else []
            outcome = oracle.run(function, args, number, parameters)
            draws = random.random(), float(np.random.rand())
            results.append((outcome, args, draws, piece_snippets.TOTAL))
            if function is static:
                piece_snippets.TOTAL = total
        (got, mine, drawn, ours_total), (expected, theirs_args, drawn_eager, total) = results
        where = f"call {number}"
        oracle.hold(got, expected, where)
        oracle.same(mine, theirs_args, f"{where} arguments")
        oracle.same(seen(watched), seen(watched_theirs), f"{where} state")
        if is_module:
            oracle.same(oracle.state_of(static), oracle.state_of(theirs), f"{where} module")
        assert drawn == drawn_eager, f"{where}: Python's or NumPy's random stream"
        assert ours_total == total
    return static.forward if is_module else static


@pytest.fixture(autouse=True)
def told() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", EagerWarning)
        yield


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", SNIPPETS)
def test_snippet(name: str) -> None:
    static = hold(SNIPPETS[name])
    explained = list(static.explain().walk())
    assert any(part.programs for part in explained) is (name not in WITHOUT_PROGRAMS)
    assert bool(static.explain().python) is (name not in WHOLE)


def test_there_are_enough() -> None:
    assert len(SNIPPETS) >= 80 and len(WITHOUT_PROGRAMS) <= 5


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", SNIPPETS)
def test_full_graph_refuses_it(name: str) -> None:
    function, calls, _ = SNIPPETS[name]()
    static = to_static(function)
    if name in WHOLE:
        for call in calls * 2:
            static(*oracle.copied(call))
        return
    with pytest.raises((Dy2StaticError, RetraceWarning)):  # a Program for each call is none, either
        for call in calls * 2:
            with contextlib.suppress(KeyError):  # the snippet's own
                static(*oracle.copied(call))
