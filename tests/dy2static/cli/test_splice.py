"""The text of what did not change survives a conversion to the byte: golden files and properties.

The transform here is a small one of its own (every ``if`` becomes two functions and a call), so that the goldens
show the splicing alone. ``DY2STATIC_UPDATE_GOLDEN=1`` rewrites them; read the diff.
"""

from __future__ import annotations

import argparse
import ast
import io
import os
import tokenize
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from dy2static.cli import rewrite, text_file

GOLDEN = Path(__file__).parent / "golden"


pytestmark = pytest.mark.usefixtures("own_transform")


def converted(data: bytes | str, tmp_path: Path, name: str | None = None) -> bytes:
    path = tmp_path / "input.py"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    file = text_file.read(str(path))
    result = rewrite.rewrite_functions(file, rewrite.functions(file, None if name is None else [name]))
    return file.encode(file.text if result is None else result)


def comments(text: str) -> Counter[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return Counter(token.string.rstrip() for token in tokens if token.type == tokenize.COMMENT)


@pytest.mark.parametrize("name", sorted(path.name for path in GOLDEN.glob("*.py")))
def test_golden(name: str, tmp_path: Path) -> None:
    source = (GOLDEN / name).read_bytes()
    result = converted(source, tmp_path)
    golden = GOLDEN / (name + ".converted")
    if os.environ.get("DY2STATIC_UPDATE_GOLDEN"):
        golden.write_bytes(result)
    assert result == golden.read_bytes()
    assert comments(result.decode()) == comments(source.decode())


def test_a_file_without_an_if_does_not_change(tmp_path: Path) -> None:
    text = "def f(x):  # c\n    return  x;  # d\n"
    assert converted(text, tmp_path) == text.encode()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("bom", [b"", b"\xef\xbb\xbf"])
def test_line_ends_and_byte_order_mark(end: str, final: bool, bom: bytes, tmp_path: Path) -> None:
    text = "x = '''a\nb'''\ndef f(x):\n    y = 1  # c\n    if x:\n        y  =  2\n    return  y" + (
        "\n" if final else ""
    )
    result = converted(bom + text.replace("\n", end).encode(), tmp_path)
    lines = result.removeprefix(bom).decode().split(end)
    assert result.startswith(bom) and (lines[-1] == "") is final
    assert not any("\n" in line or "\r" in line for line in lines)
    assert "    y = 1  # c" in lines and "    return  y" in lines and "        y  =  2" in lines
    assert lines[0] == "from dy2static import operators as _d2s"


def test_tabs_and_form_feeds(tmp_path: Path) -> None:
    text = "a = 1\n\x0c\nclass C:\n\tdef f(self, x):\n\t\tif x:\n\t\t\t\ty = [x,\n\t\t\t\t\t 1]\n\x0c\t\treturn x\n"
    lines = converted(text, tmp_path).decode().split("\n")
    assert "\x0c" in lines and "\x0c\t\treturn x" in lines
    assert "\t\t\ty = [x," in lines and "\t\tdef _d2s_if_body_1():" in lines


@pytest.mark.parametrize("encoding", ["latin-1", "utf-8", "cp1252"])
def test_encodings(encoding: str, tmp_path: Path) -> None:
    text = f"# -*- coding: {encoding} -*-\ndef f(x):\n    é = 'ü'  # ö\n    if x: é = '\\u20ac'\n    return é\n"
    result = converted(text.encode(encoding), tmp_path)
    assert "    é = 'ü'  # ö\n".encode(encoding) in result
    space: dict[str, Any] = {}
    exec(compile(result.replace(b"from dy2static import operators as _d2s\n", b""), "f", "exec"), space)
    assert result.startswith(f"# -*- coding: {encoding} -*-\nfrom dy2static".encode())


FUTURE = "from __future__ import (\n    annotations,\n)\n"


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ('"""doc"""\n', ""),
        ('"""doc"""\n' + FUTURE, "import a\n"),
        (FUTURE, "\nimport a\n"),
        ("", "import a\n"),
        ("#!/bin/env python\n# licence\n\n", "# about a\na = 1\n"),
        ("", ""),
        ("# about f\n", ""),
        ("from dy2static import operators as _d2s\n", ""),
        ("'a' 'b'\n", ""),
        ("# coding: utf-8\n", "\n\n# about f\n"),
    ],
)
def test_where_the_import_goes(above: str, below: str, tmp_path: Path) -> None:
    """Behind docstring and future imports, else below the header comments; never between a comment and its code."""
    function = "def f(x):\n    if x: pass\n"
    result = converted(above + below + function, tmp_path).decode().partition("def f")[0]
    assert result.count(rewrite.IMPORT) == 1
    head, tail = result.split(rewrite.IMPORT + "\n")
    if rewrite.IMPORT in above:
        assert head + tail == ""
    elif above == "# about f\n":
        assert (head, tail.lstrip("\n")) == ("", above)
    else:
        assert head.rstrip("\n") == above.rstrip("\n") and tail.lstrip("\n") == below.lstrip("\n")


def test_only_the_named_function(tmp_path: Path) -> None:
    text = "class A:\n    def f(self):\n        if self: a = 1\nclass B:\n    def f(self):\n        if self: b = 1\n"
    both = converted(text, tmp_path, "f").decode()
    assert both.count("_d2s.if_stmt") == 2
    one = converted(text, tmp_path, "B.f").decode()
    assert "        if self: a = 1\n" in one and one.count("_d2s.if_stmt") == 1
    nested = "def f(x):\n    if x: pass\n    def g(y):\n        if y: pass\n"
    inner = converted(nested, tmp_path, "f.g").decode()
    assert "    if x: pass\n" in inner and inner.count("_d2s.if_stmt") == 1
    with pytest.raises(text_file.UsageError, match="has no function missing"):
        converted(text, tmp_path, "missing")


LAYOUTS = (GOLDEN / "layouts.txt").read_text().split("-----\n")


@pytest.mark.parametrize("text", LAYOUTS)
def test_layouts(text: str, tmp_path: Path) -> None:
    """The command checks the trees itself; here: no comment is lost, and converting is deterministic."""
    result = converted(text, tmp_path).decode()
    assert result != text and comments(result) == comments(text)
    assert converted(text, tmp_path).decode() == result
    for name in ("y", "z", "w"):
        assert result.count(f"{name}  =  1") == text.count(f"{name}  =  1")


@pytest.mark.parametrize("module", [
    tokenize, io, os, *(pytest.param(one, marks=pytest.mark.slow) for one in (ast, argparse)),
], ids=lambda module: module.__name__)
def test_real_files_keep_all_comments(module: Any, tmp_path: Path) -> None:
    source = Path(module.__file__).read_bytes()
    result = converted(source, tmp_path)
    assert comments(result.decode()) == comments(source.decode())
    assert result.count(b"_d2s.if_stmt") > 0 or b"    if " not in source
