"""Errors of a running Program, shown where they belong: at the user's line.

An exception passes through generated code; its frames are taken out of the traceback, and a frame with the user's file,
line and function is put in, as template engines do. Type and message stay what they are.
"""

from __future__ import annotations

import ast
import builtins
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

from runtime.errors import Dy2StaticError, TraceError
from runtime.ir import Location, Operator

E = TypeVar("E", bound=BaseException)


FULL = "DY2STATIC_FULL_TRACEBACK"
"""The environment variable that lets tracebacks show every frame."""

_OWN = str(Path(__file__).parents[1]) + os.sep
_RULES = (str(Path(__file__).parent) + os.sep, str(Path(__file__).parents[1] / "ops") + os.sep)
"""Where operators are computed that PyTorch does not have: their errors are the user's."""


def shows_all() -> bool:
    """Whether the user asked to see every frame."""
    return os.environ.get(FULL, "") not in ("", "0")


def trimmed(error: E, *own: str) -> E:
    """The exception itself, its traceback without our frames before the first that is somebody else's.

    ``own``: more folders of ours. A traceback with frames of ours only stays: then the fault is ours; unless the error
    is one of ours, which says all that a user needs.
    """
    if shows_all():
        return error
    folders = (_OWN, *own)
    entry = error.__traceback__
    while entry is not None and entry.tb_frame.f_code.co_filename.startswith(folders):
        entry = entry.tb_next
    if entry is not None or isinstance(error, Dy2StaticError):
        error.__traceback__ = entry
    return error


def locate(error: E, filename: str, operators: Sequence[Operator | None]) -> E:
    """The exception itself, its traceback rewritten: frames of ``filename`` become frames of the user's source.

    ``operators`` are those behind the lines of the generated file. An exception that a handler of the user's would have
    caught in eager is none: TraceError (D2S229) is raised from it. To be called where the exception was caught, by the
    function that raises it again (its own frame, the first, is left out: raising adds it).
    """
    entries: list[TracebackType] = []
    entry = error.__traceback__ and error.__traceback__.tb_next
    _as_users(error, _operator_in(error, filename, operators))
    if shows_all():
        return error
    while entry is not None:
        file = entry.tb_frame.f_code.co_filename
        if file != filename:
            if not (entries and file.startswith(_RULES)):
                entries.append(entry)
        else:
            operator = operators[entry.tb_lineno - 1]
            if operator is not None and operator.location is not None:
                entries.append(_frame_at(operator.location))
        entry = entry.tb_next
    return _with_entries(error, entries)


def locate_at(error: E, operators: Sequence[Operator]) -> E:
    """The exception itself, its traceback one of the user's source: from Operators that it came through, the innermost
    first. To be called as ``locate`` is."""
    _as_users(error, operators[0] if operators else None)
    if shows_all() or not operators:
        return error
    places = dict.fromkeys(op.location for op in reversed(operators) if op.location is not None)
    return _with_entries(error, [_frame_at(place) for place in list(places)[-1:]])


def _with_entries(error: E, entries: Sequence[TracebackType]) -> E:
    rebuilt: TracebackType | None = None
    for one in reversed(entries):
        rebuilt = TracebackType(rebuilt, one.tb_frame, one.tb_lasti, one.tb_lineno)
    return error.with_traceback(rebuilt)


def _operator_in(error: BaseException, filename: str, operators: Sequence[Operator | None]) -> Operator | None:
    """The innermost Operator that an exception came through."""
    operator = None
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == filename:
            operator = operators[entry.tb_lineno - 1] or operator
        entry = entry.tb_next
    return operator


def _as_users(error: BaseException, operator: Operator | None) -> None:
    """Say an exception of an Operator in the words of the user's code, or refuse one that its handlers should see."""
    caught = _caught(error, operator)
    if caught is not None:
        raise caught from error
    if isinstance(error, IndexError):
        _reword(error, operator)


def _caught(error: BaseException, operator: Operator | None) -> TraceError | None:
    """The error for an exception that a ``try`` of the user's would have caught: no handler sees a running Program."""
    for name in str(operator.attrs.get("caught", "")).split() if operator is not None else ():
        kind = getattr(builtins, name.lstrip("!"), ())
        if isinstance(kind, type) and isinstance(error, kind):
            if name.startswith("!"):
                return None
            return TraceError(
                f"this raises {type(error).__name__} ({error}) while the Program runs, where the except "
                f"{kind.__name__} around it cannot catch it",
                hint="Test the condition with if instead, or move the try out of the converted function.",
                code="D2S229", location=operator.location if operator is not None else None,
            )
    return None


_OUT_OF_RANGE = re.compile(r"select\(\): index (-?\d+) out of range for tensor of size \[([^]]*)\] at dimension (\d+)")


def _reword(error: IndexError, operator: Operator | None) -> None:
    """An index of a subscript that is out of range, in the words of a subscript: its Operator is a ``select``."""
    place: int | None = operator.attrs.get("subscript") if operator is not None else None
    said = _OUT_OF_RANGE.match(str(error))
    if place is None or said is None:
        return
    index, sizes, dim = said.groups()
    size = sizes.split(", ")[int(dim)]
    error.args = (f"index {index} is out of bounds for dimension {place} with size {size}",)


class _Marker(Exception):
    """Raised at the user's place, for the sake of its frame."""


def _frame_at(location: Location) -> TracebackType:
    """A traceback entry that stands at ``location``."""
    line = max(location.line, 1)
    text = location.text
    start = len(text[: len(text) - len(text.lstrip())].encode())
    end = max(len(text.rstrip().encode()), start)
    place: dict[str, Any] = {"lineno": line, "end_lineno": line, "col_offset": start, "end_col_offset": end}
    statement = ast.Raise(exc=ast.Name(id="__marker__", ctx=ast.Load(), **place), cause=None, **place)
    code = compile(ast.Module(body=[statement], type_ignores=[]), location.file, "exec")
    code = code.replace(co_name=location.function or "<module>")
    if sys.version_info >= (3, 11):
        code = code.replace(co_qualname=location.function or "<module>")
    namespace: dict[str, Any] = {"__name__": "__user__", "__marker__": _Marker}
    try:
        exec(code, namespace)  # runs one statement of ours: raise __marker__
    except _Marker as marker:
        assert marker.__traceback__ is not None and marker.__traceback__.tb_next is not None
        found = marker.__traceback__.tb_next
        marker.__traceback__ = None
    namespace.clear()
    return found
