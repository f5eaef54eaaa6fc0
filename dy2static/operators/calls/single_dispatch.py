"""Functions of ``functools.singledispatch``: the one for the first argument's class is found while tracing, and called.

    told(v)        ->   told.dispatch(v.__class__)(v)

Their own code keeps what it has found in a cache, which would be another one on each path.
"""

from __future__ import annotations

import functools
import types
from typing import Any

from dy2static.operators.calls.call import traced
from dy2static.operators.shared.staging import Choice, Session, distribute
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import theirs

_find: Any = functools._find_impl  # type: ignore[attr-defined]  # what ``dispatch`` does, without its cache
_CODE = functools.singledispatch(lambda value: value).__code__  # type: ignore[attr-defined]


def called(session: Session, f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A call of such a function; NotImplemented for all others."""
    if type(f) is not types.FunctionType or f.__code__ is not _CODE:
        return NotImplemented
    if not args:
        return theirs(f, **kwargs)  # raises
    first, *rest = args
    if is_a(first, Choice):
        return distribute(session, first, lambda option: called(session, f, (option, *rest), kwargs))
    cls = traced(session, getattr, (first, "__class__"), {})
    found: Any = f
    function = found.registry[cls] if cls in found.registry else _find(cls, found.registry)
    session.guards.add_test((id(f), cls, "dispatched"), f"the function of {f.__name__}() for a {cls.__name__}",
                            lambda: found.dispatch(cls) is function)
    return traced(session, function, args, kwargs)


__all__ = ["called"]
