"""What ``loop_options(shape_invariants=...)`` says of the sizes that a loop's variables have."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.values import structure, unification

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


def with_sizes(session: Session, name: str, value: Any, invariants: dict[str, Any]) -> structure.Structure:
    """What the loop is first taken to carry: what is known, or a tensor whose sizes the user says may change."""
    if name not in invariants:
        return structure.Known(value)
    sizes = invariants[name]
    carried = unification.structure_of(session, value, structure.PLAIN) if is_a(value, torch.Tensor) else None
    if not is_a(carried, structure.Tensor) or len(carried.shape) != len(sizes):
        what = f"{len(carried.shape)} dimensions" if is_a(carried, structure.Tensor) else "no tensor"
        raise session.error(
            f"shape_invariants gives '{name}' {len(sizes)} sizes, but before the loop it has {what}",
            hint="Give one size, or None, for each dimension.",
            code="D2S282",
        )
    shape = tuple(structure.DYNAMIC if wanted is None else size for wanted, size in zip(sizes, carried.shape))
    fixed = structure.DYNAMIC not in shape
    known = carried.layout_known and (fixed or carried.strides is None)
    return replace(carried, shape=shape, strides=carried.strides if fixed else None, layout_known=known)


def check_sizes(
    session: Session, carried: Iterable[tuple[str, structure.Structure]], invariants: dict[str, Any],
    location: Location | None,
) -> None:
    """Hold the sizes of a loop's variables against what was said of them, once the body has been traced.

    Raises:
        TraceError: A size changes that was given, or is another one.
    """
    for name, found in carried:
        if name not in invariants or not is_a(found, structure.Tensor):
            continue
        for dim, (wanted, size) in enumerate(zip(invariants[name], found.shape)):
            if wanted is not None and size is structure.DYNAMIC or (type(size) is int and wanted not in (None, size)):
                what = "changes in the loop" if size is structure.DYNAMIC else f"is {size}"
                raise session.error(
                    f"the size of '{name}' in dimension {dim} {what}, but shape_invariants says {wanted}",
                    hint="Say None for a size that may change.",
                    code="D2S282",
                    location=location,
                )
