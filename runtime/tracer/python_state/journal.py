"""The journal of Python state: stores that converted code made to objects, containers and globals.

Both branches of a staged ``if`` run while tracing, and a loop's body runs more than once. Each run starts a frame;
the first store to a place in a frame notes what was there, so that the run can be compared, rolled back and joined
like local variables are.
"""

from __future__ import annotations

import contextlib
import contextvars
import sys
import threading
import types
from collections import Counter, OrderedDict, deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.ir import Location
from runtime.kinds import is_a
from runtime.tracer.ambient import module_slots, objects
from runtime.tracer.ambient.poison import Poison, keys_answer
from runtime.tracer.ambient.unasked import has_unasked, unasked
from runtime.tracer.ambient.walks import walk
from runtime.tracer.python_state.held import held_in, keys_change
from runtime.tracer.python_state.shared_items import require_own

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session


_WHILE_ASKED = 1
"""References to an object while ``sys.getrefcount`` looks at it, the argument; the Place that has it is a holder."""


class _Missing:
    def __repr__(self) -> str:
        return "<missing>"


MISSING = _Missing()
"""The content of a place that holds nothing (an attribute not set, a global not bound)."""


class Undefined:
    """The value of a local variable that is not bound. Reading it raises UnboundLocalError with the user's name."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<unbound {self.name}>"


def _class_name(owner: Any) -> str:
    """What the user calls the class of an object: what stands for a tensor while it is traced is a Tensor."""
    return "Tensor" if torch_internals.is_fake(owner) else type(owner).__name__


@dataclass(frozen=True)
class Place:
    """Somewhere converted code can store: an object's attribute, a container's whole content, what is added to a list,
    a global name, a context variable, the order of an object's attributes; and where a number may be that each call
    reads anew: an item of a list or dict, too."""

    kind: str  # "attribute" | "content" | "added" | "item" | "global" | "context" | "order"
    owner: Any
    name: Any = ""

    def __hash__(self) -> int:
        return hash((self.kind, id(self.owner), self.name))

    def __eq__(self, other: object) -> bool:
        return is_a(other, Place) and (self.kind, id(self.owner), self.name) == (
            other.kind,
            id(other.owner),
            other.name,
        )

    def describe(self) -> str:
        """How the user would call the place."""
        if self.kind == "attribute":
            return f"attribute '{self.name}' of a {_class_name(self.owner)}"
        if self.kind == "global":
            return f"global '{self.name}'"
        if self.kind == "item":
            return f"item {self.name!r} of a {type(self.owner).__name__}"
        if self.kind == "context":
            return f"the context variable {self.owner.name}"
        if self.kind == "order":
            return f"the order of the attributes of a {_class_name(self.owner)}"
        return f"a {type(self.owner).__name__}"

    def get(self) -> Any:
        """What the place holds now; a container's content as a fresh copy."""
        if self.kind == "attribute":
            return _get_attribute(self.owner, self.name)
        if self.kind == "global":
            return self.owner.get(self.name, MISSING)
        if self.kind == "item":
            return _item(self.owner, self.name)
        if self.kind == "context":
            return _variable(self.owner)
        return _content(self.owner)

    def put_back(self, value: Any) -> None:
        """Let the place hold what it held before; where a store failed it still does, and may not be stored to."""
        if self.kind == "content" or self.get() is not value:
            self.set(value)

    def set(self, value: Any) -> None:
        """Let the place hold ``value``."""
        if self.kind in _BINDINGS:
            global _bound
            _bound += 1
        if self.kind == "attribute":
            _set_attribute(self.owner, self.name, value)
        elif self.kind == "global":
            if value is MISSING:
                self.owner.pop(self.name, None)
            else:
                self.owner[self.name] = value
        elif self.kind == "item":
            self.owner[self.name] = value
        elif self.kind == "context":
            set_variable(self.owner, value)
        elif self.kind == "order":
            put_last(self.owner, value)
        elif self.kind == "added":
            self.owner.extend(value)
        else:
            _set_content(self.owner, value)


_BINDINGS = ("attribute", "global")
_bound = 0


