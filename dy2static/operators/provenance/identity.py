"""Values whose identity is asked for, and may only be known while the Program runs."""

from __future__ import annotations

from typing import Any

import torch

from dy2static.operators.shared.staging import Session
from runtime import torch_internals
from runtime.tracer.memory import aliases, cached_results
from runtime.tracer.python_state.shared_items import require_own
from runtime.tracer.values import alias_sets, same_object, structure


def require_distinct(session: Session, a: torch.Tensor, b: torch.Tensor) -> None:
    """Refuse to compare two tensors by identity that are one on some paths only.

    Raises:
        TraceError: They may or may not be the same tensor.
    """
    first, second = session.info(a), session.info(b)
    whole = [(one, other) for one in aliases.roots(first, ()) for other in aliases.roots(second, ())
             if one.storage is other.storage and not one.steps and not other.steps]
    if any(not (one.when & other.when).always for one, other in whole) or any(
        one.other() is second.storage for one in first.storage.unknown_aliases
    ) or alias_sets.may_be_one(first.storage, second.storage):
        raise session.error(
            "'is' compares two tensors that may or may not be the same one, which is only known while the Program runs",
            code="D2S264", hint="Set a flag on each path and test that.")


def identical_tensors(session: Session, a: torch.Tensor, b: torch.Tensor) -> Any:
    """``a is b``, a plain or staged bool.

    Raises:
        TraceError: D2S264, nobody knows.
    """
    a, b = session.one(a), session.one(b)
    if a is b:
        return True
    _require_not_cached(session, a, b)
    if _is_the_callers(session, a) and _is_the_callers(session, b):
        if not torch_internals.is_fake(a) and not torch_internals.is_fake(b):
            _note_distinct(session, a, b)
        return False
    joined = same_object.is_joined(session, a) or same_object.is_joined(session, b)
    if same_object.may_be_one(session, a, b) in ("same", "open", *(("unknown",) if joined else ())):
        return same_object.identical(session, a, b)
    if not joined:
        require_distinct(session, a, b)
    return False


def _require_not_cached(session: Session, a: torch.Tensor, b: torch.Tensor) -> None:
    """Refuse two tensors of which a cached function gave one, where the other may be what its cache holds.

    Raises:
        TraceError: D2S276.
    """
    infos = [session.info(one) if session.knows(one) else None for one in (a, b)]
    given = [info is not None and cached_results.of(info) is not None for info in infos]
    for info, older, other in zip(infos, given[::-1], (b, a)):
        if info is not None and (older or _is_the_callers(session, other)):
            cached_results.require_none(session, info, "is compared by 'is'")


def _note_distinct(session: Session, a: torch.Tensor, b: torch.Tensor) -> None:
    """Guard that the places of two tensors from outside hold two."""
    one, other = session.inputs.place_of(a), session.inputs.place_of(b)
    session.guards.add_test(("is", id(a), id(b)), "which of two tensors from outside are one",
                            lambda: one() is not other())


def _is_the_callers(session: Session, tensor: torch.Tensor) -> bool:
    """Whether this is a tensor that is older than the trace: which of them are one is known."""
    return session.inputs.own_variable(tensor) is not None or not torch_internals.is_fake(tensor)


def require_identity(session: Session, value: Any) -> None:
    """Refuse to take, for its identity, a tensor or container that is one of several on some paths only.

    Raises:
        TraceError: It may be the same object as another.
    """
    if structure.row_of(value) is not None:
        raise session.error(
            "the identity of a list is asked for (by id() or hash()) that a list whose length is only known while the "
            "Program runs holds", hint="Compare with 'is'.", code="D2S264")
    require_own(session, value)
    if not isinstance(value, torch.Tensor) or not session.knows(value):
        return
    info = session.info(value)
    cached_results.require_none(session, info, "is asked for its identity")
    others = [root for root in aliases.roots(info, ()) if root.storage is not info.storage and not root.steps]
    if any(not root.when.always for root in others):
        raise session.error(
            "the identity of a tensor is asked for (by id(), hash() or as a key) that is another one on "
            "some paths", code="D2S264", hint="Set a flag on each path and test that.")


__all__ = ["identical_tensors", "require_distinct", "require_identity"]
