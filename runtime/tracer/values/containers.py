"""Lists, dicts, sets and deques, which joins take by reference: what each holds is joined on its own.

A variable that is one list on one path and another on the other is a ``Choice`` of the two. A container that a path
made stays the Python object that it is; what the path put into it leaves the construct as a *content* of its own, which
nobody can see where the other path was taken. Containers that several paths made, each known in exactly the places
where the others are, become one.

Where the content of one container differs in structure between the paths, it is one of several, each in a *hidden*
container that only the marker in the first one, ``Several``, refers to.
"""

from __future__ import annotations

import sys
import types
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn

import torch

from runtime.kinds import is_a
from runtime.tracer.ambient import contents, objects, shown, state
from runtime.tracer.ambient.poison import Key, keys_answer
from runtime.tracer.ambient.walks import walk
from runtime.tracer.numbers import selected, staging
from runtime.tracer.python_state.held import RowKey, choice_of, held_in
from runtime.tracer.python_state.journal import MISSING, Place, python_kind
from runtime.tracer.python_state.notes import others
from runtime.tracer.values.structure import (
    Choice,
    DictContent,
    Growing,
    ListContent,
    field_items,
    growing,
    is_container,
    row_of,
    same_keys,
)

if TYPE_CHECKING:
    from runtime.ir import Location
    from runtime.tracer.recording.session import Session


class Several(Key):
    """What a container holds whose content is one of several; it stands as its only item while tracing."""

    __slots__ = ("choice",)
    text = "<one of several contents>"

    def __init__(self, choice: Choice) -> None:
        self.choice = choice
        """Of hidden containers."""

    def refuse(self, *args: Any) -> NoReturn:
        """What an operation on it raises.

        Raises:
            TraceError: D2S254.
        """
        raise state.current().error(
            "a container is used in code that is not converted, and what it holds differs between paths",
            hint="Give every path the same keys and kinds of items, or make a new one on each path.",
            code="D2S254")  # fmt: skip


def several(value: Any) -> Choice | None:
    """The hidden containers of which one is what ``value`` is like, if its content is one of several."""
    if not is_container(value):
        return _shown(value) if shown.shows(value) and _any_hidden() else None
    kind = python_kind(value)
    if kind.__len__(value) != 1:
        return _put_together(value) if _any_hidden() else None
    (found,) = dict.__iter__(value) if is_a(value, dict) else kind.__iter__(value)  # an OrderedDict's hashes it
    if type(found) is RowKey:
        return choice_of(state.current(), found.row)
    return found.choice if type(found) is Several else None


def _shown(view: Any) -> Choice | None:
    """The same for a view of a dict, or a mapping proxy: those of the hidden dicts."""
    owner = shown.dict_behind(view)
    row = None if owner is None else held_in(owner)
    if row is not None:
        return choice_of(state.current(), row, lambda made: shown.like(view, made))
    found = None if owner is None else several(owner)
    return None if found is None else Choice(found.selector, tuple(shown.like(view, one) for one in found.options))


_NESTED = 64


def require_read(session: Session, iterator: Any) -> None:
    """Refuse to take items from an iterator over a container that was changed on some paths since it was made.

    Raises:
        TraceError: D2S266.
    """
    known = session.containers
    if not (known.has_contents or known.has_growing or known.stopped) or not hasattr(type(iterator), "__next__"):
        return
    stopped = any(id(one) in known.stopped for one in walk([iterator], contents.inner, _NESTED))
    for one in shown.read_by(iterator):
        if stopped or growing(one) is not None or several(one) is not None:
            raise session.error(
                f"a {type(iterator).__name__} goes over a {type(one).__name__} that was changed on some paths since it "
                "was made", hint="Make the iterator, and what it goes over, after the change.", code="D2S266")


def _any_hidden() -> bool:
    session = state.active()
    return session is not None and session.containers.has_contents


def _put_together(value: Any) -> Choice | None:
    """The same for a container that Python's own operators made of one with such content (``xs + [y]``, ``d | e``).

    Raises:
        TraceError: D2S254, it was made of two whose contents differ independently.
    """
    held = Place("content", value).get()
    for item in held:
        if type(item) is RowKey:
            item.refuse()
    found = [item for item in held if type(item) is Several]
    if not found:
        return None
    choice = found[0].choice
    if any(one.choice.selector.var is not choice.selector.var for one in found):
        found[0].refuse()
    contents = []
    for number in range(len(choice.options)):
        made: Any = {} if is_a(held, dict) else []
        for item in held:
            part = content(item.choice.options[number]) if type(item) is Several else None
            if is_a(made, dict):
                made.update(part if part is not None else {item: held[item]})
            else:
                made += part if part is not None else [item]
        contents.append(frozenset(made) if is_a(value, set) else made)
    put(state.current(), value, Choice(choice.selector, tuple(contents)))
    return several(value)


