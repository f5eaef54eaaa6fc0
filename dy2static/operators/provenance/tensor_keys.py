"""Keys of dicts and items of sets: of one tensor that a trace knows as several objects, always the same object.

    {x, x.float()}        one item where x is float already
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any

import torch

from dy2static.operators.provenance.identity import require_identity
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a
from runtime.tracer.ambient import contents
from runtime.tracer.values import structure


def own_items(session: Session, values: Any) -> Any:
    """Each item of a list or tuple, as `own` gives it."""
    return [own(session, value) for value in values] if type(values) in (list, tuple) else values


def own_mapping(session: Session, cls: type, args: tuple[Any, ...]) -> tuple[Any, ...]:
    """What a mapping is made or filled from, with the keys as `own` gives them: pairs, or what a Counter counts."""
    place = 1 if issubclass(cls, defaultdict) and len(args) > 1 else 0
    given: Any = args[place] if place < len(args) else None
    if not (type(given) in (list, tuple) or contents.is_iterator(given)) or structure.growing(given) is not None:
        return args
    items = list(given)
    asked_methods.require_hashed(session, f"{cls.__name__}()", items if issubclass(cls, Counter) else [
        item[0] for item in items if type(item) in (list, tuple) and len(item) == 2])
    if issubclass(cls, Counter):
        found = [own(session, item) for item in items]
    else:
        found = [(own(session, item[0]), item[1]) if type(item) in (list, tuple) and len(item) == 2 else item
                 for item in items]  # fmt: skip
    return (*args[:place], found, *args[place + 1 :])


def own(session: Session, value: Any) -> Any:
    """The object that stands for ``value`` as a key in this trace; the items of a tuple too.

    Raises:
        TraceError: A tensor is one of several, depending on the path (D2S264).
    """
    if is_a(value, torch.Tensor):
        require_identity(session, value)
        return session.one(value)
    if type(value) is tuple and holds_tensors(value):
        return tuple(own(session, item) for item in value)
    return value


def holds_tensors(values: Iterable[Any]) -> bool:
    """Whether there is a tensor among the items, or in tuples among them."""
    return any(is_a(one, torch.Tensor) or (type(one) is tuple and holds_tensors(one)) for one in values)


__all__ = ["holds_tensors", "own", "own_items", "own_mapping"]
