"""Attempts: what is traced to see whether it can be, and leaves nothing behind where it cannot.

    with Attempt(session, names):
        while_loop(...)            # a located error: the trace is as it was before, and the error goes on

What the trace knows is of three kinds. Python state has the journal, which rolls it back. What the tracer itself keeps
(Blocks, storages, symbols, stacks) is remembered when the attempt begins, and put back into the very same objects. A
few things are kept on purpose; ``FIELDS``, and a Session's parts for theirs, say for every field which kind it is.
"""

from __future__ import annotations

import dataclasses
import weakref
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import TYPE_CHECKING, Any

import torch

from runtime import torch_internals
from runtime.errors import Dy2StaticError
from runtime.ir import Block, Operator, Variable
from runtime.ir import types as ir_types
from runtime.kinds import is_a
from runtime.tracer.ambient.objects import attributes
from runtime.tracer.ambient.session_parts import DEEP, ITEMS, KEPT, PARTS, VALUE, SessionPart, states
from runtime.tracer.ambient.unasked import module_name
from runtime.tracer.memory.storage_table import StorageTable
from runtime.tracer.python_state.journal import Frame, Place
from runtime.tracer.recording import leaf_changes
from runtime.tracer.recording.session import Session
from runtime.tracer.values import structure, unjournaled

if TYPE_CHECKING:
    from runtime.tracer.control.branches import Names

FIELDS: dict[str, str] = {
    "program": PARTS,
    "scope": DEEP,
    "fake_mode": KEPT,  # its caches hold no facts about this trace
    "shape_env": KEPT,  # what it assumes is put back by torch_internals.SizeFacts
    "storages": DEEP,
    "journal": KEPT,  # rolls itself back
    "guards": KEPT,  # what a failed try read is why it failed: facts stay, and those that it dropped come back
    "sizes": PARTS,
    "inputs": DEEP,
    "origins": DEEP,
    "looks": DEEP,
    "autocast": VALUE,
    "dispatching": VALUE,
    "replaying": VALUE,  # no attempts are made in replays
    "_infos": DEEP,
    "_names": ITEMS,
}
"""What a failed attempt does with each field of a Session that is no part; parts say it of theirs."""


def fields(session: Session) -> Iterator[tuple[Any, str, str]]:
    """Every field of a Session and of its parts: the object, the field's name, how it is put back."""
    for name, how in FIELDS.items():
        yield session, name, how
    for part in vars(session).values():
        if is_a(part, SessionPart):
            for name, how in states(part):
                yield part, name, how


_ROOMS = ("runtime", "dy2static")
_LEAVES = (
    torch.Tensor, str, bytes, int, float, complex, type(None), type, Place,
    *(getattr(structure, name) for name in ("Known", "Number", "Sequence", "Fields", "Array", "Options", "Made",
                                               "Reference")),
    *(value for value in vars(ir_types).values() if is_a(value, type)),
)  # fmt: skip
"""What holds no state of the trace that changes."""


class Attempt:
    """Something that is traced to see whether it can be; a located error in the ``with`` block puts everything back.

    No context manager made of a generator: what user code can see of the stack is compared before and after.
    """

    def __init__(self, session: Session, names: Names | None = None) -> None:
        """``names``: the local variables that what is tried may assign."""
        self._session, self._names = session, names
        self._open = False

    def __enter__(self) -> Attempt:
        session, names = self._session, self._names
        self._values = () if names is None else names.get()
        self._modes = torch_internals.ambient_modes()
        self._sizes = torch_internals.SizeFacts(session.shape_env)
        self._guards = session.guards.copy()
        self._picture = unjournaled.picture(session)
        self._held = Frame()
        """What the journal noted since, by place."""
        self._states = _States()
        self._fields: list[tuple[Any, str, Any]] = []
        for owner, name, how in fields(session):
            if how == KEPT:
                continue
            value = getattr(owner, name)
            self._fields.append((owner, name, value))
            if how == ITEMS:
                self._states.note(value)
            elif how == PARTS and value is not None:
                self._states.note_parts(value)
            elif how == DEEP:
                self._states.note_all(value)
        self._states.note_all((session.journal.frames, session.journal.first_stores), depth=2)
        for frame in session.journal.frames:
            self._states.note_all((frame.orders, frame.disordered, frame.perhaps), depth=1)
        self.references: Counter[int] = Counter(map(id, self._values)) + self._states.references()
        """How many references to users' containers, by identity, are this attempt's."""
        for value, content in self._picture:
            self.references[id(value)] += 1
            if is_a(content, (dict, list)):
                self.references.update(map(id, content.values() if is_a(content, dict) else content))
        graph = session.graph
        self._leaf_changes, self._start = graph.leaf_changes, graph.path_start
        graph.leaf_changes, graph.path_start = {}, session.origins.number()
        self._open = True
        session.constructs.attempts.append(self)
        session.journal.tries.append(self._held)
        return self

    def __exit__(self, cls: object, error: BaseException | None, traceback: object) -> None:
        if is_a(error, Dy2StaticError) and self._open:
            self.undo()
        self._end()

    def keep(self, ops: Iterable[Operator]) -> None:
        """Operators from before are about to be changed."""
        for op in ops:
            self._states.note(op)

    def undo(self) -> None:
        """Put everything back.

        Raises:
            TraceError: Code that is not converted advanced an iterator, or changed a buffer, which cannot be undone.
        """
        session = self._session
        changes = session.graph.leaf_changes
        self._end()
        leaf_changes.undo(session, changes.values())
        torch_internals.set_ambient_modes(self._modes)
        for place, before in reversed(self._held.items()):
            place.put_back(before)
        self._held.put_orders()
        self._states.put_back()
        for owner, name, value in self._fields:
            setattr(owner, name, value)
        session.guards.put_back(self._guards)
        self._sizes.put_back()
        if self._names is not None:
            self._names.set(self._values)
        unjournaled.put_back(session, self._picture)

    def _end(self) -> None:
        """Nothing is undone any more."""
        if self._open:
            self._open = False
            graph = self._session.graph
            changes, graph.leaf_changes, graph.path_start = graph.leaf_changes, self._leaf_changes, self._start
            for key, one in changes.items():
                if one.before.number < self._start:
                    graph.leaf_changes.setdefault(key, one)
            self._session.constructs.attempts.remove(self)
            self._session.journal.tries[:] = [one for one in self._session.journal.tries if one is not self._held]