def times_bound() -> int:
    """A number that grows whenever a trace binds an attribute, a global or a variable of a closure, or takes that back:
    while it stays, what the names in some code lead to is what it was."""
    return _bound


_unset: dict[tuple[int, int], contextvars.Token[Any]] = {}
"""By thread and context variable: the token of the store that gave it its first value. Only it can take that back."""


def _variable(var: contextvars.ContextVar[Any]) -> Any:
    """What a context variable was set to: its default is no content."""
    return contextvars.copy_context().get(var, MISSING)


def set_variable(var: contextvars.ContextVar[Any], value: Any) -> contextvars.Token[Any] | None:
    """Set a context variable, or take back that it was set (``MISSING``)."""
    key = (threading.get_ident(), id(var))
    if value is MISSING:
        token = _unset.pop(key, None)
        if token is not None:
            var.reset(token)
        return None
    token = var.set(value)
    if token.old_value is contextvars.Token.MISSING:
        _unset[key] = token
    return token


def _item(owner: Any, key: Any) -> Any:
    """What a list or dict holds at a position or under a key."""
    try:
        return owner[key]
    except (IndexError, KeyError):
        return MISSING


def _get_attribute(owner: Any, name: str) -> Any:
    if is_a(owner, types.CellType):
        return cell_value(owner)
    slot = module_slots.found_in(owner, name)
    if slot is not None:
        return slot[name]
    namespace = unasked(owner, "__dict__")
    if namespace is not None and name in namespace:
        return namespace[name]
    if namespace is None or _is_slot(owner, name):
        return unasked(owner, name, MISSING)
    return MISSING


def answers_besides(owner: Any, name: str) -> bool:
    """Whether an object answers for an attribute that it has not itself: its class has it, or a ``__getattr__``."""
    if is_a(owner, types.CellType):
        return False
    return any(name in base.__dict__ or "__getattr__" in base.__dict__ for base in type(owner).__mro__)


def _is_slot(owner: Any, name: str) -> bool:
    found = next((base.__dict__[name] for base in type(owner).__mro__ if name in base.__dict__), None)
    return is_a(found, (types.MemberDescriptorType, types.GetSetDescriptorType))


@cache
def _undefined(name: str) -> Undefined:
    return Undefined(name)


def cell_value(cell: types.CellType, name: str = "") -> Any:
    """The value of the local variable ``name`` that a closure shares, `Undefined` where it is not bound."""
    try:
        return cell.cell_contents
    except ValueError:
        return _undefined(name)


def set_cell(cell: types.CellType, value: Any) -> None:
    """Assign to a local variable that a closure shares; `Undefined` or ``MISSING`` delete it."""
    if value is MISSING or is_a(value, Undefined):
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _set_attribute(owner: Any, name: str, value: Any) -> None:
    if is_a(owner, types.CellType):
        return set_cell(owner, value)
    if value is MISSING:
        if is_a(owner, BaseException) and name == "args":  # of one that a path made: Python cannot delete them
            owner.args = ()
            return
        slot = module_slots.found_in(owner, name)
        if slot is not None:
            module_slots.take_out(owner, name)
        elif type(unasked(owner, "__dict__")) is not dict:  # a class's is not to be written
            if name in unasked(owner, "__dict__", ()) or _is_slot(owner, name) and has_unasked(owner, name):
                _plain(owner, "__delattr__")(owner, name)
        elif name in unasked(owner, "__dict__"):
            module_slots.take_own(owner, name)
        elif _is_slot(owner, name) and has_unasked(owner, name):
            _plain(owner, "__delattr__")(owner, name)
        return
    slot = module_slots.to_fill(owner, name)
    if slot is not None:
        slot[name] = value
    elif name == "retains_grad" and is_a(owner, torch.Tensor):  # never taken back
        if value:
            owner.retain_grad()
    elif is_a(owner, type) or _is_slot(owner, name) or not has_unasked(owner, "__dict__"):
        _plain(owner, "__setattr__")(owner, name, value)
    else:
        unasked(owner, "__dict__")[name] = value


def python_kind(owner: Any) -> Any:
    """The class of Python's that keeps an object's content: methods of a user's class may do other things.

    ``owner``: the object, or its class.
    """
    cls = owner if is_a(owner, type) else type(owner)
    return cls if cls in _KEEPERS else next(base for base in cls.__mro__ if base in _KEEPERS)


