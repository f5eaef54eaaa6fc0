"""What a sparse tensor holds: its indices and values, of which only a run tells how many there are.

    i = s._indices()          i64[2, n0]
    v = s._values()           f32[n0]
    n = s._nnz()              the size n0, as a number

On fake tensors torch counts none. A tensor and its parts are the same memory, and so is what one is made of: a write to
any of them is refused where another may be read afterwards.
"""

from __future__ import annotations

from typing import Any

import torch

from runtime import torch_internals
from runtime.ops.sparse import PARTS as PARTS
from runtime.tracer.memory.storage_table import TensorInfo, note_unknown_alias
from runtime.tracer.recording.session import Session

_ROW = (torch.sparse_csr, torch.sparse_bsr)
_LAYOUTS = ("csr", "csc", "bsr", "bsc", "compressed")
MADE_OF = frozenset((
    "aten.coalesce", "aten.sparse_coo_tensor", "aten._sparse_coo_tensor_unsafe",
    "aten._sparse_coo_tensor_with_dims_and_tensors", *(f"aten.sparse_{one}_tensor" for one in _LAYOUTS),
    *(f"aten._sparse_{one}_tensor_unsafe" for one in _LAYOUTS),
))  # fmt: skip
"""Operators whose results are the memory of what they are given, or may be: that of a coalesced tensor."""
ORDERED = frozenset(f"aten.{name}" for name in (
    "coalesce", "_coalesce", "to_sparse", "_to_sparse", "sparse_coo_tensor", "_sparse_coo_tensor_unsafe",
    "_sparse_coo_tensor_with_dims_and_tensors", "_sparse_coo_tensor_with_dims"))  # fmt: skip
"""Operators of whose results torch's rule knows whether they are coalesced."""
_ITSELF = frozenset({"to_sparse", "alias", "detach", "to", "contiguous", "lift_fresh", "dropout",
                     "feature_dropout", "alpha_dropout", "feature_alpha_dropout"})  # fmt: skip
RESIZING = frozenset({"aten.sparse_resize_", "aten.sparse_resize_and_clear_"})


def part(session: Session, func: Any, tensor: torch.Tensor) -> torch.Tensor | None:
    """A part of a sparse tensor as a fake tensor; None where torch's own rule is right: the part has a known size."""
    fake = session.fake(tensor)
    if not torch_internals.is_sparse(fake):
        return None
    shape = _shape(session, func.__name__.partition(".")[0], tensor, fake)
    if shape is None:
        return None
    dtype = fake.dtype if func.__name__.partition(".")[0] in ("_values", "values") else _index_type(session, fake)
    made = torch_internals.empty_fake(session.fake_mode, shape, None, dtype, fake.device)
    session.values.any_layout[made] = True
    return made


def _shape(session: Session, name: str, tensor: torch.Tensor, fake: torch.Tensor) -> list[Any] | None:
    if fake.layout is torch.sparse_coo:
        dims = fake.sparse_dim()
        if name in ("indices", "_indices"):
            return [dims, _count(session, tensor)]
        return [_count(session, tensor), *fake.shape[dims:]] if name in ("values", "_values") else None
    compressed, values = _of_rows(session, fake)
    batch = compressed.dim() - 1
    if name == "values":
        return [*values.shape[:batch], _count(session, tensor), *values.shape[batch + 1 :]]
    varying = "col_indices" if fake.layout in _ROW else "row_indices"
    return [*compressed.shape[:batch], _count(session, tensor)] if name == varying else None


def _index_type(session: Session, fake: torch.Tensor) -> torch.dtype:
    return torch.int64 if fake.layout is torch.sparse_coo else _of_rows(session, fake)[0].dtype


def _of_rows(session: Session, fake: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The compressed indices, of known sizes, and the values, of one size that is not known."""
    with torch_internals.fake_only(session.fake_mode):
        return fake.crow_indices() if fake.layout in _ROW else fake.ccol_indices(), fake.values()


def _count(session: Session, tensor: torch.Tensor) -> torch.SymInt:
    """How many elements a sparse tensor holds: one symbol for all that is asked of one value in one Block."""
    info = session.info(tensor)
    key = (info.storage.value, session.scope.block)
    found = None if info.steps else session.values.sparse_counts.get(key)
    if found is None:
        found = torch_internals.new_symbol(session.shape_env, size=True)
        if not info.steps:
            session.values.sparse_counts[key] = found
    return found


def require_known_order(session: Session, tensor: torch.Tensor) -> None:
    """Refuse the question whether a tensor is coalesced where only a run can tell.

    Raises:
        TraceError: D2S240.
    """
    value = session.info(tensor).storage.value
    outside = [*(one.var for one in session.program.inputs), *(one.var for one in session.program.params)]
    if value in session.values.sparse_orders or any(value is var for var in outside):
        return
    raise session.error(
        "whether a sparse tensor that is made inside is coalesced is only known while the Program runs",
        hint="Call coalesce() on it; of a tensor that is coalesced it gives the tensor itself.", code="D2S240")


def require_no_resizing(session: Session, func: Any) -> None:
    """Refuse what gives a sparse tensor another shape in place.

    Raises:
        TraceError: D2S240.
    """
    name = func.__name__.partition(".")[0]
    raise session.error(f"{name}() of a sparse tensor", hint="Make another one with torch.sparse_coo_tensor.",
                        code="D2S240")


def is_itself(session: Session, func: Any) -> bool:
    """Whether the result is surely the sparse tensor itself, where torch's rule says so; ``coalesce`` gives it only if
    that is coalesced, of which the rule knows nothing.

    Raises:
        TraceError: D2S235: the rule, which takes the tensor for empty, took a short cut.
    """
    name = func.__name__.partition(".")[0]
    if name != "coalesce" and name not in _ITSELF:
        raise session.error(f"torch cannot tell the shape of {name}'s result for a sparse tensor", code="D2S235",
                            hint="Call it outside, or make the tensor dense before.")
    return name != "coalesce"


def note_shared(session: Session, name: str, sources: list[TensorInfo], results: list[TensorInfo]) -> None:
    """Note that a sparse tensor and its parts are the same memory, and what shared it before."""
    reason, location = f"{name.split('.')[1]} gives memory of a sparse tensor", session.location()
    for source in sources:
        others = [other for one in source.storage.unknown_aliases if (other := one.other()) is not None]
        for result in results:
            for storage in (source.storage, *others):
                note_unknown_alias(storage, result.storage, reason, location)


__all__ = [
    "MADE_OF", "ORDERED", "PARTS", "RESIZING", "is_itself", "note_shared", "part",
    "require_known_order", "require_no_resizing",
]  # fmt: skip
