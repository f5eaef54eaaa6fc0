"""Branches for those that need one and stand below the room that stages them: ``choices``, ``heaps``, ``powers``.

``cond.py`` says at its import how it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runtime.tracer.numbers.scalars import Staged
    from runtime.tracer.python_state.journal import Place
    from runtime.tracer.recording.session import Session
    from runtime.tracer.values.structure import Choice

    Stage = Callable[[Session, str, Staged, tuple[Callable[[], Any], ...], Any, Choice | None], Any]


class NoNames:
    """No local variables: for conditional expressions."""

    names: tuple[str, ...] = ()

    def get(self) -> tuple[Any, ...]:
        """Nothing."""
        return ()

    def set(self, values: tuple[Any, ...]) -> None:
        """Nothing."""

    def holds(self, place: Place) -> bool:
        """Never."""
        return False


_stage: list[Stage] = []


def register(stage: Stage) -> None:
    """``stage(session, name, selector, runs, names, of)`` stages a ``cond`` or ``switch``."""
    _stage[:] = [stage]


def cond(session: Session, pred: Any, if_true: Callable[[], Any], if_false: Callable[[], Any]) -> Any:
    """``if_true() if pred else if_false()`` for a staged ``pred``, which assigns no local variables."""
    return _stage[0](session, "cond", pred, (if_true, if_false), NoNames(), None)


def switch(session: Session, index: Any, runs: Sequence[Callable[[], Any]], of: Choice | None = None) -> Any:
    """``runs[index]()`` for a staged ``index``, which assigns no local variables.

    ``of``: the choice whose options the branches work on, which is the result where each gives back its option.
    """
    return _stage[0](session, "switch", index, tuple(runs), NoNames(), of)
