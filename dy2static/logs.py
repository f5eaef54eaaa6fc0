"""What is converted, traced, traced again and why, as records of the logger ``dy2static``; and converted code.

    DY2STATIC_LOG=1 python train.py        dy2static: traces forward(), its first call
                                           dy2static: traced forward() in 0.31 s: 42 operators
    DY2STATIC_LOG=2                        besides, each function that is converted or left alone

Without that variable and `set_verbosity` the records are there as well (INFO and DEBUG), for who sets up ``logging``.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import time
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from dy2static import progress

VARIABLE = "DY2STATIC_LOG"
_LEVELS = {0: logging.NOTSET, 1: logging.INFO, 2: logging.DEBUG}
_log = logging.getLogger("dy2static")
_handlers: list[logging.Handler] = []
_code_level = 0
_code_to_stdout = False


def set_verbosity(level: int = 0, also_to_stdout: bool = False) -> None:
    """Say on standard error what is done: 1: what is traced, traced again and why; 2: also what is converted.

    0 switches it off. The environment variable ``DY2STATIC_LOG`` sets it for a process.

    Errors raised: TypeError if ``level`` is no int, ValueError if it is not 0, 1 or 2.
    """
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"set_verbosity() takes 0, 1 or 2, not {level!r}")
    if level not in _LEVELS:
        raise ValueError(f"set_verbosity() takes 0, 1 or 2, not {level!r}")
    for handler in _handlers:
        _log.removeHandler(handler)
    _handlers.clear()
    _log.setLevel(_LEVELS[level])
    if level:
        for name in ("stderr", *(["stdout"] if also_to_stdout else [])):
            handler = _Stream(name)
            handler.setFormatter(logging.Formatter("dy2static: %(message)s"))
            _log.addHandler(handler)
            _handlers.append(handler)


def set_code_level(level: int = 100, also_to_stdout: bool = False) -> None:
    """Print the code of each function when it is converted, on standard error; 0 switches it off.

    Functions that were converted already are not printed again: set it before the first call.

    Errors raised: TypeError if ``level`` is no int, ValueError if it is negative.
    """
    global _code_level, _code_to_stdout
    if not isinstance(level, int) or isinstance(level, bool):
        raise TypeError(f"set_code_level() takes a number, not {level!r}")
    if level < 0:
        raise ValueError(f"set_code_level() takes a number from 0 on, not {level!r}")
    _code_level, _code_to_stdout = level, also_to_stdout


class _Stream(logging.Handler):
    """Writes to the standard stream of that name, whichever it is by then."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._stream = name

    def emit(self, record: logging.LogRecord) -> None:
        with contextlib.suppress(OSError, ValueError):  # a stream that is closed
            getattr(sys, self._stream).write(self.format(record) + "\n")


def converted(function: FunctionType, code: str | None, reason: str) -> None:
    """A function was converted to ``code``, or left alone for a reason."""
    place = f"{function.__code__.co_filename}:{function.__code__.co_firstlineno}"
    if code is None:
        _log.debug("leaves %s() alone (%s): %s", function.__qualname__, place, reason)
        return
    _log.debug("converted %s() (%s)", function.__qualname__, place)
    if _code_level:
        text = f"# {function.__qualname__}() of {place}, converted:\n{code.rstrip()}\n"
        for stream in (sys.stderr, sys.stdout) if _code_to_stdout else (sys.stderr,):
            stream.write(text)


@contextlib.contextmanager
def tracing(name: str, why: Callable[[], str]) -> Iterator[Callable[[Any], None]]:
    """Around a trace: says why it is made, and how long it took; what it gives is told how many operators it has."""
    if _log.isEnabledFor(logging.INFO):
        _log.info("traces %s(): %s", name, why())
    start = time.perf_counter()
    count: list[int] = []

    def made(program: Any) -> None:
        count.append(len(program.block.ops))

    try:
        with progress.after(f"tracing {name}"):
            yield made
    except Exception as error:
        _log.info("cannot trace %s(): %s", name, str(error).splitlines()[0] if str(error) else type(error).__name__)
        raise
    found = f"{count[0]} operator{'s' * (count[0] != 1)}" if count else "no Program"
    _log.info("traced %s() in %.2f s: %s", name, time.perf_counter() - start, found)


def _from_environment() -> None:
    asked = os.environ.get(VARIABLE, "")
    if asked.strip() in ("1", "2"):
        set_verbosity(int(asked))
    elif asked.strip() not in ("", "0"):
        _log.warning("the environment variable %s is %r; it takes 0, 1 or 2", VARIABLE, asked)


_from_environment()

__all__ = ["converted", "set_code_level", "set_verbosity", "tracing"]
