"""Which PyTorch is this, and have the tests run with it?"""

from __future__ import annotations

import functools
import os
import sys
import warnings
from types import FrameType

import torch

from runtime.version import TORCH_TESTED, UntestedTorchWarning

_PROJECT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))) + os.sep
_OWN = tuple(_PROJECT + package + os.sep for package in ("runtime", "dy2static"))


def warn_if_untested() -> None:
    """Give an UntestedTorchWarning, at the import statement of the user's, if PyTorch is newer than what was tested."""
    lowest, highest = TORCH_TESTED
    version = str(torch.__version__)
    if _release(version) <= highest:
        return
    message = (
        f"dy2static is tested with torch {_say(lowest)} to {_say(highest)}, and this is torch {version}. If something "
        f"goes wrong, try it with torch {_say(highest)}."
    )
    frame = _importing_frame()
    if frame is None:
        warnings.warn(message, UntestedTorchWarning, stacklevel=2)
        return
    space = frame.f_globals
    warnings.warn_explicit(
        message, UntestedTorchWarning, frame.f_code.co_filename, frame.f_lineno, space.get("__name__"),
        space.setdefault("__warningregistry__", {}),
    )  # fmt: skip


@functools.cache
def before(major: int, minor: int) -> bool:
    """Whether this PyTorch is older than that version."""
    return _release(str(torch.__version__)) < (major, minor)


def _release(version: str) -> tuple[int, ...]:
    """Major and minor number.

    >>> _release("2.15.0+cpu"), _release("2.16.0a0+git1234")
    ((2, 15), (2, 16))
    """
    return tuple(map(int, version.split(".")[:2]))


def _say(release: tuple[int, ...]) -> str:
    return ".".join(map(str, release))


def _importing_frame() -> FrameType | None:
    """Where the import statement stands that is not one of this project's own."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        file = frame.f_code.co_filename
        if not file.startswith((*_OWN, "<frozen importlib")) and os.sep + "importlib" + os.sep not in file:
            return frame
        frame = frame.f_back
    return None
