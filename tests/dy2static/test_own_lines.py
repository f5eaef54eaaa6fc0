"""A function in its own lines: what is cut out of a file compiles to the same code, or is left to the whole file."""

from __future__ import annotations

import linecache
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import gast
import pytest

from dy2static import source
from dy2static.own_lines import imports, own_lines

LIBRARY = Path(os.__file__).parent
FILES = ["argparse.py", "contextlib.py", "dataclasses.py", "json/decoder.py", "textwrap.py", "typing.py"]

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 does not say where code stands")


def codes(code: types.CodeType) -> Iterator[types.CodeType]:
    """The functions in a module's code."""
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            if part.co_flags & 1 and not part.co_name.startswith("<") or part.co_name == "<lambda>":
                yield part
            yield from codes(part)


def function(code: types.CodeType) -> types.FunctionType:
    return types.FunctionType(code, {"__name__": "m"}, None, None, tuple(types.CellType() for _ in code.co_freevars))


@pytest.mark.parametrize("file", FILES)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_it_is_the_source_that_the_whole_file_gives(file: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(LIBRARY / file)
    lines = linecache.getlines(path)
    found = [function(code) for code in codes(compile("".join(lines), path, "exec", dont_inherit=True))
             if code.co_name == "<lambda>" or f"def {code.co_name}(" in "".join(lines)]  # and no alias of a type
    alone = [source.get_source(one) for one in found]
    cut = sum(source._in_own_lines(one.__code__, lines, 0) is not None for one in found)
    monkeypatch.setattr(source, "_in_own_lines", lambda code, lines, flags: None)
    for one, mine in zip(found, alone, strict=True):
        whole = source.get_source(one)
        assert gast.dump(mine.tree, include_attributes=True) == gast.dump(whole.tree, include_attributes=True)
        assert (mine.text, mine.class_name, mine.first_line, mine.freevars, mine.lambdas) == (
            whole.text, whole.class_name, whole.first_line, whole.freevars, whole.lambdas)  # fmt: skip
    assert cut > 0.8 * len(found) > 5


def only(text: str, name: str) -> tuple[types.CodeType, list[str]]:
    """The code of a function in a text, and the text's lines."""
    (found,) = (code for code in codes(compile(text, "a.py", "exec", dont_inherit=True)) if code.co_name == name)
    return found, text.splitlines(keepends=True)


@pytest.mark.parametrize("text", [
    "def f(x):\n    return x\n",
    "import a\nclass A:\n    @a.b\n    def f(self):\n        return a.c(self)\n",
    "class A:\n    class B:\n        def f(self):\n            return self.__x\n",
    "class A:\n    def f(\n        self,\n    ):\n        return \"\"\"\nx\n\"\"\"\n    y = 1\n",
    "def g(y):\n    class A:\n        def f(self):\n            return y, super().f()\n    return A\n",
    "try:\n    from a import (  # of a\n        b as c,\n        d)\nfinally:\n    1\n\nasync def f():\n    c.e(d.e)\n",
    "def g():\n    return lambda: 1\n\n\ndef f(): return [\n1]\n",
])  # fmt: skip
def test_what_is_cut_compiles_to_the_same_code(text: str) -> None:
    code, lines = only(text, "f")
    found = source._in_own_lines(code, lines, 0)
    assert found is not None and found.code == code
    assert found.class_name == next((one for one in reversed(code.co_qualname.split(".")[:-1]) if one.isupper()), None)


@pytest.mark.parametrize("text", [
    "x = lambda: 1\n",
    "if 1:\n    def f(x):\n        return x\n",
    "def f(x):\n    return x\n".replace("x", "y") + "#",
])  # fmt: skip
def test_what_cannot_be_cut_or_is_other_code_is_left(text: str) -> None:
    code = next(codes(compile(text.removesuffix("#").replace("y", "z"), "a.py", "exec", dont_inherit=True)))
    assert source._in_own_lines(code, text.splitlines(keepends=True), 0) is None


def test_a_line_that_is_gone() -> None:
    code, lines = only("\n\n\ndef f():\n    pass\n", "f")
    assert not list(own_lines(code, lines[:2]))


def test_names_that_a_file_imports() -> None:
    text = "from __future__ import a\nimport b, c as d\nclass E:\n    import f\nif g:\n    from h import i, \\\n j\n"
    assert imports(text.splitlines(keepends=True)) == ["a", "b", "d", "i"]