class _States:
    """Objects, and what each held."""

    def __init__(self) -> None:
        self._found: list[tuple[Any, Any]] = []
        self._seen: set[int] = set()

    def references(self) -> Counter[int]:
        """How many references there are in what was held, by identity of a list or dict."""
        found: Counter[int] = Counter()
        for _, held in self._found:
            if is_a(held, (list, dict)):
                found.update(id(one) for one in (held.values() if is_a(held, dict) else held)
                             if type(one) in (list, dict))  # fmt: skip
        return found

    def note(self, value: Any) -> bool:
        """Remember the items of a list, dict or set, or the attributes of an object; whether they were not yet."""
        if id(value) in self._seen:
            return False
        self._seen.add(id(value))
        copy = _COPIES.get(type(value))
        self._found.append((value, attributes(value) if copy is None else copy(value)))
        return True

    def note_parts(self, value: Any) -> None:
        """Remember an object's attributes, and the items of those that are lists, dicts or sets."""
        self.note(value)
        for part in attributes(value).values():
            if type(part) in _COPIES:
                self.note(part)

    def note_all(self, value: Any, depth: int = -1) -> None:
        """Remember everything of ours that a value leads to, up to so many steps."""
        todo = [(value, depth)]
        while todo:
            value, depth = todo.pop()
            if is_a(value, _LEAVES) or id(value) in self._seen:
                continue
            if is_a(value, (tuple, frozenset)):
                parts: Any = value
                self._seen.add(id(value))
            elif is_a(value, weakref.ref):
                parts = (value(),)
            elif type(value) in _COPIES:
                self.note(value)
                parts = list(value.values() if hasattr(value, "values") else value)
            elif not _is_ours(value) or is_a(value, FunctionType):
                continue
            elif is_a(value, (Variable, Operator, Block, StorageTable, Session, SessionPart)):
                parts = self._of_the_program(value)
            elif _is_frozen(value):
                self._seen.add(id(value))
                parts = attributes(value).values()
            else:
                self.note(value)
                parts = attributes(value).values()
            if depth:
                todo += [(part, depth - 1) for part in parts]

    def _of_the_program(self, value: Any) -> Any:
        """Of the Program only what is open, or can still gain something, is looked at."""
        if is_a(value, StorageTable):
            self.note(value._kept)
            return value.snapshot()
        if is_a(value, Block):
            self.note(value)
            for part in (value.args, value.ops, value.yields):
                self.note(part)
            return ()
        if is_a(value, Variable):
            self.note(value)
        elif is_a(value, Operator) and self.note(value):
            self.note(value.attrs)
            return value.blocks
        return ()

    def put_back(self) -> None:
        """Let each object hold again what it held."""
        for value, held in self._found:
            if type(value) in _COPIES:
                _put_items(value, held)
            else:
                _put_attributes(value, held)


def _is_ours(value: Any) -> bool:
    return module_name(type(value)).partition(".")[0] in _ROOMS


def _is_frozen(value: Any) -> bool:
    return dataclasses.is_dataclass(type(value)) and bool(getattr(type(value), "__dataclass_params__").frozen)  # noqa: B009


def _put_attributes(value: Any, held: dict[str, Any]) -> None:
    now = attributes(value)
    for name in now.keys() - held.keys():
        delattr(value, name)
    for name, one in held.items():
        if name not in now or now[name] is not one:
            setattr(value, name, one)


_COPIES: dict[type, Callable[[Any], Any]] = {
    list: list,
    dict: dict,
    Frame: dict,
    set: set,
    deque: list,
    weakref.WeakSet: weakref.WeakSet,
    weakref.WeakKeyDictionary: weakref.WeakKeyDictionary,
    torch_internals.TensorDict: torch_internals.TensorDict.copy,
}
"""The kinds of containers that the tracer's state is in, and what keeps their items without keeping more alive."""


def _put_items(value: Any, held: Any) -> None:
    if is_a(value, list):
        if len(value) != len(held) or any(a is not b for a, b in zip(value, held)):
            value[:] = held
    elif is_a(value, deque):
        value.clear()
        value.extend(held)
    elif is_a(value, (set, weakref.WeakSet)):
        if value != held:
            value.clear()
            value.update(held)
    elif is_a(value, dict):
        if len(value) != len(held) or any(a is not b for a, b in zip(value, held)) or any(
            value[key] is not one for key, one in held.items()
        ):  # fmt: skip
            value.clear()
            value.update(held)
    elif is_a(value, torch_internals.TensorDict):
        value.clear()
        value.update(held)
    else:
        for key in [key for key in value if key not in held]:
            del value[key]
        for key, one in held.items():
            value[key] = one


__all__ = ["FIELDS", "Attempt", "fields"]
