"""Where generated code came from: every node carries its place in the user's file, every generated frame maps back.

A gast node's ``lineno``/``col_offset`` are its place in the *user's* file, from `dy2static.source` on and through all
transforms; a node made by a transform gets its place with `copy_origin`, one without inherits its parent's.
After generation the text is parsed again: both trees are equal, so walking them side by side gives the exact map.
"""

from __future__ import annotations

import ast
import bisect
import collections
import heapq
import itertools
import linecache
import os
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import gast
import torch

import runtime
from dy2static.names import is_generated
from dy2static.nodes import children as nodes_in
from dy2static.nodes import inner_fields, walk
from runtime.ir.location import Location

_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
Span = tuple[int, int, int, int]


_TORCH_TRAINING = tuple(os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), name) for name in (
    "optim" + os.sep, os.path.join("amp", "grad_scaler.py"), os.path.join("utils", "_contextlib.py"),
    os.path.join("_dynamo", "eval_frame.py")))
"""Optimizers and scalers, and what stands around their methods."""
_TORCH_FUNCTIONS = tuple(os.path.join(os.path.dirname(os.path.abspath(torch.__file__)), *path) for path in (
    ("functional.py",), ("_tensor.py",), ("_jit_internal.py",), ("nn", "functional.py"), ("nn", "utils", "rnn.py"),
    ("nn", "utils", "clip_grad.py"),
    ("nn", "modules"), ("signal", "windows"), ("ao",), ("_lobpcg.py",), ("_lowrank.py",), ("_linalg_utils.py",),
))  # fmt: skip
IN_PYTHON = tuple(
    os.path.join(os.path.dirname(os.path.abspath(__file__)), "operators", *name) for name in (
        ("builtins", "itertools_in_python.py"), ("builtins", "sequences_in_python.py"),
        ("builtins", "scalers_in_python.py"), ("builtins", "ragged_in_python.py"),
        ("builtins", "transformer_in_python.py"), ("builtins", "statistics_in_python.py"),
        ("builtins", "json_in_python.py"), ("builtins", "faulty_calls_in_python.py"),
        ("iteration", "iterators_in_python.py"),
        ("values", "sequences_in_python.py"), ("values", "texts_in_python.py"),
        ("calls", "numpy_in_python.py"), ("calls", "shown_in_python.py"), ("calls", "tensors_in_python.py"),
        ("calls", "keyed_in_python.py"), ("calls", "named_tuples_in_python.py")))  # fmt: skip
"""Files with our own functions that are converted, where the user calls C code."""
STANDARD_CONVERTED = tuple(os.path.abspath(str(module.__file__)) for module in (bisect, collections, heapq))
"""Files of the standard library whose functions compare what they are given, or read and change containers."""


def copy_origin(new: Any, old: gast.AST) -> Any:
    """Give ``new``, and what is under it and has none yet, the place of ``old`` in the user's file; returns ``new``.

    >>> call = gast.parse("\\n  f(x)".replace("  ", "")).body[0].value
    >>> copy_origin(gast.Tuple([gast.Constant(1, None)], gast.Load()), call).elts[0].lineno
    2
    """
    if getattr(old, "lineno", None) is None:
        return new
    place = {name: getattr(old, name, None) for name in _PLACE}
    todo = list(new) if isinstance(new, list) else [new]
    while todo:
        part = todo.pop()
        if part._attributes and part.__dict__.get("lineno") is None:
            part.__dict__.update(place)
        todo += nodes_in(part)
    return new


def strip_origin(tree: Any) -> Any:
    """Take the places off all nodes of ``tree`` (a quoted template has none in the user's file); returns it."""
    for node in walk(tree):
        for name in _PLACE:
            node.__dict__.pop(name, None)
    return tree


@dataclass(frozen=True)
class Place:
    """What a piece of generated code stands for: a place in the user's file and the user function around it."""

    line: int
    column: int
    end_line: int
    end_column: int
    function: str


Packed = tuple[int, int, int, int, str]
"""A Place. A map has hundreds, and lives as long as the process: tuples cost the garbage collector nothing."""


