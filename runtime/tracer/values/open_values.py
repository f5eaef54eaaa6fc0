"""Plain values among a call's arguments that change from call to call: inputs of the Program in place of constants.

    f(x, step=3)    template {"x": TensorSlot(0), "step": 3}             a Program for each number that ``step`` was
                    template {"x": TensorSlot(0), "step": Open(0, int)}  one Program: ``step`` is an input of it

A number enters as numbers outside the arguments do (``python_state/facts.py``). A text is no input: the Program serves
all texts if nothing of it reads the text, and else the trace is of no use. For generators see ``open_generators.py``.
"""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Collection, Iterable, Iterator, Set
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from runtime.ir import ScalarType
from runtime.ir.template import Again, KeyPath, TensorSlot
from runtime.kinds import is_a
from runtime.tracer.ambient.closing import CannotBeOpen
from runtime.tracer.numbers import scalars
from runtime.tracer.python_state.facts import can_be_fact, number_input, number_tensor
from runtime.tracer.values import open_lists
from runtime.tracer.values.arguments import Arguments, Container, Open
from runtime.tracer.values.open_generators import StandIn, is_default, same_generator

if TYPE_CHECKING:
    from runtime.tracer.recording.session import Session

Which = tuple[KeyPath, Any]
"""A place among the arguments, and the kind of the value there."""


def kind_of(value: Any) -> Any:
    """What is the same of values that one Program can serve: the type, of generators the device as well."""
    return (torch.Generator, value.device) if type(value) is torch.Generator else type(value)


def can_be_open(value: Any) -> bool:
    """Whether a value can be an input of the Program, or stand for any other that nothing reads.

    >>> can_be_open(3), can_be_open(0.5), can_be_open("a"), can_be_open(True), can_be_open(2**70)
    (True, True, True, False, False)
    """
    if type(value) is torch.Generator:
        return not is_default(value)
    return type(value) is str or can_be_fact(value)


def is_open_at_once(which: Which) -> bool:
    """Whether a value is open in the first Program already: a generator, of which one is like the other."""
    return type(which[1]) is tuple and which[1][0] is torch.Generator


def stays_open(value: Any, kind: type) -> bool:
    """Whether a value is another one of the same type that can be open."""
    return kind_of(value) == kind and can_be_open(value)


def plain_values(arguments: Arguments) -> dict[KeyPath, Any]:
    """The values among the arguments that can be open and are not, by their paths; in sets there are none."""
    return dict(_values(arguments.template.items(), ()))


def records(arguments: Arguments) -> dict[KeyPath, Any]:
    """Instances of dataclasses among the arguments that are not taken apart, by their paths."""
    return dict(_records(arguments.template.items(), ()))


