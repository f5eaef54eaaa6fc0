"""``dy2static inspect``: what a saved file holds, and the C of it."""

from __future__ import annotations

import hashlib
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch

import dy2static
from dy2static.cli import main
from runtime.native import build
from runtime.storage.upgrade import VERSION


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        while x.abs().sum() > 1:
            x = torch.tanh(self.inner(x)) / 2  # a comment with */ in it
        print("done")
        return x


@pytest.fixture
def saved(tmp_path: Path) -> str:
    return str(dy2static.save(Net(), tmp_path / "net", input_spec=[dy2static.InputSpec([None, 3], "float32")]))


def test_programs(saved: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", saved]) == 0
    out = capsys.readouterr().out
    assert "\n# forward (train, eval)\nprogram " in out and "while_loop" in out


def test_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = dy2static.save(
        Net(), tmp_path / "net", [dy2static.InputSpec([None, 3])], metadata={"license": "Apache-2.0", "tags": ["é"]}
    )
    assert main(["inspect", str(tmp_path / "net"), "--card"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith("#") for line in lines)
    text = "\n".join(line[2:] for line in lines)
    data = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        part = hashlib.sha256(archive.read("tensors.safetensors")).hexdigest()
    for expected in (
        f"file        net.d2s, {len(data)} bytes",
        f"whole {hashlib.sha256(data[:-71]).hexdigest()}", f"tensors.safetensors {part}",
        f"made by     dy2static {dy2static.__version__}, torch {torch.__version__}; read as version {VERSION} of",
        "holds       Net",
        '''metadata    {
             "license": "Apache-2.0",
             "tags": [
              "é"
             ]
            }''',
        "tensors     2 with 12 numbers in 48 bytes", "inner.weight float32[3, 3], trained",
        "method      forward(x)", "for train and eval: x is float32[s0, 3]", "aten.linear.default, ", "while_loop",
    ):  # fmt: skip
        assert expected in text, expected
    assert "program " not in text


def test_card_of_methods_with_arguments_of_every_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def f(batch, *rest, flag=True, table=torch.ones(1), **options):
        return batch["x"] + rest[0] + table, options["again"][0]

    x = dy2static.InputSpec([2])
    dy2static.save(f, tmp_path / "f", {"batch": {"x": x, "n": None}, "rest": (x,), "options": {"again": [x]}},
                   variants={"flag": [True, False]}, modes=["eval"])  # fmt: skip
    assert main(["inspect", str(tmp_path / "f"), "--card"]) == 0
    out = capsys.readouterr().out
    assert "f" in out and "batch is {'x': float32[2], 'n': None}; rest is tuple of float32[2]; flag is False" in out
    assert "options is {'again': list of float32[2]}" in out and "for eval: " in out and "for train" not in out


def test_c(saved: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "compiler", lambda: None)  # none is needed
    assert main(["inspect", "--c", saved]) == 0
    out = capsys.readouterr().out
    assert "operators in C" in out and "// in Python: print" in out
    line = Net.forward.__code__.co_firstlineno + 2
    assert f"/* test_inspect.py:{line}: x = torch.tanh(self.inner(x)) / 2 # a comment with * / in it */" in out
    assert "i64 r0(" in out or "i64 r" in out
    assert "/*@" not in out


def test_a_file_that_is_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "missing")]) == 1
    assert "cannot be read" in capsys.readouterr().err
    (tmp_path / "text.d2s").write_text("no artefact")
    assert main(["inspect", str(tmp_path / "text.d2s")]) == 1


def test_what_is_printed_is_c(saved: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """With the prelude in front of it, the compiler takes it, comments included."""
    command = build.compiler()
    if command is None:
        pytest.skip("no C compiler")
    main(["inspect", "--c", saved])
    source = "\n".join([build.PRELUDE, build.math_functions(False), capsys.readouterr().out])
    (tmp_path / "f.c").write_text(source)
    done = subprocess.run([*command, *build._FLAGS, "-c", "f.c", "-o", "f.o"], cwd=tmp_path, capture_output=True,
                          text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr


def asking(x, y):
    if x.requires_grad and torch.is_inference_mode_enabled():
        return x * 2
    return x.contiguous().add_(y) if y.is_contiguous() else x * 3


def test_card_of_a_function_that_asks_its_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    dy2static.save(asking, tmp_path / "asking", input_spec=[dy2static.InputSpec([2])] * 2)
    main(["inspect", "--card", str(tmp_path / "asking.d2s")])
    said = [line.split("where ")[1] for line in capsys.readouterr().out.splitlines() if "where " in line]
    assert said == [
        "'x' needs no gradient, 'x' lies in memory row by row, 'y' lies in memory row by row",
        "'x' needs a gradient, 'x' lies in memory row by row, 'x' is a leaf, 'y' lies in memory row by row, "
        "torch.is_inference_mode_enabled() is False",
    ]
