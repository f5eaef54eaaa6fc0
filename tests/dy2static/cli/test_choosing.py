"""Which files are read and which of their functions are converted: marks, names, folders, notebooks, standard input."""

from __future__ import annotations

import ast
import io
import json
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from dy2static.cli import main, rewrite
from dy2static.cli.marked import marked
from dy2static.cli.notebook import source_of
from dy2static.errors import ConversionError
from dy2static.source import FunctionSource
from runtime.version import __version__

MARKED = """\
import torch
import dy2static
from dy2static import to_static


@to_static
def grow(x):
    while x.sum() < 10:
        x = x * 2
    return x


class Net(torch.nn.Module):
    def forward(self, x):
        if x.sum() > 0:
            return x
        return -x


def train(net, data):
    for x in data:
        if x is None:
            continue
        net(x)


net = to_static(Net())
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "user.py"
    path.write_text(MARKED)
    return path


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("@to_static\ndef f(x): ...", ["f"]),
        ("@dy2static.to_static(full_graph=False)\ndef f(x): ...", ["f"]),
        ("from dy2static import to_static as ts\n@ts\ndef f(x): ...\ndef g(x): ...", ["f"]),
        ("@partial(to_static, backend='c')\ndef f(x): ...", ["f"]),
        ("class N:\n  @to_static\n  def forward(self): ...", ["N.forward"]),
        ("class N(M):\n  def forward(self): ...\nnet = N()\nnet = to_static(net)", ["N.forward"]),
        ("class N(M):\n  def forward(self): ...\nto_static(function=N(1, 2))", ["N.forward"]),
        ("class B:\n  def forward(self): ...\nclass N(B): ...\nto_static(N())", ["B.forward"]),
        ("class N(N):\n  x = 1\nto_static(N())", []),
        ("class N:\n  def step(self): ...\n  def run(self): self.fast = to_static(self.step)", ["N.step"]),
        ("class N:\n  def step(self): ...\nclass O:\n  def step(self): ...\nto_static(N.step)", ["N.step"]),
        ("class N:\n  def step(self): ...\nn = N()\nto_static(n.step)", ["N.step"]),
        ("class T:\n  def __init__(self): self.net = to_static(N())\nclass N:\n  def forward(s): ...", ["N.forward"]),
        ("def f(x): ...\ng = to_static(f, input_spec=[])", ["f"]),
        ("def f(x): ...\ng = to_static(backend='c')(f)", ["f"]),
        ("def f(x): ...\ng = to_static(functools.partial(f, 1))", ["f"]),
        ("def make():\n  @to_static\n  def f(x): ...\n  return f", ["make.<locals>.f"]),
        ("def f(x): ...\nto_static(other)\nto_static()\nto_static(lambda x: x)", []),
        ("def f(x): return g(x)\n@not_to_static\ndef g(x): ...", []),
    ],
)
def test_marks(text: str, names: list[str]) -> None:
    assert sorted(marked(ast.parse(text))) == names


def test_only_marked_functions_are_rewritten(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", str(file)]) == 0
    out, err = capfd.readouterr()
    assert err == "" and "_d2s.while_stmt" in out and "_d2s.if_expr" in out
    assert out[out.index("def train") :] == MARKED[MARKED.index("def train") :]


def test_all_and_names_choose_otherwise(file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    main(["diff", str(file), "--function", "train", "--function", "grow"])
    out = capfd.readouterr().out
    assert "-        if x is None:" in out and "-    while x.sum() < 10:" in out
    assert "-        if x.sum() > 0:" not in out
    main(["diff", str(file), "--all"])
    out = capfd.readouterr().out
    assert "-        if x is None:" in out and "-        if x.sum() > 0:" in out


def test_nothing_marked_is_said(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.py"
    path.write_text("def f(x):\n    if x:\n        return 1\n")
    assert main(["diff", str(path)]) == 0
    out, err = capfd.readouterr()
    assert out == "" and err == (
        f"dy2static: nothing converts in {path}: no function is decorated with to_static or given to it; "
        "--function NAME converts one, --all converts all\n"
    )


def test_standard_input(file: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    class Stdin:
        buffer = io.BytesIO(MARKED.encode())

    main(["convert", str(file)])
    expected = capfd.readouterr().out
    monkeypatch.setattr(sys, "stdin", Stdin)
    assert main(["convert", "-"]) == 0
    assert capfd.readouterr() == (expected, "")
    Stdin.buffer = io.BytesIO(b"def f(:")
    assert main(["diff", "-"]) == 2
    assert capfd.readouterr().err == "dy2static: cannot parse <stdin>:1: invalid syntax\n"


def test_folders_and_several_files(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "source"
    for name in ("a.py", "deep/b.py", ".hidden/c.py", "__pycache__/d.py"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(MARKED)
    (source / "plain.py").write_text("x = 1\n")
    (source / "notes.txt").write_text("no Python")
    out = tmp_path / "out"
    assert main(["convert", str(source), "-o", str(out)]) == 0
    written = sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file())
    assert written == ["a.py", "deep/b.py", "plain.py"]
    assert "_d2s" in (out / "deep/b.py").read_text() and (out / "plain.py").read_text() == "x = 1\n"
    capfd.readouterr()
    assert main(["convert", str(source / "a.py"), str(source / "deep")]) == 0
    shown = capfd.readouterr().out
    assert f"# ==> {source}/a.py <==\n" in shown and f"# ==> {source}/deep/b.py <==\n" in shown
    assert main(["diff", str(source), "--function", "nowhere"]) == 2
    assert "none of 3 files has a function nowhere" in capfd.readouterr().err
    assert main(["convert", str(source), "-o", str(source / "notes.txt")]) == 2
    assert (source / "notes.txt").read_text() == "no Python"


def test_a_file_at_fault_does_not_stop_the_others(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("def f(:\n")
    (tmp_path / "b.py").write_text(MARKED)
    assert main(["diff", str(tmp_path)]) == 2
    out, err = capfd.readouterr()
    assert "b.py (converted)" in out and err == f"dy2static: cannot parse {tmp_path}/a.py:1: invalid syntax\n"


def notebook(*cells: str, **other: Any) -> str:
    made = [{"cell_type": "code", "source": textwrap.dedent(cell).splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# Title"}, *made], "nbformat": 4, **other})


def test_notebooks(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "book.ipynb"
    path.write_text(notebook(
        "%matplotlib inline\n!ls\nfiles = !ls\nhelp?\nfrom dy2static import to_static",
        "%%bash\necho 'not Python",
        "@to_static\ndef f(x):\n    if x.sum() > 0:\n        x = -x\n    return x\n",
    ))  # fmt: skip
    assert main(["convert", str(path), "-o", str(tmp_path / "book.py")]) == 0
    text = (tmp_path / "book.py").read_text()
    compile(text, "book.py", "exec")
    assert "# %% cell 3\n@to_static" in text and "_d2s.if_" in text and "# !ls\n" in text
    path.write_text(notebook("x = 1\n", "y = 2\nz = (\n"))
    assert main(["diff", str(path)]) == 2
    assert f"cannot parse {path}, cell 2:2: '(' was never closed" in capfd.readouterr().err
    for wrong in ("", "{}", '{"cells": [1]}', '{"cells": 3}'):
        path.write_text(wrong)
        assert main(["diff", str(path)]) == 2
        assert f"cannot read {path}: it is not a notebook" in capfd.readouterr().err


def test_lines_of_a_notebook() -> None:
    text, starts = source_of(notebook("a = 1\n%%x\nb = a % 2\n", "", "%%time\nc = 3").encode())
    assert text == "# %% cell 1\na = 1\n# %%x\nb = a % 2\n# %% cell 2\n# %% cell 3\n# %%time\nc = 3\n"
    assert starts == (1, 5, 6)


REFUSED = """\
from dy2static import to_static

