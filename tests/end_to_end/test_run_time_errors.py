"""Errors while a Program runs: eager's type and message, at the user's line, before and after a file."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
import runtime
from dy2static import InputSpec, load, save, to_static

OURS = tuple(str(Path(str(package.__file__)).parent) for package in (dy2static, runtime))
PAIR = (InputSpec([3], "float32"), InputSpec([], "int64"))


def in_a_loop(x, n):
    for i in range(n):
        x = x.index_select(0, i + n)  # raises
    return x


def asserted(x, n):
    if n > 0:
        assert x.max() > 10, "too small"  # raises
    return x


def indexed(x, n):
    rows = [x, x + 1]
    return rows[int(n)]  # raises


def unbound(x, n):
    if n < 0:
        found = x
    return found * 2  # raises


def raised(x, n):
    while n > 0:
        if x.sum() > 0:
            raise ValueError(f"n is {1}")  # raises
        n = n - 1
    return x


def divided(x, n):
    return x * (1 / (int(n) - int(n)))  # raises


FUNCTIONS = [in_a_loop, asserted, indexed, unbound, raised, divided]


def error_of(function: Callable[..., Any], *args: Any) -> Exception:
    with pytest.raises(Exception) as caught:
        function(*args)
    return caught.value


def message(error: Exception) -> str:
    """The text of an error, without what pytest adds to an assertion's."""
    return str(error).partition("\nassert ")[0]


def hold(function: Callable[..., Any], error: Exception, eager: Exception) -> None:
    assert type(error) is type(eager) and str(error) == message(eager)
    frames = traceback.extract_tb(error.__traceback__)
    lines = Path(__file__).read_text("utf-8").splitlines()
    last = [frame for frame in frames if frame.filename == __file__][-1]
    assert "# raises" in lines[last.lineno - 1] and last.name == function.__name__
    ours = [frame for frame in frames if frame.filename.startswith(OURS) and frame.name != "watched_call"]
    assert len(ours) <= 2, "the calls that raise it"
    assert frames[-1].filename == __file__, "nothing of ours below the user's line"


@pytest.mark.parametrize("function", FUNCTIONS)
def test_errors_stand_at_the_users_line(function: Callable[..., Any], tmp_path: Path) -> None:
    args = (torch.ones(3), torch.tensor(2))
    eager = error_of(function, *args)
    hold(function, error_of(to_static(function), *args), eager)
    save(function, tmp_path / "m", input_spec=PAIR)
    hold(function, error_of(load(tmp_path / "m"), *args), eager)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_locations_can_stay_out_of_a_file(function: Callable[..., Any], tmp_path: Path) -> None:
    args = (torch.ones(3), torch.tensor(2))
    path = save(function, tmp_path / "m", input_spec=PAIR, source_locations=False)
    layer = load(path)
    assert b"# raises" not in path.read_bytes() and Path(__file__).name.encode() not in path.read_bytes()
    assert all(op.location is None for op in layer.program().block.walk())
    error, eager = error_of(layer, *args), error_of(function, *args)
    assert type(error) is type(eager) and str(error) == message(eager)


def test_every_frame_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DY2STATIC_FULL_TRACEBACK", "1")
    error = error_of(to_static(indexed), torch.ones(3), torch.tensor(2))
    frames = traceback.extract_tb(error.__traceback__)
    assert sum(frame.filename.startswith(OURS) for frame in frames) > 3


def test_next_of_nothing_has_no_arguments() -> None:
    def function(x: torch.Tensor) -> Any:
        return next(i for i, value in enumerate(x) if value > 0)

    static = to_static(function)
    assert static(torch.ones(3)) == function(torch.ones(3))
    error = error_of(static, -torch.ones(3))
    assert type(error) is StopIteration and error.args == ()
