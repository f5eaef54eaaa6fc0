"""Conversions by some steps of the pipeline, or of control flow only."""

from __future__ import annotations

import types
from collections.abc import Sequence

from dy2static.conversion import bind, compile_tree
from dy2static.pipeline import Level, Step, convert_tree
from dy2static.source import get_source
from dy2static.transforms.base import converts


def convert_with(function: types.FunctionType, steps: Sequence[Step], level: Level = "full") -> types.FunctionType:
    """As `dy2static.conversion.convert`, with other steps, and not remembered."""
    source = get_source(function)
    if not converts(source.tree):
        return function
    return bind(function, *compile_tree(function, source, convert_tree(source.tree, source, level, steps)))