@dataclass
class OriginMap:
    """The map from one generated file to the user's file."""

    file: str
    source_lines: list[str]
    spans: dict[Span, Packed] = field(default_factory=dict)
    lines: dict[int, Packed] = field(default_factory=dict)
    lambda_lines: set[int] = field(default_factory=set)
    made_names: frozenset[str] = frozenset()
    """The names in it that are not the user's."""
    root: str = ""
    """Which code it was made from (see `root_of`)."""

    def made(self, name: str) -> bool:
        """Whether ``name`` is no name of the user's here."""
        return name in self.made_names or is_generated(name)

    def place(self, code: CodeType, instruction: int, line: int | None) -> Place | None:
        """The user's place of an instruction: exact where Python records columns (3.11), else its statement's."""
        span = span_of(code, instruction)
        if span is not None and span in self.spans:
            return Place(*self.spans[span])
        packed = self.lines.get(line or code.co_firstlineno)
        if packed is None:
            return None
        place = Place(*packed)
        is_lambda = code.co_name == "<lambda>" and code.co_firstlineno in self.lambda_lines
        return replace(place, function="<lambda>") if is_lambda else place

    def location(self, code: CodeType, instruction: int, line: int | None) -> Location | None:
        place = self.place(code, instruction, line)
        if place is None:
            return None
        text = source_line(self.source_lines, place.line)
        return Location(self.file, place.line, characters(text, place.column), place.function, text)


def source_line(lines: list[str], line: int) -> str:
    return lines[line - 1].rstrip("\r\n") if 0 < line <= len(lines) else ""


def characters(text: str, column: int) -> int:
    """The column in characters of a column in UTF-8 bytes, as ast counts them.

    >>> characters("é = x", 5)
    4
    """
    return len(text.encode("utf-8", "surrogatepass")[:column].decode("utf-8", "replace"))


def build_map(
    tree: ast.AST, generated: ast.AST, file: str, source_lines: list[str], function: str, lambdas: set[tuple[int, int]],
    made_names: frozenset[str] = frozenset(),
) -> OriginMap:
    """Walk ``tree`` (places in the user's file) beside ``generated`` (places in the generated file).

    ``function`` names the user's function around all of it, ``lambdas`` the places where the user wrote a lambda;
    ``made_names`` are not the user's.
    """
    result = OriginMap(file, source_lines, made_names=made_names)

    spans, lines, statement = result.spans, result.lines, (ast.stmt, ast.ExceptHandler)

    def walk(old: Any, new: Any, place: Packed | None, owner: str) -> None:
        kind, values, mine = type(old), old.__dict__, new.__dict__
        line = values.get("lineno")
        if kind in _OWNERS:
            if kind is not ast.Lambda:
                owner = owner if result.made(old.name) else old.name
            elif (line, old.col_offset) in lambdas:
                owner = "<lambda>"
                result.lambda_lines.add(new.lineno)
        if line is not None:
            column, end_column = values.get("col_offset") or 0, values.get("end_col_offset")
            place = line, column, values.get("end_lineno") or line, column if end_column is None else end_column, owner
        elif place is not None and place[4] != owner:
            place = (*place[:4], owner)
        if place is not None and "lineno" in mine:
            first, last = mine["lineno"], mine["end_lineno"]
            spans[first, mine["col_offset"], last, mine["end_col_offset"]] = place
            if isinstance(new, statement):
                for number in range(first, last + 1):
                    lines[number] = place
        for name in _placed_fields[kind]:
            value = values.get(name)
            if value:
                if type(value) is list:
                    for left, right in zip(value, mine[name], strict=True):
                        if isinstance(left, ast.AST):
                            walk(left, right, place, owner)
                elif isinstance(value, ast.AST):
                    walk(value, mine[name], place, owner)

    walk(tree, generated, None, function)
    return result


_OWNERS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


class _PlacedFields(dict[Any, tuple[str, ...]]):
    def __missing__(self, kind: Any) -> tuple[str, ...]:
        found = self[kind] = tuple(name for name in inner_fields[kind] if name not in ("op", "ops"))
        return found


_placed_fields = _PlacedFields()
"""By class of nodes: the fields that may hold nodes with places."""


_maps: dict[str, OriginMap] = {}


def register(path: str, origins: OriginMap) -> None:
    """Make frames of the generated file ``path`` known to `location_of_frame`."""
    _maps[path] = origins
    _frames_of.pop(path, None)


def is_generated_file(path: str) -> bool:
    return path in _maps


def root_of(code: CodeType) -> str:
    """Which of the user's functions ``code`` is, or was made from: nested ones are made with the one around them."""
    origins = _maps.get(code.co_filename)
    return origins.root if origins is not None else f"{code.co_filename}:{code.co_firstlineno}:{code.co_name}"


def map_of(path: str) -> OriginMap | None:
    """The map of a generated file."""
    return _maps.get(path)


def is_made(name: str, code: CodeType) -> bool:
    """Whether ``name`` is no name of the user's in this code, but one that the conversion made."""
    origins = _maps.get(code.co_filename)
    return is_generated(name) if origins is None else origins.made(name)


