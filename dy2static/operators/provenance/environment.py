"""``os.environ`` and Python's recursion limit inside a trace: what is read is guarded, so that a change means another
Program.

    os.environ.get("DEBUG", "0") == "1"   ->   the answer, and the fact "the environment variable DEBUG is not set"
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any, NoReturn

from dy2static.operators.shared.staging import Session
from runtime import recursion_limit
from runtime.kinds import is_a

_Environ = type(os.environ)


class WatchedEnvironment(_Environ):  # type: ignore[valid-type, misc]  # the class has no public name
    """What ``os.environ`` gives while tracing: the same variables; reads are noted, writes refused."""

    def __init__(self, session: Session) -> None:
        self.__dict__.update(vars(os.environ))
        self._session = session

    def __getitem__(self, key: str) -> str:
        return os.environ[note(self._session, key)]

    def __contains__(self, key: object) -> bool:
        return note(self._session, key) in os.environ

    def __iter__(self) -> Iterator[str]:
        note_all(self._session)
        return iter(os.environ)

    def __len__(self) -> int:
        note_all(self._session)
        return len(os.environ)

    def __setitem__(self, key: str, value: str) -> None:
        self._refuse()

    def __delitem__(self, key: str) -> None:
        self._refuse()

    def setdefault(self, key: str, value: Any = None) -> Any:
        """``os.environ.setdefault``: a read if the variable is there, else a write."""
        if key not in self:
            self._refuse()
        return self[key]

    def _refuse(self) -> NoReturn:
        raise self._session.error(
            "os.environ is changed inside a converted function", code="D2S214",
            hint="Do it outside: a run of the Program would not repeat it.")


def getenv(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``os.getenv(key, default)``."""
    return WatchedEnvironment(session).get(*args, **kwargs)


def note(session: Session, key: Any) -> Any:
    """Guard one variable; gives ``key``."""
    if is_a(key, str):
        session.guards.add(("environment", key), f"the environment variable {key}",
                           lambda: os.environ.get(key), os.environ.get(key))
    return key


def note_all(session: Session) -> None:
    """Guard the whole environment."""
    session.guards.add(("environment",), "the environment", lambda: dict(os.environ), dict(os.environ))


def recursion_limit_of_user(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``sys.getrecursionlimit()``, which a trace raises."""
    if args or kwargs:
        return NotImplemented
    limit = recursion_limit.users()
    session.guards.add(("recursion limit",), "sys.getrecursionlimit()", recursion_limit.users, limit)
    return limit


HANDLERS = [(os.getenv, getenv), (sys.getrecursionlimit, recursion_limit_of_user)]
