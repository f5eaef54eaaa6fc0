"""``warn`` and ``log``: the warning and the record that eager Python would make, with its place in the user's code."""

from __future__ import annotations

import builtins
import logging
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import torch

from runtime.executor.emitter import Emitter
from runtime.ir import Operator

_ENTRY = str(Path(__file__).parents[2] / "dy2static" / "static_function.py")


def _outside(level: int) -> FrameType | None:
    """The frame ``level`` calls outside the converted function that runs; the outermost if there are not so many."""
    frames: list[FrameType] = []
    frame: FrameType | None = sys._getframe(2)
    while frame is not None:
        frames.append(frame)
        frame = frame.f_back
    files = [one.f_code.co_filename for one in frames]
    start = files.index(_ENTRY) if _ENTRY in files else 0
    while start < len(files) and files[start] == _ENTRY:
        start += 1
    return frames[min(start + level - 1, len(frames) - 1)] if start < len(frames) else None


def emit_warn(emitter: Emitter, op: Operator) -> None:
    """``warnings.warn(category(*args))`` at the user's place; the filters in force at run time decide."""
    name = op.attrs["category"]
    category: Any = emitter.exceptions.get(name) or getattr(builtins, name, None)
    if not (isinstance(category, type) and issubclass(category, Warning)):
        category = UserWarning  # a class that a saved Program cannot bring along
    file, line, module, level = (op.attrs[key] for key in ("file", "line", "module", "level"))
    own: dict[str, Any] = {"__name__": module}
    alone = op.attrs.get("alone", False)

    def warn(*args: Any) -> None:
        if alone:
            return warnings.warn_explicit(category(*args), category, file, line)
        names, where, number = getattr(sys.modules.get(module), "__dict__", own), file, line
        frame = _outside(level) if level else None
        if frame is not None:
            names, where, number = frame.f_globals, frame.f_code.co_filename, frame.f_lineno
        registry = names.setdefault("__warningregistry__", {})
        warnings.warn_explicit(
            category(*args), category, where, number, names.get("__name__") or "<string>", registry, names)

    emitter.line(f"{emitter.bind(warn, 'f')}({', '.join(map(emitter.operand, op.args))})")


def emit_log(emitter: Emitter, op: Operator) -> None:
    """``logger.log(severity, message, *args, extra=extra)`` with the user's place in the record."""
    name, severity, file, line, function, level = (
        op.attrs[key] for key in ("logger", "severity", "file", "line", "function", "level"))
    configure = op.attrs.get("configure", False)

    def log(message: Any, extra: Any, *args: Any) -> None:
        logger = logging.getLogger(name)
        if configure and not logger.handlers:  # as logging.info() does
            logging.basicConfig()
        if not logger.isEnabledFor(severity):
            return
        where, number, caller = file, line, function
        frame = _outside(level) if level else None
        if frame is not None:
            where, number, caller = frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name
        values = tuple(map(_kept, args))
        logger.handle(logger.makeRecord(
            logger.name, severity, where, number, message, values, None, caller, extra, None))

    emitter.line(f"{emitter.bind(log, 'f')}({', '.join(map(emitter.operand, op.args))})")


def _kept(value: Any) -> Any:
    """A value that a record may keep: the memory of a tensor may be used again."""
    return value.clone() if type(value) is torch.Tensor and not value.requires_grad else value
