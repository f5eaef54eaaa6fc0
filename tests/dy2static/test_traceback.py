"""Tracebacks read as if the user's function had run unconverted."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import pdb
import subprocess
import sys
import threading
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gast
import pytest
import torch

import dy2static
import dy2static.traceback as users
import runtime
from dy2static.errors import TraceError
from dy2static.generated_file import write_generated
from dy2static.source import get_source
from dy2static.template import replace
from dy2static.traceback import FULL, rewrite, without_entrances

TEXT = """
def divide(a, b):
    return a / b

def forward(x, k):
    total = x
    if x > 0:
        part = (total +
                divide(x, k))
    return total

def unbound(x):
    if x > 10:
        z = 1
    if x > 0:
        return_value = z
    return 0

def chained(x):
    if x:
        try:
            forward(1, 0)
        except ZeroDivisionError as error:
            raise ValueError("bad") from error

def refused(x):
    if x:
        refuse()

def library(x):
    if x:
        parse("{")

def machinery(x):
    if x:
        dispatch("{")

def free():
    late_value: int
    def inner():
        if True:
            return late_value
    inner()
    late_value = 1
"""

OPERATORS = """
def if_stmt(test, body):
    return _run(body) if test else None
def _run(body):
    return body()
def dispatch(text):
    return parse_in_the_tracer(text)
def refuse():
    raise TraceError("no", hint="do")
"""


class Outline(gast.NodeTransformer):
    """Every ``if`` as an inner function called by an operator, as the converter does."""

    def __init__(self) -> None:
        self.count = 0
        self.names: set[str] = set()

    def visit_If(self, node: Any) -> Any:
        self.generic_visit(node)
        self.count += 1
        names = sorted({n.id for n in gast.walk(node) if isinstance(n, gast.Name) and isinstance(n.ctx, gast.Store)})
        self.names.update(names)
        return replace(
            "def body():\n    nonlocal names\n    stmts\n_d2s.if_stmt(test, body)",
            origin=node, body=f"_d2s_if_body_{self.count}", names=names, stmts=node.body, test=node.test,
        )  # fmt: skip


@pytest.fixture
def module(tmp_path: Path) -> types.ModuleType:
    path = tmp_path / "users_module.py"
    path.write_text(TEXT, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("users_module", path)
    assert spec is not None and spec.loader is not None
    result = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(result)
    operators: dict[str, Any] = {"TraceError": TraceError}
    folder = Path(dy2static.__path__[0]) / "operators"
    exec(compile(OPERATORS, str(folder / "if_stmt.py"), "exec"), operators)
    tracer: dict[str, Any] = {"parse": json.loads}
    file = str(Path(runtime.__path__[0]) / "tracer" / "recorder.py")
    exec(compile("def parse_in_the_tracer(text): return parse(text)", file, "exec"), tracer)
    operators.update(tracer)
    result.__dict__.update(
        dispatch=operators["dispatch"],
        _d2s=types.SimpleNamespace(**operators),
        refuse=operators["refuse"],
        parse=json.loads,
    )
    return result


def converted(module: types.ModuleType, name: str) -> Any:
    source = get_source(getattr(module, name))
    outline = Outline()
    tree = outline.visit(source.tree)
    for bound in sorted(outline.names):  # names bound in a branch exist before it, as the converter arranges
        tree.body[:0] = replace("if False: bound = None", bound=bound)
    file = write_generated(gast.Module([tree], []), source)
    space = module.__dict__
    exec(file.code, space)
    return space[name]


def raised(function: Callable[[], Any]) -> BaseException:
    try:
        function()
    except Exception as error:  # whatever it is: it is what the test looks at
        return error
    raise AssertionError("nothing was raised")


def shown(error: BaseException) -> list[tuple[str, int | None, str]]:
    """File name, line and function of all frames below this file's own."""
    frames = traceback.extract_tb(error.__traceback__)
    return [(Path(f.filename).name, f.lineno, f.name) for f in frames if f.filename != __file__]


