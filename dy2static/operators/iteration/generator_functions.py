"""Functions that give generators: one whose generators have a second form returns them, and has no ``yield`` itself.

    @torch.no_grad()
    def g(v): ...; yield ...        decorated as a generator function: the mode holds while it runs, not outside of it
"""

from __future__ import annotations

import inspect
from types import CodeType, FunctionType
from typing import Any

from dy2static.operators.shared.staging import Session
from dy2static.origin import map_of
from runtime import torch_internals
from runtime.kinds import is_a


def gives_generators(f: Any) -> bool:
    """Whether a function is a generator function in the user's source (see ``transforms/generator``)."""
    if not is_a(f, FunctionType):
        return False
    origins = map_of(f.__code__.co_filename)
    return origins is not None and any(
        is_a(one, CodeType) and one.co_name.startswith("pull") and origins.made(one.co_name)
        for one in f.__code__.co_consts)  # fmt: skip


def decorated(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What one of torch's context managers, called with a generator function, makes of it; else NotImplemented."""
    if len(args) != 1 or kwargs or not torch_internals.decorates(f) or not gives_generators(args[0]):
        return NotImplemented
    return torch_internals.decorated_generator(f, args[0])


def decorator(value: Any) -> Any:
    """A decorator of a function that was a generator function."""
    if not torch_internals.decorates(value):
        return value
    return lambda f: torch_internals.decorated_generator(value, f) if gives_generators(f) else value(f)


def _asked(session: Session, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return True if len(args) == 1 and not kwargs and gives_generators(args[0]) else NotImplemented


HANDLERS = [(inspect.isgeneratorfunction, _asked)]