_KEEPERS = (list, dict, OrderedDict, set, deque)


def _content(owner: Any) -> Any:
    """What a container holds, as a copy; where Python can, without asking keys for their hashes again."""
    if type(owner) is dict:
        return owner.copy()
    kind = python_kind(owner)
    if issubclass(kind, dict):
        with keys_answer():
            return {key: kind.__getitem__(owner, key) for key in kind.__iter__(owner)}
    return frozenset(owner) if kind is set else list(kind.__iter__(owner))


def _set_content(owner: Any, value: Any) -> None:
    kind = python_kind(owner)
    kind.clear(owner)
    if kind in (list, deque):
        kind.extend(owner, value)
        return
    with keys_answer():
        if kind is set:
            set.update(owner, value)
            return
        for key, item in value.items():
            kind.__setitem__(owner, key, item)


def _plain(owner: Any, method: str) -> Any:
    """What stores an attribute, or deletes one, without asking the user's ``__setattr__`` or ``__delattr__`` again."""
    found = getattr(type(owner), method)
    if not is_a(found, types.FunctionType):
        return found
    return next(base.__dict__[method] for base in type(owner).__mro__
                if method in base.__dict__ and not is_a(base.__dict__[method], types.FunctionType))  # fmt: skip


class Frame(dict[Place, Any]):
    """What the places held that a path stores to, and the order of the attributes of their owners.

    An attribute that is deleted and set again is the last one, so that putting back what attributes held is not enough.
    """

    def __init__(self, places: Any = (), orders: dict[int, tuple[str, ...]] | None = None,
                 disordered: dict[int, Location | None] | None = None,
                 perhaps: dict[int, set[str]] | None = None) -> None:  # fmt: skip
        super().__init__(places)
        self.orders = {} if orders is None else orders
        """By identity of an owner: the names in its ``__dict__``, in their order."""
        self.disordered = {} if disordered is None else disordered
        """Owners, by identity, whose order is another one on some paths, with where it became so."""
        self.perhaps = {} if perhaps is None else perhaps
        """Owners of attributes that were stored, and of later ones, which only some paths had until then."""

    def note_order(self, owner: Any) -> None:
        """Call before an attribute of an object is stored."""
        space = ordered_space(owner) if id(owner) not in self.orders else None
        if space is not None:
            self.orders[id(owner)] = tuple(space)

    @classmethod
    def of_now(cls, places: Iterable[Place]) -> Frame:
        """One that can put back what the places hold now."""
        frame = cls((place, place.get()) for place in places)
        for place in frame:
            if place.kind == "attribute":
                frame.note_order(place.owner)
        return frame

    def put_orders(self) -> None:
        """Put back the orders, which is to follow on what the places held."""
        for owner in self.owners():
            put_in_order(owner, self.orders[id(owner)])

    def owners(self) -> list[Any]:
        """The objects whose order it knows."""
        found = {id(place.owner): place.owner for place in self if place.kind == "attribute"}
        return [owner for key, owner in found.items() if key in self.orders]


def ordered_space(owner: Any) -> dict[str, Any] | None:
    """The ``__dict__`` of an object whose attributes have an order that code can ask for."""
    if is_a(owner, (types.CellType, type, torch.Tensor)):
        return None
    space = unasked(owner, "__dict__")
    return space if type(space) is dict else None


def put_in_order(owner: Any, names: tuple[str, ...]) -> None:
    """Let the attributes of an object be in this order; those that it does not name come last."""
    space = ordered_space(owner)
    if space is None or tuple(space) == names:
        return
    wanted = [name for name in names if name in space]
    wanted += [name for name in space if name not in names]
    if wanted != list(space):
        for name in wanted:
            space[name] = space.pop(name)


def put_last(owner: Any, names: tuple[str, ...]) -> None:
    """Let these be the last attributes of an object, in this order."""
    space = ordered_space(owner) or {}
    for name in names:
        if name in space:
            space[name] = space.pop(name)


