"""Generated source parses back to the same tree: syntax by syntax, and over the standard library's own files."""

from __future__ import annotations

import ast
import math
import sys
import sysconfig
import tokenize
import warnings
from pathlib import Path
from typing import Any

import gast
import pytest

from dy2static.errors import ConversionError
from dy2static.generate import canonical, first_difference, generate, to_source

STDLIB = Path(sysconfig.get_paths()["stdlib"])

SNIPPETS = r"""
def f(a, b=1, /, c=2, *, d, e=3): pass
def f(a, /): pass
def f(a, b, /, c, d=1): pass
def f(a: int = 1, *args: str, **kw: (int, str)) -> (yield): pass
def f(*, a=1, **k): return
lambda: 0
lambda x, /, y=1, *z, w=(yield), **k: (x, y)
(lambda: 0)()
f(lambda: 1, lambda x: x, *a, k=lambda: 2)
x = yield
x = yield 1, *y
x = yield from (a, b)
x = await (await y) ** 2
-await x
x[a:b, ::c, ...]
x[(1, 2):3]
x[()]
x[(*a, b)]
x[a := 1]
x[lambda: 1:2]
return_ = (a := 1) + (b := 2)
(y := 1)
f(a := 1, b=(c := 2))
f(x for x in y)
f((x for x in y), 1)
f(*(x for x in y), **(a or b))
class A((x for x in y), metaclass=M, **k): pass
class A(*bases): "doc"
[(a, b) for a, in c if d if (e, f) async for g in h]
{a: b for a, b in c if lambda: 0}
{**a, **(b or c), 1: 2, **{}}
{*a, *b}
[*a, *(b or c)]
{a if b else c: d if e else f}
(a if b else c) if d else (e if f else g)
(lambda: 0) if (lambda: 1) else (lambda: 2)
a or b and not c or (d or e)
not (not a)
(not a) in b
a < (b < c) < d
a is not b not in c
-x ** -y ** z
(-x) ** y
(a ** b) ** c
a ** (b ** c)
-(-1) - -1
~-+x
a - (b - c) - d
a @ b % (c // d)
a << (b + c) | d & (e ^ f)
(1).real + 1.5.real + 1j .imag
1e400 - 1e400j
'a'.b, b'a'.b, (...).c, None.d, True.e
0xfffffffffffffffffffffffffffffffffffffffffffffffffffff
'\x00\n\t\\ \' " \ud800 é \u2028'
b'\x00\xff\'"'
u'kind'
x: int
(x): int = 1
a.b: int
a[b]: c = yield
x: (int, str) = (1, 2)
x += 1, *y
x **= yield
a, *b = c, = d
del (a, b), c[d], (e)
del a, b
with a, b as c, d as (e, f): pass
with (a, b): pass
with ((a, b)): pass
with (a, b) as c: pass
with (a as b, c): pass
with (yield): pass
async def f():
    async with a as b: pass
    async for x in y: pass
    else: pass
    return [x async for x in y]
for a, *b in c, *d: pass
else: pass
for (a, b), in c: break
while (a := b): continue
else: pass
if a: pass
elif b: pass
else:
    if c: pass
    else: pass
try: a
except (A, B) as e: raise
except: raise A from None
else: b
finally: c
try: pass
finally: pass
raise (yield)
assert (a, b), (c, d)
assert a
global_ = 1
def f():
    global a, b
    nonlocal c
import a.b.c as d, e
from . import a
from ...b import (c as d, e)
from a import *
@a.b[c](d)
@(x := y)
@(lambda f: f)
class C: pass
match x, y:
    case 1 | -1 | 1.5 | -1 + 2j | 'a' 'b' | b'c' | None | True: pass
    case [a, *_, (b | c) as d, ()]: pass
    case (1, [2]), *rest: pass
    case {'a': 1, -1: x.y, **rest} if rest: pass
    case {}: pass
    case A.B(1, 2, k=(C() | D()) as e): pass
    case x.y | (z): pass
    case (1 as a) | (2 as a): pass
    case _: pass
match = type = case = _ = 1
match (x)[y]
match x:
    case (yield): pass
f''
f'a{b}c{{}}'
f'{a!r:>{width}.{prec}}' f'{b=}' 'tail'
f'{ {1: 2}[1] }{(lambda: 1)}{a if b else c}{x, y}{a != b}'
f"{'a'}{'it''s'}" '"' "'"
f'''{"a"
}''' "'"
f'\n{x}\\\x00{y}\N{BULLET}'
f"{f'{f"{1}"}'}" if 0 else 1
(f'{x}').y
f'{x:%H:%M}'
"""


def snippets() -> list[str]:
    """The statements of SNIPPETS that this Python knows, grouped by their first lines."""
    found: list[str] = []
    for line in SNIPPETS.strip().splitlines():
        continues = line[0] == " " or line.startswith(("el", "except", "finally", "}"))
        if found and (continues or found[-1].splitlines()[-1].startswith("@")):
            found[-1] += "\n" + line
        else:
            found.append(line)
    return found


