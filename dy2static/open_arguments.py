"""Which values among the arguments are inputs of a function's next Program, as calls have shown that they change.

    f(x, 1), f(x, 2)    two Programs, each for its number; of this kind of call there are two numbers
    f(x, 3)             a third number: the Program is made with it open, if that can be, and serves all others

Calls are of one *kind* if they differ in nothing but values that can be open.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from dy2static.cache_key import Key, arguments_key, value_key
from dy2static.specialization import Specialization
from runtime.ir.template import KeyPath
from runtime.tracer.boundary.tracing import trace_lock
from runtime.tracer.values import open_lists, open_values
from runtime.tracer.values.arguments import Arguments
from runtime.tracer.values.open_values import Which

FIXED = 2
"""So many values of an argument have Programs of their own."""
MOST = 64
"""So many values may be open in one Program: a list of thousands of numbers is no thousands of inputs."""


def key_of(key: Key, arguments: Arguments) -> Key:
    """The key of a call with some of its values open; ``key`` is the one without."""
    return (arguments_key(arguments), *key[1:])


def kind_of(key: Key, arguments: Arguments) -> Key:
    """What is the same of calls that differ in nothing but values that can be open."""
    every = {(path, open_values.kind_of(value)) for path, value in open_values.plain_values(arguments).items()}
    every.update(open_lists.lists(arguments).items())
    return key_of(key, open_values.opened(arguments, every)) if every else key


@dataclass(eq=False)
class OpenArguments:
    """What one function's calls have shown of their arguments."""

    changing: set[Which] = field(default_factory=set)
    """Values that were seen changing."""
    closed: dict[Key, set[Which]] = field(default_factory=dict)
    """By kind of call: those of them that a Program needs as constants."""
    without: dict[Key, list[tuple[dict[KeyPath, Any], dict[KeyPath, tuple[Any, int]]]]] = field(default_factory=dict)
    """By kind of call: plain values, and lengths of lists, of the last calls that got no Program though others may."""
    apart: frozenset[type] = frozenset()
    """Dataclasses of which calls were given one instance after another: they are taken apart, as those with tensors
    are."""

    def of_next(self, kind: Key, arguments: Arguments, programs: Iterable[Specialization]) -> frozenset[Which]:
        """What is to be open in the next Program of a kind; ``programs`` are those that there are, of any kind."""
        alike = [one for one in programs if one.kind == kind]
        before = [*((one.plain, one.lengths) for one in alike), *self.without.get(kind, ())]
        present: set[Which] = set()
        for path, value in open_values.plain_values(arguments).items():
            which = (path, open_values.kind_of(value))
            present.add(which)
            values = {value_key(plain[path]) for plain, _ in before if path in plain} | {value_key(value)}
            if open_values.is_open_at_once(which) or len(values) > FIXED:
                self.changing.add(which)
        for path, (what, length) in open_lists.lengths(arguments).items():
            present.add((path, what))
            lengths = {known[path] for _, known in before if path in known} | {(what, length)}
            if len(lengths) > FIXED:
                self.changing.add((path, what))
        found = (self.changing & present) - self.closed.get(kind, set())
        if len(found) > MOST:
            self.close(kind, found)
            return frozenset()
        return frozenset(found)

    def note_without(self, kind: Key, arguments: Arguments) -> None:
        """A call got no Program, for no reason that holds for others of its kind."""
        some = self.without.setdefault(kind, [])
        some.append((open_values.plain_values(arguments), open_lists.lengths(arguments)))
        del some[:-FIXED]

    def close(self, kind: Key, which: Iterable[Which]) -> None:
        """Have constants in place of some values, in calls of a kind."""
        self.closed.setdefault(kind, set()).update(which)

    def note_records(self, arguments: Arguments, programs: Iterable[Specialization]) -> bool:
        """Whether a call that no Program fits shows of a dataclass that it has to be taken apart from now on."""
        given: dict[KeyPath, Any] = {}
        with contextlib.suppress(Exception):  # a look that fails is no reason to: the trace says what is wrong
            given = open_values.records(arguments)
        if not given:
            return False
        with trace_lock:
            found = set()
            every = [one.records for one in programs]
            for path, value in given.items():
                before = {id(one): one for records in every if type(one := records.get(path)) is type(value)}
                if len(before.keys() | {id(value)}) > FIXED:
                    found.add(type(value))
                    self.changing |= _differing(path, [*before.values(), value])
            self.apart |= found
        return bool(found)


def _differing(path: KeyPath, records: list[Any]) -> set[Which]:
    """The fields with plain values in which some instances of a dataclass differ."""
    found = set()
    for one in dataclasses.fields(records[0]):
        values = [getattr(record, one.name, None) for record in records]
        if open_values.can_be_open(values[-1]) and len(set(map(value_key, values))) > 1:
            found.add(((*path, one.name), open_values.kind_of(values[-1])))
    return found


__all__ = ["OpenArguments", "key_of", "kind_of"]
