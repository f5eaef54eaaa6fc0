"""Whose fault an exception is that ends a trace or a path: the user's code's, which eager raises too, or ours.

Only the first may become a ``raise`` of the Program. The second ends as a located error, D2S290.

An exception is the user's if it was raised

- in the user's own code, or in a library that this code called;
- by a ``raise`` statement of ours: an operator says on purpose what Python or torch says;
- by a builtin operation of ours on the user's values (``owner[key]``, ``f(*args)`` in what rewritten code calls);
- by a shape rule of torch's, and the operator itself raises, too, on real tensors (``vet``).
"""

from __future__ import annotations

import ast
import contextlib
import functools
import linecache
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType, TracebackType
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.errors import Dy2StaticError, InternalError, ProgramError
from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient import source_places
from runtime.tracer.ambient.theirs import is_for_user
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.recording.wording import say_as_eager

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep
_HERE = str(Path(__file__).parents[2]) + os.sep
_LOOKING = tuple(os.path.join(_HERE, "tracer", room) + os.sep for room in (
    "values", "memory", "control", "python_state", "boundary"))  # fmt: skip
_INTERCEPTOR = str(Path(__file__).parent / "interceptor.py")
folders: list[str] = [_HERE]
"""Where our own code is."""
acting: list[str] = []
"""Folders of code that does to the user's values what the user's code says: what rewritten code calls."""
raising: list[CodeType] = []
"""What rewritten code calls in place of a ``raise`` statement."""
looking: set[str] = set()
"""Files in those that only look at the user's values, so that what goes wrong there is ours."""
is_users: Callable[[str], bool] = lambda file: not file.startswith((_HERE, _TORCH, "<frozen"))  # noqa: E731
"""Whether a file holds code of the user's, or code rewritten from it; the converter installs one that knows more."""
is_own_text: Callable[[str], bool] = lambda file: is_users(file)  # noqa: E731
"""Whether a file holds code that the user wrote, or code rewritten from that, and not from a library's."""

_OUR_WORDS = re.compile(
    r"\b(SymInt|SymFloat|SymBool|Growing|Staged(Choice|Int|Float|Bool|Str|Number)|HigherOrderOperator"
    r"|FakeTensorMode|data is not allocated yet)\b"
    r"|[Ss]parse \w*\s*tensors do not have strides|Cannot access storage of Sparse"
)
"""What no message of eager's holds."""


def is_ours(error: BaseException) -> bool:
    """Whether an exception that reached the end of a path, or a handler of the user's, is a fault of ours.

    Where it is not, it says what eager says.
    """
    if is_a(error, ProgramError):
        return True
    if is_a(error, (Dy2StaticError, *torch_internals.shape_errors())) or _is_on_purpose(error):
        return False
    if module_name(type(error)).startswith("torch._subclasses"):  # what only torch's stand-ins raise
        return True
    say_as_eager(error)
    if error in _vetted and _is_asked_by_the_tracer(error):
        return True
    if is_a(error, (RecursionError, MemoryError, Warning)) or error in _vetted:
        return False
    innermost = True
    for entry in reversed(list(_entries(error.__traceback__))):
        file = entry.tb_frame.f_code.co_filename
        if file.startswith(tuple(folders)):
            return _is_fault(entry, error, innermost)
        if is_users(file):
            return not _raises(entry) and _OUR_WORDS.search(_text(error)) is not None
        innermost = False
    return False


def _is_asked_by_the_tracer(error: BaseException) -> bool:
    """Whether rooms of ours that only look at the user's values called what raised this: ``==`` of two that turned out
    to be tensors."""
    codes = [entry.tb_frame.f_code for entry in _entries(error.__traceback__)]
    callers = [one for one, called in zip(codes, codes[1:]) if called.co_filename == _INTERCEPTOR]
    return any(one.co_filename.startswith(_LOOKING) and not is_for_user(one) for one in callers)


def _is_on_purpose(error: BaseException) -> bool:
    """Whether a ``raise`` of the user's code raised it."""
    entries = list(_entries(error.__traceback__))
    stands = bool(entries) and entries[-1].tb_frame.f_code in raising
    if stands:
        entries.pop()
    return bool(entries) and is_own_text(entries[-1].tb_frame.f_code.co_filename) and (stands or _raises(entries[-1]))