class Journal:
    """The stores of one trace, in nested frames."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.frames: list[Frame] = [Frame()]
        self.shown: set[int] = set()
        """Identities of the objects whose ``__dict__`` code has read."""
        self.tries: list[Frame] = []
        """What attempts put back where they fail (see ``attempt``)."""
        self.first_stores: dict[Place, Location | None] = {}
        """Where in the source each place was first stored to."""
        self.stores = 0
        """How often something was stored."""
        self.outside = 0
        """How often to something that is older than the trace, as far as it knows."""

    def note(self, place: Place, joined: bool = False) -> None:
        """Call before storing to ``place``: remembers what it holds, in every open frame that has not seen it yet.

        ``joined``: what is stored is what paths or iterations have left there, which is no change.
        """
        self._count(place)
        if place.kind == "content":
            if not joined:
                require_own(self._session, place.owner)
                self._require_no_row(place.owner)
            hidden = self._session.containers.hidden.get(id(place.owner))
            if hidden is not None:
                self.note(Place("content", hidden[1]), joined)
        if place.kind == "attribute" and module_slots.hides(place.owner, place.name):
            raise self._hidden(place)
        if place.kind == "attribute" and objects.is_users_tuple(place.owner):
            self._session.keep_whole(type(place.owner))
        if place not in self.first_stores:
            self.first_stores[place] = self._session.location()
        for frame in self.frames:
            if place not in frame:
                if place.kind == "attribute":
                    frame.note_order(place.owner)
                frame[place] = place.get()
                if frame[place] is MISSING:
                    self._require_absent(place)
        for tried in self.tries:
            if place not in tried:
                if place.kind == "attribute":
                    tried.note_order(place.owner)
                tried[place] = place.get()

    def _count(self, place: Place) -> None:
        global _bound
        self.stores += 1
        _bound += place.kind in _BINDINGS
        self.outside += place.kind == "global" or place.kind != "context" and not self._is_made(place.owner)

    def _is_made(self, owner: Any) -> bool:
        """Whether the trace made an object; of containers those that it has not met elsewhere."""
        objects_ = self._session.objects
        return id(owner) in objects_.created or (is_a(owner, _KEEPERS) and id(owner) not in objects_.externals)

    def note_attribute(self, owner: Any, name: str) -> None:
        """Call before ``owner.name`` is stored or deleted."""
        require_own(self._session, owner)
        self._require_no_row(owner)
        self.note(Place("attribute", owner, name))

    def _require_no_row(self, owner: Any) -> None:
        """Refuse a change of a dict or object that is a row, which has not gone to its table.

        Raises:
            TraceError: D2S226.
        """
        if self._session.containers.has_rows:
            if not is_a(owner, (list, set, deque)) and held_in(owner) is not None:
                if not is_a(owner, dict):
                    self._session.hold_apart(type(owner))
                raise keys_change(self._session)

    def note_late(self, place: Place, before: Any) -> None:
        """Call when code that keeps no journal has changed a place that held ``before``."""
        self._count(place)
        require_own(self._session, place.owner)
        self._require_no_row(place.owner)
        hidden = self._session.containers.hidden.get(id(place.owner)) if place.kind == "content" else None
        if hidden is not None:
            self.note(Place("content", hidden[1]))
        if place.kind == "attribute" and module_slots.hides(place.owner, place.name):
            place.set(before)
            raise self._hidden(place)
        if place.kind == "attribute" and objects.is_users_tuple(place.owner):
            self._session.keep_whole(type(place.owner))
        self.first_stores.setdefault(place, self._session.location())
        for frame in (*self.frames, *self.tries):
            frame.setdefault(place, before)
        if before is MISSING:
            self._require_absent(place)

    def _hidden(self, place: Place) -> Exception:
        """The error for a store to one of two that a module has by one name (D2S274)."""
        return self._session.error(
            f"{place.describe()} is stored beside the tensor or module that it has registered by that name, which "
            "reads of the attribute do not see then", code="D2S274",
            hint="Give the attribute another name, or store by torch.nn.Module.__setattr__.")

    def _require_absent(self, place: Place) -> None:
        """A path that does not store to a place leaves it as it is: guard that this is without a value."""
        session = self._session
        if len(self.frames) > 1 and not self._is_made(place.owner):
            key = (id(place.owner), place.name, "absent")
            session.guards.add_test(key, f"the absence of {place.describe()}", lambda: place.get() is MISSING)

    def note_made(self, owner: Any) -> None:
        """Call when code that keeps no journal has made an object of its attributes: before, they were not set."""
        for name in objects.attributes(owner):
            place = Place("attribute", owner, name)
            self.first_stores.setdefault(place, self._session.location())
            for frame in (*self.frames, *self.tries):
                frame.setdefault(place, MISSING)

    def note_fact(self, place: Place, value: Any) -> None:
        """Call before the trace puts a staged number where the caller has ``value``: at its end that comes back."""
        self.frames[0][place] = value
        for tried in self.tries:
            tried.setdefault(place, value)

    def note_content(self, owner: Any) -> None:
        """Call before a list, dict, set or deque is changed."""
        self.note(Place("content", owner))

    def note_global(self, namespace: dict[str, Any], name: str) -> None:
        """Call before a global name is bound."""
        self.note(Place("global", namespace, name))

    def open(self) -> None:
        """Start a frame."""
        self.frames.append(Frame())

    def is_disordered(self, owner: Any) -> bool:
        """Whether the order of an object's attributes depends on the path that was taken."""
        return any(id(owner) in frame.disordered or id(owner) in frame.perhaps for frame in self.frames)

    def note_late_order(self, owner: Any, names: tuple[str, ...]) -> None:
        """Call when code that keeps no journal has changed attributes; ``names``: their order before."""
        for frame in (*self.frames, *self.tries):
            frame.orders.setdefault(id(owner), names)

    def disorder(self, owner: Any, location: Location | None) -> None:
        """The order of an object's attributes depends on the path from here on.

        Raises:
            TraceError: D2S254, somebody may have its ``__dict__``.
        """
        self.frames[-1].disordered[id(owner)] = location
        if id(owner) in self.shown:
            self.require_ordered(owner, f"the __dict__ of a {type(owner).__name__} was read", location)

    def note_copied(self, owner: Any, made: Any) -> None:
        """Call for a copy: its attributes are in the same order."""
        if self.is_disordered(owner):
            self.frames[-1].disordered[id(made)] = self._session.location()

    def is_any_disordered(self) -> bool:
        """Whether that is so of any object."""
        return any(frame.disordered or frame.perhaps for frame in self.frames)

    def require_ordered(self, owner: Any, what: str, location: Location | None = None) -> None:
        """Refuse to show the order of an object's attributes where that depends on the path that was taken.

        Raises:
            TraceError: D2S254.
        """
        if self.is_disordered(owner):
            if location is None:
                location = next((one.disordered[id(owner)] for one in self.frames if id(owner) in one.disordered), None)
            raise self._session.error(
                f"{what}, and the order of its attributes depends on the path that was taken: some paths set one that "
                "others have already, or delete one and set it again", code="D2S254",
                hint="Set the attributes in one order on every path, or keep the values in a dict.",
                location=location)

    def close(self) -> Frame:
        """End the frame: puts every place back as it was and returns what each held at the end.

        Places of objects that nothing refers to any more are left out: they were made in the frame and dropped.
        """
        frame = self.frames.pop()
        after = {place: place.get() for place in frame}
        owners = frame.owners()
        orders = {id(owner): tuple(ordered_space(owner) or ()) for owner in owners}
        for place, before in reversed(frame.items()):
            place.put_back(before)
        frame.put_orders()
        owners.clear()  # references count
        held = self.holders(frame)
        held += self._left_hidden(held)
        left = ((place, value) for place, value in after.items() if not self.is_dropped(place, held))
        return Frame(left, orders, frame.disordered, frame.perhaps)

    def is_dropped(self, place: Place, held: Counter[int]) -> bool:
        """Whether nothing but the tracer refers to a place's owner any more; ``held``: what ``holders`` gives.

        This only saves what need not be joined: of what nobody refers to, nobody can see what it holds. Where a
        debugger refers to it, or counts mean something else, its places are joined as those of any other object
        (``pytest --held`` runs tests so).
        """
        kept = held[id(place.owner)] + (id(place.owner) in self._session.objects.created)
        return sys.getrefcount(place.owner) - _WHILE_ASKED <= kept

    def forget_unused(self) -> None:
        """Leave out the content of containers that nothing refers to any more: a frame that stays open has many."""
        held = self.holders()
        held.update(self._session.containers.hidden.keys())
        for place in [place for place in self.frames[-1] if place.kind == "content" and self.is_dropped(place, held)]:
            for places in (*self.frames, *self.tries, self.first_stores):
                places.pop(place, None)

    def _left_hidden(self, held: Counter[int]) -> Counter[int]:
        """References from hidden containers that nothing but the tracer's notes refers to any more."""
        found: Counter[int] = Counter()
        for made, _ in self._session.containers.hidden.values():
            if sys.getrefcount(made) - 3 <= held[id(made)]:
                kind = python_kind(made)
                found.update(map(id, kind.values(made) if issubclass(kind, dict) else kind.__iter__(made)))
        return found

    def holders(self, *frames: dict[Place, Any]) -> Counter[int]:
        """How many references to each owner, by identity, are the tracer's own notes; ``frames``: closed ones, too."""
        held = Counter(
            id(place.owner)
            for place in {id(p): p for f in (*self.frames, *self.tries, *frames, self.first_stores) for p in f}.values()
        )
        held.update(self._session.containers.held_owners.keys())
        held.update(self._session.containers.known_to_exist.keys())
        held.update(id(shown) for _, shown in self._session.containers.hidden.values())
        return held

    def before(self) -> Iterator[Any]:
        """What the open frames keep to put back, once for each reference."""
        for frame in (*self.frames, *self.tries):
            for place, value in frame.items():
                if place.kind != "content":
                    yield value
                elif is_a(value, (list, dict)):
                    yield from dict.values(value) if is_a(value, dict) else value

    @contextlib.contextmanager
    def as_before(self, value: Any) -> Iterator[None]:
        """What the trace stored in the containers that ``value`` leads to is taken back meanwhile.

        What stands at a place to which nothing was stored is from before the trace, whatever was stored in it since;
        its guard is about what it held then.
        """
        stored = self.frames[0]
        changed: dict[Place, Any] = {}
        try:
            while stored:
                held = (Place("content", one) for one in walk([value], _items, 9) if is_a(one, _CONTAINERS))
                more = {place: None for place in held if place in stored and place not in changed}
                if not more:
                    break
                for place in more:
                    changed[place] = place.get()
                    if not _is_added_to(place.owner):
                        place.put_back(stored[place])
            yield
        finally:
            for place, content in reversed(changed.items()):
                place.put_back(content)

    def keep(self, owner: Any) -> None:
        """What was stored to attributes of an object that leaves the trace stays."""
        for frame in self.frames:
            for place in [place for place in frame if place.kind == "attribute" and place.owner is owner]:
                del frame[place]

    def keep_made(self) -> None:
        """What was stored to attributes of objects that the trace made stays: one of them leaves it as it is."""
        for frame in self.frames:
            for place in [place for place in frame if place.kind == "attribute"]:
                if id(place.owner) not in self._session.objects.externals:
                    del frame[place]

    def write(self, place: Place, value: Any) -> None:
        """Note and store.

        Raises:
            TraceError: D2S254, if Python lets the place hold nothing that depends on the path (a function's code).
        """
        self.note(place)
        try:
            place.set(value)
        except (TypeError, ValueError) as error:
            raise self._session.error(
                f"{place.describe()} is set where only some inputs come, and cannot depend on the path",
                code="D2S254",
                hint="Set it before the branch or loop, or after it.",
            ) from error


_CONTAINERS = (list, dict, set, deque)


def _items(value: Any) -> Any:
    if type(value) in (list, tuple, set, frozenset, deque):
        return value
    return dict.values(value) if is_a(value, dict) else ()


def _is_added_to(owner: Any) -> bool:
    """Whether it is a list whose content is no matter, as calls only add to it."""
    first = owner[0] if type(owner) is list and owner else None
    return is_a(first, Poison) and first.whatever_it_is
