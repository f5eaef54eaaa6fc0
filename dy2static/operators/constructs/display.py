"""Displays of dicts and sets: built for each value that a key or member may be.

    {name: x, **more}   ->   dict_of((name, x), (more,))
    {name, "a"}         ->   set_of((name, "a"))
"""

from __future__ import annotations

from typing import Any

from dy2static.operators.calls import keyed
from dy2static.operators.constructs import user_methods
from dy2static.operators.provenance import keyed_keys, tensor_keys
from dy2static.operators.provenance.chosen import hashed
from dy2static.operators.provenance.names_read import note_answers
from dy2static.operators.shared import asked_methods
from dy2static.operators.shared.staging import Choice, Session, active, held_choice
from runtime.kinds import is_a
from runtime.tracer.ambient.theirs import acts_for_user
from runtime.tracer.values.containers import opened


def dict_of(*parts: tuple[Any, ...]) -> Any:
    """A dict of pairs of a key and a value, and of mappings that stand alone.

    >>> dict_of(("a", 1), ({"b": 2},))
    {'a': 1, 'b': 2}
    """
    session = active()
    if session is None:
        return _built(parts)
    parts = tuple(part if len(part) == 2 else (user_methods.mapping_of(part[0]),) for part in parts)
    note_answers(session, *(part[0] for part in parts if len(part) == 1))
    return _of_parts(session, [(opened(tensor_keys.own(session, part[0])), *part[1:]) for part in parts])


def _of_parts(session: Session, parts: list[tuple[Any, ...]]) -> Any:
    """The dict; values, and mappings that are known, stay the objects they are."""
    of_numbers = keyed.of_parts(session, parts)
    if of_numbers is not NotImplemented:
        return of_numbers
    asked_methods.require_hashed(session, "a dict display", [part[0] for part in parts])
    asked_methods.require_items(session, "'**'", [part[0] for part in parts if len(part) == 1], is_converted=False)
    places = [index for index, part in enumerate(parts) if _is_chosen(part)]
    if not places:
        made = _built(parts)
        keyed_keys.note(session, made)
        return made

    def build(given: list[Any]) -> dict[Any, Any]:
        settled = list(parts)
        for index, value in zip(places, given):
            settled[index] = (value, *parts[index][1:])
        return _built(settled)

    return hashed(session, [parts[index][0] for index in places], build)


def _is_chosen(part: tuple[Any, ...]) -> bool:
    return is_a(part[0], Choice) or (len(part) == 2 and held_choice(part[0]) is not None)


def _built(parts: Any) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for part in parts:
        if len(part) == 2:
            made[part[0]] = part[1]
        else:
            made = _with(made, part[0])
    return made


@acts_for_user
def _with(made: dict[Any, Any], more: Any) -> dict[Any, Any]:
    return {**made, **more}


def set_of(items: tuple[Any, ...]) -> Any:
    """A set of items.

    >>> sorted(set_of((2, 1, 2)))
    [1, 2]
    """
    session = active()
    if session is None:
        return set(items)
    of_numbers = keyed.of_items(session, items)
    if of_numbers is not NotImplemented:
        return of_numbers
    made = hashed(session, list(items), set)
    keyed_keys.note(session, made)
    return made


__all__ = ["dict_of", "set_of"]