class _Vetted:
    """Exceptions that the real operators raise as well: the last ones, by identity."""

    def __init__(self) -> None:
        self._errors: list[BaseException] = []

    def __contains__(self, error: object) -> bool:
        return any(one is error for one in self._errors)

    def add(self, error: BaseException) -> None:
        self._errors = [*self._errors[-7:], error]


_vetted = _Vetted()


def vet(error: BaseException) -> None:
    """Note that the real operator raises this as well."""
    _vetted.add(error)


def is_vetted(error: BaseException) -> bool:
    """Whether this was raised by a shape rule, and the real operator raises as well."""
    return error in _vetted


def is_torchs(error: BaseException) -> bool:
    """Whether an operator of torch's raises this: the real one does as well, or it comes from torch's code."""
    innermost = [entry.tb_frame.f_code.co_filename for entry in _entries(error.__traceback__)][-1:]
    return error in _vetted or any(file.startswith(_TORCH) for file in innermost)


def internal(error: BaseException, location: Location | None = None) -> InternalError:
    """The located error for a fault of ours; to be raised ``from`` it."""
    summary = error.summary if is_a(error, Dy2StaticError) else (_text(error).strip() or "no message")
    if len(summary) > 300:
        summary = summary[:300] + "..."
    place = source_places.error_place(error)
    found = InternalError(
        f"a fault of dy2static while this was traced: {type(error).__name__}: {summary}",
        hint="Your code is not to blame: please report it, with this line and the traceback that "
        "DY2STATIC_FULL_TRACEBACK=1 shows. Until it is mended, full_graph=False runs the function as it is, and "
        "not_to_static leaves out the part that this line is in.",
        location=place or location,
    )
    found.outside_code = place is None
    return found


def in_tracer(error: BaseException) -> bool:
    """Whether none of the last calls that led to an exception is the user's: the tracer went round in one value."""
    files = [entry.tb_frame.f_code.co_filename for entry in _entries(error.__traceback__)][-40:]
    return not any(map(is_users, files))


def went_round(session: Session, location: Location | None) -> Dy2StaticError:
    """The located error for ``in_tracer``."""
    return session.error(
        "a list or dict that holds itself is changed, joined or carried by a branch or loop",
        hint="Keep what refers to it outside the converted function.", code="D2S228", location=location)


def comes_of_code(error: BaseException) -> bool:
    """Whether what is traced raised an exception: it is not the tracer's own, and nobody threw it in from outside, as
    an interrupt or the end of a generator.

    ``raise KeyboardInterrupt`` is a statement like another.
    """
    if is_a(error, Exception):
        return True
    if is_a(error, KeyboardInterrupt):
        return _is_on_purpose(error)
    return not is_a(error, GeneratorExit) and module_name(type(error)).partition(".")[0] not in _OWN


_OWN = ("runtime", "dy2static")


def require_users(session: Session, error: BaseException) -> None:
    """Raise the located error for a fault of ours; nothing happens where the exception is the user's.

    Raises:
        InternalError: D2S290.
        TraceError: D2S228, the tracer went round in a value that holds itself.
    """
    if is_a(error, RecursionError) and in_tracer(error):
        session.exceptions.last_error = went_round(session, source_places.error_place(error))
        raise session.exceptions.last_error from error
    if is_ours(error):
        session.exceptions.last_error = internal(error, session.location())
        raise session.exceptions.last_error from error


@contextlib.contextmanager
def guarded(session: Session | None = None) -> Iterator[None]:
    """While the block runs, a fault of ours becomes a located error.

    Raises:
        InternalError: D2S290.
    """
    try:
        yield
    except Exception as error:
        users = is_a(error, torch_internals.shape_errors()) or not is_ours(error)
        if users and not is_a(error, RecursionError):
            raise
        raise internal(error, session.location() if session is not None else None) from error


def _text(error: BaseException) -> str:
    """What an exception says, as far as tracing knows it: staged text in it has no words yet."""
    return " ".join(arg for arg in error.args if type(arg) is str)


