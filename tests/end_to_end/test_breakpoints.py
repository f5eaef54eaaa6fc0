"""``breakpoint()`` in converted code stops at the user's line, with real values; code without source says so first."""

from __future__ import annotations

import os
import pdb
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
import torch

import dy2static
from dy2static import to_static
from dy2static.errors import TraceError

ROOT = Path(dy2static.__path__[0]).parent


@pytest.fixture
def stops(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str, dict[str, Any]]]:
    """Where a debugger stopped: file, function, and local variables."""
    found: list[tuple[str, str, dict[str, Any]]] = []

    def hook(*args: Any, **kwargs: Any) -> None:
        frame: FrameType | None = sys._getframe(1)
        assert frame is not None
        found.append((frame.f_code.co_filename, frame.f_code.co_name, dict(frame.f_locals)))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    return found


def in_branch(x: Any) -> Any:
    y = x + 1
    if y.sum() > 0:
        breakpoint()
    return y * 2


def in_loop(x: Any) -> Any:
    while x.sum() < 4:
        x = x * 2
        try:
            breakpoint()
        except BaseException:
            return None
    return x


def outer(x: Any) -> Any:
    return in_branch(x) + 1


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Any) -> Any:
        self.seen += 1
        return in_branch(x)


@pytest.mark.parametrize("function", [in_branch, in_loop, outer, Net()])
def test_it_stops_with_real_values(function: Any, stops: list[Any]) -> None:
    x = torch.tensor([0.5, 1.5], requires_grad=True)
    static = to_static(function)
    result = static(x)
    file, name, names = stops[-1]
    assert file == __file__ and name in ("in_branch", "in_loop")
    values = names["y"] if "y" in names else names["x"]
    assert values.tolist() in ([1.5, 2.5], [1.0, 3.0])
    result.sum().backward()
    assert x.grad is not None
    if isinstance(function, Net):
        assert function.seen == 1


def test_a_path_without_a_breakpoint_is_staged_again_when_it_is_gone(stops: list[Any]) -> None:
    switch = {"on": True}

    def f(x: Any) -> Any:
        if switch["on"]:
            breakpoint()
        return x + 1

    static = to_static(f)
    assert static(torch.ones(1)) == 2 and len(stops) == 1 and not static.programs
    switch["on"] = False
    assert static(torch.ones(1)) == 2 and len(stops) == 1 and len(static.programs) == 1


def test_set_trace_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def set_trace() -> None:
        stopped.append(sys._getframe(1).f_locals["y"])

    stopped: list[Any] = []
    set_trace.__module__ = "pdb"
    monkeypatch.setattr(pdb, "set_trace", set_trace)

    def f(x: Any) -> Any:
        y = x + 1
        pdb.set_trace()
        return y

    to_static(f)(torch.ones(1))
    assert [one.tolist() for one in stopped] == [[2.0]]


@pytest.mark.slow
def test_pdb_shows_the_users_file_and_values(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import torch\nfrom dy2static import to_static\n\n@to_static\ndef f(x):\n    if x.sum() > 0:\n"
        "        y = x * 3\n        breakpoint()\n    return x\n\nprint('result', f(torch.ones(1)))\n"
    )
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONBREAKPOINT"}
    done = subprocess.run(
        [sys.executable, str(program)], input="p y\nc\n", capture_output=True, text=True, check=True,
        env={**environment, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert "program.py(" in done.stdout and "tensor([3.])" in done.stdout and "result tensor([1.])" in done.stdout
    assert "_d2s" not in done.stdout


def test_code_without_source_says_that_first() -> None:
    space: dict[str, Any] = {}
    exec("def f(x):\n    return x if x.sum() > 0 else -x\n", space)
    for function in (space["f"], lambda x: space["f"](x)):
        with pytest.raises(TraceError, match=r"^\[D2S212\] the source of f is not available: it was made by exec, "):
            to_static(function)(torch.ones(1))