def _records(items: Iterable[tuple[Any, Any]], path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for step, value in items:
        if is_a(value, Container):
            yield from _records(_items(value), (*path, step))
        elif dataclasses.is_dataclass(type(value)) and not is_a(value, (TensorSlot, Again, Open)):
            yield (*path, step), value


def _values(items: Iterable[tuple[Any, Any]], path: KeyPath) -> Iterator[tuple[KeyPath, Any]]:
    for step, value in items:
        if can_be_open(value):
            yield (*path, step), value
        elif is_a(value, Container):
            yield from _values(_items(value), (*path, step))


def _items(node: Container) -> Iterable[tuple[Any, Any]]:
    if node.keys is not None:
        return zip(node.keys, node.items)
    return () if node.kind is set else enumerate(node.items)


def opened(arguments: Arguments, which: Collection[Which]) -> Arguments:
    """The arguments with some of their plain values open: those in ``which`` that there are. Themselves, if none is."""
    found: dict[KeyPath, Any] = {}
    gone: set[int] = set()
    lists = open_lists.lists(arguments) if any(open_lists.is_kind(kind) for _, kind in which) else {}

    def take(value: Any, path: KeyPath) -> Any:
        if is_a(value, Container):
            if value.kind is set:
                return value
            kind = lists.get(path)
            if kind is not None and (path, kind) in which:
                found[path] = [arguments.tensors[slot.index] for slot in value.items]
                gone.update(slot.index for slot in value.items)
                return replace(value, items=(Open(len(found) - 1, kind),), open_length=True)
            items = tuple(take(item, (*path, step)) for step, item in _items(value))
            return value if all(map(operator.is_, items, value.items)) else replace(value, items=items)
        if not can_be_open(value) or (path, kind_of(value)) not in which:
            return value
        if type(value) is torch.Generator:
            for index, one in enumerate(found.values()):
                if is_a(one, torch.Generator) and same_generator(one, value):
                    return Open(index, kind_of(value))
        found[path] = value
        return Open(len(found) - 1, kind_of(value))

    template = {name: take(value, (name,)) for name, value in arguments.template.items()}
    if not found:
        return arguments
    made = replace(arguments, template=template, opened=found)
    return open_lists.without_tensors(made, gone) if gone else made


def which(arguments: Arguments) -> Iterator[Which]:
    """What is open among the arguments."""
    yield from _opens(arguments.template.items(), ())


def _opens(items: Iterable[tuple[Any, Any]], path: KeyPath) -> Iterator[Which]:
    for step, value in items:
        if is_a(value, Open):
            yield (*path, step), value.kind
        elif is_a(value, Container) and value.open_length:
            yield (*path, step), value.items[0].kind
        elif is_a(value, Container):
            yield from _opens(_items(value), (*path, step))


def label(path: KeyPath) -> str:
    """What a user would write for a place.

    >>> label(("options", "lr")), label(("steps", 0))
    ("options['lr']", 'steps[0]')
    """
    name, *steps = path
    return str(name) + "".join(f"[{step!r}]" for step in steps)


def enter(session: Session, arguments: Arguments) -> list[Any]:
    """The staged values that stand for open ones in a trace; numbers become inputs of the Program."""
    found: list[Any] = []
    for path, value in arguments.opened.items():
        if type(value) is str:
            found.append(scalars.wrap(session.new_variable(ScalarType("str"), label(path), session.root())))
        elif type(value) is list:
            found.append(open_lists.enter(session, value, label(path)))
        elif is_a(value, torch.Generator):
            stand_in = StandIn(value.device)
            stand_in.tracing = False
            stand_in.set_state(value.get_state())
            stand_in.tracing = True
            found.append(stand_in)
        else:
            found.append(number_input(session, value, label(path)))
    return found


def inputs(arguments: Arguments) -> list[Any]:
    """The inputs of a Program for the open numbers and lists of a call, in their order."""
    return [value if type(value) is list else number_tensor(value)
            for value in arguments.opened.values() if type(value) in _INPUTS]  # fmt: skip


_INPUTS = (int, float, list)


def numbers_of(values: Iterable[Any]) -> list[torch.Tensor]:
    """The inputs of a Program for open values of which none is a list."""
    return [number_tensor(value) for value in values if type(value) is not str]


def require_no_whole(arguments: Arguments, whole: Set[int]) -> None:
    """Raises CannotBeOpen if a container stays the caller's own: its numbers are what they are."""
    if whole and arguments.opened:
        raise CannotBeOpen("a container among the arguments is one that is known elsewhere")


def require_unread(session: Session, values: list[Any]) -> None:
    """Raises CannotBeOpen if the Program reads a text that has no value when it runs."""
    texts = {one.var for one in values if is_a(one, scalars.StagedStr)}
    if texts and any(used in texts for used in session.program.block.captures()):
        raise CannotBeOpen("a text among the arguments is read")


__all__ = [
    "Which", "can_be_open", "enter", "inputs", "is_open_at_once", "kind_of", "label", "numbers_of", "opened",
    "plain_values", "records", "require_no_whole", "require_unread", "stays_open", "which",
]  # fmt: skip
