"""A function object -> its source: exactly its own tree, with the places it has in the user's file.

A function is found by comparing code objects: so line continuations, strings over several lines and several lambdas on
one line need no care, and a file that changed since it was imported is noticed. Its own lines are tried first
(`own_lines`); the whole file is parsed where they do not compile to the very same code.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import dataclasses
import functools
import inspect
import linecache
import sys
import textwrap
import types
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from importlib.machinery import SourceFileLoader
from typing import Any

import gast

from dy2static.both_trees import to_gast
from dy2static.code_match import same_code, similar_code
from dy2static.errors import SourceUnavailable
from dy2static.names import PREFIX
from dy2static.nodes import children, walk
from dy2static.own_lines import own_lines
from runtime.ir.location import Location

FUTURE_FLAGS = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)
LAMBDA_NAME = PREFIX + "lambda"
Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


@dataclass(frozen=True)
class FunctionSource:
    """One function's source. ``tree`` is a fresh gast FunctionDef (a lambda is ``def <name>: return body``)
    without decorators; its line numbers and columns are those of ``file``."""

    file: str
    name: str
    qualname: str
    module: str
    first_line: int
    text: str
    tree: gast.FunctionDef
    freevars: tuple[str, ...]
    class_name: str | None
    is_lambda: bool
    lines: list[str]
    lambdas: frozenset[tuple[int, int]]

    def location(self, node: gast.AST | None = None) -> Location:
        """The place of ``node`` (or of the function) in the user's file."""
        line = getattr(node, "lineno", None)
        column = getattr(node, "col_offset", 0) if line is not None else self.tree.col_offset
        line = line if line is not None else self.tree.lineno
        text = self.lines[line - 1].rstrip("\r\n") if line <= len(self.lines) else ""
        return Location(self.file, line, len(text.encode()[:column].decode(errors="replace")), self.name, text)


@dataclass(frozen=True)
class Candidate:
    """A function found in a file: its node, the class it stands in, and the code that its text compiles to."""

    node: Function
    class_name: str | None
    first_line: int
    code: types.CodeType | None


def get_source(function: object, unwrap: bool = False) -> FunctionSource:
    """The source of a plain function, bound method or lambda.

    ``unwrap`` follows ``__wrapped__`` (set by ``functools.wraps``) to the function inside a wrapper.
    Raises SourceUnavailable, with the reason, for anything without Python source, and for source that is not
    the text which this function was compiled from.
    """
    function = inspect.unwrap(function) if unwrap and callable(function) else function
    if isinstance(function, types.MethodType):
        function = function.__func__
    if not isinstance(function, types.FunctionType):
        raise SourceUnavailable(f"{function!r} is not a Python function", hint="Only functions and methods convert.")
    lines = file_lines(function)
    candidate = _find(function, lines)
    file, module = function.__code__.co_filename, function.__module__ or ""
    source = describe(candidate, file, lines, module, function.__name__, function.__qualname__)
    return dataclasses.replace(source, freevars=function.__code__.co_freevars)


def describe(
    candidate: Candidate, file: str, lines: list[str], module: str, name: str, qualname: str
) -> FunctionSource:
    """The source of a function that was found in ``lines``, the text of ``file`` (see `candidates`)."""
    node = candidate.node
    end = node.end_lineno or node.lineno
    return FunctionSource(
        file=file,
        name=name,
        qualname=qualname,
        module=module,
        first_line=candidate.first_line,
        text=textwrap.dedent("".join(lines[candidate.first_line - 1 : end])),
        tree=function_tree(node),
        freevars=candidate.code.co_freevars if candidate.code is not None else (),
        class_name=candidate.class_name,
        is_lambda=isinstance(node, ast.Lambda),
        lines=lines,
        lambdas=frozenset((n.lineno, n.col_offset) for n in walk(node) if isinstance(n, ast.Lambda)),
    )


def file_lines(function: types.FunctionType) -> list[str]:
    """The lines of the file, notebook cell or prompt that ``function`` was written in."""
    path = function.__code__.co_filename
    linecache.checkcache(path)
    lines = linecache.getlines(path, function.__globals__)
    if not lines:
        raise _missing(function)
    return lines


def _missing(function: types.FunctionType) -> SourceUnavailable:
    path = function.__code__.co_filename
    why = f"there is no file {path}"
    if path.startswith("<"):
        why = "it was made by exec, typed at a prompt, or given to python by -c or on standard input"
    return SourceUnavailable(
        f"the source of {function.__qualname__} is not available: {why}",
        hint="Write the function in a file and import it, or exclude it with not_to_static.",
    )