def opened(value: Any) -> Any:
    """The value; for a container whose content is one of several, the Choice of the hidden ones that stand for it."""
    found = several(value)
    return value if found is None else found


def content(value: Any, chosen: tuple[Choice, int] | None = None) -> Any:
    """What a container holds, as a value of its own; a Choice of such where it is one of several.

    ``chosen``: a Choice, and which of its options this path of a switch is for.
    """
    if row_of(value) is not None:
        return as_content(Place("content", value).get())
    found = several(value)
    if found is not None and chosen is not None and found is chosen[0]:
        return content(found.options[chosen[1]], chosen)
    if found is not None:
        return Choice(found.selector, tuple(map(content, found.options)))
    return as_content(Place("content", value).get())


def as_content(held: Any) -> Any:
    """A list, dict or frozenset that was made of what a container holds, as such."""
    if is_a(held, Choice):
        return Choice(held.selector, tuple(map(as_content, held.options)))
    return ListContent(held) if is_a(held, list) else DictContent(held) if is_a(held, dict) else held


def put(session: Session, owner: Any, value: Any) -> None:
    """Let a container hold a content, which may be a Choice of several, these Choices as well.

    Raises:
        TraceError: D2S254, there are too many.
    """
    place = Place("content", owner)
    if is_a(value, Choice):
        value = flat(session, value)
        require_few(session, owner, value, None)
        hidden = tuple(_hidden(session, owner, option) for option in value.options)
        marker = Several(Choice(value.selector, hidden))
        with keys_answer():
            value = {marker: None} if is_a(owner, dict) else [marker]
    session.journal.note(place, joined=True)
    place.set(value)


def flat(session: Session, value: Choice) -> Choice:
    """The same one of several, with the options of those of them that are one of several in their place."""
    if not any(is_a(option, Choice) for option in value.options):
        return value
    options: list[Any] = []
    places: list[Any] = []
    for option in value.options:
        inner = flat(session, option) if is_a(option, Choice) else None
        places.append(len(options) if inner is None else inner.selector + len(options))
        options += (option,) if inner is None else inner.options
    selector = places[-1]
    for number in reversed(range(len(places) - 1)):
        selector = session.scalar("select", value.selector == number, places[number], selector)
    return Choice(selector, tuple(options))


def store(session: Session, place: Place, value: Any) -> None:
    """Let a place hold what paths or iterations have left there."""
    if place.kind == "content":
        put(session, place.owner, value)
        return
    if is_a(value, Choice) and place.kind == "attribute":
        session.containers.has_unset |= any(one is MISSING for one in value.options)
        if is_a(place.owner, torch.nn.Module) and place.name in _OF_PARTS:  # PyTorch's code reads it as it is
            value = _one_dict(session, value)
    session.journal.write(place, value)


_OF_PARTS = ("_parameters", "_buffers", "_modules")


def _one_dict(session: Session, choice: Choice) -> Any:
    """A dict that holds what whichever of several dicts it is does."""
    if not all(is_a(option, dict) for option in choice.options):
        return choice
    made: dict[str, Any] = {}
    put(session, made, Choice(choice.selector, tuple(map(content, choice.options))))
    return made


_MOST = 16


def view(session: Session, choice: Choice) -> Any:
    """A container of its own that holds what whichever of several containers it is does, to be read."""
    def copied(option: Any) -> Callable[[], Any]:
        def run() -> Any:
            made = _like(option)
            Place("content", made).set(Place("content", option).get())
            return made

        return run

    return staging.switch(session, choice.selector, [copied(option) for option in choice.options])


def require_few(session: Session, owner: Any, value: Any, location: Location | None) -> None:
    """Refuse a container that may hold too many different contents: each key set on some paths doubles their number.

    Raises:
        TraceError: D2S254, there are more than 16.
    """
    if is_a(value, Choice) and len(value.options) > _MOST:
        raise session.error(
            f"a {type(owner).__name__} is changed in a branch, and may by now hold {len(value.options)} different sets "
            "of items",
            hint="Give every path the same keys and kinds of items.",
            code="D2S254",
            location=location,
        )


