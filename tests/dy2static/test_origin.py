"""Generated code maps back to the user's file: nodes, frames, stacks; and it lies in a file that tools can open."""

from __future__ import annotations

import importlib.util
import inspect
import linecache
import os
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import gast
import pytest
import torch

import dy2static
from dy2static import to_static
from dy2static.errors import ConversionError, converting, fail
from dy2static.generated_file import GeneratedFile, write_generated
from dy2static.origin import characters, copy_origin, is_user_file, location_of_frame, user_location
from dy2static.source import get_source
from dy2static.template import replace
from runtime.ir.location import Location

TEXT = """
def outer(x, probe):
    first = probe("a")
    if x:
        é = "é"; second = (probe("b") +
                  probe("c"))
    def inner(y):
        return probe("d")
    key = lambda z: probe("e")
    return inner(x), key(x)
"""


@pytest.fixture
def module(tmp_path: Path) -> types.ModuleType:
    path = tmp_path / "users_module.py"
    path.write_text(TEXT, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("users_module", path)
    assert spec is not None and spec.loader is not None
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    return result


def outlined(function: Any) -> GeneratedFile:
    """The function with its ``if`` made an inner function, as a branch body is."""
    source = get_source(function)
    node = source.tree.body[1]
    source.tree.body[1:2] = replace(
        "def body():\n    nonlocal names\n    stmts\nsecond = é = None\n_d2s.run(test, body)",
        origin=node, body="_d2s_if_body_1", names=["second", "é"], stmts=node.body, test=node.test,
    )  # fmt: skip
    return write_generated(gast.Module([source.tree], []), source)


def run(file: GeneratedFile, probe: Any) -> None:
    operators = types.SimpleNamespace(run=lambda test, body: body() if test else None)
    space: dict[str, Any] = {"_d2s": operators, "__name__": "users_module"}
    exec(file.code, space)
    space["outer"](1, probe)


def test_frames_map_to_the_users_lines_columns_and_functions(module: types.ModuleType) -> None:
    seen: dict[str, Location] = {}

    def probe(key: str) -> int:
        location = location_of_frame(sys._getframe(1))
        assert location is not None
        seen[key] = location
        return 0

    run(outlined(module.outer), probe)
    assert {key: (place.line, place.function) for key, place in seen.items()} == {
        "a": (3, "outer"),
        "b": (5, "outer"),
        "c": (6, "outer") if sys.version_info >= (3, 11) else (5, "outer"),
        "d": (8, "inner"),
        "e": (9, "<lambda>"),
    }
    assert all(place.file == module.__file__ for place in seen.values())
    assert seen["d"].text == '        return probe("d")'
    if sys.version_info >= (3, 11):
        assert seen["b"].column == TEXT.splitlines()[4].index("probe")
        assert seen["a"].column == 12


def test_the_innermost_place_of_the_user_on_the_stack(module: types.ModuleType) -> None:
    seen: list[Location | None] = []
    operators = types.ModuleType("fake")
    exec(compile("def probe(key): seen.append(user_location()); return 0", "<frozen library>", "exec"), vars(operators))
    operators.__dict__.update(seen=seen, user_location=user_location)
    run(outlined(module.outer), operators.__dict__["probe"])
    assert [place and place.line for place in seen][0] == 3
    here = user_location()
    assert here is not None and here.file == __file__ and here.function.startswith("test_the_innermost")
    assert here.text.strip() == "here = user_location()"
    if sys.version_info >= (3, 11):
        assert here.column == 11


def test_a_frame_of_any_other_code_has_no_origin() -> None:
    assert location_of_frame(sys._getframe()) is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (__file__, True),
        ("<stdin>", True),
        ("<doctest x[0]>", True),
        ("<string>", False),
        (linecache.__file__, False),
        (pytest.__file__, False),
        (inspect.getfile(get_source), False),
        (inspect.getfile(Location), False),
    ],
)
def test_whose_code_it_is(path: str, expected: bool) -> None:
    assert is_user_file(path) is expected


