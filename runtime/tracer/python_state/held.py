"""What stands in a dict or object that lists which grow hold by reference: where the tracer keeps what it holds.

A dict has one ``RowKey`` as its only key while tracing, an object one ``RowField`` in each attribute (see ``tables``).
Python that reads them without our operators meets these: all it can do with them is a located error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NoReturn

from runtime.kinds import is_a
from runtime.ops.keyed import Keyed
from runtime.tracer.ambient import state
from runtime.tracer.ambient.objects import slots_of
from runtime.tracer.ambient.poison import Key, Poison
from runtime.tracer.ambient.unasked import module_name, unasked
from runtime.tracer.numbers.scalars import Staged
from runtime.tracer.python_state import shared_items

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session
    from runtime.tracer.values.heaps import Heap
    from runtime.tracer.values.structure import Choice, Structure
    from runtime.tracer.values.tables import Table


class Held:
    """A row of a table."""

    __slots__ = ("heap", "number")

    def __init__(self, heap: Table, number: Any) -> None:
        self.heap = heap
        self.number = number
        """Which row: an int, or a staged one."""

    def visible(self, session: Session) -> bool:
        """Whether the row may be used where the trace stands."""
        return not is_a(self.number, Staged) or session.visible(self.number.var)


class _OfRow(Poison):
    __slots__ = ("row",)

    def __init__(self, row: Held) -> None:
        self.row = row

    def refuse(self, *args: Any) -> NoReturn:
        """What an operation on it raises.

        Raises:
            TraceError: D2S253.
        """
        raise state.current().error(
            f"a {self.row.heap.cls.__name__} in a list whose length is only known while the Program runs is read by "
            "code that is not converted",
            hint="Read its items and attributes in the converted function.", code="D2S253")  # fmt: skip


class RowKey(_OfRow, Key):
    """The only key of a dict that is a row."""

    __slots__ = ()


class RowField(_OfRow):
    """What an attribute of an object holds that is a row."""

    __slots__ = ("name",)

    def __init__(self, row: Held, name: str) -> None:
        super().__init__(row)
        self.name = name

    def read(self) -> Any:
        """What the attribute is now."""
        return self.row.heap.get(state.current(), self.row.number, self.name)


def held_in(value: Any) -> Held | None:
    """The row that a dict (or what one holds) or an object is; None for anything else."""
    if is_a(value, dict):
        if dict.__len__(value) != 1:  # a user's class may count what it has
            return None
        (key,) = dict.__iter__(value)
        return key.row if type(key) is RowKey else None
    space = unasked(value, "__dict__")
    first = next(iter(space.values())) if type(space) is dict and space else _in_first_slot(value)
    return first.row if type(first) is RowField else None


def _in_first_slot(value: Any) -> Any:
    """What stands in the first of an object's slots that is set; None if there is none."""
    cls = type(value)
    ours = module_name(cls).partition(".")[0] in ("builtins", "torch", "runtime", "dy2static")
    if ours and not issubclass(cls, Keyed):
        return None
    for base in cls.__mro__:
        for name in slots_of(base):
            held = unasked(value, name, _NOTHING)
            if held is not _NOTHING:
                return held
    return None


_NOTHING = object()


def keys_change(session: Session) -> Exception:
    """What to raise where a dict gets other keys, or an object other attributes: a located error, or what begins the
    trace again with such dicts made of lists."""
    shared_items.begin_again_keyed(session, session.containers.dicts_in_lists)
    return session.error(
        "a dict or object in a list whose length is only known while the Program runs, items of which are changed, "
        "gets another key or attribute, or loses one",
        hint="Give it all keys or attributes when it is made.", code="D2S226")


# What heaps and tables do for those that stand below them: each says at its import how.

_holders: list[Callable[[Session, Any], Any]] = []
_moves: list[Callable[[Session, Iterable[Any], Any], bool]] = []
_choices: list[Callable[..., Choice]] = []


def register(holder: Callable[[Session, Any], Any], move: Callable[[Session, Iterable[Any], Any], bool]) -> None:
    """``heaps`` says where what a container or object holds stands, and moves it there."""
    _holders[:], _moves[:] = [holder], [move]


def register_choice(choice: Callable[..., Choice]) -> None:
    """``tables`` says how a dict that is a row is read."""
    _choices[:] = [choice]


def holder(session: Session, value: Any) -> Heap | Table | None:
    """The heap or table of a list, dict or object that is held by reference; None where there can be none."""
    found: Heap | Table | None = _holders[0](session, value)
    return found


def move_inside(session: Session, items: Iterable[Any], like: Structure | None = None) -> bool:
    """Items are put into a list that grows: let heaps and tables hold what those inside do that are held by reference.

    ``like``: the structure of the items that are there already. Returns whether anything was moved.
    """
    return _moves[0](session, items, like)


def choice_of(session: Session, row: Held, like: Callable[[Any], Any] | None = None) -> Choice:
    """A dict that is a row, as a choice with one option; ``like``: what is shown in place of that."""
    return _choices[0](session, row, like)


def is_held(session: Session, value: Any) -> bool:
    """Whether a list is what a heap or table holds its rows in: it belongs to no path or iteration."""
    return any(one.holds(value) for one in session.containers.heaps.values())


__all__ = [
    "Held", "RowField", "RowKey", "choice_of", "held_in", "holder", "is_held", "keys_change", "move_inside", "register",
    "register_choice",
]
