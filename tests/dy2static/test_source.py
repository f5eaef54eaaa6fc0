"""A function's source is found exactly, whatever stands around it, and never guessed."""

from __future__ import annotations
import __future__

import ast
import dataclasses
import functools
import importlib.util
import inspect
import linecache
import os
import sys
import textwrap
import types
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gast
import pytest
import torch

from dy2static import source
from dy2static.errors import SourceUnavailable
from dy2static.source import get_source

Load = Callable[[str], types.ModuleType]


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Imports the given text as a module from a real file."""

    def load_text(text: str, name: str = "sample") -> types.ModuleType:
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    return load_text


def body(function: Any) -> str:
    return str(gast.unparse(gast.Module(get_source(function).tree.body, []))).strip()


def test_a_function(load: Load) -> None:
    module = load("x = 1\n\ndef f(a, *, b=2):\n    return a + b  # sum\n")
    source = get_source(module.f)
    assert (source.file, source.name, source.first_line) == (module.__file__, "f", 3)
    assert source.text == "def f(a, *, b=2):\n    return a + b  # sum\n"
    assert source.tree.body[0].lineno == 4 and source.tree.body[0].col_offset == 4
    assert source.freevars == () and source.class_name is None and not source.is_lambda


def test_methods_know_their_class_and_cells(load: Load) -> None:
    module = load("""
        class Outer:
            class _Inner:
                def f(self):
                    self.__p = 1
                    def g(): return super().f()
                    return g
                @staticmethod
                def s(): return 2
                @classmethod
                def c(cls): return 3
    """)
    inner = module.Outer._Inner
    assert get_source(inner.f).class_name == "_Inner"
    assert get_source(inner().f).qualname == "Outer._Inner.f"
    nested = get_source(inner().f())
    assert nested.class_name == "_Inner" and set(nested.freevars) == {"__class__"}
    assert body(inner.s) == "return 2" and body(inner.c) == "return 3"


def test_decorators_are_left_out_and_wrappers_followed_only_when_asked(load: Load) -> None:
    module = load("""
        import functools
        runs = []
        def wrap(f):
            runs.append(f)
            @functools.wraps(f)
            def wrapper(*args): return f(*args)
            return wrapper

        @wrap
        @functools.lru_cache(
            maxsize=None)
        def f(x):
            return x
        @wrap
        def g(x): return x + 1
    """)
    assert body(module.g) == "return f(*args)"
    source = get_source(module.g, unwrap=True)
    assert source.tree.decorator_list == [] and source.tree.name == "g" and source.first_line == 15
    assert source.text.startswith("@wrap\n") and len(module.runs) == 2
    assert body(module.f.__wrapped__.__wrapped__) == "return x"


def test_lambdas_on_one_line_are_told_apart(load: Load) -> None:
    module = load("""
        fs = [lambda x: x + 1, lambda x: x + 2, lambda y: y + 1, lambda x: (lambda: x + 1)]
        f = (lambda x,
                    y: x +
             y); g = lambda: 0
        @(lambda h: h)
        def h(k=lambda: 1): return lambda: k
    """)
    assert [body(f) for f in module.fs] == ["return x + 1", "return x + 2", "return y + 1", "return lambda: x + 1"]
    assert body(module.fs[3](1)) == "return x + 1"
    assert (body(module.f), body(module.g)) == ("return x + y", "return 0")
    assert body(module.h) == "return lambda: k" and body(module.h()) == "return k"
    assert body(module.h.__defaults__[0]) == "return 1"
    assert get_source(module.g).is_lambda and get_source(module.g).tree.col_offset > 8


@pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 records no columns")
def test_equal_lambdas_on_one_line_have_their_own_columns(load: Load) -> None:
    module = load("fs = [lambda x: x, lambda x: x]\n")
    assert [get_source(f).tree.col_offset for f in module.fs] == [6, 19]


def test_layout_does_not_matter(load: Load) -> None:
    module = load('''
        if True:
            try:
                def f(x,
                      y): \\
                    return """a
          b
        c""" + \\
                        x + y
            finally:
                pass
        def one(x): y = x; return y
        def f_string(x):
            return f"""{
                x}"""
    ''')
    assert "a\n  b\nc" in body(module.f).replace("\\n", "\n")
    assert body(module.one) == "y = x\nreturn y"
    assert "{x}" in body(module.f_string)


def test_functions_of_one_name_are_told_apart(load: Load) -> None:
    module = load("""
        fs = []
        for i in range(2):
            if i:
                def f(): return 'one'
            else:
                def f(): return 'zero'
            fs.append(f)
        def f(): return 'last'
    """)
    assert [body(f) for f in [*module.fs, module.f]] == ["return 'zero'", "return 'one'", "return 'last'"]


def test_new_syntax_and_type_comments(load: Load) -> None:
    module = load("""
        def f(a, /, b):  # type: (int, int) -> int
            c = 1  # type: int
            match a:
                case {"k": [x, *_]} if (y := x): return y
            async def g(): return [z async for z in b]
    """)
    tree = get_source(module.f).tree
    assert tree.type_comment is None and tree.body[0].type_comment is None
    assert isinstance(tree.body[1], gast.Match) and [a.id for a in tree.args.posonlyargs] == ["a"]


def test_each_call_gives_a_fresh_tree(load: Load) -> None:
    module = load("def f(): return 1\n")
    get_source(module.f).tree.body.clear()
    assert body(module.f) == "return 1"


def test_future_flags_of_another_text_are_taken_from_the_function() -> None:
    name = "<ipython-input-1>"
    text = "def f(x: undefined) -> also: return x\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    space: dict[str, Any] = {"__name__": "cell"}
    exec(compile(text, name, "exec", flags=__future__.annotations.compiler_flag, dont_inherit=True), space)
    assert body(space["f"]) == "return x"


def test_asserts_rewritten_by_pytest_are_still_found() -> None:
    def local(x: int) -> int:
        assert x > 0, "positive"
        return x

    assert body(local).startswith("assert x > 0")


def test_a_decorator_may_have_renamed_the_code(load: Load) -> None:
    module = load(
        """
        def rename(function):
            function.__code__ = function.__code__.replace(co_name="other")
            return function

        @rename
        def f(x): return (lambda y: y + 1)(x)

        plain, renamed = lambda x: x + 2, rename(lambda x: x + 3)
        """
    )
    assert module.f.__code__.co_name == "other"
    assert body(module.f) == "return (lambda y: y + 1)(x)"
    assert body(module.plain) == "return x + 2"
    assert body(module.renamed) == "return x + 3"


def test_wrappers_of_torch_are_found() -> None:
    for wrapper in (torch.no_grad, torch.enable_grad, torch.inference_mode, torch.autocast("cpu")):

        @(wrapper() if isinstance(wrapper, type) else wrapper)
        def f(x: int) -> int:
            return x

        source = get_source(f)
        assert source.name == "f" and "func(*args, **kwargs)" in source.text


def test_a_file_that_changed_is_noticed(load: Load) -> None:
    module = load("def f(x):\n    return x + 1\n")
    Path(module.__file__ or "").write_text("def f(x):\n    return x + 2\n", encoding="utf-8")
    os.utime(module.__file__ or "", (1, 1))
    with pytest.raises(SourceUnavailable, match="has changed since it was imported") as caught:
        get_source(module.f)
    assert caught.value.location is not None and caught.value.location.line == 1
    Path(module.__file__ or "").write_text("def f(x:\n", encoding="utf-8")
    os.utime(module.__file__ or "", (2, 2))
    with pytest.raises(SourceUnavailable, match="no longer parses"):
        get_source(module.f)


def test_what_has_no_source_says_why(tmp_path: Path) -> None:
    space: dict[str, Any] = {}
    exec("def f(): pass", space)
    for thing, reason in [
        (space["f"], "made by exec"),
        (len, "not a Python function"),
        (int, "not a Python function"),
        (functools.partial(print), "not a Python function"),
    ]:
        with pytest.raises(SourceUnavailable, match=reason):
            get_source(thing)
    exec(compile("def g(): pass", str(tmp_path / "gone.py"), "exec"), space)
    with pytest.raises(SourceUnavailable, match="there is no file .*gone.py"):
        get_source(space["g"])


def test_text_of_the_command_line_is_no_source_of_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "import sys; print(sys.argv)\n"
    monkeypatch.setitem(linecache.cache, "<string>", (len(line), None, [line], "<string>"))
    space: dict[str, Any] = {}
    exec("def f(x):\n    return x", space)
    with pytest.raises(SourceUnavailable, match="made by exec") as caught:
        get_source(space["f"])
    assert caught.value.code == "D2S110"


def test_location_counts_characters(load: Load) -> None:
    module = load("def f(é):\n    'ü'; return é\n")
    source = get_source(module.f)
    location = source.location(source.tree.body[1])
    assert (location.line, location.column, location.text) == (2, 9, "    'ü'; return é")
    assert source.location().line == 1


@pytest.mark.parametrize(
    "module", [ast, dataclasses, functools, inspect, textwrap, typing], ids=lambda one: one.__name__)
def test_places_tell_functions_apart_as_marks_do(module: Any) -> None:
    """Where no two functions of a name begin on one line, a file is parsed and compiled once."""
    text = Path(module.__file__).read_text("utf-8")
    found = source.candidates(text, module.__file__, 0)
    tree = source.parsed(text)
    source.fix_f_string_places(tree)
    marked = source._told_apart(text, module.__file__, 0, tree, source._compile(tree, module.__file__, 0))
    assert len(found) == len(marked) > 10
    for one, other in zip(found, marked):
        assert ast.dump(one.node, include_attributes=True) == ast.dump(other.node, include_attributes=True)
        assert (one.class_name, one.first_line, one.code) == (other.class_name, other.first_line, other.code)


@pytest.mark.parametrize(("text", "times"), [
    ("def f(): return [lambda: 1,\n lambda: 2]", 1), ("def f(): return [lambda: 1, lambda: 2]", 2),
])  # fmt: skip
def test_a_file_is_compiled_again_only_for_functions_on_one_line(
    text: str, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Any] = []
    compile_ = source._compile
    monkeypatch.setattr(source, "_compile", lambda *args: compiled.append(args) or compile_(*args))
    found = source.candidates(text, "<a text of its own>", 0)
    assert all(one.code is not None for one in found) and len(compiled) == times