def one_list(session: Session, value: Any) -> Any:
    """A list that nobody else has; one of several such as one whose content is one of several."""
    contents = tuple(map(content, value.options)) if is_a(value, Choice) else ()
    if not contents or any(is_a(one, Choice) for one in contents):
        return value
    made: list[Any] = []
    put(session, made, Choice(value.selector, contents))
    return made


def _hidden(session: Session, like: Any, value: Any) -> Any:
    made = _like(like)
    Place("content", made).set(value)
    session.containers.hidden[id(made)] = made, like
    return made


def by_themselves(
    session: Session, ends: Sequence[Mapping[Place, Any]], of: Choice | None = None
) -> dict[int, list[Any]]:
    """The hidden containers that paths have stored to while what they stand for still has its marker, by the identity
    of that.

    Code that runs on one path only, for one of several contents, may have the hidden container of that content in its
    hands for more than a step. What a construct of its own changes is to be found there.

    ``ends``: the places that each path stored to, with what they hold at its end. ``of``: the choice whose options the
    paths are for: what they leave becomes the contents anew.
    """
    found: dict[int, list[Any]] = {}
    stored = {place for end in ends for place in end if place.kind == "content"}
    for made, owner in [session.containers.hidden.get(id(place.owner), (None, None)) for place in stored]:
        shown = Place("content", owner)
        marker = None if made is None else _marker(shown.get())
        if marker is None or marker.choice is of or not any(one is made for one in marker.choice.options):
            continue
        if all(shown not in end or _marker(end[shown]) is marker for end in ends):
            found.setdefault(id(owner), []).append(made)
    return found


def _marker(held: Any) -> Several | None:
    """The only item of what a container holds, if its content is one of several."""
    with keys_answer():
        found = list(held) if is_a(held, (list, dict, frozenset)) and len(held) == 1 else ()
    return found[0] if found and type(found[0]) is Several else None


def forget_unused(session: Session) -> None:
    """Let go of the hidden containers that nothing refers to any more, and of what they hold: memory that nobody can
    see is not brought up to date when other memory is written."""
    hidden = session.containers.hidden
    for key in list(hidden):
        made = hidden[key][0]
        if others(made) <= 1:
            del hidden[key]


def attributes(value: Any) -> dict[str, Any]:
    """The attributes of a container, which those of a class derived from Python's may have."""
    return {} if type(value) in _WITHOUT_ATTRIBUTES else objects.attributes(value)


_WITHOUT_ATTRIBUTES = (list, dict, set, deque, defaultdict, ListContent, DictContent)


def _like(value: Any) -> Any:
    """An empty container of the same class, with the same attributes."""
    made = empty_like(value)
    for name, held in attributes(value).items():
        Place("attribute", made, name).set(held)
    return made


def empty_like(value: Any) -> Any:
    """An empty container of the same class, without attributes."""
    cls: Any = type(value)
    if is_a(value, deque):
        made = cls.__new__(cls)
        deque.__init__(made, (), value.maxlen)
    elif is_a(value, defaultdict):
        made = cls.__new__(cls)
        made.default_factory = value.default_factory
    else:
        made = cls.__new__(cls)
    return made


@dataclass(frozen=True)
class Kind:
    """What two containers must share, besides what they and their attributes hold, to be made into one."""

    cls: type
    extra: Hashable
    """The longest that a deque may be, or the identity of a factory."""
    attributes: tuple[str, ...]


def kind_of(value: Any) -> Kind:
    """The kind of a container."""
    extra: Any = None
    if is_a(value, deque):
        extra = value.maxlen
    elif is_a(value, defaultdict):
        extra = id(value.default_factory)
    return Kind(type(value), extra, tuple(attributes(value)))


def items_of(value: Any) -> Iterable[tuple[Hashable, Any]]:
    """The items of a container with the place of each; of one of several contents, those of each."""
    if row_of(value) is not None:
        return
    found = several(value)
    if found is not None:
        for number, option in enumerate(found.options):
            for key, item in items_of(option):
                yield (number, key), item
        return
    held = Place("content", value).get()
    if not any(is_a(item, Growing) for item in held):  # to ask for the joined parts would record it here
        yield from held.items() if is_a(held, dict) else enumerate(held)


