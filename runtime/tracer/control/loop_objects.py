"""Objects that an iteration of a loop makes: carried by what they hold, once for all that know them.

The next iteration works on *stand-ins*. Which one an object becomes depends on where it is known when the iteration
ends: all objects that are known in exactly the same places (variables, items, attributes) become one stand-in, whose
*cell* names those places. So two names for one object get one stand-in, and ``is``, stores and later iterations see
one object; a name that holds this iteration's object or an earlier one is one of two stand-ins.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NoReturn

from runtime.kinds import is_a
from runtime.tracer.ambient import objects
from runtime.tracer.numbers import staging
from runtime.tracer.numbers.scalars import StagedInt
from runtime.tracer.python_state import held, shared_items
from runtime.tracer.python_state.journal import Place
from runtime.tracer.values import containers, structure, unification
from runtime.tracer.values.structure import Attribute, Choice, Made

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

Position = Hashable
"""Where an object is known: a slot of the loop or another cell, and the way to it through containers."""
_DEPTH = 64


@dataclass(frozen=True)
class Cell:
    """What all objects share that become one stand-in."""

    cls: type
    names: tuple[str, ...]
    kind: Hashable
    """What containers must share to be one (see ``containers.kind_of``); None for other objects."""
    positions: frozenset[Position]
    shared: bool
    """Whether lists that grow hold copies of them."""
    like: Any = field(default=None, compare=False)
    """A container of the same kind."""

    @property
    def is_container(self) -> bool:
        """Whether what it holds is the content of a container, with that of its attributes if it has any."""
        return self.kind is not None

    def parts(self, held: Any) -> tuple[Any, tuple[Any, ...]]:
        """What a container holds, and what its attributes do."""
        return (held[0], tuple(held[1:])) if self.names else (held, ())


@dataclass(eq=False)
class _Known:
    """An object that the iteration made, and where it was found."""

    value: Any
    attributes: dict[Any, Any]
    found: list[tuple[Any, Position, tuple[Any, ...]]] = field(default_factory=list)
    """Whose (a slot's, or that of another object's identity), the way from there, and under which choices."""
    cell: Cell | None = None


class LoopObjects:
    """What an iteration leaves; looked at inside its path, where the objects are as they are at its end."""

    def __init__(self, session: Session, older: set[int], old: frozenset[int]) -> None:
        self._session, self._older, self._old = session, older, old
        self._known: dict[int, _Known] = {}
        self.contents: dict[Cell, Any] = {}
        """The attributes of each cell's object."""
        self._members: dict[Cell, list[_Known]] = {}
        """The objects that are each cell's."""

    def find(self, slots: Sequence[tuple[Hashable, Any]]) -> dict[int, Made]:
        """The objects that slots hold, each slot under a name of its own: by identity, their structures."""
        for name, value in slots:
            for one, way, choices in self._walk(value, (), ()):
                self._note(one, name, way, choices)
        for known in self._in_order():
            positions = frozenset(self._position(owner, way) for owner, way, _ in known.found)
            shared = id(known.value) in self._session.containers.held_in_lists
            value, held = known.value, structure.is_container(known.value)
            names = tuple(containers.attributes(value) if held else known.attributes)
            kind = containers.kind_of(value) if held else None
            known.cell = Cell(type(value), names, kind, positions, shared, value if held else None)
        tops = dict(slots)
        members = self._members
        for known in self._in_order():
            assert known.cell is not None
            members.setdefault(known.cell, []).append(known)
        for cell, mine in members.items():
            self.contents[cell] = self._content(cell, mine, tops)
        made = {key: Made(known.cell, type(known.value)) for key, known in self._known.items()}
        copied = {key: known.value for key, known in self._known.items()
                  if structure.is_container(known.value)
                  or structure.can_be_copied(self._session, known.value)}  # fmt: skip
        context = structure.JoinContext(made)
        pictures = {key: unification.item_structure(self._session, value, context) for key, value in copied.items()}
        return {key: replace(one, picture=pictures.get(key)) for key, one in made.items()}

    def is_made(self, value: Any) -> bool:
        """Whether the iteration made this very object, and it can be made again."""
        if structure.is_container(value):
            key, session = id(value), self._session
            if structure.row_of(value) is not None or held.is_held(session, value):
                return False
            known = (self._old, session.objects.externals, session.containers.hidden)
            return all(key not in one for one in known)
        made = id(value) in self._session.objects.created and id(value) not in self._older
        if self._session.containers.has_rows and structure.row_of(value) is not None:
            return False
        return made and (objects.can_be_rebuilt(value) or objects.is_exception(value))

    def _note(self, value: Any, owner: Any, way: Position, choices: tuple[Any, ...]) -> None:
        known = self._known.get(id(value))
        if known is None:
            held = structure.is_container(value)
            parts: dict[Any, Any] = dict(containers.items_of(value)) if held else objects.contents(value)
            if held:
                parts.update((Attribute(name), item) for name, item in containers.attributes(value).items())
            known = self._known[id(value)] = _Known(value, parts)
            for name, item in known.attributes.items():
                for one, inner, mine in self._walk(item, (name,), ()):
                    self._note(one, known, inner, mine)
        known.found.append((owner, way, choices))

    def _walk(self, value: Any, way: tuple[Any, ...], choices: tuple[Any, ...]) -> Iterator[tuple[Any, Any, Any]]:
        """The objects in a value that the iteration made, each with the way to it and the choices on it."""
        if is_a(value, Choice):
            for index, option in enumerate(value.options):
                yield from self._walk(option, way, (*choices, (value.selector.var, index)))
        elif self.is_made(value):
            yield value, way, choices
        elif len(way) <= _DEPTH:
            for key, item in _items(value):
                yield from self._walk(item, (*way, key), choices)

    def _in_order(self) -> list[_Known]:
        """All, those that hold others first.

        Raises:
            TraceError: Objects hold each other.
        """
        waiting = {key: {id(o.value) for o, _, _ in known.found if is_a(o, _Known)}
                   for key, known in self._known.items()}  # fmt: skip
        order: list[_Known] = []
        while waiting:
            ready = [key for key, holders in waiting.items() if not holders]
            if not ready:
                self._refuse("hold each other")
            for key in ready:
                del waiting[key]
                order.append(self._known[key])
            for holders in waiting.values():
                holders.difference_update(ready)
        return order

    def _position(self, owner: Any, way: Position) -> Position:
        return (owner.cell if is_a(owner, _Known) else owner, way)

    def _content(self, cell: Cell, members: list[_Known], tops: dict[Hashable, Any]) -> Any:
        """What the cell's object holds at the end of the iteration, whichever of ``members`` it is then."""
        if len(members) == 1:
            return self._held_by(members[0].value)
        apart = self._in_alternatives(cell.positions)
        for known in members if len(cell.positions) > 1 else ():  # where one is known, all places must know it
            ways: dict[Any, dict[Position, set[Any]]] = {}
            for owner, way, choices in known.found:
                position = self._position(owner, way)
                group = ways.setdefault(way[0][0] if apart else None, {})  # type: ignore[index]
                group.setdefault(position, set()).add(choices)
            if any(under != next(iter(group.values())) for group in ways.values() for under in group.values()):
                self._refuse("are each known to several variables on some paths only")
        value = self._of_alternatives(cell.positions, tops) if apart else self._at(next(iter(cell.positions)), tops)
        mine = {id(known.value) for known in members}
        return self._chosen(cell, value, lambda one: id(one) in mine)

    def _in_alternatives(self, positions: Iterable[Any]) -> bool:
        """Whether all places are parts of one container with one of several contents, and not all of the same: in any
        run there is one of the contents only, so that what is at places in others says nothing."""
        owners = {owner for owner, _ in positions}
        owner = next(iter(owners))
        if len(owners) > 1 or not is_a(owner, Cell) or not owner.is_container:
            return False
        if not is_a(owner.parts(self.contents[owner])[0], Choice):
            return False
        if all(is_a(way[0], Attribute) for _, way in positions):
            return False
        if not all(is_a(way[0], tuple) for _, way in positions):  # and some are parts of it whichever it is
            self._refuse("are each known to several variables on some paths only")
        return len({way[0][0] for _, way in positions}) > 1

    def _of_alternatives(self, positions: Iterable[Any], tops: dict[Hashable, Any]) -> Any:
        """What is at such places, whichever content it is."""
        first: dict[int, Any] = {}
        for position in positions:
            first.setdefault(position[1][0][0], position)
        owner = next(iter(first.values()))[0]
        held = owner.parts(self.contents[owner])[0]
        values = [self._at(first[n], tops) if n in first else None for n in range(len(held.options))]
        return Choice(held.selector, tuple(values))

    def _at(self, position: Any, tops: dict[Hashable, Any]) -> Any:
        owner, way = position
        if is_a(owner, Cell):
            held = self.contents[owner]
            value = self._item(owner, held, way[0]) if owner.is_container else held[owner.names.index(way[0])]
            way = way[1:]
        else:
            value = tops[owner]
        for key in way:
            value = _held(value, key)
        return value

    def _item(self, cell: Cell, held: Any, key: Any) -> Any:
        """What a cell's container holds at a place, which names the content as well if that is one of several."""
        held, attributes = cell.parts(held)
        if is_a(key, Attribute):
            return attributes[cell.names.index(key.name)]
        members = self._members[cell]
        if all(containers.several(known.value) is None for known in members):
            return _held(held, key)
        if len(members) > 1:
            self._refuse("hold other kinds of things on some paths")
        while is_a(held, Choice):
            number, key = key
            held = held.options[number]
        return _held(held, key)

    def _held_by(self, value: Any) -> Any:
        """The content of a container, before what its attributes hold if it has any; for another object, what those
        do."""
        if structure.is_container(value):
            attributes = containers.attributes(value)
            return (containers.content(value), *attributes.values()) if attributes else containers.content(value)
        return tuple(objects.contents(value).values())

    def _chosen(self, cell: Cell, value: Any, wanted: Callable[[Any], bool]) -> Any:
        """What the wanted object of a cell that ``value`` is holds, joined of all that it may be."""
        def holds(one: Any) -> bool:
            return any(map(holds, one.options)) if is_a(one, Choice) else wanted(one)

        if not is_a(value, Choice):
            return self._held_by(value)
        kept = [index for index, option in enumerate(value.options) if holds(option)]
        options = [value.options[index] for index in kept]
        if len(options) == 1:
            return self._chosen(cell, options[0], wanted)
        selector: Any = value.selector
        if len(kept) < len(value.options):  # where it is none of them, nothing reads the cell
            selector = 0
            for number, index in enumerate(kept[1:], 1):
                selector = self._session.scalar("select", value.selector == index, number, selector)
        assert is_a(selector, StagedInt)
        runs = [lambda option=option: self._chosen(cell, option, wanted) for option in options]
        held = staging.switch(self._session, selector, runs)
        if not cell.is_container:
            return held
        content, attributes = cell.parts(held)
        return (containers.as_content(content), *attributes) if cell.names else containers.as_content(content)

    def _refuse(self, what: str) -> NoReturn:
        values = [known.value for known in self._known.values()]
        self._session.hold_by_reference(*{type(one) for one in values if not structure.is_container(one)})
        self._session.hold_by_reference(*{type(one) for one in values} & {list, dict}, in_variables=True)
        names = sorted({type(known.value).__name__ for known in self._known.values()})
        raise self._session.error(
            f"objects that an iteration of this loop makes ({', '.join(names)}) {what}",
            hint="Keep each in one variable, or make them before the loop and change them in it.",
            code="D2S226",
        )


