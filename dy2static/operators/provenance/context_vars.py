"""Context variables: what ``set`` and ``reset`` do is a store like one to a global.

    token = V.set(x)        V holds x from here on, on this path; what it held is put back where the path ends
    V.get()                 what this path stored, else what the caller's context holds, which is guarded
    V.reset(token)          a store of what V held before: where nothing else was stored, no run changes V

A token is good for one ``reset``, and the trace follows paths that each reset it: the reset is therefore done as a
store, and what a token was used for is remembered by Block.
"""

from __future__ import annotations

import contextvars
from typing import Any

from dy2static.operators.provenance.observed import done
from dy2static.operators.provenance.provenance import adopt, holds_traced, is_external, memo, written
from dy2static.operators.shared.load import settle
from dy2static.operators.shared.staging import Choice, Session, distribute
from runtime.kinds import is_a
from runtime.tracer.python_state.journal import MISSING, Place, set_variable


def call(session: Session, var: contextvars.ContextVar[Any], name: str, args: tuple[Any, ...],
         kwargs: dict[str, Any]) -> Any:
    """``var.name(*args, **kwargs)`` for ``get``, ``set`` and ``reset``."""
    method = getattr(var, name)
    place = Place("context", var)
    if name == "get":
        _read(session, place)
        held = place.get()
        if is_a(held, Choice):
            return _chosen(session, place, held, args)
        given = method(*args, **kwargs)
        return _default(session, var, given) if held is MISSING and not args else given
    if kwargs or len(args) != 1:
        return method(*args, **kwargs)  # it raises
    if name == "set":
        if len(session.journal.frames) > 1:
            _read(session, place)  # a path that does not set it leaves what it was
        session.journal.note(place)
        token = set_variable(var, args[0])
        memo(session).created[id(token)] = token
        return token
    return _reset(session, place, args[0])


def _read(session: Session, place: Place) -> None:
    """Guard what the caller's context holds, unless something else was stored since."""
    held = place.get()
    if written(session, place) and session.journal.frames[0][place] is not held:
        return
    if held is MISSING or not holds_traced(held):
        if held is not MISSING:
            adopt(session, held)
        session.guards.add((id(place.owner), "context"), place.describe(), place.get, held)


def _default(session: Session, var: contextvars.ContextVar[Any], value: Any) -> Any:
    """What a variable gives that was made with a default: it is as old as the variable."""
    if is_external(session, var):
        adopt(session, value)
    return value


def _chosen(session: Session, place: Place, held: Choice, args: tuple[Any, ...]) -> Any:
    """What the variable holds where it was set on some paths only: on the others it has its default."""
    try:
        default = contextvars.Context().run(place.owner.get, *args)
    except LookupError as error:
        return settle(session, held, MISSING, "LookupError", str(error))
    default = default if args else _default(session, place.owner, default)
    options = tuple(default if option is MISSING else option for option in held.options)
    return distribute(session, Choice(held.selector, options), lambda option: option)


def _reset(session: Session, place: Place, token: Any) -> None:
    var = place.owner
    if not is_a(token, contextvars.Token) or token.var is not var:
        var.reset(token)  # it raises
    if id(token) not in memo(session).created:
        done(session, f"{place.describe()} is reset with a token from before the call")
        var.reset(token)
        return
    used = memo(session).tokens
    if any(scope is one for one in session.scope.chain() for scope in used.get(id(token), ())):
        raise RuntimeError(f"{token!r} has already been used once")
    used.setdefault(id(token), []).append(session.scope)
    before = token.old_value
    session.journal.note(place)
    place.set(MISSING if before is contextvars.Token.MISSING else before)


__all__ = ["call"]
