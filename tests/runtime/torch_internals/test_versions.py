"""A newer PyTorch than the tests have run with is said once, where the import stands."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch

import dy2static
import runtime
from runtime import UntestedTorchWarning
from runtime.torch_internals.versions import warn_if_untested
from runtime.version import TORCH_TESTED

ROOT = Path(__file__).resolve().parents[3]
MAJOR, MINOR = TORCH_TESTED[1]
NEWER = f"{MAJOR}.{MINOR + 1}.0a0+git"
SAID = f"dy2static is tested with torch 2.11 to {MAJOR}.{MINOR}, and this is torch {NEWER}."


def importing(tmp_path: Path, *options: str) -> list[str]:
    """The lines about it that a script which imports the project twice prints, where torch says it is newer."""
    script = tmp_path / "script.py"
    lines = "import torch", f"torch.__version__ = {NEWER!r}", "import dy2static", "import runtime, runtime.tracer"
    script.write_text("\n".join(lines) + "\n")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": ""}
    done = subprocess.run(
        [sys.executable, *options, str(script)], env=environment, capture_output=True, text=True, check=True
    )  # fmt: skip
    return [line for line in done.stderr.splitlines() if "UntestedTorchWarning" in line]


def test_one_warning_at_the_line_of_the_import(tmp_path):
    (line,) = importing(tmp_path)
    assert f"script.py:3: UntestedTorchWarning: {SAID}" in line


def test_the_interpreters_filter_silences_it(tmp_path):
    assert importing(tmp_path, "-W", "ignore::UserWarning") == []


def test_usual_filters(monkeypatch):
    monkeypatch.setattr(torch, "__version__", NEWER)
    with pytest.warns(UntestedTorchWarning, match=f"torch {MAJOR}.{MINOR + 1}"):
        warn_if_untested()
    for chosen in ({"message": "dy2static is tested"}, {"category": UntestedTorchWarning}, {"category": UserWarning}):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.filterwarnings("ignore", **chosen)
            warn_if_untested()
        assert caught == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UntestedTorchWarning):
            warn_if_untested()


@pytest.mark.parametrize("version", ["2.11.0", f"{MAJOR}.{MINOR}.0+cpu", f"{MAJOR}.{MINOR}.9"])
def test_versions_that_were_tested_are_silent(monkeypatch, version):
    monkeypatch.setattr(torch, "__version__", version)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_if_untested()


def test_the_class_can_be_had_before_the_import_that_warns():
    assert dy2static.UntestedTorchWarning is runtime.UntestedTorchWarning is UntestedTorchWarning
    assert issubclass(UntestedTorchWarning, UserWarning)