def function_tree(node: Function) -> gast.FunctionDef:
    """A gast copy of ``node``, without decorators; ``lambda x: y`` becomes ``def _d2s_lambda(x): return y``."""
    tree = to_gast(node)
    if isinstance(tree, gast.Lambda):
        body = gast.copy_location(gast.Return(tree.body), tree.body)
        function = gast.FunctionDef(LAMBDA_NAME, tree.args, [body], [], None, None, [])
        return gast.copy_location(function, tree)
    tree.decorator_list = []
    return tree


def _find(function: types.FunctionType, lines: list[str]) -> Candidate:
    code = function.__code__
    flags = code.co_flags & FUTURE_FLAGS
    alone = _in_own_lines(code, lines, flags)
    if alone is not None:
        return alone
    try:
        found = candidates("".join(lines), code.co_filename, flags)
    except (SyntaxError, ValueError) as error:
        raise _stale(function, f"it no longer parses ({error})") from error
    there = [c for c in found if c.first_line == code.co_firstlineno and c.code]
    here = [c for c in there if c.code and c.code.co_name == code.co_name]
    renamed = [c for c in there if c not in here]  # a decorator may have renamed the code, as torch.no_grad() does
    for positions in (True, False):
        for candidate in (*here, *renamed):
            assert candidate.code is not None
            if same_code(candidate.code, code.replace(co_name=candidate.code.co_name), positions):
                return candidate
    loader = getattr(function.__globals__.get("__spec__"), "loader", function.__globals__.get("__loader__"))
    if type(loader) is not SourceFileLoader:  # an import hook may have rewritten the code, as pytest does with asserts
        close = [c for c in here if c.code and similar_code(c.code, code)]
        if len(close) == 1:
            return close[0]
    if code.co_filename == "<string>":  # a name that everything shares: since Python 3.13, what python -c was given
        raise _missing(function)
    raise _stale(function, "the file has changed since it was imported")


def _in_own_lines(code: types.CodeType, lines: list[str], flags: int) -> Candidate | None:
    """The function in its own lines; None where they are not found, or compile to anything else, be it in a place."""
    for text in own_lines(code, lines):
        with contextlib.suppress(SyntaxError, ValueError):
            tree = parsed(text, code.co_filename)
            compiled = [one for one in _codes(_compile(tree, code.co_filename, flags))
                        if one.co_name == code.co_name and one.co_firstlineno == code.co_firstlineno]  # fmt: skip
            found = [(node, class_name) for node, class_name, line in _functions(tree)
                     if line == code.co_firstlineno and getattr(node, "name", "<lambda>") == code.co_name]  # fmt: skip
            if len(compiled) == len(found) == 1 and same_code(compiled[0], code, positions=True):
                return Candidate(*found[0], code.co_firstlineno, compiled[0])
            return None
    return None


def _stale(function: types.FunctionType, why: str) -> SourceUnavailable:
    code = function.__code__
    return SourceUnavailable(
        f"the source of {function.__qualname__} does not match the running code: {why}",
        hint="Restart Python, or reload the module, so that both are the same.",
        location=Location(code.co_filename, code.co_firstlineno, 0, code.co_name),
        code="D2S111",
    )


@lru_cache(maxsize=64)
def candidates(text: str, path: str, flags: int) -> tuple[Candidate, ...]:
    """Every function and lambda in ``text``, in order. Raises SyntaxError as Python does."""
    tree = parsed(text, path)
    found = _functions(tree)
    compiled = _compile(tree, path, flags)
    places = [(line, getattr(node, "name", "<lambda>")) for node, _, line in found]
    known, codes, count = set(places), dict[tuple[int, str], types.CodeType](), 0
    for code in _codes(compiled):
        if (code.co_firstlineno, code.co_name) in known:
            count += 1
            codes[code.co_firstlineno, code.co_name] = code
    if len(known) < len(places) or len(codes) < count:  # as two lambdas on one line have
        return _told_apart(text, path, flags, tree, compiled)
    return tuple(Candidate(node, class_name, line, codes.get(place))
                 for (node, class_name, line), place in zip(found, places))  # fmt: skip


