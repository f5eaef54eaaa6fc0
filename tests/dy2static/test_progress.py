"""What is shown while a call waits for the compiler."""

from __future__ import annotations

import io
import logging
import sys

import pytest

import dy2static
from dy2static import progress
from runtime.native import background


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_is_installed() -> None:
    assert dy2static.to_static is not None and background.progress is progress.shown


def test_a_terminal_shows_a_line_that_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = _Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with progress.shown("train_step"):
        pass
    text = terminal.getvalue()
    assert "compiling train_step to C" in text
    assert "\x1b[2K" in text.rpartition("compiling train_step to C")[2], "the line is cleared"


def test_elsewhere_it_is_logged(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with caplog.at_level(logging.INFO, logger="dy2static"), progress.shown("f"):
        pass
    assert caplog.messages == ["compiling f to C; the call waits for it"]
    assert sys.stderr.getvalue() == ""  # type: ignore[attr-defined]