def test_only_the_users_frames_are_left(module: types.ModuleType) -> None:
    eager = raised(lambda: module.forward(1, 0))
    function = converted(module, "forward")
    error = raised(lambda: function(1, 0))
    assert len(shown(error)) == 5
    result = rewrite(error)
    assert result is error
    line = 9 if sys.version_info >= (3, 11) else 8  # Python 3.10 records no columns: the statement's first line
    assert shown(result) == [("users_module.py", line, "forward"), ("users_module.py", 3, "divide")]
    assert shown(eager) == [("users_module.py", 9, "forward"), ("users_module.py", 3, "divide")]
    text = "".join(traceback.format_exception(result))
    assert TEXT.splitlines()[line - 1].strip() in text and "_d2s" not in text and "operators" not in text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 shows no carets")
def test_carets_point_into_the_users_line(module: types.ModuleType) -> None:
    function = converted(module, "forward")
    lines = "".join(traceback.format_exception(rewrite(raised(lambda: function(1, 0))))).splitlines()
    index = next(i for i, line in enumerate(lines) if "divide(x, k))" in line)
    assert set(lines[index + 1].strip()) <= {"^", "~"} and lines[index + 1].strip()


def test_a_debugger_sees_the_users_line_and_all_locals(module: types.ModuleType) -> None:
    function = converted(module, "forward")
    error = rewrite(raised(lambda: function(1, 0)))
    out = io.StringIO()
    debugger = pdb.Pdb(
        stdin=io.StringIO("up\np total, x, k\np sorted(locals())\nlist 9,9\nq\n"), stdout=out, nosigint=True
    )
    debugger.use_rawinput = False
    debugger.reset()
    debugger.interaction(None, error.__traceback__)
    assert "(1, 1, 0)" in out.getvalue() and "['k', 'total', 'x']" in out.getvalue()
    assert "divide(x, k))" in out.getvalue()  # listed


def test_a_local_of_the_user_is_not_called_a_free_variable(module: types.ModuleType) -> None:
    eager = raised(lambda: module.unbound(1))
    function = converted(module, "unbound")
    error = rewrite(raised(lambda: function(1)))
    assert type(error) is type(eager) is UnboundLocalError
    assert str(error) == str(eager)
    assert shown(error) == shown(eager) == [("users_module.py", 16, "unbound")]
    assert error.__cause__ is None and error.__context__ is None


def test_what_is_free_in_the_users_code_stays_so(module: types.ModuleType) -> None:
    eager = raised(module.free)
    error = rewrite(raised(converted(module, "free")))
    assert type(error) is type(eager) is NameError and str(error) == str(eager)
    assert shown(error) == shown(eager)


def test_causes_are_rewritten_too(module: types.ModuleType) -> None:
    converted(module, "forward")
    error = rewrite(raised(lambda: converted(module, "chained")(1)))
    assert shown(error) == [("users_module.py", 24, "chained")]
    assert error.__cause__ is not None
    names = [name for _, _, name in shown(error.__cause__)]
    assert names == ["chained", "forward", "divide"]


def test_our_own_errors_end_in_the_users_line(module: types.ModuleType) -> None:
    error = rewrite(raised(lambda: converted(module, "refused")(1)))
    assert shown(error) == [("users_module.py", 28, "refused")]


def test_frames_of_a_library_that_the_user_called_stay(module: types.ModuleType) -> None:
    eager = raised(lambda: module.library(1))
    error = rewrite(raised(lambda: converted(module, "library")(1)))
    assert shown(error) == shown(eager) and shown(error)[-1][0] == "decoder.py"


def test_frames_of_the_machinery_below_an_operator_go(module: types.ModuleType) -> None:
    error = rewrite(raised(lambda: converted(module, "machinery")(1)))
    assert [name for _, _, name in shown(error)] == ["machinery"] and type(error) is json.JSONDecodeError


def test_a_fault_of_ours_hides_nothing(module: types.ModuleType) -> None:
    module.__dict__["dispatch"].__globals__["parse_in_the_tracer"].__globals__["parse"] = None
    error = rewrite(raised(lambda: converted(module, "machinery")(1)))
    assert [name for _, _, name in shown(error)] == ["machinery", "dispatch", "parse_in_the_tracer"]


