"""What code that is not converted reads of an object some of whose attributes only some paths set.

    a = argparse.Namespace(lr=1)
    if x.sum() > 0:
        a.warm = 3
    "warm" in a, a == b, inspect.getmembers(a)          the namespace as a whole
    report(a)                                           the attributes that the code of ``report`` names

While tracing, such an attribute is there on every path, and stands for what one of them set.
"""

from __future__ import annotations

import collections
import types
from collections.abc import Iterable
from typing import Any

from dy2static.operators.shared import module_parts
from dy2static.operators.shared.reachable import ANY_NAME, TOO_MUCH, Code, global_names, names_in, reached
from dy2static.operators.shared.staging import Session
from runtime.kinds import is_a
from runtime.tracer.ambient.unasked import unasked

_WHOLE = frozenset({
    "__dict__", "vars", "dir", "__dir__", "__getstate__", "__reduce__", "__reduce_ex__", "attrgetter", ANY_NAME,
})  # fmt: skip
"""Names with which code comes to attributes that it does not name."""
_PICKLING = frozenset({"_pickle", "pickle", "marshal"})
_MOST = 200


def require_settled(session: Session, what: str, f: Any, values: Iterable[Any], code: Code | None) -> None:
    """Refuse to give code that is not converted an object of which it may read an attribute that only some paths set.

    ``code``: what functions among the values come to counts, too.

    Raises:
        TraceError: D2S254.
    """
    values = list(values)
    if session.journal.is_any_disordered() and set(_names_of(f)) & _WHOLE:
        found = reached(values, session.journal.is_disordered)
        if found is not None and found is not TOO_MUCH:
            session.journal.require_ordered(found, f"{what} is not converted and reads a {type(found).__name__}")
    if not session.containers.has_unset or f is collections.UserDict.__copy__:  # the copy has it on the same paths
        return
    if reached(values, has_unset) in (None, TOO_MUCH):
        return
    names = set(_names_of(f))
    if code is not None:
        reached(values, lambda value: False, code=code)
        names |= code.names
    is_whole = bool(names & _WHOLE)
    found = reached(values, lambda value: has_unset(value, None if is_whole else names))
    if found is not None and found is not TOO_MUCH:
        raise refusal(session, what, found, is_whole, names)


def refusal(session: Session, what: str, value: Any, is_whole: bool, names: Iterable[str]) -> Exception:
    """The located error (D2S254)."""
    name = next(one for one in _unset_of(value) if is_whole or one in names)
    return session.error(
        f"{what} is not converted and may read the attribute '{name}' of a {type(value).__name__}, which is only set "
        "on some paths", hint="Set the attribute on every path, or ask for it in converted code: hasattr(), getattr().",
        code="D2S254")


def has_unset(value: Any, names: Iterable[str] | None = None) -> bool:
    """Whether only some paths set an attribute of an object; ``names``: one of these."""
    return any(names is None or name in names for name in _unset_of(value))


def _unset_of(value: Any) -> list[str]:
    namespace = unasked(value, "__dict__")
    if type(namespace) is not dict or is_a(value, (types.ModuleType, types.FunctionType)):
        return []
    return [name for name, held in namespace.items() if module_parts.is_unset(held)]


def _names_of(f: Any) -> frozenset[str]:
    """The names in the code of a function, and of the functions beside it that it names."""
    if is_a(f, types.MethodType):
        f = f.__func__
    if is_a(f, types.FunctionType):
        return _names_beside(f)
    if unasked(f, "__module__") in _PICKLING or unasked(f, "__objclass__") is types.SimpleNamespace:
        return _WHOLE
    return frozenset((str(unasked(f, "__name__", "")),))


def _names_beside(function: types.FunctionType) -> frozenset[str]:
    names: set[str] = set()
    todo = [function]
    seen: set[int] = set()
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        if len(seen) > _MOST:
            return frozenset(names | _WHOLE)
        seen.add(id(one))
        names |= names_in(one.__code__)
        beside = (one.__globals__.get(name) for name in global_names(one.__code__))
        todo += [held for held in beside if is_a(held, types.FunctionType)]
    return frozenset(names)


__all__ = ["has_unset", "refusal", "require_settled"]
