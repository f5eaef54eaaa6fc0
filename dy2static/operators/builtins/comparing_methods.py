"""``index``, ``count``, ``remove`` and ``sort`` of lists, tuples and deques whose items a run compares, ``insert`` and
``pop`` where only it knows the place."""

from __future__ import annotations

import contextlib
from collections import deque
from typing import Any

import torch

from dy2static.operators.builtins import sequences_in_python
from dy2static.operators.calls import functions, growing
from dy2static.operators.calls.call import traced
from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared import namespaces
from dy2static.operators.shared.staging import Session
from dy2static.operators.values import sequence_operators
from dy2static.operators.values.sequence_operators import decides
from runtime.kinds import is_a

_SORT: Any = sequences_in_python.sort
NOT_DONE = object()
"""What Python's own method does as well."""


def called(session: Session, owner: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``owner.name(*args, **kwargs)`` where tensors or staged numbers decide; ``NOT_DONE`` where none does."""
    if name in ("insert", "pop") and not kwargs:
        found = sequence_operators.at_index(session, owner, name, args)
        return NOT_DONE if found is sequence_operators.NOT_DONE else found
    if name == "sort":
        return _sorted(session, owner, args, kwargs)
    if name not in ("index", "count", "remove") or kwargs or not args or len(args) > (3 if name == "index" else 1):
        return NOT_DONE
    found, memo(session).found = memo(session).found, None  # said of the very next search
    if not growing.is_growing(owner) and not any(map(decides, (*owner, *args))) and not (
            session.containers.has_unset and any(map(namespaces.has_unset, (*owner, *args)))):
        return NOT_DONE
    if growing.is_growing(owner) and is_a(args[0], torch.Tensor) and args[0].dim() > 0:
        return NOT_DONE  # the very item, which has no truth beside others, or another one: it is not known which
    sure = found is not None and found[0] is owner and growing.same_index(found[1], args[0])
    kind = next(one for one in (list, tuple, deque) if is_a(owner, one))
    if name == "index":
        args = args[0], kind, *_bounds(session, owner, args[1:])
    elif name == "remove":
        args = args[0], kind
    with session.uncaught() if sure else contextlib.nullcontext():
        return functions.call_function(session, getattr(sequences_in_python, name), (owner, *args), {})


def _bounds(session: Session, owner: Any, given: tuple[Any, ...]) -> tuple[Any, Any]:
    if not given:
        return 0, traced(session, len, (owner,), {})
    if growing.is_growing(owner) or any(map(decides, given)):
        raise session.error(
            f"{type(owner).__name__}.index() between bounds, where only the run knows these or the list's length",
            hint="Loop over the items and compare.", code="D2S263")
    return slice(*given, *([None] if len(given) == 1 else [])).indices(len(owner))[:2]


def _sorted(session: Session, owner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if type(owner) is not list or args or kwargs.keys() - {"key", "reverse"}:
        return NOT_DONE
    key, reverse = kwargs.get("key"), kwargs.get("reverse", False)
    if decides(reverse) or (key is None and not growing.is_growing(owner) and not any(map(decides, owner))):
        return NOT_DONE
    return functions.call_function(session, _SORT, (owner, key, reverse), {})


__all__ = ["NOT_DONE", "called"]