def _entries(entry: TracebackType | None) -> Iterator[TracebackType]:
    while entry is not None:
        yield entry
        entry = entry.tb_next


def _is_fault(entry: TracebackType, error: BaseException, innermost: bool) -> bool:
    """Whether what our own code did at ``entry``, or what a library did that it called, is a fault of ours."""
    code = entry.tb_frame.f_code
    if _OUR_WORDS.search(_text(error)):
        return True
    if is_for_user(code):
        return False
    acts = code.co_filename.startswith(tuple(acting)) and code.co_filename not in looking
    if innermost and (_raises(entry) or is_a(error, AssertionError)):
        return is_a(error, AssertionError) and not (acts and _raises(entry))
    return not acts or not _is_about_values(entry)


def _raises(entry: TracebackType) -> bool:
    """Whether the code at ``entry`` raises on purpose: it stands at a ``raise`` statement."""
    return any(is_a(node, ast.Raise) for node in _at(entry))


def _is_about_values(entry: TracebackType) -> bool:
    """Whether the expression at ``entry`` is an operation on values that its function was given."""
    frame = entry.tb_frame
    nodes = _at(entry)
    return not nodes or any(_touches(node, frame.f_code, frame.f_locals) for node in nodes)


def _touches(node: ast.AST, code: CodeType, names: dict[str, Any]) -> bool:
    operands: list[ast.AST | None]
    if is_a(node, ast.Call):
        function = node.func
        if is_a(function, ast.Name) and _is_our_own(names.get(function.id, code)):
            return False
        operands = [function, *node.args, *(keyword.value for keyword in node.keywords)]
    elif is_a(node, ast.Subscript):
        operands = [node.value, node.slice]
    elif is_a(node, ast.BinOp):
        operands = [node.left, node.right]
    elif is_a(node, ast.Compare):
        operands = [node.left, *node.comparators]
    elif is_a(node, ast.UnaryOp):
        operands = [node.operand]
    elif is_a(node, (ast.For, ast.comprehension)):
        operands = [node.iter]
    else:
        operands = [node]
    return any(_is_given(operand, code, names) for operand in operands)


def _is_given(node: ast.AST | None, code: CodeType, names: dict[str, Any]) -> bool:
    if is_a(node, ast.Starred):
        node = node.value
    if is_a(node, (ast.Subscript, ast.Call)):
        return _touches(node, code, names)
    if not is_a(node, ast.Name) or node.id in ("session", "self", "cls"):
        return False
    local = node.id in (*code.co_varnames, *code.co_freevars, *code.co_cellvars)
    return local and not _is_our_own(names.get(node.id))


def _is_our_own(value: Any) -> bool:
    """Whether a function is one of ours; ``value`` may be anything."""
    made = unasked(value, "__code__")
    return is_a(made, CodeType) and made.co_filename.startswith(tuple(folders))


def _at(entry: TracebackType) -> list[ast.AST]:
    """The expressions and statements of the source that ``entry`` may stand at: one, where Python knows the column."""
    code = entry.tb_frame.f_code
    nodes = _nodes(code.co_filename).get(entry.tb_lineno, [])
    raises: list[ast.AST] = [node for node in nodes if is_a(node, (ast.Raise, ast.Assert))]
    if sys.version_info < (3, 11) or entry.tb_lasti < 0:
        return raises or nodes
    positions = list(code.co_positions())[entry.tb_lasti // 2]
    exact = [
        node for node in nodes
        if (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == positions  # type: ignore[attr-defined]
    ]
    return exact or raises or nodes


@functools.lru_cache(maxsize=64)
def _nodes(file: str) -> dict[int, list[ast.AST]]:
    """The nodes of a source file by the lines they span."""
    found: dict[int, list[ast.AST]] = {}
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return found
    for node in ast.walk(tree):
        if is_a(node, (ast.expr, ast.Raise, ast.Assert, ast.For)):
            for line in range(node.lineno, (node.end_lineno or node.lineno) + 1):
                found.setdefault(line, []).append(node)
    return found


__all__ = ["guarded", "in_tracer", "internal", "is_ours", "is_torchs", "is_vetted", "require_users",
           "vet", "went_round"]