def _functions(tree: ast.AST) -> list[tuple[Function, str | None, int]]:
    """Every function and lambda in order, with the class around it and its first line. On the way places in f-strings
    are mended."""
    found: list[tuple[Function, str | None, int]] = []
    todo: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while todo:
        node, class_name = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            found.append((node, class_name, decorators[0].lineno if decorators else node.lineno))
        elif isinstance(node, ast.ClassDef):
            class_name = node.name
        elif isinstance(node, ast.JoinedStr):
            fix_f_string_places(node)
        inner = [(child, class_name) for child in children(node) if type(child) not in _CHILDLESS]
        inner.reverse()
        todo += inner
    return found


_CHILDLESS = frozenset((
    ast.Name, ast.Constant, ast.alias, ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal,
    *ast.boolop.__subclasses__(), *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(),
    *ast.cmpop.__subclasses__(),
))  # fmt: skip


def _codes(code: types.CodeType) -> Iterator[types.CodeType]:
    todo = [code]
    while todo:
        one = todo.pop()
        yield one
        todo += [const for const in one.co_consts if isinstance(const, types.CodeType)]


def _told_apart(text: str, path: str, flags: int, tree: ast.Module, compiled: types.CodeType) -> tuple[Candidate, ...]:
    """The same for a text in which places do not tell functions apart: ``tree``, its f-strings mended, and its code."""
    twin = parsed(text, path)
    mark = text.count("\n") + text.count("\r") + 2  # twin's functions get line numbers that no line has
    found: list[tuple[Function, Any, str | None, int]] = []
    todo: list[tuple[ast.AST, ast.AST, str | None]] = [(tree, twin, None)]
    while todo:
        node, other, class_name = todo.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            decorators = getattr(node, "decorator_list", [])
            found.append((node, other, class_name, decorators[0].lineno if decorators else node.lineno))
            for place in [other, *getattr(other, "decorator_list", [])[:1]]:
                place.lineno = place.end_lineno = mark
                place.col_offset = place.end_col_offset = 0
            mark += 1
        elif isinstance(node, ast.ClassDef):
            class_name = node.name
        pairs = zip(children(node), children(other), strict=True)
        todo.extend(reversed([(child, child_twin, class_name) for child, child_twin in pairs]))
    codes = _codes_by_mark(compiled, _compile(twin, path, flags))
    result = []
    for node, other, class_name, line in found:  # a decorator that is a lambda carries the lambda's own mark
        first = (getattr(other, "decorator_list", None) or [other])[0].lineno
        code = codes.get((first, getattr(node, "name", "<lambda>")))
        result.append(Candidate(node, class_name, line, code))
    return tuple(result)


def _compile(tree: ast.AST, path: str, flags: int) -> types.CodeType:
    with without_warnings():
        code = compile(tree, path, "exec", flags=flags, dont_inherit=True)  # type: ignore[call-overload] # any AST
    assert isinstance(code, types.CodeType)
    return code


def parsed(text: str, path: str = "<unknown>") -> ast.Module:
    """The tree of some source text, without the warnings that Python gave when it was imported."""
    with without_warnings():
        return ast.parse(text, path)


@contextlib.contextmanager
def without_warnings() -> Iterator[None]:
    """While the block runs, what Python warns of in source text is not said again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        warnings.simplefilter("ignore", DeprecationWarning)  # an escape that is none, before Python 3.12
        yield


def _codes_by_mark(plain: types.CodeType, marked: types.CodeType) -> dict[tuple[int, str], types.CodeType]:
    """Code objects by mark and name of their twin. If equal constants were merged in one only, the twin's."""
    codes: dict[tuple[int, str], types.CodeType] = {}
    todo = [(plain, marked)]
    while todo:
        code, twin = todo.pop()
        codes.setdefault((twin.co_firstlineno, twin.co_name), code)
        inner = [const for const in code.co_consts if isinstance(const, types.CodeType)]
        inner_twins = [const for const in twin.co_consts if isinstance(const, types.CodeType)]
        todo.extend(zip(inner if len(inner) == len(inner_twins) else inner_twins, inner_twins, strict=True))
    return codes


def fix_f_string_places(tree: ast.AST) -> None:
    """Before Python 3.12 nodes inside an f-string have unreliable places: give them that of the f-string."""
    if sys.version_info >= (3, 12):
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            for part in ast.walk(node):
                if isinstance(part, ast.expr):
                    ast.copy_location(part, node)
