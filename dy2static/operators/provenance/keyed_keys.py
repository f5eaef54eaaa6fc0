"""Keys of dicts and sets that are numbers of the run: which they may be, and where such containers are made.

    seen = set()                        noted: where it is made
    seen.add(int(x[0]))                 the trace begins again, and ``set()`` gives a ``NumberSet`` there
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn

from dy2static.operators.provenance.provenance import memo
from dy2static.operators.shared import chosen_texts
from dy2static.operators.shared.staging import Choice, Session, Staged, active, distribute
from runtime.errors import Dy2StaticError
from runtime.ir import ArrayType, ScalarType
from runtime.kinds import is_a
from runtime.ops.keyed import Keyed, KeyedCounter, KeyedDict, KeyedItems, KeyedKeys, KeyedSet
from runtime.tracer.ambient import catching
from runtime.tracer.python_state import shared_items
from runtime.tracer.python_state.held import held_in
from runtime.tracer.values import array, structure, tables
from runtime.tracer.values.alias_sets import AliasSet


def note(session: Session, made: Any) -> None:
    """A dict or set is made here."""
    memo(session).created[id(made)] = made
    session.containers.made_at[id(made)] = session.location()


def become(session: Session, owner: Any, *keys: Any) -> None:
    """A dict or set gets keys, or is looked at under some: if they are numbers of the run, and the function made it, it
    is made of lists.

    Raises:
        Restart: So that it is.
    """
    if any(map(is_of_run, keys)) and all(map(is_key, keys)):
        begin_again(session, owner)


def begin_again(session: Session, owner: Any) -> None:
    """As ``become``, for keys that are numbers of the run."""
    _, whole = session.containers.hidden.get(id(owner), (owner, owner))  # it may be what another holds on a path
    where = session.containers.made_at.get(id(whole))
    if where is not None:
        shared_items.begin_again_keyed(session, (where,))
    elif is_a(whole, dict) and (id(whole) in session.containers.held_in_lists or held_in(whole) is not None):
        shared_items.begin_again_keyed(session, session.containers.dicts_in_lists)  # it stands for one of these


def is_key(key: Any) -> bool:
    """Whether it is a number, text, None, or a tuple of such: their equality is that of keys, but for NaN."""
    if type(key) is tuple:
        grown = structure.growing(key)
        return all(map(is_key, key)) if grown is None else _is_grown_key(grown.item)
    if is_a(key, Staged):
        return key.kind in KINDS
    if is_a(key, Choice):
        return all(map(is_key, key.options))
    return key is None or type(key) in (int, str, bool, float) and key == key


def _is_grown_key(item: structure.Structure) -> bool:
    """Whether a tuple whose length only the run knows is a key, by its items."""
    return is_a(item, structure.Number) and item.kind in KINDS and item.kind != "float"


KINDS = ("int", "str", "bool", "float")
"""What keys may be that only the run knows."""


def is_of_run(key: Any) -> bool:
    """Whether such a key is only known while the Program runs."""
    if is_a(key, Choice):
        return is_key(key) and any(map(is_of_run, key.options))
    if not is_key(key):
        return False
    return is_a(key, Staged) or type(key) is tuple and (
        structure.growing(key) is not None or any(map(is_of_run, key)))


def of_run(session: Session, key: Any) -> Any:
    """A key with what is one of several texts as text of the run."""
    if type(key) is tuple:
        return key if structure.growing(key) is not None else tuple(of_run(session, one) for one in key)
    return chosen_texts.of_the_run(session, key) if chosen_texts.is_chosen(key) else key


def are_many(keys: Iterable[Any]) -> bool:
    """Whether keys are so many combinations of texts that each cannot be followed."""
    return chosen_texts.many(part for key in keys for part in (key if type(key) is tuple else (key,)))


@contextlib.contextmanager
def instead_of_many(session: Session, owner: Any, key: Any) -> Iterator[None]:
    """While a dict or set gets a key: where a path chose which, and the container would hold one of too many sets of
    keys, the trace begins again, and makes it of lists."""
    try:
        yield
    except Dy2StaticError as error:
        if error.code in ("D2S254", "D2S255") and is_key(key) and are_chosen(key):
            begin_again(session, owner)
        raise


def are_chosen(key: Any) -> bool:
    """Whether a path chose the key, or a part of it."""
    return any(is_a(part, Choice) for part in (key if type(key) is tuple else (key,)))


def require_key(owner: Keyed, key: Any) -> None:
    """Errors raised: TraceError, D2S265, for anything else; ValueError in a run where it is NaN, which is a key that is
    equal to the very same object only."""
    session = active()
    if session is None:
        return
    if is_key(key):
        for part in _parts(key):
            if type(part) is tuple:
                require_key(owner, part)
            elif is_a(part, Choice):
                distribute(session, part, functools.partial(require_key, owner))
            elif is_a(part, Staged) and part.kind == "float":
                session.emit("assert", [session.operand(session.scalar("eq", part, part))], attrs={
                    "exception": "ValueError",
                    "message": f"nan as a key of a {owner.stands_for.__name__}: what it is equal to is not known",
                })  # fmt: skip
        return
    raise session.error(
        f"a {owner.stands_for.__name__} has keys that are only known while the Program runs, and one that is neither a "
        "number nor text nor None", code="D2S265",
        hint="Keep such keys in another dict, or use numbers, texts, None, and tuples of them, as keys.")


def _parts(key: Any) -> tuple[Any, ...]:
    """What a key is made of: of a tuple whose length only the run knows nothing, as no float is in it."""
    if type(key) is not tuple:
        return (key,)
    return key if structure.growing(key) is None else ()


def require_none(session: Session, f: Any, given: tuple[Any, ...]) -> None:
    """Errors raised: TraceError, D2S265, where code that is not converted is given such a dict or set."""
    for one in given:
        if is_a(one, Keyed):
            raise session.error(
                f"{getattr(f, '__name__', 'a function')}() is not converted, and is given a {one.stands_for.__name__} "
                "whose keys are only known while the Program runs", code="D2S265",
                hint="Call it outside of the function.")


def refuse(owner: Keyed, what: str) -> NoReturn:
    """Errors raised: TraceError, D2S265: ``what`` is asked for."""
    session = active()
    assert session is not None
    raise session.error(
        f"{what} of a {owner.stands_for.__name__} is asked for, whose items are only known while the Program runs",
        code="D2S265", hint="Go over sorted(items), or use a dict, which has an order; make texts outside.")


def places_in_order(owner: Any) -> Any:
    """The places of the keys of a set in the order in which Python goes over it.

    Errors raised: TraceError, D2S265, where something else has happened to the set than that items were added one by
    one: where they stand in Python's hash table depends on it.
    """
    session = active()
    assert session is not None
    owner = tables.unbound(session, owner)
    keys = owner._keys
    require_added(owner)
    if not keys:
        return []
    (grown,) = array.of_items(session, keys) if structure.growing(keys) is None else [array.content(keys)]
    parts = grown.item.items if is_a(grown.item, structure.Sequence) else (grown.item,)
    if not all(is_a(part, structure.Number) for part in parts):
        refuse(owner, "the order")
    in_tuples = is_a(grown.item, structure.Sequence)
    (places,) = session.emit("array.set_order", [list(grown.variables), in_tuples],
                             types=[ArrayType(ScalarType("int"))])
    return [structure.Growing((places,), structure.Number("int"), AliasSet())]


def holds_floats(keys: list[Any]) -> bool:
    """Whether keys are floats: the sum of such depends on their order."""
    return any("float" in _kinds(key) for key in ([_items(keys)] if _items(keys) is not None else keys))


def require_added(owner: Any) -> None:
    """Errors raised: TraceError, D2S265, where it is known that more has happened to a set than that items were added;
    RuntimeError in a run, where only that knows."""
    session = active()
    assert session is not None
    owner = tables.unbound(session, owner)
    if is_a(owner._added, Staged):
        session.emit("assert", [session.operand(owner._added)], attrs={
            "exception": "RuntimeError", "message": "the order of a set from which items were removed is not known"})
    elif owner._added is not True:
        refuse(owner, "the order")


def added_one_by_one(items: Any) -> bool:
    """Whether a set to which Python adds these takes one after the other: what is in a set or dict is copied as it
    stands in its hash table."""
    return not is_a(items, (set, frozenset, dict, KeyedSet, KeyedDict))


def hold_sets(factory: Any, values: list[Any]) -> bool:
    """Whether the values of a ``defaultdict(set)`` are sets of numbers of the run: so is the next one that it makes,
    wherever that is."""
    grown = structure.growing(values)
    return factory is set and (_may_be_set(grown.item) if grown is not None else any(map(_may_be_set, values)))


def _may_be_set(value: Any) -> bool:
    if is_a(value, (Choice, structure.Options)):
        return any(map(_may_be_set, value.options))
    if is_a(value, structure.Reference):
        return issubclass(value.kind, KeyedSet)
    return is_a(value, KeyedSet)


def require_of_one_kind(owner: Keyed, *keys: Any) -> None:
    """Errors raised: TraceError, D2S265, where which of two equal keys remains shows in its class (1, 1.0, True)."""
    kinds = {kind for some in keys for key in ((_items(some),) if _items(some) is not None else some)
             for kind in _kinds(key)}
    if active() is not None and any(itertools.starmap(_may_be_equal, itertools.combinations(kinds, 2))):
        refuse(owner, "which of equal keys of several kinds is left")


def _items(keys: Any) -> structure.Structure | None:
    """The structure of the keys that a list holds, if only the run knows how many."""
    grown = structure.growing(keys) if type(keys) in (list, tuple) else None
    return None if grown is None else grown.item


def _kinds(key: Any) -> set[Any]:
    """Of what kinds a key may be."""
    if is_a(key, structure.Known):
        key = key.value
    if is_a(key, (structure.Options, Choice)):
        return {kind for option in key.options for kind in _kinds(option)}
    if is_a(key, structure.Array) or type(key) is tuple and structure.growing(key) is not None:
        return {"tuple"}
    if is_a(key, structure.Sequence) or type(key) is tuple:
        parts = key.items if is_a(key, structure.Sequence) else key
        return set(itertools.product(*map(_kinds, parts)))
    return {key.kind if is_a(key, (Staged, structure.Number)) else type(key).__name__}


def _may_be_equal(kind: Any, other: Any) -> bool:
    """Whether keys of two kinds that are not the same may be equal."""
    if is_a(kind, tuple) and is_a(other, tuple):
        return len(kind) == len(other) and all(a == b or _may_be_equal(a, b) for a, b in zip(kind, other))
    return {kind, other} <= {"int", "float", "bool"}


def members(other: Any) -> Any:
    """What a method of sets takes the items of, where their order makes no difference."""
    session = active()
    return tables.unbound(session, other)._keys if is_a(other, KeyedSet) and session is not None else other


def missing(owner: Keyed, key: Any) -> KeyError:
    """What is raised where there is no such key.

    Errors raised: TraceError, D2S265, in a ``try`` that catches it, of a tuple whose length only the run knows: no
    exception can hold that.
    """
    session = active()
    if session is None or type(key) is not tuple or structure.growing(key) is None:
        return KeyError(key)
    if catching.is_handled(session, KeyError):
        refuse(owner, "a KeyError of a tuple whose length only the run knows,")
    return KeyError("a tuple whose length only the run knows")


def is_set(other: Any) -> bool:
    """Whether an operator of sets takes it."""
    return is_a(other, (KeyedSet, set, frozenset)) or is_view(other)


def is_view(other: Any) -> bool:
    """Whether it is what ``keys()`` or ``items()`` give."""
    return is_a(other, (type({}.keys()), type({}.items()), KeyedKeys, KeyedItems))


def is_mapping(other: Any) -> bool:
    """Whether it is a dict."""
    return is_a(other, (KeyedDict, dict))


def is_counter(other: Any) -> bool:
    """Whether it is a ``Counter``."""
    return is_a(other, (KeyedCounter, Counter))


def own_class(value: Any) -> Any:
    """The class of ours."""
    return type(value)


__all__ = [
    "added_one_by_one", "are_chosen", "are_many", "become", "begin_again", "hold_sets", "holds_floats",
    "instead_of_many", "of_run",
    "is_counter", "is_key", "is_mapping", "is_of_run", "is_set", "is_view", "members", "missing", "note",
    "own_class", "places_in_order", "refuse", "require_added", "require_key", "require_none", "require_of_one_kind",
]  # fmt: skip
