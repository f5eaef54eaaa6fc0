"""Types of Variables: what a Program knows about a value before it runs.

Types describe, they do not convert: the executor never casts a value to make it fit its type.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch

Dim = int | str
"""A size: a fixed int, or a symbol such as ``"s0"``; equal symbols in one Program are equal sizes."""

ScalarKind = Literal["int", "float", "bool", "complex", "str"]


@dataclass(frozen=True)
class TensorType:
    """A tensor. ``dtype`` or ``shape`` None: not known before the Program runs.

    ``device`` None: the CPU, or nothing is said.
    """

    dtype: torch.dtype | None
    shape: tuple[Dim, ...] | None
    device: torch.device | None = None


def said(device: torch.device) -> torch.device | None:
    """A device as a type says it: of the CPU it says nothing.

    >>> said(torch.device("cpu")), said(torch.device("meta"))
    (None, device(type='meta'))
    """
    return None if device.type == "cpu" else device


@dataclass(frozen=True)
class ScalarType:
    """A Python number or string computed while the Program runs, with Python's exact semantics."""

    kind: ScalarKind


@dataclass(frozen=True)
class ArrayType:
    """A Python list that grows while the Program runs; all its elements have the type ``element``."""

    element: Type


@dataclass(frozen=True)
class ObjectType:
    """Any other Python object (a residual record, a value of unknown kind). Never enters a compiled block."""


Type = TensorType | ScalarType | ArrayType | ObjectType
