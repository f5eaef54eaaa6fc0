"""The command as a user runs it: exit codes, one clear line for each mistake, files written whole or not at all."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dy2static.cli import main, output, rewrite, text_file
from dy2static.errors import ConversionError
from runtime.ir.location import Location

ROOT = Path(__file__).resolve().parents[3]
TEXT = "def f(x):\n    y = 1  # one\n    if x:\n        y = 2\n    return y"
CONVERTED = """\
from dy2static import operators as _d2s


def f(x):
    y = 1  # one
    def _d2s_if_body_1():
        nonlocal y
        y = 2
    def _d2s_if_orelse_1():
        nonlocal y
    _d2s.if_stmt(x, _d2s_if_body_1, _d2s_if_orelse_1, ('y',))
    return y"""

pytestmark = pytest.mark.usefixtures("own_transform")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "user.py"
    path.write_text(TEXT)
    return path


def test_convert_prints_the_file(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--all", str(file)]) == 0
    assert capfd.readouterr() == (CONVERTED, "")


def test_convert_writes_the_file(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = file.parent / "out.py"
    out.write_text("before")
    os.chmod(out, 0o640)
    assert main(["convert", "--all", str(file), "-o", str(out)]) == 0
    assert capfd.readouterr() == ("", "")
    assert out.read_text() == CONVERTED and out.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in file.parent.iterdir()) == ["out.py", "user.py"]


def test_a_new_file_gets_the_usual_mode(file: Path) -> None:
    usual = file.parent / "usual"
    usual.touch()
    main(["convert", "--all", str(file), "-o", str(file.parent / "out.py")])
    assert (file.parent / "out.py").stat().st_mode == usual.stat().st_mode


def test_diff_prints_a_unified_diff(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--all", str(file)]) == 0
    out, err = capfd.readouterr()
    assert err == "" and out.startswith(f"--- {file}\n+++ {file} (converted)\n@@ -1,5 +1,12 @@\n+from dy2static")
    assert "     y = 1  # one\n" in out and "\n-    if x:\n" in out and "\n+    def _d2s_if_body_1():\n" in out
    assert out.endswith("     return y\n\\ No newline at end of file\n")


@pytest.mark.parametrize("command", ["convert", "diff"])
def test_nothing_to_convert_prints_nothing(command: str, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for text in ("", "x = 1\n", "def f(x):\n    return x\n"):
        file.write_text(text)
        assert main([command, "--all", str(file)]) == 0
        out, err = capfd.readouterr()
        assert out == "" and err.startswith(f"dy2static: nothing converts in {file}: ") and err.count("\n") == 1


def test_nothing_to_convert_still_writes_the_output(file: Path) -> None:
    file.write_text("x  =  1\n")
    assert main(["convert", "--all", str(file), "-o", str(file.parent / "out.py")]) == 0
    assert (file.parent / "out.py").read_text() == "x  =  1\n"


@pytest.mark.parametrize("command", ["convert", "diff"])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "cannot read {file}: No such file or directory"),
        (b"def f(:\n", "cannot parse {file}:1: invalid syntax"),
        (b"x = 1\n  y = 2\n", "cannot parse {file}:2: unexpected indent"),
        (b"x = 1\nreturn 2\n", "cannot parse {file}:2: 'return' outside function"),
        (b"x = '\xff'\n", "cannot read {file}: "),
        (b"# -*- coding: klingon -*-\n", "cannot read {file}: unknown encoding"),
        (b"x = 1\x00\n", "cannot parse {file}"),
    ],
)
def test_a_file_at_fault_is_one_line_and_exit_code_2(
    command: str, data: bytes | None, message: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "fault.py"
    if data is not None:
        path.write_bytes(data)
    assert main([command, "--all", str(path)]) == 2
    out, err = capfd.readouterr()
    assert out == "" and err.count("\n") == 1 and err.startswith("dy2static: " + message.format(file=path))


def test_a_folder_without_python_is_an_error(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", "--all", str(tmp_path)]) == 2
    assert capfd.readouterr().err == f"dy2static: {tmp_path} holds no Python file and no notebook\n"


def test_an_unknown_function_is_an_error(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["diff", str(file), "--function", "g"]) == 2
    assert capfd.readouterr() == ("", f"dy2static: {file} has no function g\n")
    assert main(["diff", str(file), "--function", "f"]) == 0


@pytest.mark.parametrize(
    "arguments", [[], ["check"], ["draw", "f.py"], ["diff"], ["diff", "f.py", "-o", "x"], ["inspect", "a", "b"]]
)
def test_wrong_arguments_exit_with_2(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2 and "usage: dy2static" in capfd.readouterr().err


def test_the_input_is_never_written_over(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    link = file.parent / "link.py"
    link.symlink_to(file)
    for out in (file, link, file.parent / "." / "user.py"):
        assert main(["convert", "--all", str(file), "-o", str(out)]) == 2
        assert "will not write over the input" in capfd.readouterr().err
    assert file.read_text() == TEXT


def test_an_output_that_cannot_be_written(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "--all", str(file), "-o", str(file.parent / "no" / "out.py")]) == 2
    assert "cannot write" in capfd.readouterr().err
    assert main(["convert", "--all", str(file), "-o", str(file.parent)]) == 2
    assert "it is a directory" in capfd.readouterr().err


def test_a_failed_write_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = file.parent / "out.py"
    out.write_text("before")

    def fail(*arguments: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert main(["convert", "--all", str(file), "-o", str(out)]) == 2
    assert out.read_text() == "before" and len(list(file.parent.iterdir())) == 2


def test_source_that_cannot_be_converted_exits_with_1(
    file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: Any) -> None:
        raise ConversionError("cannot", hint="change it", location=Location(str(file), 3, 4, "f", "    if x:"))

    monkeypatch.setattr(rewrite, "convert", refuse)
    assert main(["diff", "--all", str(file)]) == 1
    out, err = capfd.readouterr()
    assert out == "" and f"{file}:3, in f\n    if x:\n    ^" in err


def test_a_wrong_splice_is_an_error_not_output(
    file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for wrong in (["def f(x):\n", "    return 1\n"], ["def f(x:\n"]):
        monkeypatch.setattr(rewrite, "splice_function", lambda *arguments, wrong=wrong: wrong)
        assert main(["convert", "--all", str(file)]) == 1
        out, err = capfd.readouterr()
        assert out == "" and "does not stand for its conversion" in err


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("command", ["convert", "diff"])
def test_colour_on_a_terminal_only(command: str, file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert output.use_colour()
    assert main([command, "--all", str(file)]) == 0
    shown = sys.stdout.getvalue()  # type: ignore[attr-defined]
    assert "\x1b[" in shown
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output.use_colour()


def test_coloured_text_is_the_same_text(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import re

    file.write_text("def f(x):\n    if x: y = '" + "long " * 60 + "[red]'\n")
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    for command in ("convert", "diff"):
        monkeypatch.setattr(sys, "stdout", Terminal())
        main([command, "--all", str(file)])
        plain = re.sub(r"\x1b\[[0-9;]*m", "", sys.stdout.getvalue())  # type: ignore[attr-defined]
        assert "long " * 60 + "[red]" in plain


def test_the_module_runs_as_a_command(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text("x = 1\n")
    command = [sys.executable, "-m", "dy2static", "diff", "--all", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    said = f"dy2static: nothing converts in {path}: there are no functions\n"
    assert (done.returncode, done.stdout, done.stderr) == (0, "", said)
    command[-1] += "x"
    assert subprocess.run(command, capture_output=True, cwd=ROOT, check=False).returncode == 2


def test_reading_keeps_what_the_file_was(tmp_path: Path) -> None:
    path = tmp_path / "f.py"
    path.write_bytes(b"\xef\xbb\xbfx = 1\r\ny = 2")
    file = text_file.read(str(path))
    assert (file.lines, file.encoding, file.line_end) == (["x = 1\r\n", "y = 2"], "utf-8", "\r\n")
    assert file.encode(file.text) == path.read_bytes()