@dataclass(eq=False)
class _Fresh:
    value: Any
    positions: set[Hashable] = field(default_factory=set)
    fixed: bool = False
    """Whether it is held where no other can be put: in a closure, a partial, an iterator."""


class Leaving:
    """What leaves one path: looked at inside it, where everything is as it is at its end."""

    def __init__(self, session: Session, is_new: Callable[[Any], bool]) -> None:
        self._session, self._is_new = session, is_new
        self.containers: dict[int, _Fresh] = {}
        """Those that the path made, by identity."""
        self.reached: dict[int, Any] = {}
        """Everything that was come by."""

    def items(self, value: Any) -> Iterable[tuple[Hashable, Any]]:
        """The items of a container with the place of each; of what is its content on this path, as of a plain one."""
        found = several(value) if row_of(value) is None else None
        known = None if found is None else selected.only(self._session, found.selector.var)
        if found is None or known is None:
            yield from items_of(value)
            return
        for number, option in enumerate(found.options):
            for key, item in self.items(option):
                yield key if number == known else (number, key), item

    def walk(self, value: Any, way: tuple[Hashable, ...], fixed: bool = False) -> None:
        """Note what a value, known at a place, leads to."""
        todo = [(value, way, fixed)]
        while todo:
            value, way, fixed = todo.pop()
            if is_a(value, _LEAVES) or value is None:
                continue
            if is_a(value, Choice):
                number, known = id(value.selector.var), selected.only(self._session, value.selector.var)
                todo += [(option, way if i == known else (*way, (number, i)), fixed)
                         for i, option in enumerate(value.options)]  # fmt: skip
                continue
            if row_of(value) is not None:  # carried as a value
                continue
            if is_container(value):
                if not self._is_new(value):
                    self.reached[id(value)] = value
                    continue
                found = self.containers.setdefault(id(value), _Fresh(value))
                found.positions.add(way)
                found.fixed |= fixed
                if id(value) not in self.reached:
                    self.reached[id(value)] = value
                    todo += [(item, (*way, key), fixed) for key, item in self.items(value)]
                continue
            if is_a(value, tuple):
                if not all(map(_is_tuple_or_leaf, walk([value], _of_tuples, sys.maxsize))):
                    todo += [(item, (*way, key), fixed) for key, item in enumerate(objects.own_items(value))]
                continue
            if id(value) in self.reached:
                continue
            self.reached[id(value)] = value
            fields = field_items(value)
            if fields is not None and not objects.is_record(value):
                todo += [(item, (*way, key), fixed) for key, item in zip(*fields)]
                continue
            parts = self._session.containers.readers.parts(value)
            todo += [(item, (*way, id(value), number), True) for number, item in enumerate(parts)]


def at(session: Session, value: Any, way: tuple[Hashable, ...]) -> Any:
    """The container at a place as ``Leaving`` names it; None where that is none, or may be one of several."""
    for key in (*way, None):
        while is_a(value, Choice):
            known = selected.only(session, value.selector.var)
            if known is None:
                return None
            value = value.options[known]
        if key is None:
            break
        if is_container(value):
            value = opened(value) if row_of(value) is None else None
            while is_a(value, Choice):
                known = selected.only(session, value.selector.var)
                value = None if known is None else opened(value.options[known])
            items: Iterable[tuple[Hashable, Any]] = () if value is None else items_of(value)
        elif is_a(value, tuple):
            items = enumerate(objects.own_items(value))
        else:
            fields = field_items(value)
            items = () if fields is None else zip(*fields)
        value = next((item for name, item in items if same_keys((name,), (key,))), None)
    return value if is_container(value) else None


def _of_tuples(value: Any) -> Any:
    return value if type(value) is tuple else ()


def _is_tuple_or_leaf(value: Any) -> bool:
    """Of tuples of tuples that hold nothing else: each may be there very many times, and leads to no container."""
    return value is None or type(value) is tuple or is_a(value, _LEAVES)


_LEAVES = (torch.Tensor, str, bytes, int, float, complex, type, types.ModuleType, Growing, torch.nn.Module)


__all__ = [
    "as_content",
    "at",
    "is_container",
    "Kind",
    "Leaving",
    "Several",
    "attributes",
    "content",
    "empty_like",
    "flat",
    "forget_unused",
    "items_of",
    "kind_of",
    "one_list",
    "opened",
    "put",
    "require_few",
    "several",
    "store",
    "view",
]