def parses(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            ast.parse(text)
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("text", [text for text in snippets() if parses(text)])
def test_syntax_round_trips(text: str) -> None:
    tree = ast.parse(text)
    assert ast.dump(ast.parse(to_source(tree))) == ast.dump(tree)
    assert ast.dump(ast.parse(to_source(gast.ast_to_gast(tree)))) == ast.dump(tree)


def test_nearly_all_snippets_are_syntax_of_this_python() -> None:
    """Only what newer Pythons added may be left out, so that a typing slip cannot empty the test above."""
    refused = [text for text in snippets() if not parses(text)]
    assert len(refused) <= 6, refused
    assert len(snippets()) > 100


@pytest.mark.skipif(sys.version_info < (3, 11), reason="except* is Python 3.11 syntax")
def test_exception_groups() -> None:
    text = "try:\n    a\nexcept* A as e:\n    b\nexcept* (C, D):\n    c\nelse:\n    d\nfinally:\n    e\n"
    assert to_source(ast.parse(text)) == text


@pytest.mark.skipif(sys.version_info < (3, 12), reason="type parameters are Python 3.12 syntax")
@pytest.mark.parametrize(
    "text",
    [
        "type A = int\n",
        "type A[T, *Ts, **P] = (T, Ts)\n",
        "class C[T: (int, str)](Base):\n    pass\n",
        "def f[T: int, *Ts](x: T, *y: *Ts) -> T:\n    pass\n",
        "f'{f'{'a\\n'}'}'\n",
    ],
)
def test_python_3_12(text: str) -> None:
    tree = ast.parse(text)
    assert ast.dump(ast.parse(to_source(gast.ast_to_gast(tree)))) == ast.dump(tree)


@pytest.mark.skipif(sys.version_info < (3, 13), reason="defaults of type parameters are Python 3.13 syntax")
def test_python_3_13() -> None:
    tree = ast.parse("def f[T: int = bool, *Ts = *tuple[int], **P = [int]](): pass")
    assert ast.dump(ast.parse(to_source(tree))) == ast.dump(tree)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-1, "-1"),
        (-0.0, "-0.0"),
        (math.inf, "1e1000"),
        (-math.inf, "-1e1000"),
        (math.nan, "1e1000 - 1e1000"),
        (1 + 2j, "1.0 + 2j"),
        (1 - 2j, "1.0 - 2j"),
        (complex(0, -2), "0.0 - 2j"),
        ((1, (-2, "a")), "1, (-2, 'a')"),
        (frozenset(), "frozenset()"),
        (frozenset([1]), "frozenset({1})"),
        (10**5000, hex(10**5000)),
    ],
    ids=[str(number) for number in range(12)],
)
def test_constants_that_only_a_made_tree_holds(value: Any, text: str) -> None:
    assert to_source(gast.Constant(value, None)) == text + "\n"
    result = eval(text)
    assert type(result) is type(value) and (value == 10**5000 == result or repr(result) == repr(value))


def test_empty_blocks_sets_and_string_parts() -> None:
    assert to_source(gast.While(gast.Constant(True, None), [], [])) == "while True:\n    pass\n"
    assert eval(to_source(gast.Set([]))) == set()
    pieces = [gast.Constant(part, None) for part in ("a", "", "{b}")]
    assert eval(to_source(gast.JoinedStr(pieces))) == "a{b}"


DOCS = ["one line", "two\nlines\n", 'ends with "', 'has """ inside', "back\\slash", "\ttab\n", "\x0c"]


@pytest.mark.parametrize("doc", DOCS)
def test_docstrings_keep_their_value(doc: str) -> None:
    tree = ast.parse(f"def f():\n    {doc!r}")
    assert ast.get_docstring(ast.parse(to_source(tree)).body[0], clean=False) == doc  # type: ignore[arg-type]


def test_a_multi_line_docstring_is_readable() -> None:
    assert '"""two\nlines"""' in to_source(ast.parse("def f():\n    'two\\nlines'"))


def test_a_tree_that_has_no_source_is_refused() -> None:
    with pytest.raises(ConversionError, match="does not stand for its tree"):
        to_source(gast.Name("not a name", gast.Load(), None, None))
    with pytest.raises(ConversionError, match="no literal form"):
        to_source(gast.Constant(complex(0.0, -0.0), None))
    with pytest.raises(ConversionError, match="became"):
        to_source(gast.Expr(gast.Name("a; b", gast.Load(), None, None)))


def test_places_survive_and_the_input_is_left_alone() -> None:
    tree = gast.parse("x = (1 +\n     y)")
    before = gast.dump(tree, include_attributes=True)
    _, plain, parsed = generate(tree)
    assert gast.dump(tree, include_attributes=True) == before
    assert plain.body[0].value.right.lineno == 2  # type: ignore[attr-defined]
    assert parsed.body[0].value.right.lineno == 1  # type: ignore[attr-defined]


def test_differences_are_found_and_named() -> None:
    trees = [canonical(ast.parse(text)) for text in ("f(0.0)", "f(-0.0)", "f(0)", "f(0.0)")]
    assert first_difference(trees[0], trees[3]) == ""
    assert ".body[0].value.args[0]" in first_difference(trees[0], trees[1])
    assert first_difference(trees[0], trees[2])


def stdlib_files(step: int) -> list[Path]:
    files = sorted(file for file in STDLIB.rglob("*.py") if "site-packages" not in file.parts)
    return files[::step]


def check_file(file: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # old files hold invalid escapes
        try:
            with tokenize.open(file) as stream:
                tree = ast.parse(stream.read())
        except (SyntaxError, UnicodeDecodeError):
            return  # a file of the parser's own tests
        assert ast.dump(ast.parse(to_source(tree))) == ast.dump(tree), file


@pytest.mark.slow
def test_the_standard_library_a_sample() -> None:
    files = stdlib_files(max(1, len(stdlib_files(1)) // 60))
    assert len(files) >= 60
    for file in files:
        check_file(file)


@pytest.mark.slow
def test_the_standard_library_all_of_it() -> None:
    for file in stdlib_files(1):
        check_file(file)