def _held(value: Any, key: Hashable) -> Any:
    """What a container holds there; of several, each option's."""
    if is_a(value, Choice):
        return Choice(value.selector, tuple(_held(option, key) for option in value.options))
    return dict(_items(value)).get(key)


def _items(value: Any) -> Iterable[tuple[Hashable, Any]]:
    """What a container holds that a structure takes apart."""
    if is_a(value, (list, tuple)):
        return enumerate(objects.own_items(value))
    fields = structure.field_items(value)
    return zip(*fields) if fields is not None else ()


def stand_in(session: Session, cell: Cell) -> Any:
    """A new object of the cell's class, still without its attributes."""
    made: Any = containers.empty_like(cell.like) if cell.is_container else (
        cell.cls.__new__(cell.cls) if issubclass(cell.cls, BaseException) else object.__new__(cell.cls))
    if not cell.is_container:
        session.objects.created[id(made)] = made
    session.containers.copied.carried[id(made)] = made
    if cell.shared:
        shared_items.hold(session, made)
    return made


def fill(session: Session, made: Any, cell: Cell, content: Any) -> None:
    """Give a stand-in what it holds."""
    held = content
    if cell.is_container:
        content, held = cell.parts(content)
        containers.put(session, made, content)
    for name, item in zip(cell.names, held):
        session.journal.write(Place("attribute", made, name), item)


__all__ = ["Cell", "LoopObjects", "fill", "stand_in"]