@to_static
def good(x):
    if x.sum() > 0:
        x = -x
    return x

@to_static
async def later(x):
    return x

@to_static
def numbers(x):
    yield x

def unmarked(x):
    yield x
"""


def test_check(tmp_path: Path, file: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "refused.py"
    path.write_text(REFUSED)
    assert main(["check", str(path)]) == 1
    out, err = capfd.readouterr()
    assert err == "" and out.splitlines() == [
        f"{path}:10: later is an async function, which to_static does not take",
        f"{path}:14: numbers is a generator, which to_static does not take",
        "1 function converts, 2 are refused",
    ]
    assert main(["check", str(file)]) == 0
    assert capfd.readouterr() == ("2 functions convert\n", "")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["refused.py", "user.py"]


def test_check_shows_place_and_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    own = rewrite.convert

    def convert(source: FunctionSource, full: bool) -> Any:
        if source.name == "bad":
            raise ConversionError("nested too deeply", location=source.location(source.tree.body[0]), code="D2S199")
        return own(source, full)

    monkeypatch.setattr(rewrite, "convert", convert)
    text = "from dy2static import to_static\n@to_static\ndef bad(x):\n    return x\n@to_static\ndef f(x): ...\n"
    (tmp_path / "a.py").write_text(text)
    (tmp_path / "b.ipynb").write_text(notebook("x = 1", text))
    assert main(["check", str(tmp_path)]) == 1
    assert capfd.readouterr() == (
        f"{tmp_path}/a.py:4: [D2S199] nested too deeply (in bad)\n"
        f"{tmp_path}/b.ipynb, cell 2:4: [D2S199] nested too deeply (in bad)\n"
        "2 functions convert, 2 are refused\n", "",
    )  # fmt: skip


def test_check_says_when_there_is_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plain.py"
    path.write_text("def f(x):\n    return x\n")
    assert main(["check", str(path)]) == 0
    out, err = capfd.readouterr()
    assert out == "" and "--all converts all" in err
    assert main(["check", "--all", str(path)]) == 0
    assert capfd.readouterr() == ("1 function converts\n", "")


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capfd.readouterr().out == f"dy2static {__version__} (PyTorch {torch.__version__})\n"


@pytest.mark.slow
def test_the_written_file_runs(file: Path) -> None:
    out = file.parent / "out.py"
    main(["convert", str(file), "-o", str(out)])
    code = "import torch, out; assert float(out.grow(torch.ones(2)).sum()) == 16"
    subprocess.run([sys.executable, "-c", code], cwd=file.parent, check=True)
