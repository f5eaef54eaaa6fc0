"""Conversions on disk: another process takes them as they are, and never one of another text, code or version."""

from __future__ import annotations

import hashlib
import importlib
import marshal
import os
import pkgutil
import subprocess
import sys
import textwrap
import types
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from dy2static import conversion, kept_conversions
from dy2static.pipeline import ESCAPING_STEPS, ROUTED_STEPS, STEPS
from runtime.native import cache
from tests.from_files import module_of

PROGRAM = """
import functools
import sys
import torch
from dy2static import conversion, to_static

made = []
original = conversion._compile_now
conversion._compile_now = lambda f, steps: made.append(f.__qualname__) or original(f, steps)


def helper(x, scale=2.0):
    while x.sum() < 10:
        x = x * scale
    return x


def outer(x):
    def inner(y):
        nonlocal count
        count += 1
        if y.sum() > 0:
            return helper(y)
        return y - 1

    count = 0
    twice = lambda f, v: f(f(v))  # noqa: E731
    return twice(inner, x), count


def failing(x):
    if x.sum() > 0:
        raise ValueError(f"too much: {int(x.sum())}")
    return x


x = torch.tensor([1.0, 2.0], requires_grad=True)
y, count = to_static(outer)(x)
y.sum().backward()
print(y.tolist(), count, x.grad.tolist())
try:
    to_static(failing)(torch.ones(3))
except ValueError as error:
    frame = error.__traceback__
    while frame.tb_next:
        frame = frame.tb_next
    print(error, frame.tb_frame.f_code.co_name, frame.tb_lineno)
print(sys.argv[1:], sorted(set(made)))
"""


def run(folder: Path, script: Path, *words: str) -> tuple[list[str], str]:
    """The lines that a script prints in a process of its own, and what it converted."""
    environment = {**os.environ, "DY2STATIC_CACHE": str(folder), "DY2STATIC_BACKEND": "interpreter"}
    done = subprocess.run([sys.executable, script, *words], env=environment, capture_output=True, text=True, check=True)
    *lines, last = done.stdout.splitlines()
    return lines, last


def books(folder: Path) -> list[Path]:
    return sorted((folder / "conversions").iterdir())


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


@pytest.fixture
def given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[types.FunctionType, list[str]]]:
    """A function, and the lines of its file; what is kept is in a folder of the test's own."""
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kept"))
    monkeypatch.setattr(kept_conversions, "_books", {})
    path = tmp_path / "plain.py"
    path.write_text("def helper(x):\n    return x + 1\n")
    yield module_of(path).helper, path.read_text().splitlines(keepends=True)


def test_another_process_converts_nothing_again(tmp_path: Path, script: Path) -> None:
    folder = tmp_path / "kept"
    first, converted = run(folder, script)
    assert "'outer'" in converted and "'failing'" in converted and "'helper'" in converted
    assert "too much: 3 failing" in first[1]
    again, converted = run(folder, script)
    assert (again, converted) == (first, "[] []")


@pytest.mark.slow
def test_what_changed_is_converted_again(tmp_path: Path, script: Path) -> None:
    folder = tmp_path / "kept"
    first, _ = run(folder, script)
    script.write_text("\n" + PROGRAM.replace("y - 1", "y - 2").replace("scale=2.0", "scale=3.0"))
    lines, converted = run(folder, script)
    assert "'outer'" in converted
    assert lines[0] != first[0] and lines[1] != first[1]  # the error's line


