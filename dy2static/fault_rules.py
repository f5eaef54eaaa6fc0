"""Which code is whose, for telling faults of ours from exceptions of the user's (see ``recording/faults.py``)."""

from __future__ import annotations

import os
from pathlib import Path

from dy2static.operators.calls.sequences import (
    StagedEnumerate,
    StagedMap,
    StagedRange,
    StagedReversed,
    StagedSequence,
    StagedZip,
    Transposed,
)
from dy2static.operators.constructs.raise_stmt import raise_stmt
from dy2static.origin import is_generated_file, is_user_file, map_of, place_of_error
from runtime.tracer.ambient import source_places
from runtime.tracer.recording import faults, wording
from runtime.tracer.values import remaking

_HERE = Path(__file__).parent
_OPERATORS = _HERE / "operators"
_LOOKING = (
    "autograd_function", "impure", "iterators", "loop_limits", "module_facts", "modules", "patches",
    "policy", "provenance", "staging", "torch_values",
)  # fmt: skip
"""Operators' files that do nothing to the user's values."""

_SEQUENCES: dict[type, type] = {
    StagedRange: range, StagedEnumerate: enumerate, StagedZip: zip, StagedMap: map, StagedReversed: reversed,
    Transposed: zip,
}  # fmt: skip
"""What eager has in place of the sequences that a loop of the run goes through."""


def _is_users(file: str) -> bool:
    return is_generated_file(file) or is_user_file(file)


def _is_own_text(file: str) -> bool:
    origins = map_of(file)
    return is_user_file(file if origins is None else origins.file)


def install() -> None:
    """Tell the tracer which code is ours, and which of it acts for the user."""
    if str(_HERE) + os.sep in faults.folders:
        return
    faults.folders.append(str(_HERE) + os.sep)
    faults.acting.append(str(_OPERATORS) + os.sep)
    faults.looking.update(str(file) for file in _OPERATORS.rglob("*.py") if file.stem in _LOOKING)
    faults.raising.append(raise_stmt.__code__)
    faults.is_users = _is_users
    faults.is_own_text = _is_own_text
    remaking.stand_ins.append(StagedSequence)
    for stand_in, real in _SEQUENCES.items():
        wording.stands_for(stand_in, real)
    source_places.error_place = place_of_error


__all__ = ["install"]