def test_errors_elsewhere_are_left_alone(module: types.ModuleType) -> None:
    error = raised(lambda: module.forward(1, 0))
    before = error.__traceback__
    assert rewrite(error) is error and error.__traceback__ is before


def test_all_frames_on_request(module: types.ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(FULL, "1")
    function = converted(module, "forward")
    assert len(shown(rewrite(raised(lambda: function(1, 0))))) == 5


# -- as a program shows it ------------------------------------------------------------------------------------------

PROGRAM = """
import sys, threading, torch
from dy2static import to_static

def helper(x, n):
    if n > 2:
        raise ValueError("too many")
    return x + n

def plain(x):
    return helper(x, 1) + helper(x, 5)

def torchs(x):
    y = x + 1
    return torch.nn.functional.linear(y, torch.ones(2, 9))

def wrong_type(x):
    return torch.cat([x, 3])

def loop(x, w=torch.ones(2, 2)):
    while x.sum() < 100:
        x = x * 2
        x = x @ w if x.sum() > 20 else x
    return x

def chained(x):
    try:
        helper(x, 8)
    except ValueError as error:
        raise KeyError("wrapped") from error

def handled(x):
    try:
        helper(x, 8)
    except ValueError:
        raise KeyError("while handling")

def few(x):
    return x

class Net(torch.nn.Module):
    def forward(self, x):
        return helper(x, 7)

net = Net()
calls = {
    "plain": lambda f: f(torch.ones(3)), "torchs": lambda f: f(torch.ones(3)), "loop": lambda f: f(torch.ones(3)),
    "wrong_type": lambda f: f(torch.ones(3)), "chained": lambda f: f(torch.ones(3)),
    "handled": lambda f: f(torch.ones(3)), "few": lambda f: f(1, 2, 3), "net": lambda f: f(torch.ones(3)),
}
name, how, where = sys.argv[1:]
function = globals()[name]
function = to_static(function) if how == "converted" else function
if where == "thread":
    thread = threading.Thread(target=calls[name], args=(function,), name="worker")
    thread.start()
    thread.join()
else:
    calls[name](function)
"""


def printed(tmp_path: Path, *arguments: str, **environment: str) -> list[str]:
    """What Python prints of an error that nobody catches, without carets and memory addresses."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM, encoding="utf-8")
    root = str(Path(dy2static.__path__[0]).parent)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(path), *arguments], capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": root, **environment},
    )  # fmt: skip
    return [line for line in done.stderr.splitlines() if set(line.strip()) - set("^~ ")]


CASES = ["plain", "torchs", "wrong_type", "loop", "chained", "handled", "few", "net"]


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_what_python_prints_is_what_it_prints_in_eager(tmp_path: Path, name: str) -> None:
    eager = printed(tmp_path, name, "eager", "main")
    assert printed(tmp_path, name, "converted", "main") == eager and len(eager) > 3


@pytest.mark.slow
def test_threads_show_the_same(tmp_path: Path) -> None:
    assert printed(tmp_path, "plain", "converted", "thread") == printed(tmp_path, "plain", "eager", "thread")


@pytest.mark.slow
def test_one_variable_shows_everything(tmp_path: Path) -> None:
    text = "\n".join(printed(tmp_path, "plain", "converted", "main", **{FULL: "1"}))
    assert "static_function.py" in text and "_call" in text


ERRORS = {
    "callee": "def f(x):\n    return g(x)\ndef g(x):\n    raise ValueError('no')\n",
    "operator": "import torch\ndef f(x):\n    return torch.nn.functional.linear(x, torch.ones(2, 9))\n",
    "type": "import torch\ndef f(x):\n    return torch.cat([x, 3])\n",
    "loop": "def f(x):\n    while x.sum() < 100:\n        x = x * 2\n        x = x[:2] @ x[:3]\n    return x\n",
    "refused": "import torch\ndef f(x):\n    return torch.from_numpy(x.__array__())\n",
    "binding": "def f(x, y, z):\n    return x\n",
}


@pytest.mark.parametrize("name", ERRORS)
def test_two_frames_of_ours_at_most_and_both_are_marked(tmp_path: Path, name: str) -> None:
    path = tmp_path / "user.py"
    path.write_text(ERRORS[name])
    spec = importlib.util.spec_from_file_location("user", path)
    assert spec is not None and spec.loader is not None
    user = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(user)
    error = raised(lambda: dy2static.to_static(user.f)(torch.ones(4)))
    frames = walked(error.__traceback__)
    packages = tuple(str(Path(one.__path__[0])) + os.sep for one in (dy2static, runtime))
    ours = [entry for entry in frames if entry.f_code.co_filename.startswith(packages)]
    assert len(ours) == 2 and all(entry.f_locals["__tracebackhide__"] for entry in ours)
    left = walked(without_entrances(error.__traceback__))
    assert left == [entry for entry in frames if entry not in ours]
    if name != "binding":
        assert Path(left[-1].f_code.co_filename) == path
    if name != "refused":
        eager = raised(lambda: user.f(torch.ones(4)))
        assert shown_by(left) == shown_by(walked(eager.__traceback__))
        assert (type(error.__cause__), type(error.__context__) if not error.__suppress_context__ else type(None)) == (
            type(eager.__cause__), type(eager.__context__))  # fmt: skip


def shown_by(frames: list[types.FrameType]) -> list[tuple[str, str]]:
    return [(one.f_code.co_filename, one.f_code.co_name) for one in frames if one.f_code.co_filename != __file__]


def walked(entry: types.TracebackType | None) -> list[types.FrameType]:
    """The frames of a traceback, without those of the tests' watch for leaks."""
    frames = [frame for frame, _ in traceback.walk_tb(entry)]
    return [frame for frame in frames if not frame.f_code.co_name.startswith("watched_")]


def test_the_hook_puts_tracebacks_back_and_calls_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    def f(x: Any) -> Any:
        raise ValueError("no")

    error = raised(lambda: dy2static.to_static(f)(torch.ones(1)))
    seen: list[list[str]] = []
    monkeypatch.setattr(sys, "excepthook", lambda kind, value, tb: seen.append(
        [entry.f_code.co_name for entry, _ in traceback.walk_tb(value.__traceback__)]))  # fmt: skip
    monkeypatch.setattr("threading.excepthook", threading.excepthook)
    monkeypatch.setattr(users, "_installed", False)
    users.hide_entrances()
    before = error.__traceback__
    sys.excepthook(type(error), error, error.__traceback__)
    assert error.__traceback__ is before and "_call" not in seen[0] and seen[0][-1] == "f"
    monkeypatch.setenv(FULL, "1")
    sys.excepthook(type(error), error, error.__traceback__)
    assert "_call" in seen[1]


def test_an_error_in_code_without_source_ends_there() -> None:
    space: dict[str, Any] = {}
    exec(compile("def f(x):\n    return x if x.sum() > 0 else -x\n", "typed at a prompt", "exec"), space)
    with pytest.raises(TraceError, match="the source of f is not available") as found:
        dy2static.to_static(space["f"])(torch.ones(2))
    shown = traceback.extract_tb(without_entrances(found.value.__traceback__))
    assert [frame.filename for frame in shown] == [__file__, "typed at a prompt"]


def test_a_fault_of_ours_is_shown_whole() -> None:
    def f(x: Any) -> Any:
        return x

    static = dy2static.to_static(f)
    static._subject.signature = None
    error = raised(lambda: static(torch.ones(1)))
    assert without_entrances(error.__traceback__) is error.__traceback__
    assert [one.f_code.co_name for one in walked(error.__traceback__)][-2:] == ["_call", "answer"]


def test_post_mortem_stands_at_the_users_line(tmp_path: Path) -> None:
    def f(x: Any) -> Any:
        secret = 41
        raise ValueError(secret)

    error = raised(lambda: dy2static.to_static(f)(torch.ones(1)))
    out = io.StringIO()
    debugger = pdb.Pdb(stdin=io.StringIO("p secret + 1\nq\n"), stdout=out, nosigint=True)
    debugger.use_rawinput = False
    debugger.reset()
    debugger.interaction(None, error.__traceback__)
    assert "42" in out.getvalue()
