"""Tensors that a cached function gave and each run computes anew, where eager has the one that the cache holds.

Their values are the same. So they may be read; a write, which the next call would see, is refused, and so are questions
for which tensor it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from runtime.tracer.memory import aliases

if TYPE_CHECKING:
    import torch

    from runtime.ir import Location
    from runtime.tracer.memory.storage_table import Snapshot, TensorInfo
    from runtime.tracer.recording.session import Session


def note(session: Session, tensor: torch.Tensor, name: str, before: int, after: Snapshot) -> None:
    """Note that the function ``name`` gave a tensor; one whose memory is older than it, as ``before`` counts, is not
    its own.

    Raises:
        TraceError: D2S276, if it was written since (``after``).
    """
    storage = session.info(tensor).storage
    if storage.origin is not None or storage.number < before or storage.cached_by:
        return
    if after.get(storage, storage.value) is not storage.value:
        raise refusal(session, name, "a tensor that it gave is written")
    storage.cached_by = name, session.location()


def of(info: TensorInfo) -> tuple[str, Location | None] | None:
    """The cached function that gave a tensor, or one that shares its memory on some path, and the call's place."""
    return next((storage.cached_by for storage in aliases.reached(info, ()) if storage.cached_by), None)


def require_none(session: Session, info: TensorInfo, what: str) -> None:
    """Refuse something that shows whether a tensor is the one that a cache holds.

    Raises:
        TraceError: D2S276.
    """
    found = of(info)
    if found is not None:
        name, location = found
        raise refusal(session, name, f"a tensor that it gave {what}", location)


def refusal(session: Session, name: str, what: str, location: Location | None = None) -> Any:
    """The error for a result of a cached function that each run makes anew."""
    return session.error(
        f"{name} is cached, gets values of the Program or is called where only some inputs come, and {what}: each run "
        "makes it anew, where eager has the one that the cache keeps", code="D2S276", location=location,
        hint="Call it with plain values before the branch or loop, copy what it gives, or take the cache away.")


__all__ = ["note", "of", "refusal", "require_none"]