def location_of_frame(frame: FrameType) -> Location | None:
    """The user's place that a generated frame is executing; None for a frame of any other code."""
    return location_of_code(frame.f_code, frame.f_lasti, frame.f_lineno)


def location_of_code(code: CodeType, instruction: int, line: int | None) -> Location | None:
    """As `location_of_frame`, from the parts that a traceback entry has."""
    key = id(code), instruction, line
    known = _known.get(key)
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        origins = _maps.get(code.co_filename)
        known = _known[key] = code, origins.location(code, instruction, line) if origins is not None else None
    return known[1]


_MOST_KNOWN = 65_536
_known: dict[tuple[int, int, int | None], tuple[CodeType, Location | None]] = {}
"""Places by instruction. By the identity of the code, which is kept for that: hashing it takes longer than the rest,
and code objects of two files that read alike are equal, where their places are not."""


def span_of(code: CodeType, instruction: int) -> Span | None:
    """The source range of an instruction; Python 3.10 does not record it."""
    if sys.version_info < (3, 11) or instruction < 0:
        return None
    line, end_line, column, end_column = next(itertools.islice(code.co_positions(), instruction // 2, None))
    if line is None or end_line is None or column is None or end_column is None:
        return None
    return line, column, end_line, end_column


def user_location() -> Location | None:
    """The innermost place of the user's code on the current stack, be it converted or plain."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        place = _frames_of.get(file) or _frames_of.setdefault(file, _place_in(file))
        if place is not _passed:
            location = place(frame)
            if location is None or not _is_called(location.file):
                return location
        frame = frame.f_back
    return None


def _place_in(file: str) -> Callable[[FrameType], Location | None]:
    """What gives the place that a frame of a file is at: ``_passed`` where it is nobody's."""
    if file in _maps:
        return location_of_frame
    return _plain_location if is_user_file(file) else _passed


def _passed(frame: FrameType) -> Location | None:
    """Frames of libraries and of this project are passed over: this is only compared with."""
    raise AssertionError(frame)


_frames_of: dict[str, Callable[[FrameType], Location | None]] = {}
"""What was found out about files, as every operator that is recorded asks for its place, many frames up."""


@cache
def whole_path(file: str) -> str:
    """A file as code objects name it, with nothing to resolve: an entry of ``sys.path`` may be ``src/../lib``."""
    return file if file.startswith("<") else os.path.abspath(file)


def is_torch_function_file(file: str) -> bool:
    """Whether a file holds torch's own functions over tensors."""
    return whole_path(file).startswith(_TORCH_FUNCTIONS)


@cache
def _is_called(file: str) -> bool:
    """Whether a file is converted, but not the user's to change: what goes wrong there stands where the user calls."""
    file = whole_path(file)
    ours = file in IN_PYTHON or file in STANDARD_CONVERTED
    return ours or is_torch_function_file(file) or file.startswith(_TORCH_TRAINING)


def place_of_error(error: BaseException) -> Location | None:
    """The innermost place of the user's converted code that an exception passed through.

    None where it only passed through a block of ours that the user's code led to: the trace stands at that place.
    """
    found: Location | None = None
    entry = error.__traceback__
    while entry is not None:
        place = location_of_code(entry.tb_frame.f_code, entry.tb_lasti, entry.tb_lineno)
        if place is not None and not _is_called(place.file):
            found = place
        entry = entry.tb_next
    return found


def _plain_location(frame: FrameType) -> Location:
    code = frame.f_code
    line = frame.f_lineno or code.co_firstlineno
    text = linecache.getline(code.co_filename, line, frame.f_globals).rstrip("\r\n")
    span = span_of(code, frame.f_lasti)
    column = characters(text, span[1]) if span and span[0] == line else len(text) - len(text.lstrip())
    return Location(code.co_filename, line, column, code.co_name, text)


def _library_folders() -> tuple[str, ...]:
    paths = {sysconfig.get_paths()[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    paths.add(str(Path(ast.__file__).parent))
    paths.update(str(Path(path).parent) for path in (__file__, str(runtime.__file__)))
    paths.update([*map(os.path.abspath, paths)])
    return tuple(sorted(path.rstrip("/\\") + folder for path in paths for folder in ("/", "\\")))


@cache
def is_user_file(path: str) -> bool:
    """True for code that is neither a library's, the interpreter's nor this project's own."""
    if path.startswith("<"):
        return path.startswith(("<stdin>", "<ipython", "<python-input", "<doctest"))
    path = whole_path(path)
    return not path.startswith(_library_folders()) and "site-packages" not in path and "dist-packages" not in path
