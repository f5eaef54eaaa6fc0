"""Text that is only known while the Program runs: its methods, parts and characters.

    text.upper()    ->   scalar.str.upper(text)
    text[1:n]       ->   scalar.str.slice(text, 1, n, None)
    one + other     each one of several: texts of the run, where there are many combinations
    text.split()    a converted loop (``texts_in_python``)
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Sequence
from typing import Any

import torch

from dy2static.operators.calls.call import call
from dy2static.operators.constructs.if_expr import if_expr
from dy2static.operators.provenance import chosen
from dy2static.operators.shared import arity, chosen_texts
from dy2static.operators.shared.staging import Choice, Session, Staged, any_staged
from dy2static.operators.values import texts_in_python
from runtime.kinds import is_a
from runtime.ops.scalar import TEXT_METHODS
from runtime.tracer.ambient import state
from runtime.tracer.ambient.theirs import theirs
from runtime.tracer.numbers import scalars

_IN_PYTHON = ("split", "rsplit", "splitlines", "partition", "rpartition")
SPECIAL = ("__len__", "__getitem__", "__contains__")
METHODS = frozenset({*TEXT_METHODS, *_IN_PYTHON, *SPECIAL})
"""Those that text of the run has."""
_OPERATORS = {"__len__": "len", "__contains__": "contains"}


def method(text: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``text.name(*args)``.

    Errors raised: what Python raises for such arguments; TraceError (D2S210) for a number that is a tensor.
    """
    session = state.current()
    arity.require_fitting_method(str, name, args, kwargs, getattr(texts_in_python, name, None))
    if any(is_a(one, torch.Tensor) for one in (*args, *kwargs.values())):
        raise chosen.refusal(session, getattr(str, name))
    if name in _IN_PYTHON:
        _require_fitting_types(name, args, kwargs)
        text = chosen_texts.of_the_run(session, text)
        function: Any = getattr(texts_in_python, name)
        return call(function, text, *args, **kwargs)
    if name == "__getitem__":
        return item(session, text, *args)
    if name in ("startswith", "endswith") and is_a(args[0], tuple):
        found: Any = False
        getattr(str, name)("", tuple("" if is_a(one, (Staged, Choice)) else one for one in args[0]))  # may raise
        for one in args[0]:
            here = method(text, name, (one, *args[1:]), kwargs)
            found = here if found is False else if_expr(found, lambda: True, lambda here=here: here)  # type: ignore[misc]
        return found
    return session.scalar("str." + _OPERATORS.get(name, name), text, *args, *kwargs.values())


def few(session: Session, parts: Sequence[Any]) -> Sequence[Any]:
    """The parts of a text; those that are one of several texts are texts of the run, where each of all combinations
    would be a text of its own."""
    if not chosen_texts.many(parts):
        return parts
    return [chosen_texts.of_the_run(session, part) if chosen_texts.is_chosen(part) else part for part in parts]


def _require_fitting_types(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Errors raised: TypeError: a separator is no text, or a count no int; in Python's words."""

    def like(value: Any) -> Any:
        if is_a(value, Choice):
            value = value.options[0]
        return value.python_type("1" if value.kind == "str" else 1) if is_a(value, Staged) else value

    with contextlib.suppress(ValueError):  # of an empty separator: the run tells
        theirs(getattr("", name), *map(like, args), **{key: like(value) for key, value in kwargs.items()})


def item(session: Session, text: Any, key: Any) -> Any:
    """``text[key]``, a character or a part."""
    if is_a(key, slice):
        return session.scalar("str.slice", text, key.start, key.stop, key.step)
    return session.scalar("str.getitem", text, key)


def is_method(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Whether ``f(*args)`` is a method of text, given something that only the run knows: ``"a|b".find(text)``,
    ``str.upper(text)``."""
    name = getattr(f, "__name__", "")
    if name not in METHODS or not any(is_a(one, (Staged, Choice)) for one in (*args, *kwargs.values())):
        return False
    if is_a(f, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f.__objclass__ is str and is_a(args[0], (str, Staged))
    return type(getattr(f, "__self__", None)) is str and any_staged([args, kwargs])


def called(f: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """``f(*args)``, such a method."""
    if is_a(f, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        text, *rest = args
        return method(text, f.__name__, tuple(rest), kwargs)
    return method(f.__self__, f.__name__, args, kwargs)


scalars.register_methods_of_text(METHODS, method)

__all__ = ["METHODS", "SPECIAL", "called", "few", "is_method", "item", "method"]
