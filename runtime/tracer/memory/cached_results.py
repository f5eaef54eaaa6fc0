"""Tensors and containers that a cached function gave and each run makes anew, where eager has the one of the cache.

What they hold is the same. So they may be read; a write, which the next call would see, is refused, and so are
questions for which object it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any

from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.ambient.referents import led_to
from runtime.tracer.memory import aliases

if TYPE_CHECKING:
    import torch

    from runtime.ir import Location
    from runtime.tracer.memory.storage_table import Snapshot, Storage, TensorInfo
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


def note_object(session: Session, value: Any, name: str) -> None:
    """Note that the function ``name`` made a container or an object, which is to be read only."""
    session.objects.cached.setdefault(id(value), (value, parts(value), name, session.location()))


def end_path(session: Session, before: Collection[int], leaving: Iterable[Any]) -> None:
    """At the end of a path, ask for those that were noted on it: nobody may have changed them, and none of them may be
    ``leaving``. ``before``: those that were known before.

    Raises:
        TraceError: D2S276.
    """
    new = {key: one for key, one in session.objects.cached.items() if key not in before}
    if not new:
        return
    require_read_only(session, new.values())
    for one in led_to(leaving, session.objects.externals.keys(), session.objects.created.keys()):
        if id(one) in new:
            require_not_made_anew(session, one, "is used after a branch or loop in which it was called")
    for key in new:
        del session.objects.cached[key]


def require_read_only(session: Session, noted: Iterable[tuple[Any, list[Any], str, Location | None]] = ()) -> None:
    """At the end of a trace, refuse that such an object was changed: eager's next call would see it.

    ``noted``: only these, which a path knew.

    Raises:
        TraceError: D2S276.
    """
    for value, before, name, location in noted or session.objects.cached.values():
        now = parts(value)
        if len(now) != len(before) or any(a is not b for a, b in zip(now, before)):
            raise refusal(session, name, f"an object that it gave (a {type(value).__name__}) is changed", location)


def require_not_made_anew(session: Session, value: Any, what: str) -> None:
    """Refuse something that shows whether an object is the one that a cache holds.

    Raises:
        TraceError: D2S276.
    """
    if id(value) in session.objects.cached:
        _, _, name, location = session.objects.cached[id(value)]
        raise refusal(session, name, f"an object that it gave (a {type(value).__name__}) {what}", location)


def parts(value: Any) -> list[Any]:
    """What a container or an object holds, with keys and names of attributes."""
    if not is_a(value, (list, dict, set, tuple, frozenset)):
        value = objects.attributes(value)
    return [part for pair in value.items() for part in pair] if is_a(value, dict) else list(value)


def of(info: TensorInfo) -> tuple[str, Location | None] | None:
    """The cached function that gave a tensor, or one that shares its memory on some path, and the call's place."""
    return next((storage.cached_by for storage in aliases.reached(info, ()) if storage.cached_by), None)


def hand_on(storage: Storage, found: tuple[str, Location | None] | None) -> bool:
    """Note of memory that it may be what a cached function gave on some path; whether that is new."""
    if found is None or storage.cached_by is not None:
        return False
    storage.cached_by = found
    return True


def require_none(session: Session, info: TensorInfo, what: str) -> None:
    """Refuse something that shows whether a tensor is the one that a cache holds.

    Raises:
        TraceError: D2S276.
    """
    found = of(info)
    if found is not None:
        name, location = found
        raise refusal(session, name, f"a tensor that it gave {what}", location)


def require_list_of_none(session: Session, found: tuple[str, Location | None] | None) -> None:
    """Refuse that a list which grew leaves the function, if a cached function has given an item.

    Raises:
        TraceError: D2S276.
    """
    if found is not None:
        raise refusal(session, found[0], "a tensor that it gave leaves the function in a list", found[1])


def refusal(session: Session, name: str, what: str, location: Location | None = None) -> Any:
    """The error for a result of a cached function that each run makes anew."""
    return session.error(
        f"{name} is cached, gets values of the Program or is called where only some inputs come, and {what}: each run "
        "makes it anew, where eager has the one that the cache keeps", code="D2S276", location=location,
        hint="Call it with plain values before the branch or loop, copy what it gives, or take the cache away.")


__all__ = [
    "hand_on", "note", "note_object", "of", "parts", "refusal", "require_list_of_none", "require_none",
    "require_not_made_anew", "require_read_only",
]  # fmt: skip
