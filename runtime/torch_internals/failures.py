"""Errors of traces: which are about unknown sizes, where the user's code was, how eager words them."""

from __future__ import annotations

import functools
import sys
import threading

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
)

from runtime.ir.location import Location
from runtime.kinds import is_a


def plain_user_location() -> Location | None:
    """The innermost frame of the current stack that is neither torch's nor this project's."""
    import linecache
    import os

    own = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    torch_root = os.path.dirname(os.path.abspath(torch.__file__))
    frame = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((own, torch_root)) and not file.startswith("<frozen") and "contextlib" not in file:
            text = linecache.getline(file, frame.f_lineno, frame.f_globals).rstrip("\n")
            return Location(file, frame.f_lineno, len(text) - len(text.lstrip()), frame.f_code.co_name, text)
        frame = frame.f_back  # type: ignore[assignment]
    return None


_ONLY_KNOWN_SIZES = ("symbolic sizes", "expected to contain only concrete integers")
"""In the messages of operators whose shape rules are not written for sizes that are not known."""


def shape_errors() -> tuple[type[RuntimeError], ...]:
    """What torch raises when a shape rule needs a size that is not known: RuntimeErrors, all of them."""
    symbolic = sys.modules.get("torch.fx.experimental.symbolic_shapes")  # where it is not loaded it raises nothing
    always = (DynamicOutputShapeException, DataDependentOutputException)
    return always if symbolic is None else (symbolic.GuardOnDataDependentSymNode, *always)


def is_shape_error(error: BaseException) -> bool:
    """Whether torch could not work out a shape because sizes are not known."""
    return is_a(error, shape_errors()) or any(text in str(error) for text in _ONLY_KNOWN_SIZES)


def comes_of_shapes(error: BaseException) -> bool:
    """Whether an error of torch's own code was raised from, or while handling, one of ``shape_errors``."""
    earlier: BaseException | None = error
    for _ in range(8):
        earlier = None if earlier is None else earlier.__cause__ or earlier.__context__
        if is_a(earlier, shape_errors()):
            return True
    return False


def node_in_messages(name: str) -> str:
    """What torch's errors about views call an autograd node: ``Unbind``, or ``UnbindBackward0`` before 2.13."""
    return name + _suffix()


@functools.cache
def _suffix() -> str:
    said: list[str] = []

    def write_a_row() -> None:
        try:
            (torch.zeros(1, requires_grad=True) * 1).unbind()[0].mul_(2)
        except RuntimeError as error:
            said.append(str(error))

    thread = threading.Thread(target=write_a_row)  # which has none of the modes of this one
    thread.start()
    thread.join()
    return "Backward0" if "UnbindBackward0" in "".join(said) else ""
