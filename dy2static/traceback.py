"""Tracebacks through generated code show the user's lines instead, as if the function had run unconverted.

    user.py:30, in main            ->  user.py:30, in main
    dy2static/static_function.py       user.py:12, in forward
    /tmp/.../forward_ab12.py
    dy2static/operators/if_stmt.py
    /tmp/.../forward_ab12.py

Raising adds the frames that an error goes through on its way out of us: they are marked ``__tracebackhide__``, which
pytest and IPython know, and `hide_entrances` leaves them out of what Python prints of an error that nobody caught.

Set the environment variable ``DY2STATIC_FULL_TRACEBACK=1`` to see every frame.
"""

from __future__ import annotations

import ast
import functools
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, TracebackType
from typing import Any

import runtime
from dy2static.names import PREFIX
from dy2static.origin import Place, is_generated_file, is_made, is_user_file, map_of, source_line
from runtime.errors import Dy2StaticError
from runtime.executor.traceback import FULL, shows_all, trimmed
from runtime.tracer.recording import faults

_OWN = tuple(str(Path(str(path)).parent) + os.sep for path in (__file__, runtime.__file__))
_OPERATORS = str(Path(__file__).parent / "operators") + os.sep
_TRACER = Path(str(runtime.__file__)).parent / "tracer"
_CALLING = (_OPERATORS, *(str(_TRACER / room) + os.sep for room in ("ambient", "numbers")))
"""Where a traced call of a library's function is made."""
_FREE_VARIABLE = re.compile(
    r"(?:cannot access free variable '(\w+)' where it is not associated with a value in enclosing scope"
    r"|free variable '(\w+)' referenced before assignment in enclosing scope)"
)


@dataclass
class _Entry:
    """One line of the new traceback: a frame kept as it is, or a place of the user's with its locals."""

    traceback: TracebackType
    place: Place | None = None
    file: str = ""
    names: dict[str, Any] = field(default_factory=dict)
    owner: CodeType | None = None
    source_lines: list[str] = field(default_factory=list)


def rewrite(error: BaseException) -> BaseException:
    """``error`` with tracebacks (its causes' and contexts' too) in terms of the user's code.

    Returns the error to raise: ``error`` itself, except that Python's complaint about a free variable which is a
    local of the user's function becomes the UnboundLocalError that the function raises unconverted.
    """
    if shows_all():
        return error
    result = _renamed(error)
    seen: set[int] = set()
    todo: list[BaseException | None] = [result]
    while todo:
        current = todo.pop()
        if current is None or id(current) in seen:
            continue
        seen.add(id(current))
        _rewrite_one(current)
        todo += [current.__cause__, current.__context__]
    return result


def _rewrite_one(error: BaseException) -> None:
    frames = list(_frames(error.__traceback__))
    if not any(is_generated_file(frame.tb_frame.f_code.co_filename) for frame in frames):
        trimmed(error, *_OWN)
        if error.__traceback__ is not None and _all_ours(frames) and not faults.is_ours(error):
            error.__traceback__ = None  # what Python says of a call that does not fit the function
        elif isinstance(error, Dy2StaticError):
            _end_in_theirs(error)
        return
    entries, rest = _visible(frames)
    entries += [_Entry(frame) for frame in _tail(rest, error)]
    result: TracebackType | None = None
    for entry in reversed(entries):
        shown = entry.traceback if entry.place is None else _stand_in(entry, entry.place)
        result = TracebackType(result, shown.tb_frame, shown.tb_lasti, shown.tb_lineno)
    error.__traceback__ = result


