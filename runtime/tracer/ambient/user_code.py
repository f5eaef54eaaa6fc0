"""Which of the user's code the trace is in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.tracer.ambient.session_parts import ITEMS, PARTS, VALUE, SessionPart, state


@dataclass(eq=False)
class UserCode(SessionPart):
    """The functions that run now, and what the converter keeps for them."""

    functions: list[str] = state(ITEMS, list)
    """The user's functions whose converted code runs, by file and line, innermost last."""
    activations: list[Any] = state(ITEMS, list)
    """Their calls (``dy2static.operators.calls.recursion``), to see which call themselves without end."""
    recursions: list[Any] = state(ITEMS, list)
    """The functions that call themselves and whose bodies are being traced (``control.recursion``)."""
    module_name: str = state(VALUE, "")
    """That of the module whose converted function runs."""
    unconverted: list[tuple[str, str]] = state(ITEMS, list)
    """Functions being run as they are, with the reason (innermost last), for error messages."""
    transforms: int = state(VALUE, 0)
    """How many transforms of ``torch.func`` are run as they are (see ``recording.transforms``)."""
    given_classes: dict[int, type] = state(ITEMS, dict)
    """Classes that calls of code that is not converted gave, by identity: they may have made them."""
    surrounding: tuple[Any, ...] = state(VALUE, ())
    """Local variables of consumers that run inside the generator being traced: its constructs join them too."""
    loop_options: list[Any] = state(ITEMS, list)
    """Options of loops whose blocks the trace is in, innermost last."""
    waiting: list[Any] = state(ITEMS, list)
    """Generators that wait in a ``try`` or ``with`` of their own (``python_state.waiting``)."""
    misplaced: list[Any] = state(ITEMS, list)
    """Where such a generator began to wait that was ended at another moment than in eager."""
    memo: Any = state(PARTS)
    """What the converter remembers for this trace."""


__all__ = ["UserCode"]
