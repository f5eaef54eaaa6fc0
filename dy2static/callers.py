"""The user's calls that are running, as Python's stack shows them for the unconverted function.

    user.py: forward -> helper       (generated files, bodies of branches and operators in between are not shown)
"""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import runtime
from dy2static.origin import map_of

_HERE = Path(__file__).parent
_RUNTIME = Path(str(runtime.__file__)).parent
_OPERATORS = (str(_HERE / "operators") + os.sep, str(_RUNTIME / "tracer") + os.sep)
_OWN = (str(_HERE) + os.sep, str(_RUNTIME) + os.sep)
_BEGIN = "<frozen importlib"


@dataclass(frozen=True)
class Caller:
    """One running call: where it is, and the globals of its function."""

    file: str
    line: int
    function: str
    names: dict[str, Any]


def depth() -> int:
    """How many frames are outside of the innermost conversion that runs."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_inner(frame.f_code.co_filename):
        frame = frame.f_back
    return _frames_from(frame)


def _is_inner(file: str) -> bool:
    return map_of(file) is not None or file.startswith(_OPERATORS) or not file.startswith(_OWN)


def _frames_from(frame: FrameType | None) -> int:
    count = 0
    while frame is not None:
        count, frame = count + 1, frame.f_back
    return count


def callers(frame: FrameType | None, outside: int = 0) -> Iterator[Caller]:
    """The calls from ``frame`` outwards, without the outermost ``outside`` frames."""
    remaining = _frames_from(frame) - outside
    place = None
    while frame is not None and remaining > 0:
        code = frame.f_code
        origins = map_of(code.co_filename)
        found = origins.place(code, frame.f_lasti, frame.f_lineno) if origins is not None else None
        if origins is not None and found is not None:
            place = place or found
            body = origins.made(code.co_name) or (code.co_name == "<lambda>" and found.function != "<lambda>")
            if not body:
                yield Caller(origins.file, place.line, code.co_name, frame.f_globals)
                place = None
        elif not code.co_filename.startswith(_OWN) and not code.co_filename.startswith(_BEGIN):
            yield Caller(code.co_filename, frame.f_lineno, code.co_name, frame.f_globals)
        frame, remaining = frame.f_back, remaining - 1


def called_from(place: Caller, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args, **kwargs)``, which finds the user's place where it looks at the frame that calls it."""
    code = _calling(place.file, place.line, place.function)
    return FunctionType(code, place.names)(f, args, kwargs)


@functools.lru_cache(maxsize=4096)
def _calling(file: str, line: int, function: str) -> CodeType:
    """``lambda f, args, kwargs: f(*args, **kwargs)`` at a line of a file."""
    module = ast.parse("lambda f, args, kwargs: f(*args, **kwargs)", mode="eval")
    for node in ast.walk(module):
        if isinstance(node, ast.expr):
            node.lineno = node.end_lineno = line
    found = next(one for one in compile(module, file, "eval").co_consts if isinstance(one, CodeType))
    return found.replace(co_name=function)