def _end_in_theirs(error: Dy2StaticError) -> None:
    """Leave out our frames below code that was not converted: such an error says what a user needs."""
    frames = list(_frames(error.__traceback__))
    while frames and frames[-1].tb_frame.f_code.co_filename.startswith(_OWN):
        frames.pop()
    result: TracebackType | None = None
    for frame in reversed(frames):
        result = TracebackType(result, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    error.__traceback__ = result


def _frames(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _visible(frames: list[TracebackType]) -> tuple[list[_Entry], list[TracebackType]]:
    """The entries up to the innermost frame of the user's, and the frames below it."""
    entries: list[_Entry] = []
    between: list[TracebackType] = []
    for frame in frames:
        code = frame.tb_frame.f_code
        origins = map_of(code.co_filename)
        place = origins.place(code, frame.tb_lasti, frame.tb_lineno) if origins is not None else None
        if origins is not None and place is not None:
            names = {name: value for name, value in frame.tb_frame.f_locals.items() if not origins.made(name)}
            last = entries[-1] if entries else None
            if _is_synthetic(code, place) and last is not None and last.file == origins.file and last.place:
                last.place = place if place.function == last.place.function else last.place
                last.names.update(names)
            else:
                entries.append(_Entry(frame, place, origins.file, names, code, origins.source_lines))
            between = []
        elif is_user_file(code.co_filename):
            entries.append(_Entry(frame))
            between = []
        else:
            between.append(frame)
    return entries, between


def _is_synthetic(code: CodeType, place: Place) -> bool:
    """A branch or loop body: part of the user's function around it, not a function of the user's."""
    return is_made(code.co_name, code) or (code.co_name == "<lambda>" and place.function != "<lambda>")


def _tail(frames: list[TracebackType], error: BaseException) -> list[TracebackType]:
    """Of the frames below the user's innermost: those of the library it called, without our own around them."""
    if isinstance(error, Dy2StaticError):
        return []
    files = [frame.tb_frame.f_code.co_filename for frame in frames]
    if files and files[-1].startswith(_OWN) and not files[-1].startswith(_OPERATORS) and faults.is_ours(error):
        return frames  # a fault of ours: hide nothing
    start = next((index for index, file in enumerate(files) if not file.startswith(_CALLING)), len(files))
    stop = next((index for index in range(start, len(files)) if files[index].startswith(_OWN)), len(files))
    return frames[start:stop]


def _all_ours(frames: list[TracebackType]) -> bool:
    return all(frame.tb_frame.f_code.co_filename.startswith(_OWN) for frame in frames)


def without_entrances(traceback: TracebackType | None) -> TracebackType | None:
    """A traceback without the frames of ours that an error only comes through; whole, where the fault is ours."""
    frames = list(_frames(traceback))
    theirs = [frame for frame in frames if not _is_entrance(frame.tb_frame.f_code)]
    if len(theirs) == len(frames) or any(frame.tb_frame.f_code.co_filename.startswith(_OWN) for frame in theirs):
        return traceback
    result: TracebackType | None = None
    for frame in reversed(theirs):
        result = TracebackType(result, frame.tb_frame, frame.tb_lasti, frame.tb_lineno)
    return result


def _is_entrance(code: CodeType) -> bool:
    return code.co_filename.startswith(_OWN) and "__tracebackhide__" in code.co_varnames


_installed = False


def hide_entrances() -> None:
    """Have Python print errors that nobody caught without our frames; whoever prints them now still does."""
    global _installed
    if _installed:
        return
    _installed = True
    before, before_in_threads = sys.excepthook, threading.excepthook

    def hook(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        shown = traceback if shows_all() else without_entrances(traceback)
        _while_hidden(error, lambda: before(kind, error, shown))

    def hook_in_threads(args: Any) -> None:
        if args.exc_value is None or shows_all():
            before_in_threads(args)
            return
        shown = [args.exc_type, args.exc_value, without_entrances(args.exc_traceback), args.thread]
        _while_hidden(args.exc_value, lambda: before_in_threads(threading.ExceptHookArgs(shown)))

    sys.excepthook, threading.excepthook = hook, hook_in_threads


def _while_hidden(error: BaseException, show: Callable[[], object]) -> None:
    """Show an error while it, its causes and contexts have tracebacks without our frames."""
    kept: list[tuple[BaseException, TracebackType | None]] = []
    todo: list[BaseException | None] = [] if shows_all() else [error]
    while todo:
        current = todo.pop()
        if current is not None and all(current is not one for one, _ in kept):
            kept.append((current, current.__traceback__))
            current.__traceback__ = without_entrances(current.__traceback__)
            todo += [current.__cause__, current.__context__, *getattr(current, "exceptions", ())]
    try:
        show()
    finally:
        for one, traceback in kept:
            one.__traceback__ = traceback


def _stand_in(entry: _Entry, place: Place) -> TracebackType:
    """A traceback whose one frame is at the user's place, with the user's locals: a debugger can work in it."""
    end_line, end_column = place.end_line, place.end_column
    header = source_line(entry.source_lines, place.line).rstrip()
    if end_line > place.line and header.endswith(":"):  # a whole compound statement: show its first line only
        end_line, end_column = place.line, len(header.encode())
    code = _raising(entry.file, place.function, (place.line, place.column), (end_line, end_column))
    names = {**entry.names, PREFIX + "error": RuntimeError()}
    try:
        exec(code, entry.traceback.tb_frame.f_globals, names)
    except RuntimeError as error:
        stand_in = error.__traceback__.tb_next if error.__traceback__ is not None else None
    del names[PREFIX + "error"]
    assert stand_in is not None
    return stand_in


@functools.lru_cache(maxsize=1024)
def _raising(file: str, function: str, start: tuple[int, int], end: tuple[int, int]) -> CodeType:
    """Code that raises, at a place of the user's."""
    module = ast.Module([ast.Raise(ast.Name(PREFIX + "error", ast.Load()), None)], [])
    for node in ast.walk(module):
        if isinstance(node, (ast.stmt, ast.expr)):
            node.lineno, node.col_offset = start
            node.end_lineno, node.end_col_offset = end
    code = compile(module, file, "exec").replace(co_name=function)
    return code.replace(co_qualname=function) if sys.version_info >= (3, 11) else code


def _renamed(error: BaseException) -> BaseException:
    """Bodies are inner functions, so Python calls a local of the user's function a free variable: undo that."""
    match = _FREE_VARIABLE.fullmatch(str(error)) if type(error) is NameError else None
    frames = list(_frames(error.__traceback__))
    if match is None or not frames or not is_generated_file(frames[-1].tb_frame.f_code.co_filename):
        return error
    name = match[1] or match[2]
    entries, _ = _visible(frames)
    owner = entries[-1].owner
    if owner is None or name not in (*owner.co_cellvars, *owner.co_varnames):
        return error
    if sys.version_info >= (3, 11):
        text = f"cannot access local variable '{name}' where it is not associated with a value"
    else:
        text = f"local variable '{name}' referenced before assignment"
    result = UnboundLocalError(text)
    result.__traceback__ = error.__traceback__
    result.__cause__, result.__context__ = error.__cause__, error.__context__
    result.__suppress_context__ = error.__suppress_context__
    return result


__all__ = ["FULL", "hide_entrances", "rewrite", "without_entrances"]
