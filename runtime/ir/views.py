"""Views: chains of operators that show a tensor's memory, each with a hole where its source stands."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from runtime.ir.variable import Variable


@dataclass(frozen=True)
class Hole:
    """In a view step's arguments: where the tensor stands that is viewed."""

    def __repr__(self) -> str:
        return "HOLE"


HOLE = Hole()


@dataclass(frozen=True)
class ViewStep:
    """One operator of a view: ``name(*args, **kwargs)``, and which of its results is meant."""

    name: str
    args: tuple[Any, ...]
    kwargs: tuple[tuple[str, Any], ...]
    index: int


@dataclass(frozen=True)
class View:
    """A result that is an input or parameter itself (no steps), or a view of one: taken of the caller's tensor."""

    source: Variable
    steps: tuple[ViewStep, ...]


def fill(template: Any, source: Any) -> Any:
    """A view step's arguments with its source put in.

    >>> fill((HOLE, [1, HOLE]), "x")
    ('x', [1, 'x'])
    """
    if isinstance(template, Hole):
        return source
    if isinstance(template, (list, tuple)):
        return type(template)(fill(item, source) for item in template)
    return template


__all__ = ["HOLE", "Hole", "View", "ViewStep", "fill"]
