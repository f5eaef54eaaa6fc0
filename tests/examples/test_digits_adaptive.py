"""The demonstration, made small: the same steps as `make demo`, each of them checked."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
SMALL = ["--epochs=4", "--hidden=48", "--patience=4", "--accuracy=0.8"]


def python(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python on a file of the examples, as a user of the installed project does."""
    environment = dict(os.environ, PYTHONPATH=str(ROOT), COLUMNS="120")
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """What the demonstration printed, and the folder it wrote to."""
    output = tmp_path_factory.mktemp("demo")
    done = python(EXAMPLES / "digits_adaptive.py", *SMALL, f"--output={output}")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, output


def test_static_and_eager_curves_are_equal(demo: tuple[str, Path]) -> None:
    text, _ = demo
    assert "the loss curves differ by at most 0.0e+00" in text


def test_loaded_model_predicts_the_same_and_learns(demo: tuple[str, Path]) -> None:
    text, _ = demo
    assert "same prediction on 450 of 450 test images, logits differ by at most 0.0e+00" in text
    assert "refinements for each image the same too" in text
    before, after = re.search(r"shifted by a pixel: loss ([\d.]+) -> ([\d.]+)", text).groups()
    assert float(after) < float(before)


def test_diff_of_forward_is_shown(demo: tuple[str, Path]) -> None:
    text, _ = demo
    shown = text[text.index("4. how forward was converted") :].splitlines()
    assert any(line.startswith("-") and "while unsure.any():" in line for line in shown)
    assert any(line.startswith("-") and "break" in line for line in shown)
    assert any(line.startswith("+") and "while_stmt" in line for line in shown)


def test_every_step_reports_progress(demo: tuple[str, Path]) -> None:
    text, _ = demo
    assert [line[0] for line in text.splitlines() if re.match(r"\d\. ", line)] == ["1", "2", "3", "4"]
    assert "eager     epoch   1" in text
    assert "to_static epoch   4" in text


@pytest.mark.slow
def test_wrong_expectation_is_noticed(demo: tuple[str, Path], tmp_path: Path) -> None:
    """The check of the loaded model can fail: other logits, exit code 1."""
    from safetensors.torch import load_file, save_file

    _, output = demo
    expected = load_file(output / "expected.safetensors")
    expected["logits"] = -expected["logits"]
    save_file(expected, tmp_path / "wrong.safetensors")
    done = python(EXAMPLES / "predict_loaded.py", output / "digits_adaptive", tmp_path / "wrong.safetensors")
    assert done.returncode == 1
    assert "same prediction on 450" not in done.stdout


@pytest.mark.slow
def test_missed_accuracy_ends_the_demonstration(tmp_path: Path) -> None:
    arguments = ["--epochs=1", "--hidden=16", "--patience=2", "--accuracy=0.999", f"--output={tmp_path}"]
    done = python(EXAMPLES / "digits_adaptive.py", *arguments)
    assert done.returncode == 1
    assert "at least 100%" in done.stdout
    assert not list(tmp_path.iterdir())