def test_the_generated_file_is_real_and_known_to_inspect(module: types.ModuleType) -> None:
    file = outlined(module.outer)
    assert Path(file.path).read_text(encoding="utf-8") == file.text
    assert Path(file.path).name.startswith("users_module.outer_")
    linecache.checkcache(file.path)
    assert "".join(linecache.getlines(file.path)) == file.text
    space: dict[str, Any] = {"__name__": "users_module"}
    exec(file.code, space)
    assert inspect.getsource(space["outer"]).startswith("def outer(x, probe):\n    first = probe('a')\n")
    assert outlined(module.outer).path == file.path


def test_the_files_are_removed_when_the_process_ends(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import os, gast
        from dy2static.source import get_source
        from dy2static.generated_file import write_generated
        def f(): return 1
        def make():
            source = get_source(f)
            return write_generated(gast.Module([source.tree], []), source).path
        path = make()
        child = os.fork()
        if child:
            assert os.waitpid(child, 0)[1] == 0 and os.path.exists(path)
            print(path)
        else:
            assert os.path.dirname(make()) != os.path.dirname(path)
    """)
    )
    root = Path(__file__).resolve().parents[2]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(script)]  # forking beside torch's threads
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == "" and not Path(done.stdout.strip()).parent.exists()


def test_copy_origin_fills_only_what_has_none() -> None:
    old, kept = gast.parse("a\n\nbb + c").body
    new = copy_origin(gast.Tuple([gast.Constant(1, None), old.value], gast.Load()), kept)
    assert (new.lineno, new.elts[0].end_col_offset, new.elts[1].lineno) == (3, 6, 1)
    assert not hasattr(copy_origin(gast.Pass(), gast.Pass()), "lineno")


def test_columns_of_characters_outside_ascii() -> None:
    assert [characters("aé𝔸b", column) for column in (0, 1, 3, 7)] == [0, 1, 2, 3]


def test_fail_shows_file_line_caret_and_hint(module: types.ModuleType) -> None:
    source = get_source(module.outer)
    with pytest.raises(ConversionError) as caught, converting(source):
        fail(source.tree.body[1].test, "this cannot be", hint="do that", code="D2S199")
    assert str(caught.value) == (
        f"[D2S199] this cannot be\n  at {module.__file__}:4, in outer\n    if x:\n       ^\n  do that"
    )
    with pytest.raises(ConversionError) as bare:
        fail(None, "nothing known")
    assert bare.value.location is None


def test_code_that_reads_alike_in_two_files_has_places_of_its_own(tmp_path):
    text = "def {0}(x):\n    if x.sum() > 0:\n        raise ValueError('positive')\n    return x\n"
    for name in ("one", "other"):
        path = tmp_path / f"{name}.py"
        path.write_text(text.format(name))
        spec = importlib.util.spec_from_file_location(f"reads_alike_{name}", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        with pytest.raises(ValueError, match="^positive$") as caught:
            to_static(getattr(module, name))(torch.ones(3))
        assert str(caught.traceback[-1].path) == str(path)


PROGRAM = """
import os, sys
sys.path.insert(0, os.path.join({root!r}, "tests", ".."))
import dy2static, runtime, torch
assert os.pardir in dy2static.__file__ and os.pardir in runtime.__file__

@dy2static.to_static
def f(x):
    n, found = 0, []
    while n < 2 and x.abs().mean() > 1e-3:
        x = x * 2
        n += 1
        found.append(x.sum())
    pairs = [t * 2 for t in x if t > 0]
    return x, n, max(zip(x, range(2)), key=lambda pair: pair[1])[0], len(pairs), torch.nn.functional.gelu(x)

print([t.tolist() if isinstance(t, torch.Tensor) else t for t in f(torch.ones(2))[:4]])
"""


def test_a_path_with_steps_back_is_the_same_project(tmp_path):
    """What ``sys.path`` calls ``src/..`` is the project's own code, which is not converted."""
    root = Path(dy2static.__file__).parents[1]
    (tmp_path / "program.py").write_text(PROGRAM.format(root=str(root)))
    done = subprocess.run([sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.stdout == "[[4.0, 4.0], 2, 4.0, 2]\n", done.stderr