def test_another_converter_takes_none(
    given: tuple[types.FunctionType, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    function, lines = given
    path = function.__code__.co_filename
    before = kept_conversions._key_of_file(path, lines)
    monkeypatch.setattr(kept_conversions, "_converter", lambda: b"another one")
    monkeypatch.setattr(kept_conversions, "_texts", {})
    assert kept_conversions._key_of_file(path, lines) != before
    names = {kept_conversions._name_of(function, steps) for steps in (["a"], ["a", "b"], ["b"])}
    assert len(names) == 3


DAMAGES = {
    "cut": lambda data: data[: len(data) // 2], "other bytes": lambda data: data[:9] + b"x" * 9 + data[18:],
    "empty": lambda data: b"", "not a dict": lambda data: marshal.dumps([1, 2]),
    "other records": lambda data: marshal.dumps({name: b"x" for name in marshal.loads(data)}),
}  # fmt: skip


@pytest.mark.parametrize("whole", [False, True], ids=["damaged", "written whole by somebody"])
@pytest.mark.parametrize("damage", DAMAGES)
def test_what_is_damaged_is_made_again(
    tmp_path: Path, damage: str, whole: bool, given: tuple[types.FunctionType, list[str]]
) -> None:
    function, lines = given
    made: list[int] = []

    def convert() -> kept_conversions.Record:
        made.append(1)
        return ("a reason",)

    for count in (1, 1, 1):
        assert kept_conversions.kept(function, lines, ["a"], convert) == ("a reason",)
        kept_conversions.write()
        kept_conversions._books.clear()
        assert len(made) == count
    (path,) = books(tmp_path / "kept")
    head, content = path.read_bytes()[:32], path.read_bytes()[32:]
    changed = DAMAGES[damage](content)
    path.write_bytes((hashlib.sha256(changed).digest() if whole else head) + changed)
    for count in (2, 2):
        assert kept_conversions.kept(function, lines, ["a"], convert) == ("a reason",)
        kept_conversions.write()
        kept_conversions._books.clear()
        assert len(made) == count


def test_nothing_is_kept_where_that_is_off(
    tmp_path: Path, given: tuple[types.FunctionType, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    function, lines = given
    monkeypatch.setenv(cache.FOLDER, "off")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    for _ in range(2):
        made: list[int] = []
        kept_conversions.kept(function, lines, ["a"], lambda made=made: made.append(1) or ("a reason",))
        kept_conversions.write()
        assert made == [1]
    assert not (tmp_path / "home").exists()


def test_nothing_is_kept_by_a_package_whose_text_is_not_there(
    tmp_path: Path, given: tuple[types.FunctionType, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    function, lines = given
    monkeypatch.setattr(kept_conversions, "__file__", str(tmp_path / "package.zip" / "module.py"))
    kept_conversions._converter.cache_clear()
    try:
        assert kept_conversions.kept(function, lines, ["a"], lambda: ("one",)) == ("one",)
        assert kept_conversions.kept(function, lines, ["a"], lambda: ("two",)) == ("two",)
    finally:
        kept_conversions._converter.cache_clear()


def test_what_marshal_does_not_know_is_not_kept(given: tuple[types.FunctionType, list[str]]) -> None:
    function, lines = given
    made = (object(),)
    assert kept_conversions.kept(function, lines, ["a"], lambda: made) is made
    assert kept_conversions.kept(function, lines, ["a"], lambda: ("two",)) == ("two",)


def test_nothing_is_said_of_a_folder_that_cannot_be_used(
    tmp_path: Path, given: tuple[types.FunctionType, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    function, lines = given
    (tmp_path / "file").touch()
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "file" / "kept"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for count in (1, 2):
            assert kept_conversions.kept(function, lines, ["a"], lambda count=count: (str(count),)) == (str(count),)
    with pytest.warns(RuntimeWarning, match="are not kept"):
        cache.folder()


@pytest.mark.slow
def test_processes_at_once_keep_what_each_of_them_made(tmp_path: Path) -> None:
    folder = tmp_path / "kept"
    text = textwrap.dedent("""
        import sys
        import torch
        from dy2static import conversion, to_static

        made = []
        original = conversion._compile_now
        conversion._compile_now = lambda f, steps: made.append(f.__qualname__) or original(f, steps)
        FUNCTIONS
        for name in sys.argv[1:]:
            print(to_static(globals()[name])(torch.ones(2)).tolist())
        print(made)
    """)
    functions = "".join(f"""
def f{n}(x):
    while x.sum() < {n}:
        x = x + 1
    return x
""" for n in range(8))
    script = tmp_path / "many.py"
    script.write_text(text.replace("FUNCTIONS", functions))
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda n: run(folder, script, *(f"f{m}" for m in range(n, 8, 2))), range(2)))
    lines, converted = run(folder, script, *(f"f{n}" for n in range(8)))
    assert (len(lines), converted) == (8, "[]")


def test_a_folder_that_cannot_be_written_is_no_error(
    given: tuple[types.FunctionType, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    function, lines = given

    def refuse(*args: object) -> None:
        raise OSError(28, "no space left")

    monkeypatch.setattr(kept_conversions.FILES, "write", refuse)
    assert kept_conversions.kept(function, lines, ["a"], lambda: ("a reason",)) == ("a reason",)
    kept_conversions.write()
    assert kept_conversions.kept(function, lines, ["a"], lambda: ("another",)) == ("a reason",)


def _functions() -> list[types.FunctionType]:
    """Those of PyTorch's modules, and of the standard library's files that convert."""
    found: list[types.FunctionType] = []
    modules = [importlib.import_module(f"torch.nn.modules.{info.name}") for info in pkgutil.iter_modules(
        importlib.import_module("torch.nn.modules").__path__)]  # fmt: skip
    names = ("heapq", "bisect", "statistics", "textwrap", "fractions", "copy", "dataclasses", "contextlib")
    modules += [importlib.import_module(name) for name in names]
    modules.append(torch.nn.functional)
    for module in modules:
        for value in vars(module).values():
            members = vars(value).values() if isinstance(value, type) else (value,)
            found += [one for one in members if isinstance(one, types.FunctionType)
                      and one.__module__ == module.__name__]  # fmt: skip
    return sorted(set(found), key=lambda one: (one.__module__, one.__qualname__, one.__code__.co_firstlineno))


@pytest.mark.sample(80)
@pytest.mark.parametrize("steps", [STEPS, ROUTED_STEPS, ESCAPING_STEPS], ids=["plain", "routed", "escaping"])
@pytest.mark.parametrize("function", _functions(), ids=lambda f: f"{f.__module__}.{f.__qualname__}")
def test_what_is_kept_is_what_was_made(function: types.FunctionType, steps: tuple[conversion.Step, ...]) -> None:
    try:
        made = conversion._compile_now(function, steps)
    except Exception:  # what does not convert is not kept
        pytest.skip("this does not convert")
    found = conversion._restored(function, marshal.loads(marshal.dumps(conversion._record(made))))
    assert found.reason == made.reason
    if made.code is None or made.file is None:
        assert found.code is None
        return
    assert found.code is not None and found.file is not None
    assert found.file.text == made.file.text and found.file.path == made.file.path
    assert Path(found.file.path).read_text() == made.file.text
    assert found.code == made.code
    assert _all(found.code) == _all(made.code)
    assert vars(found.file.origins) == vars(made.file.origins)
    for code in _codes(found.code):
        places = [made.file.origins.place(code, at, line) for at, line in _instructions(code)]
        assert [found.file.origins.place(code, at, line) for at, line in _instructions(code)] == places


def _codes(code: types.CodeType) -> list[types.CodeType]:
    inner = [part for part in code.co_consts if isinstance(part, types.CodeType)]
    return [code, *(one for part in inner for one in _codes(part))]


def _all(code: types.CodeType) -> list[tuple[object, ...]]:
    return [(one.co_filename, one.co_name, one.co_code, one.co_firstlineno) for one in _codes(code)]


def _instructions(code: types.CodeType) -> list[tuple[int, int | None]]:
    return [(start, line) for start, _, line in code.co_lines()]


def test_what_was_not_used_for_long_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cache.FOLDER, str(tmp_path / "kept"))
    for number in range(6):
        files = cache.Records("conversions", ".conversions", 3_000)  # as another process has it
        files.write(f"{number:064x}", bytes([number]) * 1_000)
        os.utime(tmp_path / "kept" / "conversions" / f"{number:064x}.conversions", (number, number))
    left = [path.name[:64] for path in books(tmp_path / "kept")]
    assert f"{5:064x}" in left and f"{0:064x}" not in left and len(left) < 4
    assert files.read(f"{5:064x}") == bytes([5]) * 1_000 and files.read(f"{0:064x}") is None
