"""What is said of conversions and traces, and the code that is printed."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import dy2static
from dy2static import logs, progress
from dy2static.errors import TraceError

ROOT = Path(dy2static.__path__[0]).parent


@pytest.fixture(autouse=True)
def put_back() -> Iterator[None]:
    yield
    dy2static.set_verbosity(0)
    dy2static.set_code_level(0)


def helper(x: Any) -> Any:
    return x + 1


def double(x: Any, n: int = 2) -> Any:
    return helper(x) * n


def counts(x: Any) -> Any:
    yield x


def test_traces_and_reasons(capsys: pytest.CaptureFixture[str]) -> None:
    dy2static.set_verbosity(1)
    static = dy2static.to_static(double)
    for given in (torch.ones(2), torch.ones(2), torch.ones(3), torch.ones(3, 1), torch.ones(2).double()):
        static(given)
    static(torch.ones(2), 3)
    lines = capsys.readouterr().err.splitlines()
    asked = [line for line in lines if "traces" in line]
    assert asked[0] == "dy2static: traces double(): its first call"
    assert "'x'" in asked[1] and "3" in asked[1], asked
    done = [line for line in lines if "dy2static: traced double() in " in line]
    assert len(asked) == len(done) == len(static.programs)
    assert lines[1].endswith(" operators") and "converted" not in "".join(lines)


def test_conversions(capsys: pytest.CaptureFixture[str]) -> None:
    dy2static.set_verbosity(2)

    def inner(x: Any) -> Any:
        return next(iter(counts(x)))

    dy2static.to_static(inner)(torch.ones(1))
    err = capsys.readouterr().err
    assert "dy2static: converted test_conversions.<locals>.inner() (" in err and f"({__file__}:" in err
    dy2static.set_verbosity(0)
    dy2static.to_static(lambda x: x - 1)(torch.ones(1))
    assert capsys.readouterr().err == ""


def test_refusals_are_said(capsys: pytest.CaptureFixture[str]) -> None:
    dy2static.set_verbosity(1)
    with pytest.raises(TraceError):
        dy2static.to_static(lambda x: x.__array__())(torch.ones(1))
    assert "dy2static: cannot trace <lambda>(): [D2S213] " in capsys.readouterr().err


def test_records_for_who_sets_up_logging(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="dy2static"):
        dy2static.to_static(lambda x: x * 3)(torch.ones(1))
    assert caplog.messages[0] == "traces <lambda>(): its first call"
    assert {record.name for record in caplog.records} == {"dy2static"}


def test_code_is_printed_once(capsys: pytest.CaptureFixture[str]) -> None:
    dy2static.set_code_level(100, also_to_stdout=True)

    def branch(x: Any) -> Any:
        if x.sum() > 0:
            x = -x
        return x

    for _ in range(2):
        dy2static.to_static(branch)(torch.ones(1))
    out, err = capsys.readouterr()
    assert out == err and out.count("_d2s.if_stmt") + out.count("_d2s.if_expr") == 1
    assert out.startswith(f"# test_code_is_printed_once.<locals>.branch() of {__file__}:")


@pytest.mark.parametrize(
    ("call", "error"),
    [(lambda: dy2static.set_verbosity(3), ValueError), (lambda: dy2static.set_verbosity("1"), TypeError),
     (lambda: dy2static.set_verbosity(True), TypeError), (lambda: dy2static.set_code_level(-1), ValueError),
     (lambda: dy2static.set_code_level(None), TypeError)],
)  # fmt: skip
def test_mistakes(call: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="takes"):
        call()


def test_streams_that_come_later(monkeypatch: pytest.MonkeyPatch) -> None:
    dy2static.set_verbosity(1)
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    logging.getLogger("dy2static").info("hello")
    assert stream.getvalue() == "dy2static: hello\n"
    stream.close()
    logging.getLogger("dy2static").info("nobody hears")


@pytest.mark.slow
@pytest.mark.parametrize(("value", "said"), [("1", "traces f()"), ("2", "converted f()"), ("x", "it takes 0, 1 or 2")])
def test_the_environment_variable(tmp_path: Path, value: str, said: str) -> None:
    program = tmp_path / "program.py"
    program.write_text("import torch, dy2static\n@dy2static.to_static\ndef f(x):\n    return x\nf(torch.ones(1))\n")
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), logs.VARIABLE: value},
    )  # fmt: skip
    assert said in done.stderr and done.stdout == ""


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_long_traces(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)


    with progress.after("tracing slow"):
        for _ in range(1000):
            if terminal.getvalue():
                break
            time.sleep(0.01)
    assert terminal.getvalue() == "dy2static: tracing slow ...\r\x1b[2K"
    monkeypatch.setattr(progress, "PATIENCE", 60.0)
    dy2static.to_static(lambda x: x)(torch.ones(1))
    assert terminal.getvalue().count("tracing") == 1


def test_nothing_is_shown_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    with progress.after("tracing"):
        time.sleep(0.05)
    assert stream.getvalue() == ""


def test_public_names_only() -> None:
    assert dir(dy2static) == sorted(dy2static.__all__)
    assert all(getattr(dy2static, name) is not None for name in dir(dy2static))
