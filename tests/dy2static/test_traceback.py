"""Tracebacks read as if the user's function had run unconverted."""

from __future__ import annotations

import importlib.util
import io
import json
import pdb
import sys
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gast
import pytest

import dy2static
import runtime
from dy2static.errors import TraceError
from dy2static.generated_file import write_generated
from dy2static.source import get_source
from dy2static.template import replace
from dy2static.traceback import FULL, rewrite

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
