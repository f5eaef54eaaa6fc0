"""Which code is whose, for telling faults of ours from exceptions of the user's (see ``recording/faults.py``)."""

from __future__ import annotations

import os
from pathlib import Path

from dy2static.origin import is_generated_file, is_user_file, place_of_error
from runtime.tracer.ambient import source_places
from runtime.tracer.recording import faults

_HERE = Path(__file__).parent
_OPERATORS = _HERE / "operators"
_LOOKING = (
    "autograd_function", "impure", "iterators", "loop_limits", "module_facts", "modules", "patches",
    "policy", "provenance", "staging", "torch_values",
)  # fmt: skip
"""Operators' files that do nothing to the user's values."""


def _is_users(file: str) -> bool:
    return is_generated_file(file) or is_user_file(file)


def install() -> None:
    """Tell the tracer which code is ours, and which of it acts for the user."""
    if str(_HERE) + os.sep in faults.folders:
        return
    faults.folders.append(str(_HERE) + os.sep)
    faults.acting.append(str(_OPERATORS) + os.sep)
    faults.looking.update(str(file) for file in _OPERATORS.rglob("*.py") if file.stem in _LOOKING)
    faults.is_users = _is_users
    source_places.error_place = place_of_error


__all__ = ["install"]
