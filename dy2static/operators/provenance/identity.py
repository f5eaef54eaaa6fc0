"""Values whose identity is asked for, and may only be known while the Program runs."""

from __future__ import annotations

import weakref
from typing import Any

import torch

from dy2static.operators.shared.staging import Session
from runtime import torch_internals
from runtime.kinds import is_a
from runtime.tracer.memory import aliases, cached_results
from runtime.tracer.python_state.shared_items import require_own
from runtime.tracer.values import same_object, structure


def require_distinct(session: Session, a: torch.Tensor, b: torch.Tensor) -> None:
    """Refuse to compare two tensors by identity that are one on some paths only.

    Raises:
        TraceError: They may or may not be the same tensor.
    """
    if same_object.may_share(session, a, b):
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
    if same_object.is_the_callers(session, a) and same_object.is_the_callers(session, b):
        if not torch_internals.is_fake(a) and not torch_internals.is_fake(b):
            _note_distinct(session, a, b)
        return False
    joined = same_object.is_joined(session, a) or same_object.is_joined(session, b)
    followed = same_object.is_followed(session, a, b)
    if same_object.may_be_one(session, a, b) in ("same", "open", *(("unknown",) if followed else ())):
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
        if info is not None and (older or same_object.is_the_callers(session, other)):
            cached_results.require_none(session, info, "is compared by 'is'")


def _note_distinct(session: Session, a: torch.Tensor, b: torch.Tensor) -> None:
    """Guard that the places of two tensors from outside hold two."""
    one, other = session.inputs.place_of(a), session.inputs.place_of(b)
    session.guards.add_test(("is", id(a), id(b)), "which of two tensors from outside are one",
                            lambda: one() is not other())


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
    cached_results.require_not_made_anew(session, value, "is asked for its identity")
    if not is_a(value, torch.Tensor) or not session.knows(value):
        return
    info = session.info(value)
    cached_results.require_none(session, info, "is asked for its identity")
    others = [root for root in aliases.roots(info, ()) if root.storage is not info.storage and not root.steps]
    if any(not root.when.always for root in others) or _may_be_asked_again(session, value):
        raise session.error(
            "the identity of a tensor is asked for (by id(), hash() or as a key) that is another one on "
            "some paths", code="D2S264", hint="Set a flag on each path and test that.")


def _may_be_asked_again(session: Session, value: torch.Tensor) -> bool:
    """Whether a tensor may be one whose identity was asked for before, by what recursive functions give."""
    asked = session.origins.asked
    if session.origins.some_given:
        for reference in list(asked.values()):
            other = reference()
            if other is not None and same_object.related(session, value, other) == "unknown":
                return True
    asked[id(value)] = weakref.ref(value)
    return False


__all__ = ["identical_tensors", "require_distinct", "require_identity"]
