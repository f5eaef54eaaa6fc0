"""What is told of how Programs run."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch

from dy2static import to_static
from runtime.calling import Part
from runtime.calling.takeover import START, TAKE_OVER
from runtime.native import build, cache
from runtime.native.background import queue


def decay(x: torch.Tensor) -> torch.Tensor:
    """A loop."""
    while x.abs().sum() > 1:
        x = torch.sin(x) * 0.7  # the user's line
    return x


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "optimise", "-O1")


def only(static: Any) -> Part:
    """The one kind of calls of the one Program."""
    (one,) = static.compiled
    (part,) = one.parts
    return part  # type: ignore[no-any-return]


def test_the_interpreter() -> None:
    static = to_static(decay, backend="interpreter")
    assert static.compiled == []
    static(torch.ones(3))
    assert only(static) == Part("without gradients", "interpreter", "", 0.0, (), None)
    assert str(static.compiled[0]) == "decay, backend 'interpreter'\n  without gradients: interpreter"
    assert static.compiled[0].c_source() == ""


def test_c(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kept"))
    monkeypatch.setattr(build, "_shelf", build._Shelf())
    static = to_static(decay, backend="c")
    static(torch.ones(3))
    part = only(static)
    assert part.state == "compiled" and part.reason == "" and part.seconds > 0
    assert part.share is not None and part.share.in_c == part.share.all
    assert [path.parent for path in part.libraries] == [tmp_path / "kept"] and part.libraries[0].exists()
    assert "operators in C, compiled in " in str(part)
    line = decay.__code__.co_firstlineno + 3
    assert f"/* test_report.py:{line}: x = torch.sin(x) * 0.7 # the user's line */" in part.c_source()
    monkeypatch.setattr(build, "_shelf", build._Shelf())
    static = to_static(decay, backend="c")
    static(torch.ones(3))
    assert only(static).seconds == 0.0 and "library from disk" in str(only(static))


def test_auto_from_state_to_state(monkeypatch: pytest.MonkeyPatch) -> None:
    entered, go_on = threading.Event(), threading.Event()
    make = build.build

    def slow(*args: Any) -> Any:
        entered.set()
        assert go_on.wait(300)
        return make(*args)

    monkeypatch.setattr(build, "build", slow)
    static = to_static(decay, backend="auto")
    x = torch.ones(3)
    static(x)
    assert START == 2
    begun = only(static)
    assert (begun.state, begun.reason) == ("interpreter", f"after 1 calls; C takes over at call {TAKE_OVER}")
    static(x)
    assert entered.wait(300) and only(static).state == "building"
    go_on.set()
    queue.wait(next(iter(static._dispatch.cache.all())).ready.runner._ungraded.turn.job)  # type: ignore[union-attr]
    assert (only(static).state, only(static).reason) == ("built", f"after 2 calls; C takes over at call {TAKE_OVER}")
    for _ in range(TAKE_OVER):
        static(x)
    part = only(static)
    assert (part.state, part.reason) == ("compiled", "") and part.share is not None and part.libraries


def test_gradients_count_both_halves() -> None:
    static = to_static(decay, backend="c")
    static(torch.ones(3, requires_grad=True)).sum().backward()
    part = only(static)
    assert part.what == "with gradients" and part.state == "compiled"
    assert len(part.libraries) >= 2, "one forward, one backward"


@pytest.mark.filterwarnings("ignore:the C compiler refuses:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:decay runs on the interpreter only:RuntimeWarning")
@pytest.mark.parametrize("backend", ["c", "auto"])
def test_a_compiler_that_refuses(backend: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path))
    monkeypatch.setattr(build, "compiler", lambda: ("sh", "-c", "echo nonsense >&2; exit 1"))
    static = to_static(decay, backend=backend)
    for _ in range(TAKE_OVER):
        static(torch.ones(3))
    assert only(static).state == "failed" and "nonsense" in only(static).reason
    assert "failed (the C compiler refuses what was generated:\nnonsense" in str(only(static)) or backend == "c"


def test_parts_that_gave_up(monkeypatch: pytest.MonkeyPatch) -> None:
    static = to_static(decay, backend="c")
    static(torch.ones(3))
    (one,) = only(static).executables
    for region in one.written.compiled:
        region.failures = 10**6
    count = len(one.written.compiled)
    assert only(static).reason == f"{count} of its {count} parts in C gave up too often and are the interpreter's"


def test_a_profiler_sees_what_runs_in_c() -> None:
    static = to_static(decay, backend="c")
    x = torch.ones(3)
    static(x)
    activities = [torch.profiler.ProfilerActivity.CPU]
    with torch.profiler.profile(activities=activities, acc_events=True) as seen:  # without a warning in PyTorch 2.11
        static(x)
    assert [event.count for event in seen.key_averages() if event.key == "dy2static C: decay"] == [1]


def test_without_a_profiler_there_is_no_range(monkeypatch: pytest.MonkeyPatch) -> None:
    static = to_static(decay, backend="c")
    static(torch.ones(3))
    monkeypatch.setattr(torch.profiler, "record_function", None)
    static(torch.ones(3))
