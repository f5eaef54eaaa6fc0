"""Operators about what a sparse tensor holds.

    %s : f32[3, 3] = aten.sparse_coo_tensor.indices_size(%i, %v, [3, 3])
    %p : f32[n0] = aten._values.default(%s)                                the memory of %v
"""

from __future__ import annotations

PARTS = frozenset(
    f"aten.{name}"
    for name in ("_indices", "indices", "_values", "values", "crow_indices", "ccol_indices", "col_indices",
                 "row_indices")
)  # fmt: skip
"""Those that give a part of one, in its memory; without overloads."""
MADE = "aten.sparse_coo_tensor.indices_size"
"""The one that puts indices and values together, and takes both on trust."""

__all__ = ["MADE", "PARTS"]
